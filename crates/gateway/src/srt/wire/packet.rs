use super::Malformed;
use braidcast_core::{Reader, Writer};

/// Bytes of the header of every packet (draft-sharabayko-srt §3).
pub const HEADER: usize = 16;
/// Bytes of the packets that the capacity of a link counts: full ones, with their headers. libsrt shows it times as
/// many (`mbpsBandwidth`).
pub const CAPACITY_PACKET: u32 = 1500;
/// Largest sequence number; they have 31 bits.
const MAX_SEQUENCE: u32 = 0x7fff_ffff;

/// Which key a payload is encrypted with (§3.1, field KK).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum KeySlot {
    /// None: the payload is in clear.
    #[default]
    Clear,
    /// The even key.
    Even,
    /// The odd key.
    Odd,
}

impl KeySlot {
    const fn bits(self) -> u32 {
        match self {
            Self::Clear => 0,
            Self::Even => 1,
            Self::Odd => 2,
        }
    }
}

/// A data packet (§3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Data<'a> {
    /// Sequence number, 31 bits.
    pub sequence: u32,
    /// Place in the message: 3 is the whole of it, which is all that live mode has.
    pub position: u8,
    /// Messages are delivered in order.
    pub in_order: bool,
    /// Key of the payload.
    pub key: KeySlot,
    /// It was sent before.
    pub repeated: bool,
    /// Message number, 26 bits.
    pub message: u32,
    /// Microseconds since its sender's socket was made.
    pub timestamp: u32,
    /// Socket that it is for.
    pub to: u32,
    /// What is carried.
    pub payload: &'a [u8],
}

/// What a control packet is (§3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ControlKind {
    /// Type 0.
    Handshake,
    /// Type 1.
    KeepAlive,
    /// Type 2.
    Ack,
    /// Type 3.
    Nak,
    /// Type 4, which nothing sends.
    Congestion,
    /// Type 5.
    Shutdown,
    /// Type 6.
    AckAck,
    /// Type 7.
    DropRequest,
    /// Type 8.
    PeerError,
    /// Type 0x7fff with its subtype: 3 asks for new keys, 4 answers.
    User(u16),
    /// Any other type.
    Other(u16),
}

impl ControlKind {
    const fn of(kind: u16, subtype: u16) -> Self {
        match kind {
            0 => Self::Handshake,
            1 => Self::KeepAlive,
            2 => Self::Ack,
            3 => Self::Nak,
            4 => Self::Congestion,
            5 => Self::Shutdown,
            6 => Self::AckAck,
            7 => Self::DropRequest,
            8 => Self::PeerError,
            0x7fff => Self::User(subtype),
            other => Self::Other(other),
        }
    }

    const fn word(self) -> u32 {
        let (kind, subtype) = match self {
            Self::Handshake => (0, 0),
            Self::KeepAlive => (1, 0),
            Self::Ack => (2, 0),
            Self::Nak => (3, 0),
            Self::Congestion => (4, 0),
            Self::Shutdown => (5, 0),
            Self::AckAck => (6, 0),
            Self::DropRequest => (7, 0),
            Self::PeerError => (8, 0),
            Self::User(subtype) => (0x7fff, subtype as u32),
            Self::Other(kind) => (kind as u32, 0),
        };
        0x8000_0000 | kind << 16 | subtype
    }
}

/// A control packet (§3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Control<'a> {
    /// What it is.
    pub kind: ControlKind,
    /// Type-specific information: the number of an acknowledgement, of a message.
    pub info: u32,
    /// Microseconds since its sender's socket was made.
    pub timestamp: u32,
    /// Socket that it is for; 0 asks for a connection.
    pub to: u32,
    /// What follows the header.
    pub body: &'a [u8],
}

/// A packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Packet<'a> {
    /// Payload.
    Data(Data<'a>),
    /// Anything else.
    Control(Control<'a>),
}

impl<'a> Packet<'a> {
    /// Reads a packet. What its body says is not looked at.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(bytes);
        let [first, second, timestamp, to] = [r.u32()?, r.u32()?, r.u32()?, r.u32()?];
        let rest = r.rest();
        if first & 0x8000_0000 != 0 {
            let kind = ControlKind::of((first >> 16 & 0x7fff) as u16, first as u16);
            return Ok(Self::Control(Control { kind, info: second, timestamp, to, body: rest }));
        }
        let key = match second >> 27 & 3 {
            0 => KeySlot::Clear,
            1 => KeySlot::Even,
            2 => KeySlot::Odd,
            both => return Err(Malformed::Unknown("KK of a data packet", both)),
        };
        Ok(Self::Data(Data {
            sequence: first,
            position: (second >> 30) as u8,
            in_order: second >> 29 & 1 == 1,
            key,
            repeated: second >> 26 & 1 == 1,
            message: second & 0x03ff_ffff,
            timestamp,
            to,
            payload: rest,
        }))
    }
}

