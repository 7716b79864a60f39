//! What a reliable sender keeps until the receiver has written it.

use crate::identity::{Content, Digest};
use braidcast_media::{Kind, Run, Unit};
use std::collections::VecDeque;

/// `true` if both ends know where the stream goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Agreement {
    /// The receiver has not said yet what it has.
    Asking,
    /// The application is to say where it goes on.
    Deciding,
    /// It has begun, or goes on.
    Going,
}

/// What to do about what the receiver has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Resumption {
    /// Go on from this offset; what is kept from there on goes again.
    From(u64),
    /// Only the application can tell, or reach, what comes then.
    Ask,
}

/// Bytes of a reliable stream between what the receiver has written and what the application has handed over.
#[derive(Debug)]
pub(super) struct Transfer {
    agreement: Agreement,
    /// Units that are not known to be written, in order; those before `sent` went to the present association.
    kept: VecDeque<Unit>,
    sent: usize,
    /// Bytes in `kept`.
    bytes: u64,
    /// What comes before `kept`.
    before: Content,
    /// Index after the last packet that was handed over.
    next_index: u64,
    /// Units of a transport stream went out, which interleave: no offset says where a new association could go on.
    woven: bool,
    /// The end was told over the present association.
    pub(super) end_told: bool,
    /// All is written and flushed.
    pub(super) confirmed: bool,
}

impl Default for Transfer {
    fn default() -> Self {
        Self {
            agreement: Agreement::Asking,
            kept: VecDeque::new(),
            sent: 0,
            bytes: 0,
            before: Content::default(),
            next_index: 0,
            woven: false,
            end_told: false,
            confirmed: false,
        }
    }
}

impl Transfer {
    /// A new association: ask again.
    pub(super) fn ask(&mut self) {
        self.agreement = Agreement::Asking;
        self.sent = 0;
        self.end_told = false;
    }

    pub(super) fn is_asking(&self) -> bool {
        self.agreement == Agreement::Asking
    }

    /// Returns `true` if units may go.
    pub(super) fn is_going(&self) -> bool {
        self.agreement == Agreement::Going
    }

    /// Returns `true` if everything handed over went to the present association.
    pub(super) fn is_all_sent(&self) -> bool {
        self.sent == self.kept.len()
    }

    /// Bytes handed over so far.
    pub(super) const fn end(&self) -> u64 {
        self.before.len() + self.bytes
    }

    /// Bytes known to be written.
    pub(super) const fn written_bytes(&self) -> u64 {
        self.before.len()
    }

    pub(super) const fn kept_bytes(&self) -> u64 {
        self.bytes
    }

    /// A unit was handed to the association.
    pub(super) fn push_sent(&mut self, unit: Unit) {
        self.next_index = unit.runs.last().map_or(0, Run::end).max(self.next_index);
        if unit.kind == Kind::Data {
            self.bytes += unit.bytes.len() as u64;
            self.kept.push_back(unit);
            self.sent += 1;
        } else {
            self.woven = true;
        }
    }

    /// The next unit to send again.
    pub(super) fn next(&self) -> Option<&Unit> {
        self.kept.get(self.sent)
    }

    /// That one was handed to the association.
    pub(super) const fn advance(&mut self) {
        self.sent += 1;
    }

    /// Index of the first packet of what goes next.
    pub(super) fn next_index(&self) -> u64 {
        self.next().map_or(self.next_index, Unit::first_index)
    }

    /// Bytes that the present association has yet to get.
    pub(super) fn unsent_bytes(&self) -> u64 {
        self.kept.iter().skip(self.sent).map(|unit| unit.bytes.len() as u64).sum()
    }

    /// The receiver has written so many bytes.
    pub(super) fn written(&mut self, offset: u64) {
        while let Some(unit) = self.kept.front()
            && self.sent > 0
            && self.before.len() + unit.bytes.len() as u64 <= offset
        {
            self.drop_first();
            self.sent -= 1;
        }
    }

