use core::fmt;

use braidcast_core::Writer;

use super::{
    data::{Flags, emit_start},
    kind,
};
use crate::wire::{ParseError, RawChunk, padded};

/// User data whose messages can be interleaved (RFC 8260 §2.1), with a flag of our own (decision 39).
///
/// ```text
/// | type 64        8 | 000T I U B E | length          16 |
/// | TSN                                              32 |
/// | stream               16 | reserved               16 |
/// | message identifier                               32 |
/// | payload protocol identifier if B, else
///   fragment sequence number                         32 |
/// | payload …                                           |
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IData<'a> {
    /// Transmission sequence number.
    pub tsn: u32,
    /// Stream identifier.
    pub stream: u16,
    /// Message identifier; ordered and unordered messages of a stream count apart.
    pub mid: u32,
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
    /// Payload protocol identifier; valid in the first fragment, else 0.
    pub ppid: u32,
    /// Fragment sequence number; 0 in the first fragment, which does not carry it.
    pub fsn: u32,
    /// The fragment. Empty is a fault of the sender that the receiver reports (RFC 9260 §6.2, No User Data).
    pub payload: &'a [u8],
}

impl<'a> IData<'a> {
    /// The chunk type.
    pub const KIND: u8 = kind::I_DATA;
    /// Bytes in front of the payload.
    pub const HEADER: usize = 20;

    /// Reads the chunk.
    ///
    /// # Errors
    /// [`ParseError::Length`] below [`Self::HEADER`].
    pub fn parse(raw: RawChunk<'a>) -> Result<Self, ParseError> {
        let mut fields = raw.fields();
        let Flags { unordered, first, last, immediate, timed } = Flags::from_bits(raw.flags);
        let tsn = fields.u32()?;
        let stream = fields.u16()?;
        let _reserved = fields.u16()?;
        let mid = fields.u32()?;
        let shared = fields.u32()?;
        let (ppid, fsn) = if first { (shared, 0) } else { (0, shared) };
        Ok(Self { tsn, stream, mid, unordered, first, last, immediate, timed, ppid, fsn, payload: fields.rest() })
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
        w.u16(0);
        w.u32(self.mid);
        w.u32(if first { self.ppid } else { self.fsn });
    }
}

impl fmt::Display for IData<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let &Self { tsn, stream, mid, unordered, first, last, immediate, timed, ppid, fsn, payload } = self;
        let flags = Flags { unordered, first, last, immediate, timed };
        write!(f, "I-DATA tsn={tsn} stream={stream} mid={mid} ")?;
        if first {
            write!(f, "ppid={ppid}")?;
        } else {
            write!(f, "fsn={fsn}")?;
        }
        write!(f, " flags={flags} len={}", payload.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::chunk::*;

    #[test]
    fn i_data_is_laid_out_as_rfc_8260_2_1_draws_it() {
        let first = IData {
            tsn: 1,
            stream: 2,
            mid: 3,
            unordered: true,
            first: true,
            last: false,
            immediate: false,
            timed: false,
            ppid: 0x0405_0607,
            fsn: 0,
            payload: &[9],
        };
        check(
            &[64, 6, 0, 21, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0, 3, 4, 5, 6, 7, 9, 0, 0, 0],
            Chunk::IData(first),
            "I-DATA tsn=1 stream=2 mid=3 ppid=67438087 flags=-UB- len=1",
        );
        let next = IData { tsn: 2, first: false, last: true, ppid: 0, fsn: 1, payload: &[8, 7, 6, 5], ..first };
        check(
            &[64, 5, 0, 24, 0, 0, 0, 2, 0, 2, 0, 0, 0, 0, 0, 3, 0, 0, 0, 1, 8, 7, 6, 5],
            Chunk::IData(next),
            "I-DATA tsn=2 stream=2 mid=3 fsn=1 flags=-U-E len=4",
        );
        let timed = IData { timed: true, ..next };
        check(
            &[64, 0x15, 0, 24, 0, 0, 0, 2, 0, 2, 0, 0, 0, 0, 0, 3, 0, 0, 0, 1, 8, 7, 6, 5],
            Chunk::IData(timed),
            "I-DATA tsn=2 stream=2 mid=3 fsn=1 flags=T-U-E len=4",
        );
    }
}
