use core::fmt;

use braidcast_core::Writer;

use super::{emit, kind};
use crate::wire::{ParseError, RawChunk};

/// Vouches for all chunks after it in the packet (RFC 4895 §5.1).
///
/// ```text
/// | type 15        8 | flags 0    8 | length          16 |
/// | shared key identifier 16 | HMAC identifier       16 |
/// | HMAC …                                              |
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Auth<'a> {
    /// Which shared key; 0 is the association's own.
    pub key_id: u16,
    /// Which hash: 1 SHA-1, 3 SHA-256 (RFC 4895 §8.4).
    pub hmac_id: u16,
    /// The HMAC over this chunk, with zeros in place of it, and all chunks after it, padding included (RFC 4895 §6.2).
    pub hmac: &'a [u8],
}

impl<'a> Auth<'a> {
    /// The chunk type.
    pub const KIND: u8 = kind::AUTH;
    /// Bytes from the start of the chunk to the HMAC, which is written once the chunks after it are there.
    pub const HEADER: usize = 8;

    /// Reads the chunk.
    ///
    /// # Errors
    /// [`ParseError::Length`] below 8 bytes. The length of the HMAC is for the verifier to judge.
    pub fn parse(raw: RawChunk<'a>) -> Result<Self, ParseError> {
        let mut fields = raw.fields();
        Ok(Self { key_id: fields.u16()?, hmac_id: fields.u16()?, hmac: fields.rest() })
    }

    /// Appends the chunk.
    pub fn emit(&self, w: &mut Writer<'_>) {
        emit(w, Self::KIND, 0, |w| {
            w.u16(self.key_id);
            w.u16(self.hmac_id);
            w.bytes(self.hmac);
        });
    }
}

impl fmt::Display for Auth<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AUTH key={} hmac_id={} hmac={}", self.key_id, self.hmac_id, self.hmac.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::chunk::*;

    #[test]
    fn auth_is_laid_out_as_rfc_4895_5_1_draws_it() {
        let mut bytes = vec![15, 0, 0, 28, 0, 1, 0, 1];
        bytes.extend_from_slice(&[0x5a; 20]);
        let chunk = Auth { key_id: 1, hmac_id: 1, hmac: &[0x5a; 20] };
        check(&bytes, Chunk::Auth(chunk), "AUTH key=1 hmac_id=1 hmac=20");
    }
}
