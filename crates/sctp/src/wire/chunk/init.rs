use core::fmt;

use braidcast_core::Writer;

use super::{emit, kind};
use crate::wire::{Parameters, ParseError, RawChunk};

/// INIT and INIT-ACK, which have one layout (RFC 9260 §3.3.2, §3.3.3).
///
/// ```text
/// | type 1 or 2    8 | flags 0    8 | length          16 |
/// | initiate tag                                     32 |
/// | advertised receiver window credit                32 |
/// | outbound streams     16 | inbound streams        16 |
/// | initial TSN                                      32 |
/// | parameters …                                        |
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Init<'a> {
    /// The tag that packets to the sender of this must carry; 0 is a fault (RFC 9260 §3.3.2).
    pub initiate_tag: u32,
    /// Advertised receiver window credit in bytes; RFC 9260 asks for 1500 at least.
    pub a_rwnd: u32,
    /// Streams that the sender wants to send on; 0 is a fault.
    pub outbound_streams: u16,
    /// Streams that the sender can receive on; 0 is a fault.
    pub inbound_streams: u16,
    /// TSN of the sender's first DATA chunk.
    pub initial_tsn: u32,
    /// Optional parameters; INIT-ACK must hold a State Cookie.
    pub parameters: Parameters<'a>,
}

impl<'a> Init<'a> {
    /// The chunk type of INIT.
    pub const KIND: u8 = kind::INIT;
    /// Least `a_rwnd` that either may name (RFC 9260 §3.3.2).
    pub const MIN_A_RWND: u32 = 1500;
    /// The chunk type of INIT-ACK.
    pub const KIND_ACK: u8 = kind::INIT_ACK;

    /// Reads either chunk.
    ///
    /// # Errors
    /// [`ParseError::Length`] below 20 bytes. The values are not judged: what the faults above lead to differs
    /// between INIT and INIT-ACK.
    pub fn parse(raw: RawChunk<'a>) -> Result<Self, ParseError> {
        let mut fields = raw.fields();
        Ok(Self {
            initiate_tag: fields.u32()?,
            a_rwnd: fields.u32()?,
            outbound_streams: fields.u16()?,
            inbound_streams: fields.u16()?,
            initial_tsn: fields.u32()?,
            parameters: Parameters::new(fields.rest()),
        })
    }

    /// Appends it as INIT.
    pub fn emit(&self, w: &mut Writer<'_>) {
        emit(w, Self::KIND, 0, |w| self.emit_value(w));
    }

    /// Appends it as INIT-ACK.
    pub fn emit_ack(&self, w: &mut Writer<'_>) {
        emit(w, Self::KIND_ACK, 0, |w| self.emit_value(w));
    }

    fn emit_value(&self, w: &mut Writer<'_>) {
        w.u32(self.initiate_tag);
        w.u32(self.a_rwnd);
        w.u16(self.outbound_streams);
        w.u16(self.inbound_streams);
        w.u32(self.initial_tsn);
        w.bytes(self.parameters.as_bytes());
    }
}

/// What stands behind the chunk's name.
impl fmt::Display for Init<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { initiate_tag, a_rwnd, outbound_streams, inbound_streams, initial_tsn, parameters } = self;
        write!(
            f,
            "tag={initiate_tag:#010x} a_rwnd={a_rwnd} out={outbound_streams} in={inbound_streams} tsn={initial_tsn} \
             parameters={parameters}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::chunk::*;

    #[test]
    fn init_is_laid_out_as_rfc_9260_3_3_2_draws_it() {
        let init = Init {
            initiate_tag: 0xdead_beef,
            a_rwnd: 0x0001_0000,
            outbound_streams: 10,
            inbound_streams: 0x0800,
            initial_tsn: 7,
            // Forward-TSN-Supported, then Supported Extensions with three chunk types, its padding not counted.
            parameters: Parameters::new(&[0xc0, 0, 0, 4, 0x80, 8, 0, 7, 0xc0, 0x40, 0xc1]),
        };
        let mut bytes = [
            1, 0, 0, 31, 0xde, 0xad, 0xbe, 0xef, 0, 1, 0, 0, 0, 10, 8, 0, 0, 0, 0, 7, 0xc0, 0, 0, 4, 0x80, 8, 0, 7,
            0xc0, 0x40, 0xc1, 0,
        ];
        let fields = "tag=0xdeadbeef a_rwnd=65536 out=10 in=2048 tsn=7 parameters=[0xc000 0x8008]";
        check(&bytes, Chunk::Init(init), &format!("INIT {fields}"));
        bytes[0] = 2;
        check(&bytes, Chunk::InitAck(init), &format!("INIT-ACK {fields}"));
        // Some stacks count the padding of the last parameter; it means the same.
        let padded = RawChunk { kind: 1, flags: 0, value: &bytes[4..], bytes: &bytes, offset: 12 };
        assert_eq!(Init::parse(padded), Ok(init));
    }
}
