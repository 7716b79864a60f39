use core::fmt;

use braidcast_core::Writer;

use super::{emit, kind};
use crate::wire::{ParseError, RawChunk};

/// No more data from here (RFC 9260 §3.3.8).
///
/// ```text
/// | type 7         8 | flags 0    8 | length 8        16 |
/// | cumulative TSN ack                               32 |
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shutdown {
    /// The last TSN received before any gap.
    pub cumulative_tsn: u32,
}

impl Shutdown {
    /// The chunk type.
    pub const KIND: u8 = kind::SHUTDOWN;

    /// Reads the chunk.
    ///
    /// # Errors
    /// [`ParseError::Length`] where it is not 8 bytes.
    pub fn parse(raw: RawChunk<'_>) -> Result<Self, ParseError> {
        let mut fields = raw.fields();
        let cumulative_tsn = fields.u32()?;
        fields.end()?;
        Ok(Self { cumulative_tsn })
    }

    /// Appends the chunk.
    pub fn emit(&self, w: &mut Writer<'_>) {
        emit(w, Self::KIND, 0, |w| w.u32(self.cumulative_tsn));
    }
}

impl fmt::Display for Shutdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SHUTDOWN cum={}", self.cumulative_tsn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Place, chunk::*};

    #[test]
    fn shutdown_is_laid_out_as_rfc_9260_3_3_8_draws_it() {
        check(
            &[7, 0, 0, 8, 1, 2, 3, 4],
            Chunk::Shutdown(Shutdown { cumulative_tsn: 0x0102_0304 }),
            "SHUTDOWN cum=16909060",
        );
    }

    #[test]
    fn shutdown_of_another_length_is_refused() {
        for length in [4, 7, 9, 12] {
            let bytes = &[7; 12][..length];
            let raw = RawChunk { kind: 7, flags: 0, value: &bytes[4..], bytes, offset: 12 };
            let error = ParseError::Length { place: Place::Chunk(7), given: length, needed: 8 };
            assert_eq!(Shutdown::parse(raw), Err(error));
        }
    }
}
