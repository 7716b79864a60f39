//! Tickets: one line that lets a sender reach a receiver, and each be sure of the other.

use crate::wire::Circuit;
use braidcast_core::{Reader, Truncated, Writer};
use core::fmt;
use core::str::FromStr;
use sha2::{Digest, Sha256};

/// What tickets begin with.
const PREFIX: &str = "braid:";
/// The version of what follows.
const VERSION: u8 = 1;
/// Bytes of the checksum at the end.
const CHECKSUM: usize = 4;
/// Characters of a ticket at most.
const LONGEST: usize = 2048;
/// Places of a ticket at most.
const MOST_PLACES: usize = 16;
/// Digits of 5 bits (RFC 4648 §6, in small letters), which a QR code holds well and people can read out.
const DIGITS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// Where a receiver is reached.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reach {
    /// By a relay there, not itself.
    pub is_relay: bool,
    /// A name or an address, without brackets.
    pub host: String,
    /// UDP port.
    pub port: u16,
}

/// What a receiver gives to a sender. Who has it can send there: it is a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Ticket {
    /// The fingerprint of the receiver's key.
    pub receiver: [u8; 32],
    /// What the sender's key follows from.
    pub permission: [u8; 16],
    /// The circuit at relays.
    pub circuit: Circuit,
    /// When it ends, in s since 1970.
    pub until: Option<u64>,
    /// The places where the receiver is reached, 1 to 16.
    pub reached: Vec<Reach>,
}

/// Leaves the secrets out.
impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket").field("until", &self.until).field("reached", &self.reached).finish_non_exhaustive()
    }
}

/// Why a text is no ticket.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TicketError {
    /// It does not begin as one.
    #[error("a ticket begins with {PREFIX}")]
    Other,
    /// Something that no ticket has.
    #[error("character {place} of the ticket is none of a to z and 2 to 7")]
    Character {
        /// Which one, from 1.
        place: usize,
    },
    /// The checksum does not match.
    #[error("the ticket is cut off or a character is wrong: copy the whole line again")]
    Changed,
    /// It is longer than any.
    #[error("this is longer than any ticket: copy that one line alone")]
    TooLong,
    /// A later version wrote it.
    #[error("the ticket was made by another version of braidcast: use the same version at both ends")]
    Version,
}

impl From<Truncated> for TicketError {
    fn from(_: Truncated) -> Self {
        Self::Changed
    }
}

impl Ticket {
    /// Returns `true` if `text` is meant as a ticket.
    pub fn is_meant(text: &str) -> bool {
        text.trim_start().get(..PREFIX.len()).is_some_and(|start| start.eq_ignore_ascii_case(PREFIX))
    }

    /// The line.
    pub fn text(&self) -> String {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes);
        writer.u8(VERSION);
        writer.bytes(&self.receiver);
        writer.bytes(&self.permission);
        writer.bytes(&self.circuit.0);
        writer.u64(self.until.unwrap_or(0));
        let reached = &self.reached[..self.reached.len().min(MOST_PLACES)];
        writer.u8(reached.len() as u8);
        for Reach { is_relay, host, port } in reached {
            let host = &host.as_bytes()[..host.len().min(127)];
            writer.u8((u8::from(*is_relay) << 7) | host.len() as u8);
            writer.bytes(host);
            writer.u16(*port);
        }
        let sum = checksum(&bytes);
        bytes.extend_from_slice(&sum);
        format!("{PREFIX}{}", to_digits(&bytes))
    }
}

impl FromStr for Ticket {
    type Err = TicketError;

    /// Space around it, and capital letters, do not matter.
    fn from_str(text: &str) -> Result<Self, TicketError> {
        let text = text.trim();
        if !Self::is_meant(text) {
            return Err(TicketError::Other);
        }
        if text.len() > LONGEST {
            return Err(TicketError::TooLong);
        }
        let bytes = from_digits(&text[PREFIX.len()..])?;
        let (content, sum) = bytes.split_last_chunk::<CHECKSUM>().ok_or(TicketError::Changed)?;
        if checksum(content) != *sum {
            return Err(TicketError::Changed);
        }
        let mut reader = Reader::new(content);
        if reader.u8()? != VERSION {
            return Err(TicketError::Version);
        }
        let (receiver, permission, circuit) = (reader.array()?, reader.array()?, Circuit(reader.array()?));
        let until = Some(reader.u64()?).filter(|until| *until > 0);
        let count = usize::from(reader.u8()?);
        if !(1..=MOST_PLACES).contains(&count) {
            return Err(TicketError::Changed);
        }
        let mut reached = Vec::new();
        for _ in 0..count {
            let head = reader.u8()?;
            let host = core::str::from_utf8(reader.take(usize::from(head & 0x7f))?);
            let host = host.ok().filter(|host| is_host(host)).ok_or(TicketError::Changed)?.to_owned();
            reached.push(Reach { is_relay: head & 0x80 != 0, host, port: reader.u16()? });
        }
        if !reader.is_empty() || reached.iter().any(|it| it.port == 0) {
            return Err(TicketError::Changed);
        }
        Ok(Self { receiver, permission, circuit, until, reached })
    }
}