impl Data<'_> {
    /// Appends the packet to `buf`.
    pub fn write(&self, buf: &mut Vec<u8>) {
        let mut w = Writer::new(buf);
        w.u32(self.sequence & MAX_SEQUENCE);
        let flags = u32::from(self.position & 3) << 30
            | u32::from(self.in_order) << 29
            | self.key.bits() << 27
            | u32::from(self.repeated) << 26;
        w.u32(flags | self.message & 0x03ff_ffff);
        w.u32(self.timestamp);
        w.u32(self.to);
        w.bytes(self.payload);
    }
}

impl Control<'_> {
    /// Appends the packet to `buf`.
    pub fn write(&self, buf: &mut Vec<u8>) {
        let mut w = Writer::new(buf);
        w.u32(self.kind.word());
        w.u32(self.info);
        w.u32(self.timestamp);
        w.u32(self.to);
        w.bytes(self.body);
    }
}

/// The body of an acknowledgement (§3.2.4): as much of it as is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ack {
    /// Sequence number of the first packet that is not acknowledged.
    pub next: u32,
    /// Round trip and its variance as the receiver measures them, in µs.
    pub rtt: Option<(u32, u32)>,
    /// Packets that the receiver has room for.
    pub room: Option<u32>,
    /// What arrives, and what could.
    pub rate: Option<Rate>,
}

/// The last fields of a full acknowledgement (§3.2.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rate {
    /// Packets that arrive in each second.
    pub packets: u32,
    /// Packets that could go over the link in each second, of [`CAPACITY_PACKET`] bytes each.
    pub capacity: u32,
    /// Bytes that arrive in each second.
    pub bytes: u32,
}

impl Ack {
    /// Reads the body of an acknowledgement.
    pub fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(body);
        let next = r.u32()? & MAX_SEQUENCE;
        let rtt = r.u32().and_then(|rtt| Ok((rtt, r.u32()?))).ok();
        let room = r.u32().ok();
        let rate = r.u32().and_then(|packets| Ok(Rate { packets, capacity: r.u32()?, bytes: r.u32()? })).ok();
        Ok(Self { next, rtt, room, rate })
    }

    /// Appends what is set, up to the first field that is not.
    pub fn write(&self, buf: &mut Vec<u8>) {
        let mut w = Writer::new(buf);
        w.u32(self.next & MAX_SEQUENCE);
        let (Some((rtt, variance)), Some(room)) = (self.rtt, self.room) else { return };
        w.u32(rtt);
        w.u32(variance);
        w.u32(room);
        let Some(rate) = self.rate else { return };
        w.u32(rate.packets);
        w.u32(rate.capacity);
        w.u32(rate.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// By hand, as §3.1 lays it out: a whole message, in order, even key.
    #[test]
    fn a_data_packet_reads_as_what_it_is() {
        let bytes =
            [&[0x1c, 0x9a, 0x2f, 0x07, 0xe8, 0, 0, 5, 0, 0, 0x27, 0x10, 0x12, 0x34, 0x56, 0x78][..], &[0x47; 188]]
                .concat();
        let Packet::Data(data) = Packet::parse(&bytes).unwrap() else { panic!("a data packet") };
        assert_eq!((data.sequence, data.position, data.in_order), (0x1c9a_2f07, 3, true));
        assert_eq!((data.key, data.repeated, data.message), (KeySlot::Even, false, 5));
        assert_eq!((data.timestamp, data.to, data.payload.len()), (10_000, 0x1234_5678, 188));
        let mut again = Vec::new();
        data.write(&mut again);
        assert_eq!(again, bytes);
    }

    #[test]
    fn an_acknowledgement_has_as_much_as_it_says() {
        for ack in [
            Ack { next: 7, ..Ack::default() },
            Ack { next: 7, rtt: Some((100, 50)), room: Some(9), rate: None },
            Ack {
                next: 7,
                rtt: Some((100, 50)),
                room: Some(9),
                rate: Some(Rate { packets: 1, capacity: 2, bytes: 3 }),
            },
        ] {
            let mut body = Vec::new();
            ack.write(&mut body);
            assert_eq!(Ack::parse(&body), Ok(ack));
        }
        assert!(Ack::parse(&[0, 0, 0]).is_err());
    }

    #[test]
    fn both_keys_at_once_are_no_data_packet() {
        let bytes = [0, 0, 0, 1, 0b1101_1000, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(Packet::parse(&bytes), Err(Malformed::Unknown("KK of a data packet", 3)));
        assert!(matches!(Packet::parse(&bytes[..15]), Err(Malformed::Short(_))));
    }

    proptest! {
        #[test]
        fn what_is_read_is_written_as_it_was(bytes in prop::collection::vec(any::<u8>(), 16..80)) {
            let mut again = Vec::new();
            match Packet::parse(&bytes) {
                Ok(Packet::Data(data)) => data.write(&mut again),
                // Only the user-defined type has a subtype.
                Ok(Packet::Control(control)) if matches!(control.kind, ControlKind::User(_)) => control.write(&mut again),
                _ => return Ok(()),
            }
            prop_assert_eq!(again, bytes);
        }
    }
}
