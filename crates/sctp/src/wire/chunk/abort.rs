use core::fmt;

use braidcast_core::Writer;

use super::{emit, kind};
use crate::wire::{Causes, ParseError, RawChunk};

/// The T bit of ABORT and SHUTDOWN-COMPLETE (RFC 9260 §8.5.1).
pub(super) const T_BIT: u8 = 1;

/// The association is over at once (RFC 9260 §3.3.7).
///
/// ```text
/// | type 6         8 | 0000000 T  8 | length          16 |
/// | error causes …                                      |
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Abort<'a> {
    /// T bit: the verification tag is the receiver's own, sent back, since the sender knows no association.
    pub reflected: bool,
    /// Why; may be empty.
    pub causes: Causes<'a>,
}

impl<'a> Abort<'a> {
    /// The chunk type.
    pub const KIND: u8 = kind::ABORT;

    /// Reads the chunk.
    ///
    /// # Errors
    /// None today; the signature is that of all chunks.
    pub const fn parse(raw: RawChunk<'a>) -> Result<Self, ParseError> {
        Ok(Self { reflected: raw.flags & T_BIT != 0, causes: Causes::new(raw.value) })
    }

    /// Appends the chunk.
    pub fn emit(&self, w: &mut Writer<'_>) {
        emit(w, Self::KIND, if self.reflected { T_BIT } else { 0 }, |w| w.bytes(self.causes.as_bytes()));
    }
}

impl fmt::Display for Abort<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ABORT{} causes=[{}]", if self.reflected { " reflected" } else { "" }, self.causes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::chunk::*;

    #[test]
    fn abort_is_laid_out_as_rfc_9260_3_3_7_draws_it() {
        let causes = Causes::new(&[0, 12, 0, 7, b'b', b'y', b'e']);
        check(
            &[6, 0, 0, 11, 0, 12, 0, 7, b'b', b'y', b'e', 0],
            Chunk::Abort(Abort { reflected: false, causes }),
            "ABORT causes=[User-Initiated Abort: \"bye\"]",
        );
        let bare = Abort { reflected: true, causes: Causes::new(&[]) };
        check(&[6, 1, 0, 4], Chunk::Abort(bare), "ABORT reflected causes=[]");
    }
}
