use braidcast_core::Writer;

/// Bytes of an identifier.
pub(super) const ID: usize = 256;
/// Bytes of a registration.
pub const REGISTRATION: usize = 2 + ID;
/// Longest keep-alive that is sent back: newer senders put figures of 38 bytes into it.
const KEEP_ALIVE: usize = 64;
/// Data packets in one acknowledgement.
pub(super) const ACKNOWLEDGED: usize = 10;

const TYPE_KEEP_ALIVE: u16 = 0x9000;
const TYPE_ACK: u16 = 0x9100;
const TYPE_REGISTER_1: u16 = 0x9200;
const TYPE_REGISTER_2: u16 = 0x9201;
const TYPE_REGISTER_3: u16 = 0x9202;
const TYPE_ERROR: u16 = 0x9210;
const TYPE_NO_GROUP: u16 = 0x9211;

/// What goes over a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Packet<'a> {
    /// The link is there; the whole packet, as it comes back.
    KeepAlive(&'a [u8]),
    /// Data packets that came over this link.
    Ack(Acknowledged<'a>),
    /// A group is asked for.
    Register1(&'a [u8; ID]),
    /// A group is there, or a link joins it.
    Register2(&'a [u8; ID]),
    /// The link has joined.
    Register3,
    /// No room; later perhaps.
    Error,
    /// There is no such group.
    NoGroup,
    /// A packet of SRT: data, with its number, or none for control packets.
    Srt(Option<u32>),
}

/// The numbers of data packets in an acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Acknowledged<'a>(&'a [u8]);

impl Acknowledged<'_> {
    /// The numbers.
    pub fn numbers(&self) -> impl Iterator<Item = u32> {
        self.0.as_chunks().0.iter().map(|word| u32::from_be_bytes(*word))
    }
}

impl<'a> Packet<'a> {
    /// Reads a packet; `None` if it is neither SRTLA's nor can be SRT's.
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first_chunk()?;
        let id = || rest.try_into().ok();
        Some(match u16::from_be_bytes(*kind) {
            TYPE_KEEP_ALIVE if bytes.len() <= KEEP_ALIVE => Self::KeepAlive(bytes),
            TYPE_ACK => Self::Ack(Acknowledged(rest.get(2..)?)),
            TYPE_REGISTER_1 => Self::Register1(id()?),
            TYPE_REGISTER_2 => Self::Register2(id()?),
            TYPE_REGISTER_3 => Self::Register3,
            TYPE_ERROR => Self::Error,
            TYPE_NO_GROUP => Self::NoGroup,
            0x9000..=0x92ff => return None,
            _ if bytes.len() < crate::srt::wire::HEADER => return None,
            _ => {
                let word = u32::from_be_bytes(*bytes.first_chunk()?);
                Self::Srt((word & 0x8000_0000 == 0).then_some(word))
            }
        })
    }

    /// Appends a packet that has an identifier or nothing behind its type.
    pub fn write(&self, buf: &mut Vec<u8>) {
        let mut w = Writer::new(buf);
        let (kind, rest): (u16, &[u8]) = match self {
            Self::KeepAlive(bytes) => return w.bytes(bytes),
            Self::Ack(Acknowledged(numbers)) => {
                w.u16(TYPE_ACK);
                (0, *numbers)
            }
            Self::Register1(id) => (TYPE_REGISTER_1, &id[..]),
            Self::Register2(id) => (TYPE_REGISTER_2, &id[..]),
            Self::Register3 => (TYPE_REGISTER_3, &[]),
            Self::Error => (TYPE_ERROR, &[]),
            Self::NoGroup => (TYPE_NO_GROUP, &[]),
            Self::Srt(_) => return,
        };
        w.u16(kind);
        w.bytes(rest);
    }
}

/// Appends an acknowledgement of `numbers`: four bytes of header, as senders skip so many.
pub(super) fn write_ack(buf: &mut Vec<u8>, numbers: &[u32]) {
    let mut w = Writer::new(buf);
    w.u16(TYPE_ACK);
    w.u16(0);
    numbers.iter().for_each(|number| w.u32(*number));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_told_apart() {
        let id = [7; ID];
        for packet in
            [Packet::Register1(&id), Packet::Register2(&id), Packet::Register3, Packet::Error, Packet::NoGroup]
        {
            let mut bytes = Vec::new();
            packet.write(&mut bytes);
            assert_eq!(Packet::parse(&bytes), Some(packet));
            // One byte less is another packet, or none.
            assert_ne!(Packet::parse(&bytes[..bytes.len() - 1]), Some(packet));
        }
        let mut ack = Vec::new();
        write_ack(&mut ack, &[1, 0x7fff_ffff]);
        let Some(Packet::Ack(acknowledged)) = Packet::parse(&ack) else { panic!("an acknowledgement") };
        assert!(acknowledged.numbers().eq([1, 0x7fff_ffff]) && ack.len() == 12);
        let mut again = Vec::new();
        Packet::Ack(acknowledged).write(&mut again);
        assert_eq!(again, ack);
        assert_eq!(Packet::parse(&[0x90, 0, 1]), Some(Packet::KeepAlive(&[0x90, 0, 1])));
        assert_eq!(Packet::parse(&[0x90; 65]), None);
        assert_eq!(Packet::parse(&[0x80; 16]), Some(Packet::Srt(None)));
        assert_eq!(Packet::parse(&[1; 16]), Some(Packet::Srt(Some(0x0101_0101))));
        assert_eq!((Packet::parse(&[1; 15]), Packet::parse(&[0x92]), Packet::parse(&[0x92, 9])), (None, None, None));
    }
}
