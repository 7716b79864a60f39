use core::fmt;

use braidcast_core::Writer;

use super::{emit, kind};
use crate::wire::{ParseError, RawChunk};

/// Filling, for probes of the path MTU (RFC 4820 §3).
///
/// ```text
/// | type 0x84      8 | flags 0    8 | length          16 |
/// | zeros …                                             |
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pad {
    /// Bytes of filling behind the four-byte chunk header, at most 65531.
    pub len: usize,
}

impl Pad {
    /// The chunk type.
    pub const KIND: u8 = kind::PAD;

    /// Reads the chunk; what the filling holds does not matter.
    ///
    /// # Errors
    /// None today; the signature is that of all chunks.
    pub const fn parse(raw: RawChunk<'_>) -> Result<Self, ParseError> {
        Ok(Self { len: raw.value.len() })
    }

    /// Appends the chunk.
    pub fn emit(&self, w: &mut Writer<'_>) {
        emit(w, Self::KIND, 0, |w| w.zeros(self.len));
    }
}

impl fmt::Display for Pad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PAD len={}", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::chunk::*;

    #[test]
    fn pad_is_laid_out_as_rfc_4820_3_draws_it() {
        check(&[0x84, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0], Chunk::Pad(Pad { len: 5 }), "PAD len=5");
    }
}
