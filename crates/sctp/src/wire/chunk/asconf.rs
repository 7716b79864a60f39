use core::fmt;

use braidcast_core::Writer;

use super::{emit, kind};
use crate::wire::{Address, Parameters, ParseError, Place, RawChunk, param};

/// Changes of addresses; must stand behind AUTH (RFC 5061 §4.1.1).
///
/// ```text
/// | type 0xC1      8 | flags 0    8 | length          16 |
/// | serial number                                    32 |
/// | address parameter …                                 |
/// | ASCONF parameters …                                 |
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Asconf<'a> {
    /// Serial number; one more with each ASCONF.
    pub serial: u32,
    /// An address of the sender by which the association is found if the packet's source is new.
    pub address: Address,
    /// What to change.
    pub parameters: Parameters<'a>,
}

impl<'a> Asconf<'a> {
    /// The chunk type.
    pub const KIND: u8 = kind::ASCONF;

    /// Reads the chunk.
    ///
    /// # Errors
    /// [`ParseError`] where serial number or address parameter are not there.
    pub fn parse(raw: RawChunk<'a>) -> Result<Self, ParseError> {
        let mut fields = raw.fields();
        let serial = fields.u32()?;
        let (address, parameters) = param::split_address(Place::Chunk(raw.kind), fields.rest())?;
        Ok(Self { serial, address, parameters: Parameters::new(parameters) })
    }

    /// Appends the chunk.
    pub fn emit(&self, w: &mut Writer<'_>) {
        emit(w, Self::KIND, 0, |w| {
            w.u32(self.serial);
            param::emit_address(w, self.address);
            w.bytes(self.parameters.as_bytes());
        });
    }
}

impl fmt::Display for Asconf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ASCONF serial={} address={} parameters={}", self.serial, self.address, self.parameters)
    }
}

#[cfg(test)]
mod tests {
    use core::net::Ipv4Addr;

    use super::*;
    use crate::wire::chunk::*;

    #[test]
    fn asconf_is_laid_out_as_rfc_5061_4_1_1_draws_it() {
        // RFC 5061 §4.2.1's example of Add IP Address: 192.0.2.1, correlation 0x01023474.
        let add = [0xc0, 1, 0, 16, 1, 2, 0x34, 0x74, 0, 5, 0, 8, 192, 0, 2, 1];
        let mut bytes = vec![0xc1, 0, 0, 32, 0, 0, 0, 9, 0, 5, 0, 8, 192, 0, 2, 7];
        bytes.extend_from_slice(&add);
        let address = Address::V4(Ipv4Addr::new(192, 0, 2, 7));
        let chunk = Asconf { serial: 9, address, parameters: Parameters::new(&add) };
        check(&bytes, Chunk::Asconf(chunk), "ASCONF serial=9 address=192.0.2.7 parameters=[0xc001]");
    }

    #[test]
    fn asconf_without_an_address_is_refused() {
        let place = Place::Chunk(0xc1);
        let bytes = [0xc1, 0, 0, 12, 0, 0, 0, 9, 0xc0, 6, 0, 8, 0, 0, 0, 1];
        let raw = RawChunk { kind: 0xc1, flags: 0, value: &bytes[4..], bytes: &bytes, offset: 12 };
        assert_eq!(Asconf::parse(raw), Err(ParseError::Unexpected { place, kind: 0xc006 }));
        let short = RawChunk { value: &bytes[4..8], bytes: &bytes[..8], ..raw };
        assert_eq!(Asconf::parse(short), Err(ParseError::Length { place, given: 8, needed: 16 }));
    }
}
