//! What goes over the wire: 8 bytes before each packet, and the few messages that arrange them.
//!
//! A packet's first bit is 1, a message's is 0. Numbers are big-endian.

use braidcast_core::{Reader, Truncated, Writer};
use core::fmt;
use sha2::{Digest, Sha256};
use std::net::{IpAddr, SocketAddr};

/// Bytes before each packet that is passed on.
pub const HEADER: usize = 8;
/// What messages begin with; the last byte is the version.
const MAGIC: [u8; 4] = *b"BrR\x01";
/// Bytes of [`Control::Hello`], so that its answer is no longer.
const HELLO: usize = 40;
/// Bytes of [`Control::Keep`], likewise.
const KEEP: usize = 24;
/// The bit of a registration's side that says [`Registration::hidden`].
const HIDDEN: u8 = 0x80;
/// The bit that makes a packet of what would be a message.
const PACKET: u64 = 1 << 47;

/// By which a relay knows one of its members: 48 bits, of which the first is 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Tag(u64);

impl Tag {
    /// The tag with these bits, 47 of which count.
    pub const fn new(bits: u64) -> Self {
        Self((bits & (PACKET - 1)) | PACKET)
    }

    /// Its 47 bits.
    pub const fn bits(self) -> u64 {
        self.0 & (PACKET - 1)
    }
}

/// One of the addresses that a side of a circuit is reached at.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Leg(pub u16);

/// Which side of a circuit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Side {
    /// Who opened it, and alone knows its secret.
    Owner,
    /// Who joins it.
    Guest,
}

impl Side {
    /// The one that packets of this one go to.
    pub const fn other(self) -> Self {
        match self {
            Self::Owner => Self::Guest,
            Self::Guest => Self::Owner,
        }
    }
}

/// What the owner of a circuit knows and shows to the relay alone. Never printed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct OwnerSecret(pub [u8; 16]);

impl OwnerSecret {
    /// The number of its circuit: the first 16 bytes of its SHA-256.
    pub fn circuit(&self) -> Circuit {
        let mut circuit = [0; 16];
        circuit.copy_from_slice(&Sha256::digest([&b"braidcast circuit 1"[..], &self.0].concat())[..16]);
        Circuit(circuit)
    }
}

impl fmt::Debug for OwnerSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnerSecret(…)")
    }
}

/// The number of a circuit, which all who join it know.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Circuit(pub [u8; 16]);

impl Circuit {
    /// By which its ends know each other's [`Control::Punch`].
    pub fn punch(&self) -> u64 {
        let hash = Sha256::digest([&b"braidcast punch 1"[..], &self.0].concat());
        hash.iter().take(8).fold(0, |word, byte| (word << 8) | u64::from(*byte))
    }
}

/// What stands before a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Of the member that sends it, or, from the relay, that it is for.
    pub tag: Tag,
    /// Of the other side: where it goes or, from the relay, where it came from.
    pub leg: Leg,
}

impl Header {
    /// The header of `packet`; `None` of what is no packet.
    pub fn read(packet: &[u8]) -> Option<(Self, &[u8])> {
        let mut reader = Reader::new(packet);
        let word = reader.u64().ok()?;
        let bits = word >> 16;
        let leg = Leg((word & 0xffff) as u16);
        (bits & PACKET != 0).then(|| (Self { tag: Tag::new(bits), leg }, reader.rest()))
    }

    /// Its bytes.
    pub const fn bytes(self) -> [u8; HEADER] {
        ((self.tag.0 << 16) | self.leg.0 as u64).to_be_bytes()
    }
}

/// Why a relay does not let in who has proved its address.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// The circuit has no owner there, now.
    #[error("the other end is not at the relay")]
    NoCircuit,
    /// The relay has a list, and the key is not in it, or was not shown.
    #[error("the relay does not know this end's key")]
    NotAuthorized,
    /// The leg is another member's, which came later.
    #[error("another program has this place at the relay")]
    Replaced,
    /// No room is left for more members, or for more of this client.
    #[error("the relay is full")]
    Full,
    /// What its client's circuits may carry in a time is used up.
    #[error("the quota of bytes at the relay is used up")]
    OverQuota,
    /// Something that this version does not know.
    #[error("the relay refused, for a reason that this version does not know")]
    Other,
}

impl Reason {
    const fn code(self) -> u8 {
        match self {
            Self::NoCircuit => 1,
            Self::NotAuthorized => 2,
            Self::Replaced => 3,
            Self::Full => 4,
            Self::OverQuota => 5,
            Self::Other => 0,
        }
    }

