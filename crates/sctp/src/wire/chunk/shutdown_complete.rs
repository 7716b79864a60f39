use core::fmt;

use braidcast_core::Writer;

use super::{abort::T_BIT, emit, kind};
use crate::wire::{ParseError, RawChunk};

/// The association is over, all data delivered (RFC 9260 §3.3.13).
///
/// ```text
/// | type 14        8 | 0000000 T  8 | length 4        16 |
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShutdownComplete {
    /// T bit: the verification tag is the receiver's own, sent back, since the sender knows no association.
    pub reflected: bool,
}

impl ShutdownComplete {
    /// The chunk type.
    pub const KIND: u8 = kind::SHUTDOWN_COMPLETE;

    /// Reads the chunk.
    ///
    /// # Errors
    /// [`ParseError::Length`] where it is not empty.
    pub fn parse(raw: RawChunk<'_>) -> Result<Self, ParseError> {
        raw.empty().map(|()| Self { reflected: raw.flags & T_BIT != 0 })
    }

    /// Appends the chunk.
    pub fn emit(&self, w: &mut Writer<'_>) {
        emit(w, Self::KIND, if self.reflected { T_BIT } else { 0 }, |_| {});
    }
}

impl fmt::Display for ShutdownComplete {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SHUTDOWN-COMPLETE{}", if self.reflected { " reflected" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::chunk::*;

    #[test]
    fn shutdown_complete_is_laid_out_as_rfc_9260_3_3_13_draws_it() {
        for (flags, reflected, line) in [(0, false, "SHUTDOWN-COMPLETE"), (1, true, "SHUTDOWN-COMPLETE reflected")] {
            check(&[14, flags, 0, 4], Chunk::ShutdownComplete(ShutdownComplete { reflected }), line);
        }
    }
}
