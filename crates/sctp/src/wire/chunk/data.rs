use core::fmt;

use braidcast_core::Writer;

use super::kind;
use crate::wire::{ParseError, RawChunk, padded, tlv};

/// User data (RFC 9260 §3.3.1), with a flag of our own (decision 39).
///
/// ```text
/// | type 0         8 | 000T I U B E | length          16 |
/// | TSN                                              32 |
/// | stream               16 | stream sequence number 16 |
/// | payload protocol identifier                      32 |
/// | payload …                                           |
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Data<'a> {
    /// Transmission sequence number.
    pub tsn: u32,
    /// Stream identifier.
    pub stream: u16,
    /// Stream sequence number; not looked at when unordered.
    pub ssn: u16,
    /// Payload protocol identifier, as the application gave it.
    pub ppid: u32,
    /// U bit: deliver without regard to order.
    pub unordered: bool,
    /// B bit: first fragment of its message.
    pub first: bool,
    /// E bit: last fragment of its message.
    pub last: bool,
    /// I bit: acknowledge at once.
    pub immediate: bool,
    /// T bit, in the last fragment: the message ends with its times (decision 39).
    pub timed: bool,
    /// The fragment. Empty is a fault of the sender that the receiver reports (RFC 9260 §6.2, No User Data).
    pub payload: &'a [u8],
}

impl<'a> Data<'a> {
    /// The chunk type.
    pub const KIND: u8 = kind::DATA;
    /// Bytes in front of the payload.
    pub const HEADER: usize = 16;

    /// Reads the chunk.
    ///
    /// # Errors
    /// [`ParseError::Length`] below [`Self::HEADER`].
    pub fn parse(raw: RawChunk<'a>) -> Result<Self, ParseError> {
        let mut fields = raw.fields();
        let Flags { unordered, first, last, immediate, timed } = Flags::from_bits(raw.flags);
        Ok(Self {
            tsn: fields.u32()?,
            stream: fields.u16()?,
            ssn: fields.u16()?,
            ppid: fields.u32()?,
            unordered,
            first,
            last,
            immediate,
            timed,
            payload: fields.rest(),
        })
    }

    /// Appends header, payload and padding.
    pub fn emit(&self, w: &mut Writer<'_>) {
        self.emit_header(w, self.payload.len());
        w.bytes(self.payload);
        w.zeros(padded(self.payload.len()) - self.payload.len());
    }

    /// Appends the header for a payload of `payload` bytes, which the caller appends itself, padding included;
    /// [`Self::payload`] is not looked at.
    pub fn emit_header(&self, w: &mut Writer<'_>, payload: usize) {
        let &Self { unordered, first, last, immediate, timed, .. } = self;
        emit_start(w, Self::KIND, Flags { unordered, first, last, immediate, timed }, Self::HEADER + payload);
        w.u32(self.tsn);
        w.u16(self.stream);
        w.u16(self.ssn);
        w.u32(self.ppid);
    }
}

impl fmt::Display for Data<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let &Self { tsn, stream, ssn, ppid, unordered, first, last, immediate, timed, payload } = self;
        let flags = Flags { unordered, first, last, immediate, timed };
        write!(f, "DATA tsn={tsn} stream={stream} ssn={ssn} ppid={ppid} flags={flags} len={}", payload.len())
    }
}

/// The flags that DATA and I-DATA share.
#[derive(Clone, Copy)]
pub(super) struct Flags {
    pub(super) unordered: bool,
    pub(super) first: bool,
    pub(super) last: bool,
    pub(super) immediate: bool,
    pub(super) timed: bool,
}

impl Flags {
    const LAST: u8 = 1;
    const FIRST: u8 = 2;
    const UNORDERED: u8 = 4;
    const IMMEDIATE: u8 = 8;
    const TIMED: u8 = 16;

    pub(super) const fn from_bits(bits: u8) -> Self {
        Self {
            unordered: bits & Self::UNORDERED != 0,
            first: bits & Self::FIRST != 0,
            last: bits & Self::LAST != 0,
            immediate: bits & Self::IMMEDIATE != 0,
            timed: bits & Self::TIMED != 0,
        }
    }

    const fn bits(self) -> u8 {
        (self.last as u8 * Self::LAST)
            | (self.first as u8 * Self::FIRST)
            | (self.unordered as u8 * Self::UNORDERED)
            | (self.immediate as u8 * Self::IMMEDIATE)
            | (self.timed as u8 * Self::TIMED)
    }
}

/// The bits' letters in the RFC's order, `-` where clear; `T` before them only if it is set.
impl fmt::Display for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.timed {
            write!(f, "T")?;
        }
        for (set, letter) in [(self.immediate, 'I'), (self.unordered, 'U'), (self.first, 'B'), (self.last, 'E')] {
            write!(f, "{}", if set { letter } else { '-' })?;
        }
        Ok(())
    }
}

/// Appends the four bytes that start a DATA or I-DATA chunk of `length` bytes.
pub(super) fn emit_start(w: &mut Writer<'_>, kind: u8, flags: Flags, length: usize) {
    w.u8(kind);
    w.u8(flags.bits());
    w.u16(tlv::length_field(length));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Place, chunk::*};

    #[test]
    fn data_is_laid_out_as_rfc_9260_3_3_1_draws_it() {
        let bytes = [
            0, 0x0b, 0, 19, 0x01, 0x02, 0x03, 0x04, 0x00, 0x05, 0x00, 0x06, 0x00, 0x00, 0x00, 0x35, b'a', b'b', b'c', 0,
        ];
        let chunk = Data {
            tsn: 0x0102_0304,
            stream: 5,
            ssn: 6,
            ppid: 53,
            unordered: false,
            first: true,
            last: true,
            immediate: true,
            timed: false,
            payload: b"abc",
        };
        check(&bytes, Chunk::Data(chunk), "DATA tsn=16909060 stream=5 ssn=6 ppid=53 flags=I-BE len=3");
        let unordered = Data { unordered: true, first: false, last: false, immediate: false, payload: b"", ..chunk };
        check(
            &[0, 4, 0, 16, 1, 2, 3, 4, 0, 5, 0, 6, 0, 0, 0, 0x35],
            Chunk::Data(unordered),
            "DATA tsn=16909060 stream=5 ssn=6 ppid=53 flags=-U-- len=0",
        );
        let timed = Data { timed: true, last: true, ..unordered };
        check(
            &[0, 0x15, 0, 16, 1, 2, 3, 4, 0, 5, 0, 6, 0, 0, 0, 0x35],
            Chunk::Data(timed),
            "DATA tsn=16909060 stream=5 ssn=6 ppid=53 flags=T-U-E len=0",
        );
    }

    #[test]
    fn data_shorter_than_its_header_says_what_is_missing() {
        let bytes = [0, 3, 0, 13, 0, 0, 0, 1, 0, 0, 0, 0, 0];
        let raw = RawChunk { kind: 0, flags: 3, value: &bytes[4..], bytes: &bytes, offset: 12 };
        let error = Data::parse(raw).unwrap_err();
        assert_eq!(error, ParseError::Length { place: Place::Chunk(0), given: 13, needed: 16 });
        assert_eq!(error.to_string(), "DATA chunk: 13 bytes given, 16 needed");
    }
}
