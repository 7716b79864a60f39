use core::fmt;

use braidcast_core::Writer;

use super::{Duplicates, GapBlock, GapBlocks, Sack, emit, kind};
use crate::wire::{Entries, Entry, ParseError, RawChunk};

/// What has arrived, and what of it will not be dropped again (draft-natarajan-tsvwg-sctp-nrsack-08).
///
/// ```text
/// | type 16             8 | flags               8 | length          16 |
/// | cumulative TSN ack                                              32 |
/// | advertised receiver window credit                               32 |
/// | renegable gap blocks                16 | non-renegable ones     16 |
/// | duplicate TSNs                      16 | reserved 0             16 |
/// | gap start            16 | gap end                              16 | … renegable
/// | gap start            16 | gap end                              16 | … non-renegable
/// | duplicate TSN                                                   32 | …
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NrSack<'a> {
    /// What a [`Sack`] says; its gap blocks are those that the receiver may still drop.
    pub sack: Sack<'a>,
    /// What arrived above the cumulative TSN and stays: the sender need not keep it.
    pub kept: GapBlocks<'a>,
}

impl<'a> NrSack<'a> {
    /// The chunk type.
    pub const KIND: u8 = kind::NR_SACK;
    /// Bytes in front of the gap blocks, which take four each, as do the duplicates.
    pub const HEADER: usize = 20;

    /// Reads the chunk.
    ///
    /// # Errors
    /// [`ParseError::Length`] where the length is not what the three counts say.
    pub fn parse(raw: RawChunk<'a>) -> Result<Self, ParseError> {
        let mut fields = raw.fields();
        let cumulative_tsn = fields.u32()?;
        let a_rwnd = fields.u32()?;
        let gaps = usize::from(fields.u16()?);
        let kept = usize::from(fields.u16()?);
        let duplicates = usize::from(fields.u16()?);
        fields.u16()?;
        let gaps = Entries::new(fields.take(gaps * GapBlock::SIZE)?);
        let kept = Entries::new(fields.take(kept * GapBlock::SIZE)?);
        let duplicates = Duplicates::new(fields.take(duplicates * u32::SIZE)?);
        fields.end()?;
        Ok(Self { sack: Sack { cumulative_tsn, a_rwnd, flags: raw.flags, gaps, duplicates }, kept })
    }

    /// Appends the chunk.
    pub fn emit(&self, w: &mut Writer<'_>) {
        let Self { sack, kept } = self;
        emit(w, Self::KIND, sack.flags, |w| {
            w.u32(sack.cumulative_tsn);
            w.u32(sack.a_rwnd);
            // `emit` sees to it that the chunk, hence all counts, fit 16 bits.
            w.u16(sack.gaps.len() as u16);
            w.u16(kept.len() as u16);
            w.u16(sack.duplicates.len() as u16);
            w.u16(0);
            w.bytes(sack.gaps.as_bytes());
            w.bytes(kept.as_bytes());
            w.bytes(sack.duplicates.as_bytes());
        });
    }
}

impl fmt::Display for NrSack<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NR-{} kept=[{}]", self.sack, self.kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Place, chunk::*};

    /// 10–12, 14, 15 and 17 arrived, of which 17 may still be dropped; 11 came twice.
    const BYTES: [u8; 32] =
        [16, 0x40, 0, 32, 0, 0, 0, 12, 0, 0, 0x12, 0x34, 0, 1, 0, 1, 0, 1, 0, 0, 0, 5, 0, 5, 0, 2, 0, 3, 0, 0, 0, 11];

    #[test]
    fn nr_sack_is_laid_out_as_the_draft_draws_it() {
        let sack = Sack {
            cumulative_tsn: 12,
            a_rwnd: 4660,
            flags: 0x40,
            gaps: GapBlocks::new(&[0, 5, 0, 5]),
            duplicates: Duplicates::new(&[0, 0, 0, 11]),
        };
        let chunk = NrSack { sack, kept: GapBlocks::new(&[0, 2, 0, 3]) };
        check(&BYTES, Chunk::NrSack(chunk), "NR-SACK cum=12 a_rwnd=4660 gaps=[5-5] dups=[11] flags=0x40 kept=[2-3]");
    }

    #[test]
    fn counts_that_do_not_fit_the_length_are_refused() {
        for at in [13, 15, 17] {
            let mut bytes = BYTES;
            bytes[at] = 2;
            let raw = RawChunk { kind: 16, flags: 0, value: &bytes[4..], bytes: &bytes, offset: 12 };
            let expected = ParseError::Length { place: Place::Chunk(16), given: 32, needed: 36 };
            assert_eq!(NrSack::parse(raw), Err(expected), "count at {at}");
        }
    }
}
