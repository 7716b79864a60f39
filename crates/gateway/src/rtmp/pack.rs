use braidcast_core::{Instant, Unwrapper};
use braidcast_media::ts::{Coding, Elementary, ElementaryUnit};
use std::collections::VecDeque;

/// Units of 1/90,000 s in a millisecond.
const TICKS: u64 = 90;
/// Samples in a frame of AAC.
const SAMPLES: u64 = 1024;
/// Frequencies by their numbers in ADTS (ISO/IEC 14496-3 table 1.18), in Hz.
const FREQUENCIES: [u64; 13] =
    [96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8000, 7350];
/// Bytes of an ADTS header without a checksum, and with one.
const ADTS: (usize, usize) = (7, 9);

/// The payload of an audio or video message, as FLV has it, H.265 as enhanced RTMP has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Piece {
    /// Else it is audio.
    pub video: bool,
    /// Decoding time since the first piece, in ms.
    pub time: u32,
    /// What goes into the message.
    pub payload: Vec<u8>,
}

/// What was counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PackCounts {
    /// Frames of video.
    pub video: u64,
    /// Frames of audio.
    pub audio: u64,
    /// Units of codecs that RTMP does not carry, and of further programs.
    pub foreign: u64,
    /// Frames of video that came in part, and those that followed one.
    pub broken: u64,
}

/// Takes a transport stream to the pieces that RTMP carries: its first H.264 or H.265 and its first AAC.
///
/// It begins with a frame that needs no other, and does so again after one that came in part. Memory: that of
/// [`Elementary`], and the pieces that are not taken.
#[derive(Debug, Default)]
pub struct Pack {
    elementary: Elementary,
    video: Option<Video>,
    audio: Option<Audio>,
    clock: Option<Clock>,
    pieces: VecDeque<Piece>,
    counts: PackCounts,
}

#[derive(Debug)]
struct Video {
    pid: u16,
    /// Parameter sets as they were told last.
    sets: Vec<Vec<u8>>,
    /// All that its frames need has gone.
    flows: bool,
}

#[derive(Debug)]
struct Audio {
    pid: u16,
    /// AudioSpecificConfig as it was told last.
    config: [u8; 2],
}

#[derive(Debug)]
struct Clock {
    numbers: Unwrapper<33>,
    from: u64,
}

impl Pack {
    /// Has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes of the stream, which came at `now`.
    pub fn push(&mut self, now: Instant, bytes: &[u8]) {
        self.elementary.push(now, bytes);
        self.take();
    }

    /// When to push again at the latest, of no bytes if need be.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.elementary.poll_timeout()
    }

    /// The pieces begin anew, for another connection: with what decoders have to know, and from 0 on.
    pub fn restart(&mut self) {
        (self.video, self.audio, self.clock) = (None, None, None);
        self.pieces.clear();
    }

    /// Leaves out what has not been taken, and all video up to the next frame that needs no other.
    pub fn skip(&mut self) {
        self.pieces.clear();
        self.video.iter_mut().for_each(|it| it.flows = false);
    }

    /// The next piece.
    pub fn poll(&mut self) -> Option<Piece> {
        self.pieces.pop_front()
    }

    /// What was counted.
    pub const fn counts(&self) -> PackCounts {
        self.counts
    }

    fn take(&mut self) {
        while let Some(unit) = self.elementary.poll() {
            let video = matches!(unit.coding, Coding::H264 | Coding::H265);
            let taken = match unit.coding {
                Coding::H264 | Coding::H265 => self.video.as_ref().is_none_or(|it| it.pid == unit.pid),
                Coding::Aac => self.audio.as_ref().is_none_or(|it| it.pid == unit.pid),
                _ => false,
            };
            match (taken, video) {
                (false, _) => self.counts.foreign += 1,
                (true, true) => self.take_video(&unit),
                (true, false) => self.take_audio(&unit),
            }
        }
    }

    /// Milliseconds since the first piece; what comes before it has none.
    fn time(&mut self, ticks: u64, begins: bool) -> Option<u64> {
        if self.clock.is_none() && begins {
            let numbers = Unwrapper::new(ticks);
            self.clock = Some(Clock { from: numbers.highest(), numbers });
        }
        let clock = self.clock.as_mut()?;
        clock.numbers.unwrap(ticks).checked_sub(clock.from).map(|ticks| ticks / TICKS)
    }

    fn take_video(&mut self, unit: &ElementaryUnit) {
        let Some(pts) = unit.pts else { return };
        let dts = unit.dts.unwrap_or(pts);
        let flows = self.video.as_ref().is_some_and(|it| it.flows);
        if !unit.whole || !(flows || unit.key) {
            self.video.iter_mut().for_each(|it| it.flows = false);
            self.counts.broken += 1;
            return;
        }
        let Some(time) = self.time(dts, true) else { return };
        let (pid, coding) = (unit.pid, unit.coding);
        let video = self.video.get_or_insert_with(|| Video { pid, sets: Vec::new(), flows: false });
        let is_set = |part: &[u8]| match coding {
            Coding::H264 => matches!(part[0] & 0x1f, 7 | 8),
            _ => matches!(part[0] >> 1 & 0x3f, 32..=34),
        };
        let is_delimiter = |part: &[u8]| match coding {
            Coding::H264 => part[0] & 0x1f == 9,
            _ => part[0] >> 1 & 0x3f == 35,
        };
        let (sets, rest): (Vec<&[u8]>, Vec<&[u8]>) = parts(&unit.bytes).into_iter().partition(|part| is_set(part));
        if unit.key && !sets.is_empty() && (video.sets != sets || !video.flows) {
            let config = if coding == Coding::H264 { avc(&sets) } else { hevc(&sets) };
            if let Some(config) = config {
                video.sets = sets.iter().map(|set| set.to_vec()).collect();
                let payload = [head(coding, true, 0, None), config].concat();
                self.pieces.push_back(Piece { video: true, time: time as u32, payload });
            }
        }
        if video.sets.is_empty() {
            // A decoder could not begin.
            self.counts.broken += 1;
            return;
        }
        video.flows = true;
        let offset = (pts.wrapping_sub(dts) & ((1 << 33) - 1)) / TICKS;
        let mut payload = head(coding, unit.key, 1, Some(offset as u32));
        for part in rest.into_iter().filter(|part| !is_delimiter(part)) {
            payload.extend((part.len() as u32).to_be_bytes());
            payload.extend_from_slice(part);
        }
        self.counts.video += 1;
        self.pieces.push_back(Piece { video: true, time: time as u32, payload });
    }

    fn take_audio(&mut self, unit: &ElementaryUnit) {
        let Some(pts) = unit.pts else { return };
        let mut rest = &unit.bytes[..];
        let mut nth = 0;
        while let Some(Adts { config, frequency, frame, rest: behind }) = Adts::read(rest) {
            rest = behind;
            let ticks = pts + nth * SAMPLES * 90_000 / frequency;
            nth += 1;
            // Audio alone is a stream too, but where there is video that begins it.
            let Some(time) = self.time(ticks & ((1 << 33) - 1), self.video.is_none()) else { continue };
            if self.audio.as_ref().is_none_or(|it| it.config != config) {
                self.audio = Some(Audio { pid: unit.pid, config });
                let payload = vec![0xaf, 0, config[0], config[1]];
                self.pieces.push_back(Piece { video: false, time: time as u32, payload });
            }
            self.counts.audio += 1;
            self.pieces.push_back(Piece { video: false, time: time as u32, payload: [&[0xaf, 1], frame].concat() });
        }
    }
}

