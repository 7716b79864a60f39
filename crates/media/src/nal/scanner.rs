use super::h265::H265;
use super::h266::H266;
use super::{Part, Picture, h264, mpeg};
use crate::unit::Kind;
use memchr::memmem::Finder;

/// Bytes behind a start code within which all that is read stands.
const HEAD: usize = 48;
/// Bytes behind a start code that say what it is.
const SHORT: usize = 3;
/// Frames from one recovery point to the next, at least: an encoder that marks each frame marks none.
const ENTRIES_APART: u32 = 5;

/// How frames are coded.
#[derive(Debug)]
pub(crate) enum Syntax {
    H264,
    H265(Box<H265>),
    H266(H266),
    Mpeg2,
    Mpeg4,
}

impl Syntax {
    pub(crate) fn h265() -> Self {
        Self::H265(Box::new(H265::new()))
    }

    fn part(&mut self, unit: &[u8]) -> Part {
        match self {
            Self::H264 => h264::part(unit),
            Self::H265(h265) => h265.part(unit),
            Self::H266(h266) => h266.part(unit),
            Self::Mpeg2 => mpeg::mpeg2(unit),
            Self::Mpeg4 => mpeg::mpeg4(unit),
        }
    }
}

/// What was found in a piece of an elementary stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Found {
    /// Another access unit begins here: behind the start code, so many bytes into the piece.
    Begins(usize),
    /// The access unit's frame, or a part of it, is such a one.
    Picture(Picture),
}

/// Finds access units in an elementary stream with start codes (00 00 01) that comes in pieces.
///
/// Memory: 48 bytes of a header that is cut, and what [`H265`] remembers.
#[derive(Debug)]
pub(crate) struct Scanner {
    syntax: Syntax,
    finder: Finder<'static>,
    /// Zeros at the end of the piece before, at most 2.
    zeros: u8,
    /// The beginning of what stands behind the last start code, if the piece ended within it.
    head: Vec<u8>,
    /// More of it could say more.
    waits: bool,
    /// It was long enough to say what it is.
    known: bool,
    in_picture: bool,
    /// A recovery point stood in front of the frame.
    entry: bool,
    /// The frame that is being read is one from which decoding can begin, for that.
    at_entry: bool,
    /// Frames since the last recovery point.
    since_entry: u32,
}

impl Scanner {
    pub(crate) fn new(syntax: Syntax) -> Self {
        Self {
            syntax,
            finder: Finder::new(&[0, 0, 1]),
            zeros: 0,
            head: Vec::new(),
            waits: false,
            known: false,
            in_picture: false,
            entry: false,
            at_entry: false,
            since_entry: ENTRIES_APART,
        }
    }

    /// Returns `true` if a frame has begun and no other access unit since.
    pub(crate) const fn is_in_picture(&self) -> bool {
        self.in_picture
    }

    /// Something of the stream is missing, or cannot be read: what comes next begins a frame.
    pub(crate) fn restart(&mut self) {
        (self.zeros, self.in_picture, self.entry) = (0, false, false);
        self.waits = false;
    }

    /// Takes the next piece, and appends to `found` what is in it.
    pub(crate) fn scan(&mut self, piece: &[u8], found: &mut Vec<Found>) {
        self.complete(piece, found);
        let over_the_border = match (self.zeros, piece) {
            (2.., [1, ..]) => Some(1),
            (1.., [0, 1, ..]) => Some(2),
            _ => None,
        };
        let mut next = over_the_border.or_else(|| self.finder.find(piece).map(|at| at + 3));
        while let Some(at) = next {
            let rest = piece.get(at..).unwrap_or_default();
            let end = self.finder.find(rest);
            self.begin(at, &rest[..end.unwrap_or(rest.len())], end.is_some(), found);
            next = end.map(|end| at + end + 3);
        }
        let zeros = piece.iter().rev().take(2).take_while(|byte| **byte == 0).count() as u8;
        self.zeros = if usize::from(zeros) == piece.len() { (self.zeros + zeros).min(2) } else { zeros };
    }

    /// What the piece before ended with goes on.
    fn complete(&mut self, piece: &[u8], found: &mut Vec<Found>) {
        if !core::mem::take(&mut self.waits) {
            return;
        }
        let wanted = &piece[..HEAD.saturating_sub(self.head.len()).min(piece.len())];
        let end = self.finder.find(wanted);
        self.head.extend_from_slice(&wanted[..end.unwrap_or(wanted.len())]);
        if self.head.len() < SHORT && end.is_none() {
            self.waits = true;
            return;
        }
        let part = self.syntax.part(&self.head);
        let known = core::mem::replace(&mut self.known, true);
        let more = match (known, part) {
            (false, part) => self.take(0, part, found),
            (true, Part::First(picture) | Part::Rest(picture)) => self.picture(picture, found),
            (true, Part::Entry) => {
                self.entry = true;
                false
            }
            (true, _) => matches!(part, Part::Front),
        };
        self.waits = more && end.is_none() && self.head.len() < HEAD;
    }

