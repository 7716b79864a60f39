//! The messages of a session. All fields are big-endian; one message is one SCTP user message of [`PPID`].
//!
//! A message parses as a whole or not at all, and what parses is consistent: as many bytes as its runs call for.

mod ask;
mod given_up;
mod look;
mod opening;
mod packed;
mod unit;

pub use ask::{Ask, write_ask};
pub use given_up::write_given_up;
pub use look::{Seen, write_look, write_seen};
pub use opening::{
    Hello, MAX_NAME, SESSION_VERSION, Start, Welcome, Written, check_name, is_hello, write_hello, write_start,
    write_welcome, write_written,
};
pub use packed::Packed;
pub use unit::{Bytes, MAX_PACKETS, NULLS_PER_PACKET, Runs, UnitHeader, write_unit};
pub(crate) use unit::{RUN, UNIT_HEADER, literal_nulls, redirect, renumber};

use braidcast_core::{Reader, Truncated, Writer};
use braidcast_media::Kind;

/// Payload protocol identifier of every message: "BRCT". IANA assigns these first come, first served, from small
/// numbers up (RFC 9260 §15.5), and has assigned none near this one.
pub const PPID: u32 = 0x4252_4354;

/// The only version there is; a message of another one is not understood and is dropped.
const VERSION: u8 = 1;
const CLOCK: u8 = 1;
const END: u8 = 2;
const FEEDBACK: u8 = 3;

const FLAG_EARLY: u16 = 0x01;
/// 0x02 was that of packets whose null packets were packed as others are.
const FLAG_UNPACKS: u16 = 0x04;

/// Bounds indexes and times, so that sums of them stay far from overflow: 2⁵³, which is 285 years of µs.
const MAX_NUMBER: u64 = 1 << 53;
/// Kinds of units, as many as [`Kind::ALL`] has.
pub const KINDS: usize = Kind::ALL.len();

/// Why bytes are no message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WireError {
    /// A field is cut off.
    #[error("message cut short: {0}")]
    Truncated(#[from] Truncated),
    /// The peer speaks another version.
    #[error("message of version {0}, this end knows 1 only")]
    Version(u8),
    /// No such message type.
    #[error("message of unknown type {0}")]
    Type(u8),
    /// A field has a value that it cannot have.
    #[error("message with an impossible {0}")]
    Field(&'static str),
}

/// The sender's clock and counts: once as the last message of a session (type 2), and about every 200 ms (type 1).
///
/// ```text
/// +---------------+---------------+-------------------------------+
/// |  Version = 1  | Type = 1 or 2 |               0               |
/// +---------------+---------------+-------------------------------+
/// |            Sent: when this was written, µs (64)               |
/// |                                                               |
/// +---------------------------------------------------------------+
/// |         Smallest round trip time of any path, µs              |
/// +---------------------------------------------------------------+
/// |   Units captured so far of each kind: 7 counters of 64 bits   |
/// \                                                               \
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Clock {
    /// When it was written, µs of the sender's clock.
    pub sent: u64,
    /// Smallest round trip time seen on any path, µs; 0 if none has been measured.
    pub rtt: u32,
    /// Units captured so far, by [`Kind::index`], those that were never sent included.
    pub captured: [u64; KINDS],
}

/// What the receiver reports to the sender about once a second.
///
/// ```text
/// +---------------+---------------+-------------------------------+
/// |  Version = 1  |   Type = 3    |            0            |P|0|E|
/// +---------------+---------------+-------------------------------+
/// |   Units captured so far of each kind, as the sender last said |
/// \                                                               \
/// |     Units on time so far of each kind: 7 counters of 64 bits  |
/// \                                                               \
/// |     Units late so far of each kind: 7 counters of 64 bits     |
/// \                                                               \
/// ```
///
/// E: tell me what will not come ([`write_given_up`]). P: packets may come [`Packed`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Feedback {
    /// Units captured when the others were counted, by [`Kind::index`].
    pub captured: [u64; KINDS],
    /// Units that came on time, by [`Kind::index`].
    pub on_time: [u64; KINDS],
    /// Units that came too late, by [`Kind::index`].
    pub late: [u64; KINDS],
    /// It hands units out as soon as all before them is there, so it wants to know what will not come.
    pub early: bool,
    /// It understands packets that are [`Packed`].
    pub unpacks: bool,
}

/// A message that parsed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message<'a> {
    /// A unit or a part of one.
    Unit {
        /// What stands before its bytes.
        header: UnitHeader,
        /// Where its packets stood in the input.
        runs: Runs<'a>,
        /// Its bytes, in the order of `runs`.
        bytes: Bytes<'a>,
    },
    /// The sender's clock and counts.
    Clock(Clock),
    /// The same, and nothing comes after it.
    End(Clock),
    /// The receiver's counts.
    Feedback(Feedback),
    /// Packets that will not come.
    GivenUp(Runs<'a>),
    /// Whose stream it is.
    Hello(Hello),
    /// What the receiver has.
    Welcome(Welcome),
    /// Where a reliable stream goes on.
    Start(Start),
    /// What the receiver has written.
    Written(Written),
    /// Which stream a receiver wants.
    Ask(Ask),
    /// Somebody looks at the network, with a number by which the answer is known.
    Look(u64),
    /// What the other end has seen of it.
    Seen(Seen),
}