/// What stands before a frame or, with `kind` 0, before what a decoder has to know.
fn head(coding: Coding, key: bool, kind: u8, offset: Option<u32>) -> Vec<u8> {
    let frame = if key { 1 } else { 2 };
    let offset = offset.map(|it| it.to_be_bytes()).map(|[_, a, b, c]| [a, b, c]);
    match coding {
        Coding::H264 => [&[frame << 4 | 7, kind][..], &offset.unwrap_or_default()].concat(),
        _ => [&[0x80 | frame << 4 | kind][..], b"hvc1", offset.as_ref().map_or(&[], |it| &it[..])].concat(),
    }
}

/// The NAL units between start codes (ISO/IEC 14496-10 annex B), none of which is empty.
fn parts(bytes: &[u8]) -> Vec<&[u8]> {
    let starts: Vec<usize> =
        bytes.windows(3).enumerate().filter(|(_, it)| *it == [0, 0, 1]).map(|(at, _)| at).collect();
    let ends = starts.iter().skip(1).copied().chain([bytes.len()]);
    let part = |(start, end): (&usize, usize)| {
        let part = &bytes[start + 3..end];
        // A fourth zero belongs to the next start code.
        let len = part.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        &part[..len]
    };
    starts.iter().zip(ends).map(part).filter(|part| !part.is_empty()).collect()
}

/// Appends a parameter set with its length.
fn write_set(set: &[u8], out: &mut Vec<u8>) -> Option<()> {
    out.extend(u16::try_from(set.len()).ok()?.to_be_bytes());
    out.extend_from_slice(set);
    Some(())
}

/// `avcC` (ISO/IEC 14496-15 §5.3.3) with the first set of each kind.
fn avc(sets: &[&[u8]]) -> Option<Vec<u8>> {
    let of = |kind: u8| sets.iter().find(|set| set[0] & 0x1f == kind);
    let (sequence, picture) = (of(7)?, of(8)?);
    let &[_, profile, constraints, level, ..] = *sequence else { return None };
    let mut out = vec![1, profile, constraints, level, 0xff, 0xe1];
    write_set(sequence, &mut out)?;
    out.push(1);
    write_set(picture, &mut out)?;
    Some(out)
}

