//! Protection by the DTLS chunk (draft-ietf-tsvwg-sctp-dtls-chunk): every packet after the key
//! handshake is one record, and nothing else is taken. Key messages go before all others, on stream
//! 0.

use super::Open;
use crate::api::{CloseReason, Event, Options, Reliability, SendOptions};
use crate::path::PathIndex;
use crate::rx::{Fragment, Key};
use crate::wire::chunk::kind;
use crate::wire::{self, Cause, Causes, Chunk, Header, PROTECTION, padded};
use braidcast_core::{Instant, PathId};
use braidcast_secure::{Alias, Doubt, Guard, HEADER, Inquiry, Role, Standing, State, Transcript, Verdict};
use std::sync::Arc;

/// Payload protocol identifier of key messages.
pub(super) const KEY_MESSAGE: u32 = 4242;
/// Bytes of key messages that may wait for an acknowledgement: several changes of keys.
const MOST_UNACKNOWLEDGED: usize = 64 << 10;
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
    /// Doubt that the peer still has its state.
    doubt: Doubt,
}

impl Protection {
    pub(super) fn new(now: Instant, options: &Options, keys: Option<(Role, Transcript)>) -> Option<Self> {
        let (security, (role, transcript)) = (options.security.as_ref()?, keys?);
        let guard = Guard::new(now, Arc::clone(&security.method), security.limits, role, transcript);
        Some(Self { guard, told: false, joins: None, text: Vec::new(), doubt: Doubt::default() })
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

/// Returns whether `fragment` may be of a key message: ordered, on stream 0, and by its identifier,
/// which only the first fragment has with I-DATA.
pub(super) const fn is_key_message(fragment: &Fragment<'_>) -> bool {
    let named = fragment.ppid == KEY_MESSAGE || (!fragment.first && matches!(fragment.key, Key::Mid { .. }));
    fragment.stream == 0 && !fragment.unordered && named
}

impl Open {
    /// Returns `true` if nothing is taken any more that is not protected.
    pub(super) fn is_protected(&self) -> bool {
        self.protection.as_ref().is_some_and(|it| it.guard.state() == State::Protected)
    }

    /// Returns `true` if there are to be keys, and are none yet.
    pub(super) fn agrees_on_keys(&self) -> bool {
        self.protection.as_ref().is_some_and(|it| it.guard.state() != State::Protected)
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
            if self.queue.express_bytes() + message.len() > MOST_UNACKNOWLEDGED {
                return self.violation("key messages that are not acknowledged");
            }
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
    /// who sees packets sent it. It ends nothing. The end that connected asks by a second
    /// association who is there; a peer that is there answers the heartbeat.
    pub(super) fn doubt_peer(&mut self, now: Instant) {
        let initiator = self.initiator;
        if self.doubt().is_some_and(|doubt| doubt.raise(now, initiator)) {
            self.time_to_answer(now);
        }
    }

    /// A newcomer at this peer's address proved by its key handshake to be the same. It is asked if
    /// it has this association, too; and as packets pass, so is whoever is here. `lasting`: it does
    /// not only ask.
    pub(super) fn succeed(&mut self, now: Instant, lasting: bool) {
        self.doubt().into_iter().for_each(|doubt| doubt.succeed(lasting));
        self.time_to_answer(now);
    }

    /// That newcomer has it not: this association ends unless its peer sends a record soon.
    pub(super) fn deny(&mut self, now: Instant) {
        if self.doubt().is_some_and(|doubt| doubt.deny()) {
            self.wait_for_record(now);
        }
    }

    /// The newcomer is gone, or has this association as well: there is no doubt left.
    pub(super) fn trust(&mut self) {
        self.doubt().into_iter().for_each(Doubt::dispel);
    }

    /// A record came, which only the peer can have made.
    pub(super) fn heard_record(&mut self) {
        self.doubt().into_iter().for_each(Doubt::heard);
    }

    fn doubt(&mut self) -> Option<&mut Doubt> {
        self.protection.as_mut().filter(|_| self.state.is_up()).map(|it| &mut it.doubt)
    }

    fn wait_for_record(&mut self, now: Instant) {
        let until = self.time_to_answer(now);
        self.doubt().into_iter().for_each(|doubt| doubt.wait_until(until));
    }

    /// Has whoever is there asked by heartbeats over all paths. Returns until when it has time to
    /// answer.
    fn time_to_answer(&mut self, now: Instant) -> Instant {
        let usable: Vec<_> = self.paths.indices().filter(|&index| self.paths[index].is_usable()).collect();
        usable.iter().for_each(|&index| self.paths[index].ask(now));
        let slowest = usable.iter().filter_map(|&index| self.paths[index].rtt().srtt()).max();
        now + Doubt::LEAST + slowest.unwrap_or_default() * 2
    }

    /// Returns whether another association with the same peer is to be asked now, if there is one.
    pub(super) fn look_around(&mut self) -> bool {
        self.doubt().is_some_and(Doubt::look_around)
    }

    /// Returns whether the endpoint is to ask now, by one more association, who is there.
    pub(super) fn take_question(&mut self, now: Instant) -> bool {
        self.doubt().is_some_and(|doubt| doubt.take_question(now))
    }

    /// The association that was to ask came to nothing: another one does, if there is still doubt.
    pub(super) fn ask_again(&mut self, now: Instant) {
        self.doubt().into_iter().for_each(|doubt| doubt.ask_again(now));
    }

    /// Returns whether it is not known at present if the peer still has its state.
    pub(super) fn is_doubted(&self) -> bool {
        self.state.is_up() && self.protection.as_ref().is_some_and(|it| it.doubt.is_raised())
    }

    /// What both ends call the association, once it is protected.
    pub(super) fn alias(&self) -> Option<Alias> {
        self.protection.as_ref().and_then(|it| it.guard.alias())
    }

    /// Asks the peer about another association with it, or answers.
    pub(super) fn inquire(&mut self, now: Instant, inquiry: Inquiry) {
        self.protection.iter_mut().for_each(|it| it.guard.inquire(inquiry));
        self.tend_keys(now);
    }

    /// What the peer asked, or answered.
    pub(super) fn take_inquiry(&mut self) -> Option<Inquiry> {
        self.protection.as_mut()?.guard.poll_inquiry()
    }

    pub(super) fn key_timeout(&self) -> Option<Instant> {
        let protection = self.protection.as_ref()?;
        [protection.doubt.poll_timeout(), protection.guard.poll_timeout()].into_iter().flatten().min()
    }

    pub(super) fn handle_key_timeout(&mut self, now: Instant) {
        match self.doubt().map(|doubt| doubt.handle_timeout(now)) {
            None => return,
            Some(Verdict::Wait) => {}
            Some(Verdict::AskAgain) => self.wait_for_record(now),
            Some(Verdict::Over) => {
                // If it is there after all, it learns that it has to begin anew.
                self.send_abort(&Cause::UserInitiatedAbort(b"a newer association took its place"));
                return self.close(CloseReason::by_peer(Causes::new(&[]), false));
            }
        }
        let Some(protection) = &mut self.protection else { return };
        match protection.guard.handle_timeout(now) {
            Ok(()) => self.tend_keys(now),
            Err(error) => self.refuse(&error),
        }
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
