use braidcast_core::{Reader, Truncated, Writer};

/// Bytes of the header without options (RFC 3550 §5.1).
pub const HEADER: usize = 12;
/// The payload type of MPEG-TS (RFC 3551 §6).
const MPEG_TS: u8 = 33;

/// What the header says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// What the payload is: 33, or 96 to 127 where both ends have agreed otherwise.
    pub kind: u8,
    /// The marker: RFC 2250 §2 sets it where the clock jumps.
    pub marker: bool,
    /// Number of the packet.
    pub sequence: u16,
    /// Time in units of 1/90,000 s.
    pub timestamp: u32,
    /// Who sends.
    pub source: u32,
}

/// A packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet<'a> {
    /// Its header.
    pub header: Header,
    /// What is carried, without padding.
    pub payload: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Reads a packet; `None` if it is not RTP of version 2, or is shorter than it says. Sources that contributed and
    /// extensions are skipped.
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        Self::read(bytes).ok().flatten()
    }

    fn read(bytes: &'a [u8]) -> Result<Option<Self>, Truncated> {
        let mut r = Reader::new(bytes);
        let (first, second) = (r.u8()?, r.u8()?);
        let header = Header {
            kind: second & 0x7f,
            marker: second & 0x80 != 0,
            sequence: r.u16()?,
            timestamp: r.u32()?,
            source: r.u32()?,
        };
        r.take(usize::from(first & 15) * 4)?;
        if first & 0x10 != 0 {
            r.u16()?;
            let words = r.u16()?;
            r.take(usize::from(words) * 4)?;
        }
        let mut payload = r.rest();
        if first & 0x20 != 0 {
            let padding = usize::from(payload.last().copied().unwrap_or(0));
            let Some(len) = payload.len().checked_sub(padding).filter(|_| padding > 0) else { return Ok(None) };
            payload = &payload[..len];
        }
        Ok((first >> 6 == 2).then_some(Self { header, payload }))
    }
}

impl Header {
    /// The header of a packet of MPEG-TS.
    pub const fn of_ts(sequence: u16, timestamp: u32, source: u32) -> Self {
        Self { kind: MPEG_TS, marker: false, sequence, timestamp, source }
    }

    /// Returns `true` if it may be MPEG-TS.
    pub const fn may_be_ts(&self) -> bool {
        self.kind == MPEG_TS || self.kind >= 96
    }

    /// Appends the header to `buf`.
    pub fn write(&self, buf: &mut Vec<u8>) {
        let mut w = Writer::new(buf);
        w.u8(0x80);
        w.u8(self.kind & 0x7f | if self.marker { 0x80 } else { 0 });
        w.u16(self.sequence);
        w.u32(self.timestamp);
        w.u32(self.source);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn options_are_skipped_and_padding_is_left_out() {
        let header = Header { marker: true, ..Header::of_ts(7, 90_000, 5) };
        let mut plain = Vec::new();
        header.write(&mut plain);
        assert_eq!(plain.len(), HEADER);
        let mut full = plain.clone();
        full[0] |= 0x10 | 0x20 | 1;
        // A source, an extension of one word, a payload of four bytes and two of padding.
        full.extend([0, 0, 0, 9, 0xbe, 0xde, 0, 1, 1, 2, 3, 4, 0x47, 1, 2, 3, 0, 2]);
        assert_eq!(Packet::parse(&full), Some(Packet { header, payload: &[0x47, 1, 2, 3] }));
        for cut in 0..full.len() - 6 {
            assert_eq!(Packet::parse(&full[..cut]), None, "{cut}");
        }
        plain[0] = 0x40;
        assert_eq!(Packet::parse(&plain), None);
        assert!(!Header { kind: 0, ..header }.may_be_ts() && Header { kind: 96, ..header }.may_be_ts());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_not(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            if let Some(packet) = Packet::parse(&bytes) {
                prop_assert!(packet.payload.len() + HEADER <= bytes.len());
            }
        }
    }
}