    /// A start code ends `at` bytes into the piece; `unit` stands behind it, `whole` or cut off.
    fn begin(&mut self, at: usize, unit: &[u8], whole: bool, found: &mut Vec<Found>) {
        self.known = whole || unit.len() >= SHORT;
        let more = if self.known {
            let part = self.syntax.part(&unit[..unit.len().min(HEAD)]);
            self.take(at, part, found) || matches!(part, Part::Front)
        } else {
            true
        };
        self.waits = more && !whole && unit.len() < HEAD;
        if self.waits {
            self.head.clear();
            self.head.extend_from_slice(unit);
        }
    }

    /// Returns `true` if more bytes could say more.
    fn take(&mut self, at: usize, part: Part, found: &mut Vec<Found>) -> bool {
        if matches!(part, Part::Front | Part::Entry | Part::First(_)) && self.in_picture {
            found.push(Found::Begins(at));
            self.in_picture = false;
        }
        match part {
            Part::First(picture) => {
                self.in_picture = true;
                self.since_entry = self.since_entry.saturating_add(1);
                let entry = core::mem::take(&mut self.entry);
                self.at_entry = entry && self.since_entry > ENTRIES_APART;
                self.since_entry = if entry { 0 } else { self.since_entry };
                self.picture(picture, found)
            }
            Part::Rest(picture) => {
                self.in_picture = true;
                self.picture(picture, found)
            }
            Part::Entry => {
                self.entry = true;
                false
            }
            Part::Front | Part::Nothing => false,
        }
    }

    fn picture(&mut self, picture: Option<Picture>, found: &mut Vec<Found>) -> bool {
        let Some(mut picture) = picture else { return true };
        if self.at_entry && picture.reference {
            // Decoding can begin here, though not with a whole frame: a wave of intra refresh begins. That holds for
            // all its slices.
            picture.kind = Kind::I;
        }
        found.push(Found::Picture(picture));
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const AUD: [u8; 6] = [0, 0, 0, 1, 9, 0xf0];
    /// Two slices of an I frame, and the one of a B frame.
    const I: [u8; 14] = [0, 0, 1, 0x65, 0b1000_1000, 0x80, 7, 0, 0, 1, 0x65, 0b0100_0010, 0x20, 7];
    const B: [u8; 6] = [0, 0, 1, 0x01, 0b1010_0000, 7];

    fn all(pieces: &[&[u8]]) -> Vec<Found> {
        let (mut scanner, mut found) = (Scanner::new(Syntax::H264), Vec::new());
        pieces.iter().for_each(|piece| scanner.scan(piece, &mut found));
        found
    }

    fn picture(kind: Kind, reference: bool) -> Found {
        Found::Picture(Picture { kind, reference })
    }

    #[test]
    fn a_delimiter_and_a_first_slice_begin_an_access_unit() {
        let stream = [&AUD[..], &I, &AUD, &B, &B].concat();
        let i = picture(Kind::I, true);
        let b = picture(Kind::B, false);
        assert_eq!(all(&[&stream]), [i, i, Found::Begins(24), b, Found::Begins(35), b]);
    }

    #[test]
    fn a_recovery_point_makes_an_entry_of_the_picture_behind_it_but_not_of_each() {
        let p = [0, 0, 1, 0x41, 0b1110_0000, 7];
        let sei = [0, 0, 1, 6, 6, 1, 0xc4, 0x80];
        let (rare, each) = ([&sei[..], &p.repeat(9)].concat(), [&sei[..], &p].concat());
        let kinds = |stream: &[u8]| -> String {
            let kind = |found: Found| if let Found::Picture(picture) = found { picture.kind.name() } else { "" };
            all(&[stream]).into_iter().map(kind).collect()
        };
        assert_eq!(kinds(&rare.repeat(2)), "IPPPPPPPPIPPPPPPPP");
        assert_eq!(kinds(&each.repeat(4)), "IPPP");
        let second_slice = [0, 0, 1, 0x41, 0b0101_0000, 7];
        assert_eq!(kinds(&[&each[..], &second_slice, &p].concat()), "IIP");
    }

    proptest! {
        #[test]
        fn pieces_of_any_size_say_the_same(cuts in prop::collection::vec(1_usize..9, 1..20)) {
            let stream = [&AUD[..], &I, &AUD, &B, &AUD, &I, &B].concat();
            let (mut pieces, mut rest) = (Vec::new(), &stream[..]);
            for cut in cuts {
                let (piece, later) = rest.split_at(cut.min(rest.len()));
                pieces.push(piece);
                rest = later;
            }
            pieces.push(rest);
            let plain = |found: Vec<Found>| -> Vec<Found> {
                let anywhere = |it| if matches!(it, Found::Begins(_)) { Found::Begins(0) } else { it };
                found.into_iter().map(anywhere).collect()
            };
            prop_assert_eq!(plain(all(&pieces)), plain(all(&[&stream])));
        }
    }
}
