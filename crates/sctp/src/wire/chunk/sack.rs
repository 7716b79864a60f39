use core::fmt;

use braidcast_core::Writer;

use super::{emit, kind};
use crate::wire::{Entries, Entry, ParseError, RawChunk};

/// What has arrived (RFC 9260 §3.3.4).
///
/// ```text
/// | type 3         8 | flags 0    8 | length          16 |
/// | cumulative TSN ack                               32 |
/// | advertised receiver window credit                32 |
/// | gap ack blocks       16 | duplicate TSNs         16 |
/// | gap start            16 | gap end                16 | …
/// | duplicate TSN                                    32 | …
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sack<'a> {
    /// The last TSN before the first gap.
    pub cumulative_tsn: u32,
    /// Advertised receiver window credit in bytes.
    pub a_rwnd: u32,
    /// Chunk flags, 0 in RFC 9260; CMT's delayed-ack counter lives here.
    pub flags: u8,
    /// What arrived above the cumulative TSN.
    pub gaps: GapBlocks<'a>,
    /// TSNs that arrived more than once since the last SACK.
    pub duplicates: Duplicates<'a>,
}

/// The gap ack blocks of a [`Sack`].
pub type GapBlocks<'a> = Entries<'a, GapBlock>;

/// The duplicate TSNs of a [`Sack`].
pub type Duplicates<'a> = Entries<'a, u32>;

/// TSNs that arrived: `start..=end`, counted from the cumulative TSN. Neither order nor `start <= end` is certain in
/// what comes from the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GapBlock {
    /// Offset of the first TSN.
    pub start: u16,
    /// Offset of the last TSN.
    pub end: u16,
}

impl Entry for GapBlock {
    const SIZE: usize = 4;

    fn read(bytes: &[u8]) -> Self {
        let both = u32::read(bytes);
        Self { start: (both >> 16) as u16, end: both as u16 }
    }

    fn emit(&self, w: &mut Writer<'_>) {
        w.u16(self.start);
        w.u16(self.end);
    }
}

impl fmt::Display for GapBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.start, self.end)
    }
}

impl<'a> Sack<'a> {
    /// The chunk type.
    pub const KIND: u8 = kind::SACK;
    /// Bytes in front of the gap ack blocks, which take four each, as do the duplicates.
    pub const HEADER: usize = 16;

    /// Reads the chunk.
    ///
    /// # Errors
    /// [`ParseError::Length`] where the length is not what the two counts say.
    pub fn parse(raw: RawChunk<'a>) -> Result<Self, ParseError> {
        let mut fields = raw.fields();
        let cumulative_tsn = fields.u32()?;
        let a_rwnd = fields.u32()?;
        let gaps = usize::from(fields.u16()?);
        let duplicates = usize::from(fields.u16()?);
        let gaps = GapBlocks::new(fields.take(gaps * GapBlock::SIZE)?);
        let duplicates = Duplicates::new(fields.take(duplicates * u32::SIZE)?);
        fields.end()?;
        Ok(Self { cumulative_tsn, a_rwnd, flags: raw.flags, gaps, duplicates })
    }

    /// Appends the chunk.
    pub fn emit(&self, w: &mut Writer<'_>) {
        emit(w, Self::KIND, self.flags, |w| {
            w.u32(self.cumulative_tsn);
            w.u32(self.a_rwnd);
            // `emit` sees to it that the chunk, hence both counts, fit 16 bits.
            w.u16(self.gaps.len() as u16);
            w.u16(self.duplicates.len() as u16);
            w.bytes(self.gaps.as_bytes());
            w.bytes(self.duplicates.as_bytes());
        });
    }
}

impl fmt::Display for Sack<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cumulative_tsn, a_rwnd, flags, gaps, duplicates } = self;
        write!(f, "SACK cum={cumulative_tsn} a_rwnd={a_rwnd} gaps=[{gaps}] dups=[{duplicates}]")?;
        if *flags != 0 {
            write!(f, " flags={flags:#04x}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Place, chunk::*};

    /// The example of RFC 9260 §3.3.4 (10–12, 14, 15 and 17 arrived), with a duplicate and a flag besides.
    const BYTES: [u8; 28] =
        [3, 1, 0, 28, 0, 0, 0, 12, 0, 0, 0x12, 0x34, 0, 2, 0, 1, 0, 2, 0, 3, 0, 5, 0, 5, 0, 0, 0, 11];

    #[test]
    fn sack_is_laid_out_as_rfc_9260_3_3_4_draws_it() {
        let sack = Sack {
            cumulative_tsn: 12,
            a_rwnd: 4660,
            flags: 1,
            gaps: GapBlocks::new(&[0, 2, 0, 3, 0, 5, 0, 5]),
            duplicates: Duplicates::new(&[0, 0, 0, 11]),
        };
        check(&BYTES, Chunk::Sack(sack), "SACK cum=12 a_rwnd=4660 gaps=[2-3,5-5] dups=[11] flags=0x01");
        assert_eq!(sack.gaps.iter().next(), Some(GapBlock { start: 2, end: 3 }));
        assert_eq!((sack.gaps.len(), sack.duplicates.len()), (2, 1));
    }

    #[test]
    fn sack_whose_counts_do_not_fit_its_length_is_refused() {
        for gaps in [1, 3] {
            let mut bytes = BYTES;
            bytes[13] = gaps;
            let raw = RawChunk { kind: 3, flags: 0, value: &bytes[4..], bytes: &bytes, offset: 12 };
            let needed = 16 + 4 * usize::from(gaps) + 4;
            assert_eq!(
                Sack::parse(raw),
                Err(ParseError::Length { place: Place::Chunk(3), given: 28, needed }),
                "{gaps} gap ack blocks"
            );
        }
    }
}
