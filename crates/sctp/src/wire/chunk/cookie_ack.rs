use core::fmt;

use braidcast_core::Writer;

use super::{emit, kind};
use crate::wire::{ParseError, RawChunk};

/// The association stands (RFC 9260 §3.3.12).
///
/// ```text
/// | type 11        8 | flags 0    8 | length 4        16 |
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CookieAck;

impl CookieAck {
    /// The chunk type.
    pub const KIND: u8 = kind::COOKIE_ACK;

    /// Reads the chunk.
    ///
    /// # Errors
    /// [`ParseError::Length`] where it is not empty.
    pub fn parse(raw: RawChunk<'_>) -> Result<Self, ParseError> {
        raw.empty().map(|()| Self)
    }

    /// Appends the chunk.
    pub fn emit(&self, w: &mut Writer<'_>) {
        emit(w, Self::KIND, 0, |_| {});
    }
}

impl fmt::Display for CookieAck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("COOKIE-ACK")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::chunk::*;

    #[test]
    fn cookie_ack_is_laid_out_as_rfc_9260_3_3_12_draws_it() {
        check(&[11, 0, 0, 4], Chunk::CookieAck(CookieAck), "COOKIE-ACK");
    }
}