impl<'a> Message<'a> {
    /// Reads a message.
    pub fn parse(message: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(message);
        let version = reader.u8()?;
        if version != VERSION {
            return Err(WireError::Version(version));
        }
        match reader.u8()? {
            unit::UNIT => unit::parse_unit(reader),
            CLOCK => Ok(Self::Clock(parse_clock(reader)?)),
            END => Ok(Self::End(parse_clock(reader)?)),
            FEEDBACK => {
                let flags = reader.u16()?;
                let (early, unpacks) = (flags & FLAG_EARLY != 0, flags & FLAG_UNPACKS != 0);
                let (captured, on_time) = (counters(&mut reader)?, counters(&mut reader)?);
                Ok(Self::Feedback(Feedback { captured, on_time, late: counters(&mut reader)?, early, unpacks }))
            }
            given_up::GIVEN_UP => given_up::parse_given_up(reader),
            opening::HELLO => Ok(Self::Hello(opening::parse_hello(reader)?)),
            opening::WELCOME => Ok(Self::Welcome(opening::parse_welcome(reader)?)),
            opening::START => Ok(Self::Start(opening::parse_start(reader)?)),
            opening::WRITTEN => Ok(Self::Written(opening::parse_written(reader)?)),
            ask::ASK => Ok(Self::Ask(ask::parse_ask(reader)?)),
            look::LOOK => look::parse_look(reader),
            look::SEEN => look::parse_seen(reader),
            other => Err(WireError::Type(other)),
        }
    }
}

fn parse_clock(mut reader: Reader<'_>) -> Result<Clock, WireError> {
    let _zero = reader.u16()?;
    let sent = below_max(reader.u64()?, "time")?;
    Ok(Clock { sent, rtt: reader.u32()?, captured: counters(&mut reader)? })
}

fn counters(reader: &mut Reader<'_>) -> Result<[u64; KINDS], WireError> {
    let mut counters = [0; KINDS];
    for counter in &mut counters {
        *counter = below_max(reader.u64()?, "count")?;
    }
    Ok(counters)
}

fn below_max(number: u64, field: &'static str) -> Result<u64, WireError> {
    if number < MAX_NUMBER { Ok(number) } else { Err(WireError::Field(field)) }
}

/// Writes a clock message, or with `end` the last message, into `out`, which is cleared first.
pub fn write_clock(out: &mut Vec<u8>, clock: &Clock, end: bool) {
    out.clear();
    let mut w = Writer::new(out);
    w.bytes(&[VERSION, if end { END } else { CLOCK }, 0, 0]);
    w.u64(clock.sent);
    w.u32(clock.rtt);
    clock.captured.iter().for_each(|count| w.u64(*count));
}

/// Writes a feedback message into `out`, which is cleared first.
pub fn write_feedback(out: &mut Vec<u8>, feedback: &Feedback) {
    out.clear();
    let mut w = Writer::new(out);
    w.bytes(&[VERSION, FEEDBACK]);
    let flag = |set: bool, flag: u16| if set { flag } else { 0 };
    w.u16(flag(feedback.early, FLAG_EARLY) | flag(feedback.unpacks, FLAG_UNPACKS));
    [feedback.captured, feedback.on_time, feedback.late].as_flattened().iter().for_each(|count| w.u64(*count));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_and_feedback_are_read_as_written() {
        let clock = Clock { sent: 5, rtt: 6, captured: [1, 2, 3, 4, 5, 6, 7] };
        let feedback = Feedback {
            captured: [9; KINDS],
            on_time: [1, 2, 3, 4, 5, 6, 7],
            late: [8; KINDS],
            early: true,
            unpacks: true,
        };
        let mut out = Vec::new();
        write_clock(&mut out, &clock, false);
        assert_eq!(Message::parse(&out), Ok(Message::Clock(clock)));
        write_clock(&mut out, &clock, true);
        assert_eq!(Message::parse(&out), Ok(Message::End(clock)));
        write_feedback(&mut out, &feedback);
        assert_eq!(Message::parse(&out), Ok(Message::Feedback(feedback)));
    }

    #[test]
    fn another_version_and_an_unknown_type_are_refused() {
        assert_eq!(Message::parse(&[2]), Err(WireError::Version(2)));
        assert_eq!(Message::parse(&[1, 99]), Err(WireError::Type(99)));
    }
}