    const fn of(code: u8) -> Self {
        match code {
            1 => Self::NoCircuit,
            2 => Self::NotAuthorized,
            3 => Self::Replaced,
            4 => Self::Full,
            5 => Self::OverQuota,
            _ => Self::Other,
        }
    }
}

/// That who registers may open circuits: a public key of Ed25519, and its signature of [`signed`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Proof {
    /// The key.
    pub public: [u8; 32],
    /// The signature.
    pub signature: [u8; 64],
}

/// What a member says of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Registration {
    /// Which circuit and side. The owner shows its secret.
    pub place: Place,
    /// Which leg of that side it wants to be.
    pub leg: Leg,
    /// When its program began, in ms since 1970: of two that want a leg, the later one has it.
    pub epoch: u64,
    /// A number of its own, by which it is known again at another address.
    pub member: u64,
    /// The other side is not to be told where it is, and it is not told of the other side.
    pub hidden: bool,
    /// For a relay that has a list.
    pub proof: Option<Proof>,
}

/// Which side of which circuit somebody registers for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// [`Side::Owner`].
    Owner(OwnerSecret),
    /// [`Side::Guest`].
    Guest(Circuit),
}

impl Place {
    /// The side.
    pub const fn side(&self) -> Side {
        match self {
            Self::Owner(_) => Side::Owner,
            Self::Guest(_) => Side::Guest,
        }
    }

    /// The circuit.
    pub fn circuit(&self) -> Circuit {
        match self {
            Self::Owner(secret) => secret.circuit(),
            Self::Guest(circuit) => *circuit,
        }
    }
}

/// The address at which the relay sees a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Observed(pub SocketAddr);

/// A message between a member and its relay. The nonce of a question comes back in its answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Control {
    /// Asks for a cookie.
    Hello {
        /// Drawn by who asks.
        nonce: u64,
    },
    /// The cookie, without which nothing is remembered.
    Challenge {
        /// Of the question.
        nonce: u64,
        /// To be shown from the same address.
        cookie: [u8; 16],
    },
    /// Asks for a place.
    Register {
        /// Drawn by who asks.
        nonce: u64,
        /// From [`Self::Challenge`].
        cookie: [u8; 16],
        /// Which place.
        registration: Registration,
    },
    /// The place is given.
    Registered {
        /// Of the question.
        nonce: u64,
        /// To stand before each packet.
        tag: Tag,
        /// As it was asked for.
        leg: Leg,
        /// Where the relay sees the member.
        observed: Observed,
    },
    /// It is not.
    Refused {
        /// Of the question.
        nonce: u64,
        /// Why.
        reason: Reason,
    },
    /// Keeps the place, and the NATs before it open.
    Keep {
        /// Drawn by who asks.
        nonce: u64,
        /// The member's.
        tag: Tag,
    },
    /// The place is kept.
    Kept {
        /// Of the question.
        nonce: u64,
    },
    /// The relay does not know this tag at this address: it was restarted, or the address changed.
    Unknown {
        /// Of what came.
        tag: Tag,
    },
    /// Leaves the place.
    Leave {
        /// The member's.
        tag: Tag,
    },
    /// From the relay: another leg is there, and may be reached straight on.
    Peer {
        /// Of the member that is told.
        tag: Tag,
        /// Of the other side.
        leg: Leg,
        /// Where the relay sees it.
        observed: Observed,
    },
    /// From end to end, past the relay: opens the NATs before both, and shows that the other one gets through.
    Punch {
        /// [`Circuit::punch`], which nobody else knows.
        token: u64,
    },
}

/// Not a message of this version.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not a relay's message")]
pub struct Malformed;

impl From<Truncated> for Malformed {
    fn from(_: Truncated) -> Self {
        Self
    }
}

/// What a [`Proof`] signs: it is of use at no other relay's question and for no other circuit.
pub fn signed(cookie: &[u8; 16], nonce: u64, circuit: Circuit) -> Vec<u8> {
    [&b"braidcast relay 1"[..], cookie, &nonce.to_be_bytes(), &circuit.0].concat()
}

