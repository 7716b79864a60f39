//! Protection by the DTLS chunk (draft-ietf-tsvwg-sctp-dtls-chunk): every packet after the key
//! handshake is one record, and nothing else is taken. Key messages go before all others, on stream
//! 0.

use super::Open;
use crate::api::{CloseReason, Event, Options, Reliability, SendOptions};
use crate::path::PathIndex;
use crate::wire::chunk::kind;
use crate::wire::{self, Cause, Causes, Chunk, Header, PROTECTION, padded};
use braidcast_core::{Instant, PathId};
use braidcast_secure::{Disagreement, Guard, GuardError, HEADER, Refused, Role, Standing, State, Transcript};
use core::time::Duration;
use std::sync::Arc;

/// Payload protocol identifier of key messages.
pub(super) const KEY_MESSAGE: u32 = 4242;
/// Bytes of the DTLS chunk before its record: its header and a zero byte.
const BEFORE: usize = 5;

/// What protects an association that both ends want protected.
#[derive(Debug)]
pub(super) struct Protection {
    pub(super) guard: Guard,
    /// The application was told that data may flow.
    pub(super) told: bool,
    /// What [`Open::join_all`] is to do once packets are protected.
    pub(super) joins: Option<(PathId, bool)>,
    /// What was in the last record.
    pub(super) text: Vec<u8>,
    /// Unless a record comes before this, the peer has lost its state, as an ABORT in clear said.
    pub(super) doubt: Option<Instant>,
}

impl Protection {
    /// Time that a peer has, beyond two round trips, to say that it is still there.
    const LEAST_DOUBT: Duration = Duration::from_millis(300);

    pub(super) fn new(now: Instant, options: &Options, keys: Option<(Role, Transcript)>) -> Option<Self> {
        let (security, (role, transcript)) = (options.security.as_ref()?, keys?);
        let guard = Guard::new(now, Arc::clone(&security.method), security.limits, role, transcript);
        Some(Self { guard, told: false, joins: None, text: Vec::new(), doubt: None })
    }
}

/// Returns `true` if `chunk` may come in clear before there are keys: what carries key messages,
/// and what ends it.
pub(super) const fn may_be_clear(chunk: &Chunk<'_>) -> bool {
    match chunk {
        Chunk::Data(data) => data.stream == 0,
        Chunk::IData(data) => data.stream == 0,
        Chunk::Sack(_)
        | Chunk::NrSack(_)
        | Chunk::Heartbeat(_)
        | Chunk::HeartbeatAck(_)
        | Chunk::Abort(_)
        | Chunk::CookieEcho(_)
        | Chunk::CookieAck(_) => true,
        _ => false,
    }
}

impl Open {
    /// Returns `true` if nothing is taken any more that is not protected.
    pub(super) fn is_protected(&self) -> bool {
        self.protection.as_ref().is_some_and(|it| it.guard.state() == State::Protected)
    }

    pub(super) fn standing(&self) -> Option<Standing> {
        self.protection.as_ref().and_then(|it| it.guard.standing())
    }

    /// Bytes that each packet is longer on the wire now than its chunks and common header.
    pub(super) fn framing(&self) -> usize {
        let sealing = self.protection.as_ref().is_some_and(|it| it.guard.is_sealing());
        if sealing { PROTECTION } else { 0 }
    }

    /// Sends key messages that wait; lets data flow once it is protected.
    pub(super) fn tend_keys(&mut self, now: Instant) {
        let Some(protection) = &mut self.protection else { return };
        while let Some(message) = protection.guard.poll_message() {
            let how = SendOptions {
                ppid: KEY_MESSAGE,
                context: u64::MAX,
                reliability: Reliability::Reliable,
                ..SendOptions::default()
            };
            self.queue.push_express(now, &message, how);
        }
        if protection.told || protection.guard.state() != State::Protected || self.state.is_closed() {
            return;
        }
        protection.told = true;
        let joins = protection.joins.take();
        self.queue.hold_back(false);
        self.journal.events.push_back(Event::Connected);
        if let Some((first, rejoin)) = joins {
            self.join_all(now, first, rejoin);
        }
    }

