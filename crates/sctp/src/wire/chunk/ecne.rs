use core::fmt;

use braidcast_core::Writer;

use super::{emit, kind};
use crate::wire::{ParseError, RawChunk};

/// ECN Echo: packets came marked (RFC 4960 appendix A; the count: draft-stewart-tsvwg-sctpecn-05).
///
/// ```text
/// | type 12        8 | flags 0    8 | length 12 or 8  16 |
/// | lowest TSN                                        32 |
/// | packets marked                                    32 |
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ecne {
    /// The lowest TSN in the packet that was marked, the latest one of several.
    pub lowest_tsn: u32,
    /// Packets marked since the last CWR; RFC 4960 does not have it.
    pub marked: Option<u32>,
}

impl Ecne {
    /// The chunk type.
    pub const KIND: u8 = kind::ECNE;
    /// Bytes of the chunk with the count.
    pub const LEN: usize = 12;

    /// Reads the chunk.
    ///
    /// # Errors
    /// [`ParseError::Length`] where it is not 8 or 12 bytes.
    pub fn parse(raw: RawChunk<'_>) -> Result<Self, ParseError> {
        let mut fields = raw.fields();
        let lowest_tsn = fields.u32()?;
        let marked = if fields.rest().is_empty() { None } else { Some(fields.u32()?) };
        fields.end()?;
        Ok(Self { lowest_tsn, marked })
    }

    /// Appends the chunk.
    pub fn emit(&self, w: &mut Writer<'_>) {
        emit(w, Self::KIND, 0, |w| {
            w.u32(self.lowest_tsn);
            self.marked.iter().for_each(|&count| w.u32(count));
        });
    }
}

impl fmt::Display for Ecne {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ECNE tsn={}", self.lowest_tsn)?;
        self.marked.map_or(Ok(()), |count| write!(f, " marked={count}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Place, chunk::*};

    #[test]
    fn ecne_is_laid_out_as_rfc_4960_and_the_draft_draw_it() {
        let old = Ecne { lowest_tsn: 0x0102_0304, marked: None };
        check(&[12, 0, 0, 8, 1, 2, 3, 4], Chunk::Ecne(old), "ECNE tsn=16909060");
        let counted = Ecne { marked: Some(5), ..old };
        check(&[12, 0, 0, 12, 1, 2, 3, 4, 0, 0, 0, 5], Chunk::Ecne(counted), "ECNE tsn=16909060 marked=5");
    }

    #[test]
    fn ecne_of_another_length_is_refused() {
        for (length, needed) in [(4, 8), (7, 8), (9, 12), (13, 12), (16, 12)] {
            let bytes = &[12; 16][..length];
            let raw = RawChunk { kind: 12, flags: 0, value: &bytes[4..], bytes, offset: 12 };
            let error = ParseError::Length { place: Place::Chunk(12), given: length, needed };
            assert_eq!(Ecne::parse(raw), Err(error));
        }
    }
}