impl Control {
    /// Reads a message.
    ///
    /// # Errors
    /// [`Malformed`]; nothing is to be said about it.
    pub fn read(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        if reader.array()? != MAGIC {
            return Err(Malformed);
        }
        let kind = reader.u8()?;
        let it = match kind {
            1 | 6 if bytes.len() < if kind == 1 { HELLO } else { KEEP } => return Err(Malformed),
            1 => return Ok(Self::Hello { nonce: reader.u64()? }),
            2 => Self::Challenge { nonce: reader.u64()?, cookie: reader.array()? },
            3 => {
                let (nonce, cookie) = (reader.u64()?, reader.array()?);
                Self::Register { nonce, cookie, registration: read_registration(&mut reader)? }
            }
            4 => {
                let (nonce, tag, leg) = (reader.u64()?, read_tag(&mut reader)?, Leg(reader.u16()?));
                Self::Registered { nonce, tag, leg, observed: read_observed(&mut reader)? }
            }
            5 => Self::Refused { nonce: reader.u64()?, reason: Reason::of(reader.u8()?) },
            6 => return Ok(Self::Keep { nonce: reader.u64()?, tag: read_tag(&mut reader)? }),
            7 => Self::Kept { nonce: reader.u64()? },
            8 => Self::Unknown { tag: read_tag(&mut reader)? },
            9 => Self::Leave { tag: read_tag(&mut reader)? },
            10 => {
                let (tag, leg) = (read_tag(&mut reader)?, Leg(reader.u16()?));
                Self::Peer { tag, leg, observed: read_observed(&mut reader)? }
            }
            11 => Self::Punch { token: reader.u64()? },
            _ => return Err(Malformed),
        };
        if reader.is_empty() { Ok(it) } else { Err(Malformed) }
    }

    /// Appends it to `buf`.
    pub fn write(&self, buf: &mut Vec<u8>) {
        let begin = buf.len();
        let mut writer = Writer::new(buf);
        writer.bytes(&MAGIC);
        match *self {
            Self::Hello { nonce } => {
                writer.u8(1);
                writer.u64(nonce);
                buf.resize(begin + HELLO, 0);
            }
            Self::Challenge { nonce, cookie } => {
                writer.u8(2);
                writer.u64(nonce);
                writer.bytes(&cookie);
            }
            Self::Register { nonce, cookie, registration } => {
                writer.u8(3);
                writer.u64(nonce);
                writer.bytes(&cookie);
                write_registration(&mut writer, &registration);
            }
            Self::Registered { nonce, tag, leg, observed } => {
                writer.u8(4);
                writer.u64(nonce);
                write_tag(&mut writer, tag);
                writer.u16(leg.0);
                write_observed(&mut writer, observed);
            }
            Self::Refused { nonce, reason } => {
                writer.u8(5);
                writer.u64(nonce);
                writer.u8(reason.code());
            }
            Self::Keep { nonce, tag } => {
                writer.u8(6);
                writer.u64(nonce);
                write_tag(&mut writer, tag);
                buf.resize(begin + KEEP, 0);
            }
            Self::Kept { nonce } => {
                writer.u8(7);
                writer.u64(nonce);
            }
            Self::Unknown { tag } => {
                writer.u8(8);
                write_tag(&mut writer, tag);
            }
            Self::Leave { tag } => {
                writer.u8(9);
                write_tag(&mut writer, tag);
            }
            Self::Peer { tag, leg, observed } => {
                writer.u8(10);
                write_tag(&mut writer, tag);
                writer.u16(leg.0);
                write_observed(&mut writer, observed);
            }
            Self::Punch { token } => {
                writer.u8(11);
                writer.u64(token);
            }
        }
    }
}

fn read_tag(reader: &mut Reader<'_>) -> Result<Tag, Malformed> {
    let bits = (u64::from(reader.u16()?) << 32) | u64::from(reader.u32()?);
    if bits & PACKET == 0 { Err(Malformed) } else { Ok(Tag::new(bits)) }
}

fn write_tag(writer: &mut Writer<'_>, tag: Tag) {
    writer.bytes(&tag.0.to_be_bytes()[2..]);
}

fn read_registration(reader: &mut Reader<'_>) -> Result<Registration, Malformed> {
    let head = reader.u8()?;
    let place = match (head & !HIDDEN, reader.array()?) {
        (0, secret) => Place::Owner(OwnerSecret(secret)),
        (1, circuit) => Place::Guest(Circuit(circuit)),
        _ => return Err(Malformed),
    };
    let (leg, epoch, member) = (Leg(reader.u16()?), reader.u64()?, reader.u64()?);
    let proof =
        if reader.is_empty() { None } else { Some(Proof { public: reader.array()?, signature: reader.array()? }) };
    Ok(Registration { place, leg, epoch, member, hidden: head & HIDDEN != 0, proof })
}