/// What can be a name or an address; nothing in it moves a terminal's cursor.
fn is_host(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".:-_%".contains(&byte))
}

fn checksum(bytes: &[u8]) -> [u8; CHECKSUM] {
    let mut sum = [0; CHECKSUM];
    sum.copy_from_slice(&Sha256::digest([&b"braidcast ticket"[..], bytes].concat())[..CHECKSUM]);
    sum
}

fn to_digits(bytes: &[u8]) -> String {
    let (mut out, mut bits, mut held) = (String::new(), 0_u32, 0);
    for byte in bytes {
        bits = (bits << 8) | u32::from(*byte);
        held += 8;
        while held >= 5 {
            held -= 5;
            out.push(DIGITS[(bits >> held) as usize & 31] as char);
        }
        bits &= (1 << held) - 1;
    }
    if held > 0 {
        out.push(DIGITS[(bits << (5 - held)) as usize & 31] as char);
    }
    out
}

fn from_digits(text: &str) -> Result<Vec<u8>, TicketError> {
    let (mut out, mut bits, mut held) = (Vec::new(), 0_u32, 0);
    for (at, char) in text.chars().enumerate() {
        let digit = DIGITS.iter().position(|digit| char.to_ascii_lowercase() == *digit as char);
        let digit = digit.ok_or(TicketError::Character { place: PREFIX.len() + at + 1 })?;
        bits = (bits << 5) | digit as u32;
        held += 5;
        if held >= 8 {
            held -= 8;
            out.push((bits >> held) as u8);
            bits &= (1 << held) - 1;
        }
    }
    // One text for one ticket.
    if held >= 5 || bits != 0 { Err(TicketError::Changed) } else { Ok(out) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticket() -> Ticket {
        let reach = |is_relay, host: &str| Reach { is_relay, host: host.into(), port: 9000 };
        let reached = vec![reach(true, "relay.example"), reach(false, "2001:db8::1")];
        let (receiver, permission, circuit) = ([1; 32], [2; 16], Circuit([3; 16]));
        Ticket { receiver, permission, circuit, until: Some(1_800_000_000), reached }
    }

    #[test]
    fn a_ticket_is_one_line_that_says_all() {
        let text = ticket().text();
        assert!(text.len() < 200 && !text.contains(char::is_whitespace), "{text}");
        assert_eq!(text.parse(), Ok(ticket()));
        assert_eq!(format!("  {}\n", text.to_uppercase()).parse(), Ok(ticket()));
        assert!(Ticket::is_meant(&text) && !Ticket::is_meant("braid.example:9000"));
        assert!(!format!("{:?}", ticket()).contains('3'), "{:?}", ticket());
    }

    #[test]
    fn whatever_is_cut_or_changed_is_found() {
        let text = ticket().text();
        for at in PREFIX.len()..text.len() {
            assert_eq!(text[..at].parse::<Ticket>(), Err(TicketError::Changed), "cut at {at}");
            let mut changed = text.clone().into_bytes();
            changed[at] = if changed[at] == b'a' { b'b' } else { b'a' };
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(changed.parse::<Ticket>(), Err(TicketError::Changed), "{changed}");
        }
        assert_eq!("braid:ab1".parse::<Ticket>(), Err(TicketError::Character { place: 9 }));
        assert_eq!("home.example:9000".parse::<Ticket>(), Err(TicketError::Other));
        assert_eq!(format!("{PREFIX}{}", "a".repeat(3000)).parse::<Ticket>(), Err(TicketError::TooLong));
    }

    #[test]
    fn a_later_version_is_told_apart_and_no_host_moves_a_cursor() {
        let write = |content: &[u8]| {
            let sum = checksum(content);
            format!("{PREFIX}{}", to_digits(&[content, &sum].concat())).parse::<Ticket>()
        };
        assert_eq!(write(&[2, 1, 1]), Err(TicketError::Version));
        let mut hostile = ticket();
        hostile.reached[0].host = "a\u{1b}[2J".into();
        assert_eq!(hostile.text().parse::<Ticket>(), Err(TicketError::Changed));
        hostile.reached.clear();
        assert_eq!(hostile.text().parse::<Ticket>(), Err(TicketError::Changed));
    }
}
