use super::{Checksum, Header, Kind};
use braidcast_core::Writer;

/// Writes one packet: [`begin`](Self::begin), options, then [`finish`](Self::finish).
#[derive(Debug)]
pub struct Builder<'a> {
    buf: &'a mut Vec<u8>,
    start: usize,
    coverage: u8,
}

impl<'a> Builder<'a> {
    /// Most bytes of header and options (Data Offset counts 255 words).
    pub const MAX_HEADER: usize = 1020;

    /// Appends the fixed header to `buf`.
    pub fn begin(buf: &'a mut Vec<u8>, header: &Header) -> Self {
        let start = buf.len();
        let mut w = Writer::new(buf);
        w.u16(header.source_port);
        w.u16(header.destination_port);
        w.u8(0); // data offset
        w.u8(header.ccval << 4 | header.coverage & 15);
        w.u16(0); // checksum
        let x = u8::from(!header.short);
        w.u8(header.kind.code() << 1 | x);
        number(&mut w, header.seq, header.short, 1);
        if let Some(ack) = header.kind.ack() {
            number(&mut w, ack, header.short, 2);
        }
        match header.kind {
            Kind::Request { service } | Kind::Response { service, .. } => w.u32(service.0),
            Kind::Reset { reset, .. } => {
                w.u8(reset.code.0);
                w.bytes(&reset.data);
            }
            _ => {}
        }
        Self { buf, start, coverage: header.coverage }
    }

    /// Where options are appended.
    pub fn options(&mut self) -> Writer<'_> {
        Writer::new(self.buf)
    }

    /// Bytes of options that still fit.
    pub fn room(&self) -> usize {
        Self::MAX_HEADER.saturating_sub(self.buf.len() - self.start)
    }

    /// The same, if the packet is to have `most` bytes at most and no data.
    pub fn room_within(&self, most: usize) -> usize {
        self.room().saturating_sub(Self::MAX_HEADER.saturating_sub(most / 4 * 4))
    }

    /// Bytes of header and options so far, with their padding.
    pub fn header_len(&self) -> usize {
        (self.buf.len() - self.start).next_multiple_of(4)
    }

    /// Pads the options, appends the data and fills in offset and checksum.
    ///
    /// # Panics
    /// If more than [`room`](Self::room) bytes of options were written.
    pub fn finish(self, payload: &[u8], checksum: Checksum) {
        let (head, buf) = self.close();
        buf.extend_from_slice(payload);
        head.finish(buf, checksum);
    }

    /// Pads the options and fills in the offset; the caller appends the data, and `Head::finish` follows.
    ///
    /// # Panics
    /// As [`finish`](Self::finish).
    pub fn pad(self) -> Head {
        self.close().0
    }

    fn close(self) -> (Head, &'a mut Vec<u8>) {
        let Self { buf, start, coverage } = self;
        let len = (buf.len() - start).next_multiple_of(4);
        assert!(len <= Self::MAX_HEADER, "options of {len} bytes");
        buf.resize(start + len, 0);
        buf[start + 4] = (len / 4) as u8;
        (Head { start, len, coverage }, buf)
    }
}

/// A packet that has its header and options, and perhaps its data, but no checksum.
#[derive(Debug)]
#[must_use]
pub struct Head {
    start: usize,
    len: usize,
    coverage: u8,
}

impl Head {
    /// Fills in the checksum; the packet is all that stands in `buf` from where it began.
    ///
    /// # Panics
    /// If less stands there than did.
    pub fn finish(self, buf: &mut [u8], checksum: Checksum) {
        if checksum == Checksum::Udp {
            return; // RFC 6773 §3.1: UDP's is enough.
        }
        let packet = &mut buf[self.start..];
        let payload = packet.len() - self.len;
        let covered = Header::covered(self.coverage).unwrap_or(payload).min(payload);
        let sum = checksum.compute(&packet[..self.len + covered], packet.len());
        packet[6..8].copy_from_slice(&sum.to_be_bytes());
    }
}

/// A sequence number after its reserved bytes, as `Packet::parse` reads it.
fn number(w: &mut Writer<'_>, n: u64, short: bool, reserved: usize) {
    if short {
        w.zeros(reserved - 1);
        w.bytes(&(n as u32).to_be_bytes()[1..]);
    } else {
        w.zeros(reserved);
        w.u16((n >> 32) as u16);
        w.u32(n as u32);
    }
}