fn write_registration(writer: &mut Writer<'_>, it: &Registration) {
    let hidden = if it.hidden { HIDDEN } else { 0 };
    match &it.place {
        Place::Owner(secret) => {
            writer.u8(hidden);
            writer.bytes(&secret.0);
        }
        Place::Guest(circuit) => {
            writer.u8(1 | hidden);
            writer.bytes(&circuit.0);
        }
    }
    writer.u16(it.leg.0);
    writer.u64(it.epoch);
    writer.u64(it.member);
    if let Some(proof) = &it.proof {
        writer.bytes(&proof.public);
        writer.bytes(&proof.signature);
    }
}

fn read_observed(reader: &mut Reader<'_>) -> Result<Observed, Malformed> {
    let ip: IpAddr = match reader.u8()? {
        4 => IpAddr::from(reader.array::<4>()?),
        6 => IpAddr::from(reader.array::<16>()?),
        _ => return Err(Malformed),
    };
    Ok(Observed(SocketAddr::new(ip, reader.u16()?)))
}

fn write_observed(writer: &mut Writer<'_>, observed: Observed) {
    match observed.0.ip() {
        IpAddr::V4(ip) => {
            writer.u8(4);
            writer.bytes(&ip.octets());
        }
        IpAddr::V6(ip) => {
            writer.u8(6);
            writer.bytes(&ip.octets());
        }
    }
    writer.u16(observed.0.port());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Control> {
        let tag = Tag::new(0x1234_5678_9abc);
        let registration = Registration {
            place: Place::Guest(Circuit([7; 16])),
            leg: Leg(3),
            epoch: 5,
            member: 6,
            hidden: true,
            proof: Some(Proof { public: [1; 32], signature: [2; 64] }),
        };
        let owner =
            Registration { place: Place::Owner(OwnerSecret([9; 16])), hidden: false, proof: None, ..registration };
        let observed = |text: &str| Observed(text.parse().unwrap());
        vec![
            Control::Hello { nonce: 1 },
            Control::Challenge { nonce: 1, cookie: [3; 16] },
            Control::Register { nonce: 1, cookie: [3; 16], registration },
            Control::Register { nonce: 1, cookie: [3; 16], registration: owner },
            Control::Registered { nonce: 1, tag, leg: Leg(3), observed: observed("192.0.2.1:9") },
            Control::Registered { nonce: 1, tag, leg: Leg(3), observed: observed("[2001:db8::1]:9") },
            Control::Refused { nonce: 1, reason: Reason::Full },
            Control::Keep { nonce: 1, tag },
            Control::Kept { nonce: 1 },
            Control::Unknown { tag },
            Control::Leave { tag },
            Control::Peer { tag, leg: Leg(3), observed: observed("192.0.2.1:9") },
            Control::Punch { token: 1 },
        ]
    }

    #[test]
    fn messages_come_back_as_they_went_and_none_is_taken_for_a_packet() {
        for message in all() {
            let mut bytes = Vec::new();
            message.write(&mut bytes);
            assert_eq!(Control::read(&bytes), Ok(message));
            assert_eq!(Header::read(&bytes), None, "{message:?}");
            for short in 0..bytes.len() {
                assert_ne!(Control::read(&bytes[..short]), Ok(message), "{message:?} cut at {short}");
            }
            bytes.push(0);
            let padded = matches!(message, Control::Hello { .. } | Control::Keep { .. });
            assert_eq!(Control::read(&bytes).is_ok(), padded, "{message:?} with a byte more");
        }
    }

    #[test]
    fn a_packet_has_eight_bytes_before_it_and_is_taken_for_no_message() {
        let header = Header { tag: Tag::new(0x0102_0304_0506), leg: Leg(0x0708) };
        let mut packet = header.bytes().to_vec();
        assert_eq!(packet, [0x81, 2, 3, 4, 5, 6, 7, 8]);
        packet.extend_from_slice(b"what nobody can read");
        assert_eq!(Header::read(&packet), Some((header, &packet[HEADER..])));
        assert_eq!(Control::read(&packet), Err(Malformed));
    }

    #[test]
    fn only_who_knows_the_secret_is_the_owner() {
        let secret = OwnerSecret([1; 16]);
        assert_ne!(secret.circuit().0, secret.0);
        assert_ne!(secret.circuit(), OwnerSecret([2; 16]).circuit());
        assert!(!format!("{secret:?}").contains('1'));
    }
}