/// `hvcC` (ISO/IEC 14496-15 §8.3.3). Chroma and depths are those of the profiles Main and Main 10: decoders read the
/// sequence's own.
fn hevc(sets: &[&[u8]]) -> Option<Vec<u8>> {
    let of = |kind: u8| sets.iter().find(|set| set[0] >> 1 & 0x3f == kind);
    let (video, sequence, picture) = (of(32)?, of(33)?, of(34)?);
    // Two bytes of header, one of the set's own, then profile, tier and level (ISO/IEC 23008-2 §7.3.2.2).
    let plain = without_prevention(sequence);
    let (layers, profile) = (*plain.get(2)?, plain.get(3..15)?);
    let depth = u8::from(profile[0] & 0x1f == 2) * 2;
    let temporal = (layers >> 1 & 7) + 1;
    let mut out = vec![1];
    out.extend_from_slice(profile);
    out.extend([0xf0, 0, 0xfc, 0xfd, 0xf8 | depth, 0xf8 | depth, 0, 0, temporal << 3 | (layers & 1) << 2 | 3, 3]);
    for (kind, set) in [(32, video), (33, sequence), (34, picture)] {
        out.extend([0x80 | kind, 0, 1]);
        write_set(set, &mut out)?;
    }
    Some(out)
}

/// A NAL unit's beginning without the bytes that keep start codes out of it (ISO/IEC 23008-2 §7.3.1.1).
fn without_prevention(part: &[u8]) -> Vec<u8> {
    let mut out: Vec<u8> = Vec::new();
    for &byte in part.iter().take(64) {
        if byte != 3 || !out.ends_with(&[0, 0]) {
            out.push(byte);
        }
    }
    out
}

/// A frame of ADTS.
#[derive(PartialEq, Eq, Debug)]
struct Adts<'a> {
    /// AudioSpecificConfig.
    config: [u8; 2],
    /// Samples a second.
    frequency: u64,
    /// Without its header.
    frame: &'a [u8],
    /// What is behind it.
    rest: &'a [u8],
}

impl<'a> Adts<'a> {
    /// Reads the first frame in `bytes` (ISO/IEC 14496-3 §1.A.2.2).
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let &[0xff, second, third, fourth, fifth, sixth, ..] = bytes else { return None };
        if second & 0xf6 != 0xf0 {
            return None;
        }
        let (profile, index, channels) = (third >> 6, third >> 2 & 15, (third & 1) << 2 | fourth >> 6);
        let frequency = *FREQUENCIES.get(usize::from(index))?;
        let length = usize::from(fourth & 3) << 11 | usize::from(fifth) << 3 | usize::from(sixth >> 5);
        let header = if second & 1 == 1 { ADTS.0 } else { ADTS.1 };
        let (whole, rest) = bytes.split_at_checked(length)?;
        let config = u16::from(profile + 1) << 11 | u16::from(index) << 7 | u16::from(channels) << 3;
        Some(Self { config: config.to_be_bytes(), frequency, frame: whole.get(header..)?, rest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn parts_stand_between_start_codes_of_three_and_four_bytes() {
        let bytes = [0, 0, 0, 1, 9, 0xf0, 0, 0, 1, 0x67, 1, 2, 0, 0, 0, 1, 0x65, 0, 0, 3, 1];
        assert_eq!(parts(&bytes), [&[9, 0xf0][..], &[0x67, 1, 2], &[0x65, 0, 0, 3, 1]]);
        assert!(parts(&[0, 0, 1, 0, 0, 0, 1]).is_empty() && parts(&[]).is_empty() && parts(&[5; 9]).is_empty());
    }

    #[test]
    fn frames_of_adts_say_what_a_decoder_has_to_know() {
        // Low complexity, 48 kHz, two channels.
        let bytes = [0xff, 0xf1, 0x4c, 0x80, 1, 0x5f, 0xfc, 1, 2, 3, 0xff];
        let expected = Adts { config: [0x11, 0x90], frequency: 48_000, frame: &[1, 2, 3], rest: &[0xff] };
        assert_eq!(Adts::read(&bytes), Some(expected));
        assert_eq!(Adts::read(&bytes[..9]), None);
        assert_eq!(Adts::read(&[0xff, 0xf1, 0x7c, 0x80, 1, 0x5f, 0xfc, 1, 2, 3]), None, "a frequency that is none");
    }

    #[test]
    fn parameter_sets_of_main_10_say_so() {
        let sequence = [0x42, 1, 1, 2, 0x20, 0, 0, 3, 0, 0x90, 0, 0, 3, 0, 0, 3, 0, 93, 0xa0];
        let config = hevc(&[&[0x40, 1, 0xc], &sequence, &[0x44, 1, 0xc1]]).unwrap();
        assert_eq!(config[..13], [1, 2, 0x20, 0, 0, 0, 0x90, 0, 0, 0, 0, 0, 93]);
        assert_eq!(config[13..23], [0xf0, 0, 0xfc, 0xfd, 0xfa, 0xfa, 0, 0, 0x0f, 3]);
        assert_eq!(hevc(&[&[0x42, 1, 1], &[0x40, 1], &[0x44, 1]]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_packed_or_not(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = (Adts::read(&bytes), parts(&bytes));
            for sets in [parts(&bytes), vec![&bytes[..bytes.len().min(1)]]] {
                let sets: Vec<&[u8]> = sets.into_iter().filter(|set| !set.is_empty()).collect();
                let _ = (avc(&sets), hevc(&sets));
            }
        }
    }
}
