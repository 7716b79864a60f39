use core::fmt;

use braidcast_core::Writer;

use super::{emit, kind};
use crate::wire::{ParseError, RawChunk};

/// The State Cookie of the INIT-ACK, sent back (RFC 9260 §3.3.11).
///
/// ```text
/// | type 10        8 | flags 0    8 | length          16 |
/// | cookie …                                            |
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CookieEcho<'a> {
    /// The value of the State Cookie parameter.
    pub cookie: &'a [u8],
}

impl<'a> CookieEcho<'a> {
    /// The chunk type.
    pub const KIND: u8 = kind::COOKIE_ECHO;

    /// Reads the chunk.
    ///
    /// # Errors
    /// None today; the signature is that of all chunks.
    pub const fn parse(raw: RawChunk<'a>) -> Result<Self, ParseError> {
        Ok(Self { cookie: raw.value })
    }

    /// Appends the chunk.
    pub fn emit(&self, w: &mut Writer<'_>) {
        emit(w, Self::KIND, 0, |w| w.bytes(self.cookie));
    }
}

impl fmt::Display for CookieEcho<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "COOKIE-ECHO len={}", self.cookie.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::chunk::*;

    #[test]
    fn cookie_echo_is_laid_out_as_rfc_9260_3_3_11_draws_it() {
        check(
            &[10, 0, 0, 6, 0xaa, 0xbb, 0, 0],
            Chunk::CookieEcho(CookieEcho { cookie: &[0xaa, 0xbb] }),
            "COOKIE-ECHO len=2",
        );
    }
}
