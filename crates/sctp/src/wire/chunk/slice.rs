use core::fmt;

use braidcast_core::Writer;

use super::{emit, kind};
use crate::wire::{ParseError, Place, RawChunk};

/// Some bytes of a DATA or I-DATA chunk that was cut for larger packets than its path carries now
/// (our own layout, decision 17). A chunk cannot be cut anew once it has a TSN, and where packets
/// of its size vanish it would be sent for ever.
///
/// ```text
/// | type 0xb1 8 | reserved 8 | length          16 |
/// | TSN of the chunk                           32 |
/// | bytes of the chunk    16 | first byte here 16 |
/// | bytes …                                       |
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slice<'a> {
    /// TSN of the chunk.
    pub tsn: u32,
    /// Length of the chunk, header included and padding not, in bytes.
    pub total: u16,
    /// Where in the chunk the bytes begin.
    pub offset: u16,
    /// One byte or more of the chunk.
    pub bytes: &'a [u8],
}

impl<'a> Slice<'a> {
    /// The chunk type: one that who does not know it skips without a word (RFC 9260 §3.2). Not registered with IANA.
    pub const KIND: u8 = kind::SLICE;
    /// Bytes in front of the bytes.
    pub const HEADER: usize = 12;

    /// Reads the chunk.
    ///
    /// # Errors
    /// [`ParseError::Length`] if its fields are not all there, or the bytes are none or reach beyond the chunk.
    pub fn parse(raw: RawChunk<'a>) -> Result<Self, ParseError> {
        let mut fields = raw.fields();
        let (tsn, total, offset) = (fields.u32()?, fields.u16()?, fields.u16()?);
        let slice = Self { tsn, total, offset, bytes: fields.rest() };
        let rest = usize::from(total).saturating_sub(usize::from(offset));
        if slice.bytes.is_empty() || slice.bytes.len() > rest {
            let given = raw.bytes.len();
            return Err(ParseError::Length {
                place: Place::Chunk(Self::KIND),
                given,
                needed: Self::HEADER + rest.max(1),
            });
        }
        Ok(slice)
    }

    /// Appends the chunk.
    pub fn emit(&self, w: &mut Writer<'_>) {
        emit(w, Self::KIND, 0, |w| {
            w.u32(self.tsn);
            w.u16(self.total);
            w.u16(self.offset);
            w.bytes(self.bytes);
        });
    }
}

impl fmt::Display for Slice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tsn, total, offset, bytes } = self;
        write!(f, "SLICE tsn={tsn} total={total} offset={offset} len={}", bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::chunk::*;

    #[test]
    fn a_slice_is_laid_out_as_decision_17_draws_it() {
        let bytes = [0xb1, 0, 0, 15, 0, 0, 1, 2, 5, 180, 1, 0, 7, 8, 9, 0];
        let slice = Slice { tsn: 258, total: 1460, offset: 256, bytes: &[7, 8, 9] };
        check(&bytes, Chunk::Slice(slice), "SLICE tsn=258 total=1460 offset=256 len=3");
    }

    #[test]
    fn a_slice_of_nothing_or_of_more_than_the_chunk_is_refused() {
        for (total, offset, len) in [(100_u16, 0_u16, 0), (100, 100, 1), (100, 98, 3), (0, 0, 1), (10, u16::MAX, 1)] {
            let mut bytes = vec![0xb1, 0, 0, 12 + len as u8, 0, 0, 0, 1];
            bytes.extend(total.to_be_bytes());
            bytes.extend(offset.to_be_bytes());
            bytes.extend(vec![0; len]);
            let raw = RawChunk { kind: 0xb1, flags: 0, value: &bytes[4..], bytes: &bytes, offset: 12 };
            assert!(Slice::parse(raw).is_err(), "{total} {offset} {len}");
        }
    }
}
