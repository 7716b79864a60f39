use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use braidcast_core::Writer;

use super::{kind, list::Parameters};
use crate::wire::{ParseError, Place, RawTlv, fields::Fields, tlv};

/// An address as a parameter carries it. The unspecified one is RFC 5061's wildcard: the packet's own source.
///
/// ```text
/// | type 5               16 | length 8               16 |
/// | IPv4 address                                     32 |
///
/// | type 6               16 | length 20              16 |
/// | IPv6 address                                    128 |
/// ```
pub type Address = IpAddr;

pub(super) fn ipv4(raw: RawTlv<'_>) -> Result<Ipv4Addr, ParseError> {
    let mut fields = raw.parameter_fields();
    let octets: [u8; 4] = fields.array()?;
    fields.end().map(|()| octets.into())
}

pub(super) fn ipv6(raw: RawTlv<'_>) -> Result<Ipv6Addr, ParseError> {
    let mut fields = raw.parameter_fields();
    let octets: [u8; 16] = fields.array()?;
    fields.end().map(|()| octets.into())
}

/// Reads the address parameter that `bytes` must start with; `place` is what they are in. Returns what follows, too.
pub(crate) fn split_address(place: Place, bytes: &[u8]) -> Result<(Address, &[u8]), ParseError> {
    let mut iter = Parameters::iter_of(bytes);
    let Some(first) = iter.next() else {
        // Four bytes of header and four of serial number or correlation stand before the address.
        return Err(ParseError::Length { place, given: 8, needed: 16 });
    };
    let raw = first?;
    let address = match raw.kind {
        kind::IPV4 => ipv4(raw)?.into(),
        kind::IPV6 => ipv6(raw)?.into(),
        kind => return Err(ParseError::Unexpected { place, kind }),
    };
    Ok((address, iter.rest()))
}

/// Appends `address` as a parameter.
pub(crate) fn emit_address(w: &mut Writer<'_>, address: Address) {
    match address {
        IpAddr::V4(v4) => tlv::emit(w, kind::IPV4, |w| w.bytes(&v4.octets())),
        IpAddr::V6(v6) => tlv::emit(w, kind::IPV6, |w| w.bytes(&v6.octets())),
    }
}

/// Reads correlation and address of Add IP, Delete IP and Set Primary.
///
/// ```text
/// | type                 16 | length                 16 |
/// | request correlation                              32 |
/// | address parameter …                                 |
/// ```
pub(super) fn request(raw: RawTlv<'_>) -> Result<(u32, Address), ParseError> {
    let mut fields: Fields<'_> = raw.parameter_fields();
    let correlation = fields.u32()?;
    let (address, rest) = split_address(Place::Parameter(raw.kind), fields.rest())?;
    if rest.is_empty() {
        Ok((correlation, address))
    } else {
        let given = raw.bytes.len();
        Err(ParseError::Length { place: Place::Parameter(raw.kind), given, needed: given - rest.len() })
    }
}

/// Appends an Add IP, Delete IP or Set Primary parameter.
pub(super) fn emit_request(w: &mut Writer<'_>, kind: u16, correlation: u32, address: Address) {
    tlv::emit(w, kind, |w| {
        w.u32(correlation);
        emit_address(w, address);
    });
}
