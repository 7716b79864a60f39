use core::fmt;

use braidcast_core::Writer;

use super::{emit, kind};
use crate::wire::{ParseError, Place, RawChunk, Tlvs, param, tlv};

/// Is this path alive? (RFC 9260 §3.3.5)
///
/// ```text
/// | type 4         8 | flags 0    8 | length          16 |
/// | parameter type 1     16 | length                 16 |
/// | information, for the sender's own use …             |
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Heartbeat<'a> {
    /// What the sender wants back; the receiver does not look inside.
    pub info: &'a [u8],
}

/// This path is alive (RFC 9260 §3.3.6): a [`Heartbeat`] with chunk type 5, its information sent back as it came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeartbeatAck<'a> {
    /// The information of the heartbeat.
    pub info: &'a [u8],
}

impl<'a> Heartbeat<'a> {
    /// The chunk type.
    pub const KIND: u8 = kind::HEARTBEAT;

    /// Reads the chunk.
    ///
    /// # Errors
    /// [`ParseError`] where it does not start with a Heartbeat Info parameter.
    pub fn parse(raw: RawChunk<'a>) -> Result<Self, ParseError> {
        Ok(Self { info: info(raw)? })
    }

    /// Appends the chunk.
    pub fn emit(&self, w: &mut Writer<'_>) {
        emit_info(w, Self::KIND, self.info);
    }
}

impl<'a> HeartbeatAck<'a> {
    /// The chunk type.
    pub const KIND: u8 = kind::HEARTBEAT_ACK;

    /// Reads the chunk.
    ///
    /// # Errors
    /// [`ParseError`] where it does not start with a Heartbeat Info parameter.
    pub fn parse(raw: RawChunk<'a>) -> Result<Self, ParseError> {
        Ok(Self { info: info(raw)? })
    }

    /// Appends the chunk.
    pub fn emit(&self, w: &mut Writer<'_>) {
        emit_info(w, Self::KIND, self.info);
    }
}

fn info(raw: RawChunk<'_>) -> Result<&[u8], ParseError> {
    let place = Place::Chunk(raw.kind);
    let first = Tlvs::new(raw.value, Place::Parameter).next();
    let info = first.unwrap_or(Err(ParseError::Length { place, given: raw.bytes.len(), needed: 8 }))?;
    match info.kind {
        param::kind::HEARTBEAT_INFO => Ok(info.value),
        kind => Err(ParseError::Unexpected { place, kind }),
    }
}

fn emit_info(w: &mut Writer<'_>, kind: u8, info: &[u8]) {
    emit(w, kind, 0, |w| {
        // Written without padding, which the chunk's length does not count; the chunk is padded itself.
        w.u16(param::kind::HEARTBEAT_INFO);
        w.u16(tlv::length_field(info.len() + 4));
        w.bytes(info);
    });
}

impl fmt::Display for Heartbeat<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HEARTBEAT info={}", self.info.len())
    }
}

impl fmt::Display for HeartbeatAck<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HEARTBEAT-ACK info={}", self.info.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::chunk::*;

    #[test]
    fn heartbeat_and_its_ack_are_laid_out_as_rfc_9260_3_3_5_draws_them() {
        let mut bytes = [4, 0, 0, 13, 0, 1, 0, 9, 1, 2, 3, 4, 5, 0, 0, 0];
        let info = &[1, 2, 3, 4, 5];
        check(&bytes, Chunk::Heartbeat(Heartbeat { info }), "HEARTBEAT info=5");
        bytes[0] = 5;
        check(&bytes, Chunk::HeartbeatAck(HeartbeatAck { info }), "HEARTBEAT-ACK info=5");
    }

    #[test]
    fn heartbeat_without_its_parameter_is_refused() {
        let place = Place::Chunk(4);
        let empty = RawChunk { kind: 4, flags: 0, value: &[], bytes: &[4, 0, 0, 4], offset: 12 };
        assert_eq!(Heartbeat::parse(empty), Err(ParseError::Length { place, given: 4, needed: 8 }));
        let other = RawChunk { value: &[0, 7, 0, 4], bytes: &[4, 0, 0, 8, 0, 7, 0, 4], ..empty };
        assert_eq!(Heartbeat::parse(other), Err(ParseError::Unexpected { place, kind: 7 }));
    }
}
