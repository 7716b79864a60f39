use crate::event::Event;
use crate::farewell::Farewell;
use crate::wire::{self, Hello, Message, PPID, WireError};
use braidcast_core::{Instant, PathId};
use braidcast_sctp::{Association, AssociationId};
use std::net::IpAddr;

/// Bytes that are kept for a guest beyond those in its association.
const EARLY_BYTES: usize = 2 << 20;
/// The same before it has said hello.
const UNKNOWN_BYTES: usize = 128 << 10;
/// Events that are kept for when it is let in.
const MAX_EVENTS: usize = 16;

/// An association that has no stream of its own yet: nobody has said whose it is, or it has to wait.
#[derive(Debug)]
pub(super) struct Guest {
    pub(super) id: AssociationId,
    pub(super) since: Instant,
    pub(super) hello: Option<Hello>,
    /// It said something that no sender of this version says.
    pub(super) foreign: Option<Farewell>,
    /// When the hello came.
    pub(super) asked_at: Instant,
    /// It looks at the network: the number of its newest look that is not answered, and the path that it came over.
    pub(super) look: Option<(u64, PathId)>,
    /// It has looked at the network, so that it may take its time.
    pub(super) looks: bool,
    /// It was told that it waits for its turn; meanwhile what it sends passes unseen.
    pub(super) in_line: bool,
    /// Its stream, which is live, is over already.
    pub(super) ended: bool,
    pub(super) addresses: Vec<IpAddr>,
    /// Messages that came so far, when and over which path.
    early: Vec<(Instant, PathId, Vec<u8>)>,
    early_bytes: usize,
    pub(super) events: Vec<Event>,
}

impl Guest {
    pub(super) const fn new(now: Instant, id: AssociationId) -> Self {
        Self {
            id,
            since: now,
            hello: None,
            foreign: None,
            asked_at: now,
            look: None,
            looks: false,
            in_line: false,
            ended: false,
            addresses: Vec::new(),
            early: Vec::new(),
            early_bytes: 0,
            events: Vec::new(),
        }
    }

    /// Reads what has come. What is too much stays in the association, whose window closes, but for the hello: if
    /// that got lost it comes behind what was sent after it. Counts what made no sense.
    pub(super) fn read(&mut self, now: Instant, association: &mut Association, buf: &mut Vec<u8>) -> u64 {
        let mut malformed = 0;
        if self.addresses.is_empty() {
            self.addresses = association.paths().map(|path| path.route.remote.ip()).collect();
        }
        loop {
            let has_room = self.in_line || self.early_bytes < self.early_limit();
            let received = match &self.hello {
                _ if has_room => association.recv(now, buf),
                None => association.recv_where(now, wire::is_hello, buf),
                Some(_) => None,
            };
            let Some(received) = received else { break };
            if received.ppid != PPID {
                self.foreign = Some(Farewell::NoHello);
                continue;
            }
            let message = Message::parse(buf);
            self.ended |= matches!(message, Ok(Message::End(_)));
            match message {
                Ok(Message::Hello(hello)) if self.hello.is_none() => {
                    self.hello = Some(hello);
                    self.asked_at = now;
                }
                Ok(Message::Unit { .. } | Message::Clock(_) | Message::End(_)) if self.in_line => {}
                Ok(Message::Unit { .. } | Message::Clock(_) | Message::End(_)) => {
                    self.early_bytes += buf.len();
                    self.early.push((now, received.path, buf.clone()));
                }
                Ok(Message::Ask(_)) if self.hello.is_none() => self.foreign = Some(Farewell::NoHello),
                Ok(Message::Look(number)) if self.hello.is_none() => {
                    self.look = Some((number, received.path));
                    self.looks = true;
                }
                Err(WireError::Version(_)) if self.hello.is_none() => self.foreign = Some(Farewell::Version),
                _ => malformed += 1,
            }
        }
        malformed
    }

    /// Returns `true` if it has sent what only a sender of ours does.
    pub(super) const fn is_ours(&self) -> bool {
        self.looks || self.early_bytes > 0
    }

    const fn early_limit(&self) -> usize {
        if self.hello.is_some() { EARLY_BYTES } else { UNKNOWN_BYTES }
    }

    /// Something happened to it that is told once it is let in.
    pub(super) fn note(&mut self, event: Event) {
        if self.events.len() < MAX_EVENTS {
            self.events.push(event);
        }
    }

    /// It has to wait: what came and will come is not for it to be played.
    pub(super) fn line_up(&mut self) {
        self.in_line = true;
        self.early = Vec::new();
    }

    /// What came before it was let in.
    pub(super) fn take_early(&mut self) -> Vec<(Instant, PathId, Vec<u8>)> {
        core::mem::take(&mut self.early)
    }
}
