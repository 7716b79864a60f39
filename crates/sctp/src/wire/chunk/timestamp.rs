use core::fmt;

use braidcast_core::Writer;

use super::{emit, kind};
use crate::wire::{ParseError, RawChunk};

/// When the packet left that it is in, by the sender's clock (our own layout, decision 21; THESIS §7.1.3, `T_s`).
///
/// ```text
/// | type 0xb2 8 | 0000000 Q 8 | length 12      16 |
/// | path         16 | reserved                 16 |
/// | microseconds, of any beginning             32 |
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timestamp {
    /// What the sender calls the path; comes back as it is.
    pub path: u16,
    /// Microseconds of the sender's clock; it wraps.
    pub sent: u32,
    /// Q bit: no echo is wanted (decision 39).
    pub quiet: bool,
}

impl Timestamp {
    /// The chunk type: one that who does not know it skips without a word (RFC 9260 §3.2). Not registered with IANA.
    pub const KIND: u8 = kind::TIMESTAMP;
    /// Bytes of the chunk.
    pub const LEN: usize = 12;

    /// Reads the chunk.
    ///
    /// # Errors
    /// [`ParseError::Length`] where it is not 12 bytes.
    pub fn parse(raw: RawChunk<'_>) -> Result<Self, ParseError> {
        let mut fields = raw.fields();
        let (path, _, sent) = (fields.u16()?, fields.u16()?, fields.u32()?);
        fields.end()?;
        Ok(Self { path, sent, quiet: raw.flags & 1 != 0 })
    }

    /// Appends the chunk.
    pub fn emit(&self, w: &mut Writer<'_>) {
        emit(w, Self::KIND, u8::from(self.quiet), |w| {
            w.u16(self.path);
            w.u16(0);
            w.u32(self.sent);
        });
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TIMESTAMP path={} sent={}{}", self.path, self.sent, if self.quiet { " quiet" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::chunk::*;

    #[test]
    fn a_timestamp_is_laid_out_as_decision_21_draws_it() {
        let bytes = [0xb2, 0, 0, 12, 0, 3, 0, 0, 1, 2, 3, 4];
        let stamp = Timestamp { path: 3, sent: 0x0102_0304, quiet: false };
        check(&bytes, Chunk::Timestamp(stamp), "TIMESTAMP path=3 sent=16909060");
        let bytes = [0xb2, 1, 0, 12, 0, 3, 0, 0, 1, 2, 3, 4];
        check(&bytes, Chunk::Timestamp(Timestamp { quiet: true, ..stamp }), "TIMESTAMP path=3 sent=16909060 quiet");
    }

    #[test]
    fn a_timestamp_of_another_length_is_refused() {
        for length in [4, 11, 13, 16] {
            let bytes = &[0; 16][..length];
            let raw = RawChunk { kind: 0xb2, flags: 0, value: &bytes[4..], bytes, offset: 12 };
            assert!(Timestamp::parse(raw).is_err(), "{length}");
        }
    }
}
