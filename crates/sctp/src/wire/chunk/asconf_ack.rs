use core::fmt;

use braidcast_core::Writer;

use super::{emit, kind};
use crate::wire::{Parameters, ParseError, RawChunk};

/// Answer to an ASCONF; must stand behind AUTH (RFC 5061 §4.1.2).
///
/// ```text
/// | type 0x80      8 | flags 0    8 | length          16 |
/// | serial number                                    32 |
/// | parameter responses …                               |
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AsconfAck<'a> {
    /// Serial number of the ASCONF that it answers.
    pub serial: u32,
    /// What came of each change; those not named succeeded (RFC 5061 §4.2.5).
    pub parameters: Parameters<'a>,
}

impl<'a> AsconfAck<'a> {
    /// The chunk type.
    pub const KIND: u8 = kind::ASCONF_ACK;

    /// Reads the chunk.
    ///
    /// # Errors
    /// [`ParseError::Length`] below 8 bytes.
    pub fn parse(raw: RawChunk<'a>) -> Result<Self, ParseError> {
        let mut fields = raw.fields();
        Ok(Self { serial: fields.u32()?, parameters: Parameters::new(fields.rest()) })
    }

    /// Appends the chunk.
    pub fn emit(&self, w: &mut Writer<'_>) {
        emit(w, Self::KIND, 0, |w| {
            w.u32(self.serial);
            w.bytes(self.parameters.as_bytes());
        });
    }
}

impl fmt::Display for AsconfAck<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ASCONF-ACK serial={} parameters={}", self.serial, self.parameters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::chunk::*;

    #[test]
    fn asconf_ack_is_laid_out_as_rfc_5061_4_1_2_draws_it() {
        let chunk = AsconfAck { serial: 9, parameters: Parameters::new(&[0xc0, 5, 0, 8, 1, 2, 0x34, 0x74]) };
        check(
            &[0x80, 0, 0, 16, 0, 0, 0, 9, 0xc0, 5, 0, 8, 1, 2, 0x34, 0x74],
            Chunk::AsconfAck(chunk),
            "ASCONF-ACK serial=9 parameters=[0xc005]",
        );
    }
}
