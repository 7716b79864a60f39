//! What stands before each datagram inside of DCCP (decision 9).

use braidcast_core::{Instant, Reader, Truncated, Writer};

/// Length of the header of a datagram.
pub const LEN: usize = 12;

/// A flow within a connection: which end saw its first datagram, and that end's number for it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FlowId {
    /// This end opened it.
    pub ours: bool,
    /// The opening end's number for it.
    pub number: u16,
}

/// What a message is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Header {
    /// To be acknowledged, and nothing else; what follows is padding.
    Ping,
    /// A datagram of an application; its bytes follow.
    Datagram {
        /// The flow it belongs to.
        flow: FlowId,
        /// Which `--listen` of the opening end it belongs to.
        port: u8,
        /// Counts the datagrams of a flow in one direction, also those that are never sent.
        number: u32,
        /// When it came from the application, in µs of the sender's clock.
        stamp: u32,
    },
}

impl FlowId {
    /// What DCCP is to call the flow's datagrams.
    pub(super) const fn context(self) -> u64 {
        (self.ours as u64) << 16 | self.number as u64
    }

    /// The flow that [`context`](Self::context) stands for.
    pub(super) const fn from_context(context: u64) -> Self {
        Self { ours: context >> 16 != 0, number: context as u16 }
    }
}

/// A message that is none of ours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed;

impl From<Truncated> for Malformed {
    fn from(_: Truncated) -> Self {
        Self
    }
}

const PING: u8 = 0;
/// A datagram of a flow that the sender of this message opened.
const MINE: u8 = 1;
/// A datagram of a flow that the receiver of this message opened.
const YOURS: u8 = 2;

/// A ping that takes room; shorter than any path's packets.
pub(super) const PADDING: [u8; 400] = [PING; 400];

/// The stamp for `now`.
pub(super) const fn stamp(now: Instant) -> u32 {
    now.as_micros() as u32
}

impl Header {
    /// Appends it.
    pub fn emit(&self, buf: &mut Vec<u8>) {
        let w = &mut Writer::new(buf);
        match *self {
            Self::Ping => w.u8(PING),
            Self::Datagram { flow, port, number, stamp } => {
                w.u8(if flow.ours { MINE } else { YOURS });
                w.u8(port);
                w.u16(flow.number);
                w.u32(number);
                w.u32(stamp);
            }
        }
    }

    /// Reads it off the front of a message; the application's bytes follow.
    pub fn parse(message: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(message);
        let ours = match r.u8()? {
            PING => return Ok(Self::Ping),
            MINE => false,
            YOURS => true,
            _ => return Err(Malformed),
        };
        let (port, number) = (r.u8()?, r.u16()?);
        Ok(Self::Datagram { flow: FlowId { ours, number }, port, number: r.u32()?, stamp: r.u32()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_mine_here_is_yours_there() {
        let flow = FlowId { ours: true, number: 7 };
        let mut bytes = Vec::new();
        Header::Datagram { flow, port: 1, number: 2, stamp: 3 }.emit(&mut bytes);
        assert_eq!(bytes, [1, 1, 0, 7, 0, 0, 0, 2, 0, 0, 0, 3]);
        assert_eq!(bytes.len(), LEN);
        let there = FlowId { ours: false, number: 7 };
        assert_eq!(Header::parse(&bytes), Ok(Header::Datagram { flow: there, port: 1, number: 2, stamp: 3 }));
    }

    #[test]
    fn a_flow_is_found_again_by_its_context() {
        for ours in [true, false] {
            let flow = FlowId { ours, number: u16::MAX };
            assert_eq!(FlowId::from_context(flow.context()), flow);
        }
    }

    #[test]
    fn what_is_short_or_unknown_is_refused() {
        assert_eq!(Header::parse(&[0]), Ok(Header::Ping));
        assert_eq!(Header::parse(&PADDING), Ok(Header::Ping));
        assert_eq!(Header::parse(&[]), Err(Malformed));
        assert_eq!(Header::parse(&[1; 11]), Err(Malformed));
        assert_eq!(Header::parse(&[3; 12]), Err(Malformed));
    }
}