    /// An ABORT in clear that reflects our tag: the peer may have been started anew, or somebody
    /// who sees packets sent it. Who is there still answers the heartbeat, which nobody else can.
    pub(super) fn doubt_peer(&mut self, now: Instant) {
        let best = self.paths.for_control(None);
        let round_trip = best.and_then(|index| self.paths[index].rtt().srtt()).unwrap_or_default();
        let Some(protection) = self.protection.as_mut().filter(|it| it.doubt.is_none()) else { return };
        protection.doubt = Some(now + Protection::LEAST_DOUBT + round_trip * 2);
        if let Some(index) = best {
            self.paths[index].ask(now);
        }
    }

    pub(super) fn key_timeout(&self) -> Option<Instant> {
        let protection = self.protection.as_ref()?;
        [protection.guard.poll_timeout(), protection.doubt].into_iter().flatten().min()
    }

    pub(super) fn handle_key_timeout(&mut self, now: Instant) {
        let Some(protection) = self.protection.as_mut().filter(|_| self.state.is_up()) else { return };
        if protection.doubt.take_if(|until| *until <= now).is_some() {
            return self.close(CloseReason::by_peer(Causes::new(&[])));
        }
        match protection.guard.handle_timeout(now) {
            Ok(()) => self.tend_keys(now),
            Err(error) => self.refuse(&error),
        }
    }

    /// The peer is not whom we want, or keys are used up.
    pub(super) fn refuse(&mut self, error: &GuardError) {
        // As the other end sees it.
        let told = match error {
            GuardError::Refused(Refused::WrongKey(_)) => Refused::ByPeer.to_string(),
            GuardError::Refused(Refused::Certificate(why)) => format!("the other end says that our certificate {why}"),
            GuardError::Refused(Refused::ByPeer) => "this end does not accept the other end's key".into(),
            other => format!("the other end says: {other}"),
        };
        let cause = Cause::NoProtection { kind: Disagreement::NoCommonMethod.cause() };
        self.send_abort_of(&[&cause, &Cause::UserInitiatedAbort(CloseReason::cut(&told))]);
        self.close(CloseReason::Insecure(error.to_string()));
    }

    /// Bytes that a packet leaves free before it, for what a record has before its chunks.
    pub(super) fn room(&self) -> usize {
        if self.framing() > 0 { BEFORE + HEADER } else { 0 }
    }

    /// Leaves that room in `buf`. Where the packet begins then.
    pub(super) fn leave_room(&self, buf: &mut Vec<u8>) -> usize {
        buf.resize(buf.len() + self.room(), 0);
        buf.len()
    }

    /// Completes the packet for the path `index` that begins at `start` in `buf`, behind the room
    /// that was left: its chunks become one record, where they must, and it gets its checksum,
    /// where a record does not do instead.
    pub(super) fn finish(&mut self, now: Instant, index: PathIndex, start: usize, buf: &mut Vec<u8>) {
        let mut begin = start;
        if let Some(protection) = self.protection.as_mut().filter(|it| it.guard.is_sealing()) {
            self.journal.trace.tell_plain(true, || [&buf[start..], &[]]);
            // The header goes before the room, so that the chunks stay where they are.
            begin = start - (BEFORE + HEADER);
            buf.copy_within(start..start + Header::LEN, begin);
            let chunk = begin + Header::LEN;
            if let Err(error) = protection.guard.seal(now, buf, chunk + BEFORE) {
                buf.truncate(begin);
                return self.refuse(&error);
            }
            let len = buf.len() - chunk;
            let [high, low] = (len as u16).to_be_bytes();
            buf[chunk..chunk + BEFORE].copy_from_slice(&[kind::DTLS, 0, high, low, 0]);
            buf.resize(chunk + padded(len), 0);
            if self.zero_checksum.sent && !self.paths[index].needs_checksum() {
                return;
            }
        }
        wire::seal(&mut buf[begin..]);
    }
}
