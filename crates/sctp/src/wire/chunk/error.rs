use core::fmt;

use braidcast_core::Writer;

use super::{emit, kind};
use crate::wire::{Causes, ParseError, RawChunk};

/// Something was wrong, the association goes on (RFC 9260 §3.3.10).
///
/// ```text
/// | type 9         8 | flags 0    8 | length          16 |
/// | error causes …                                      |
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ErrorChunk<'a> {
    /// What was wrong; the RFC wants one at least.
    pub causes: Causes<'a>,
}

impl<'a> ErrorChunk<'a> {
    /// The chunk type.
    pub const KIND: u8 = kind::ERROR;

    /// Reads the chunk.
    ///
    /// # Errors
    /// None today; the signature is that of all chunks.
    pub const fn parse(raw: RawChunk<'a>) -> Result<Self, ParseError> {
        Ok(Self { causes: Causes::new(raw.value) })
    }

    /// Appends the chunk.
    pub fn emit(&self, w: &mut Writer<'_>) {
        emit(w, Self::KIND, 0, |w| w.bytes(self.causes.as_bytes()));
    }
}

impl fmt::Display for ErrorChunk<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ERROR causes=[{}]", self.causes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::chunk::*;

    #[test]
    fn error_is_laid_out_as_rfc_9260_3_3_10_draws_it() {
        check(
            &[9, 0, 0, 16, 0, 1, 0, 8, 0, 9, 0, 0, 0, 4, 0, 4],
            Chunk::Error(ErrorChunk { causes: Causes::new(&[0, 1, 0, 8, 0, 9, 0, 0, 0, 4, 0, 4]) }),
            "ERROR causes=[Invalid Stream Identifier 9, Out of Resource]",
        );
    }
}
