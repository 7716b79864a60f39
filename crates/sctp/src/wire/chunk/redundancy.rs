use core::fmt;

use braidcast_core::Writer;
use braidcast_fec::{Code, PREFIX};

use super::{emit, kind};
use crate::wire::{ParseError, RawChunk, padded};

/// A linear combination of data chunks, from which a lost one of them can be computed (ECMT §II;
/// our own layout, decision 14).
///
/// ```text
/// | type 0xb0      8 | rule       8 | length          16 |
/// | TSN of the first chunk of the range              32 |
/// | chunks of the range  16 | key of the coefficients 16 |
/// | which of them are in: a bit each, first one highest,
///   to whole bytes …                                     |
/// | coded bytes …                                        |
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Redundancy<'a> {
    /// Where the coefficients come from: [`CAUCHY`](Self::CAUCHY) or [`RANDOM`](Self::RANDOM). It stands in the flags.
    pub rule: u8,
    /// TSN of the first chunk of the range.
    pub first_tsn: u32,
    /// Chunks of the range.
    pub count: u16,
    /// The row of the matrix, or the seed.
    pub key: u16,
    /// Which chunks of the range are in: `count` bits; those behind them say nothing.
    pub covered: &'a [u8],
    /// The sum of the chunks, each with its length in front, times their coefficients.
    pub coded: &'a [u8],
}

impl<'a> Redundancy<'a> {
    /// The chunk type: one that who does not know it skips without a word (RFC 9260 §3.2). Not registered with IANA.
    pub const KIND: u8 = kind::REDUNDANCY;
    /// Bytes in front of the bits.
    pub const HEADER: usize = 12;
    /// Chunks that a range may have: the bits fill 64 bytes.
    pub(crate) const MAX_RANGE: u16 = 512;
    /// A row of a Cauchy matrix, column 0 for the first chunk of the range.
    pub const CAUCHY: u8 = 0;
    /// RFC 8681 §3.6: TinyMT32 with the key as the seed, the first number for the first chunk of the range.
    pub const RANDOM: u8 = 1;

    /// Bytes that a redundancy chunk by `code` needs at most in excess of the longest data chunk that it covers.
    pub(crate) fn reserve(code: Code) -> usize {
        padded(Self::HEADER + Self::bits(code.window().min(Self::MAX_RANGE)) + PREFIX)
    }

    /// Bytes that hold `count` bits.
    pub(crate) const fn bits(count: u16) -> usize {
        count.div_ceil(8) as usize
    }

    /// Returns `true` if chunk `n` of the range is in.
    pub(crate) fn covers(&self, n: usize) -> bool {
        self.covered.get(n / 8).is_some_and(|byte| byte << (n % 8) & 0x80 != 0)
    }

    /// Reads the chunk.
    ///
    /// # Errors
    /// [`ParseError::Length`] if the range's bits are not all there.
    pub fn parse(raw: RawChunk<'a>) -> Result<Self, ParseError> {
        let mut fields = raw.fields();
        let (first_tsn, count, key) = (fields.u32()?, fields.u16()?, fields.u16()?);
        let covered = fields.take(Self::bits(count))?;
        Ok(Self { rule: raw.flags, first_tsn, count, key, covered, coded: fields.rest() })
    }

    /// Appends the chunk.
    pub fn emit(&self, w: &mut Writer<'_>) {
        emit(w, Self::KIND, self.rule, |w| {
            w.u32(self.first_tsn);
            w.u16(self.count);
            w.u16(self.key);
            w.bytes(self.covered);
            w.bytes(self.coded);
        });
    }
}

impl fmt::Display for Redundancy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let &Self { rule, first_tsn, count, key, coded, .. } = self;
        let covered = (0..usize::from(count)).filter(|&n| self.covers(n)).count();
        write!(f, "REDUNDANCY tsn={first_tsn} of={count} covered={covered} rule={rule} key={key} len={}", coded.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Place, chunk::*};

    const BYTES: [u8; 20] = [0xb0, 1, 0, 17, 0, 0, 1, 0, 0, 10, 0, 7, 0b1010_0000, 0b0100_0000, 1, 2, 3, 0, 0, 0];

    #[test]
    fn redundancy_is_laid_out_as_decision_14_draws_it() {
        let covered = &[0b1010_0000, 0b0100_0000];
        let chunk = Redundancy { rule: 1, first_tsn: 256, count: 10, key: 7, covered, coded: &[1, 2, 3] };
        check(&BYTES, Chunk::Redundancy(chunk), "REDUNDANCY tsn=256 of=10 covered=3 rule=1 key=7 len=3");
        assert_eq!((0..20).filter(|&n| chunk.covers(n)).collect::<Vec<_>>(), [0, 2, 9]);
    }

    #[test]
    fn a_range_that_is_longer_than_the_chunk_is_refused() {
        let raw = RawChunk { kind: 0xb0, flags: 1, value: &BYTES[4..13], bytes: &BYTES[..13], offset: 12 };
        let place = Place::Chunk(Redundancy::KIND);
        assert_eq!(Redundancy::parse(raw), Err(ParseError::Length { place, given: 13, needed: 14 }));
    }
}