    fn drop_first(&mut self) {
        if let Some(unit) = self.kept.pop_front() {
            self.bytes -= unit.bytes.len() as u64;
            self.before.update(&unit.bytes);
        }
    }

    /// The receiver has `offset` bytes with this hash.
    pub(super) fn resume(&mut self, offset: u64, digest: Digest) -> Resumption {
        if self.woven {
            self.agreement = Agreement::Deciding;
            return Resumption::Ask;
        }
        let same = (self.before.len()..=self.end()).contains(&offset) && self.digest_at(offset) == digest;
        if !same {
            self.agreement = Agreement::Deciding;
            return Resumption::Ask;
        }
        while let Some(unit) = self.kept.front_mut() {
            let left = (offset - self.before.len()) as usize;
            if left >= unit.bytes.len() {
                self.drop_first();
                continue;
            }
            if left > 0 {
                let part: Vec<u8> = unit.bytes.drain(..left).collect();
                self.before.update(&part);
                self.bytes -= part.len() as u64;
            }
            break;
        }
        self.agreement = Agreement::Going;
        Resumption::From(offset)
    }

    fn digest_at(&self, offset: u64) -> Digest {
        let mut content = self.before.clone();
        for unit in &self.kept {
            let left = offset.saturating_sub(content.len()).min(unit.bytes.len() as u64);
            content.update(&unit.bytes[..left as usize]);
        }
        content.digest()
    }

    /// The application goes on behind `before`. Returns `true` if it was asked.
    pub(super) fn go_on(&mut self, before: Content) -> bool {
        let asked = self.agreement == Agreement::Deciding;
        if asked {
            *self = Self { agreement: Agreement::Going, before, ..Self::default() };
        }
        asked
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braidcast_core::Instant;

    fn unit(index: u64, bytes: &[u8]) -> Unit {
        Unit {
            kind: Kind::Data,
            reference: true,
            continues: false,
            more: false,
            pid: 0,
            runs: vec![Run::one(index, false)],
            bytes: bytes.to_vec(),
            first_captured: Instant::ZERO,
            last_captured: Instant::ZERO,
            pts: None,
            dts: None,
        }
    }

    fn digest(bytes: &[u8]) -> Digest {
        let mut content = Content::default();
        content.update(bytes);
        content.digest()
    }

    fn three() -> Transfer {
        let mut it = Transfer::default();
        assert_eq!(it.resume(0, digest(b"")), Resumption::From(0));
        (0..3).zip([b"abc", b"def", b"ghi"]).for_each(|(n, bytes)| it.push_sent(unit(n, bytes)));
        it
    }

    #[test]
    fn what_is_written_is_let_go_and_the_rest_goes_again_from_the_very_byte() {
        let mut it = three();
        it.written(5);
        assert_eq!((it.written_bytes(), it.kept_bytes(), it.end()), (3, 6, 9));
        it.ask();
        assert_eq!(it.resume(5, digest(b"abcde")), Resumption::From(5));
        assert_eq!(it.next().map(|unit| (unit.first_index(), &unit.bytes[..])), Some((1, &b"f"[..])));
        it.advance();
        assert!(!it.is_all_sent());
        it.advance();
        assert!(it.is_all_sent() && it.end() == 9);
    }

    #[test]
    fn other_bytes_and_what_is_let_go_are_a_matter_of_the_application() {
        for (offset, have) in [(5, &b"abcdX"[..]), (2, b"ab"), (10, b"abcdefghij")] {
            let mut it = three();
            it.written(3);
            it.ask();
            assert_eq!(it.resume(offset, digest(have)), Resumption::Ask);
            assert!(!it.is_going());
            let mut before = Content::default();
            before.update(b"ab");
            assert!(it.go_on(before) && it.is_going() && it.end() == 2 && it.is_all_sent());
        }
    }

    #[test]
    fn all_of_it_may_be_there_already() {
        let mut it = three();
        it.ask();
        assert_eq!(it.resume(9, digest(b"abcdefghi")), Resumption::From(9));
        assert!(it.is_all_sent() && it.next_index() == 3);
    }
}
