//! Doubt about the state of a protected connection's peer. A Reset in clear says that it
//! has not, which anybody may have sent: it ends nothing.

use super::{Connection, Control, Phase};
use crate::api::CloseReason;
use crate::wire::{Reset, ResetCode};
use braidcast_core::Instant;
use braidcast_secure::Peer;
use core::time::Duration;

/// The peer may have lost its state: a Reset in clear says so, or there is a newcomer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Doubt {
    /// Until then the peer has time to send a record; `None`: it had.
    until: Option<Instant>,
    /// A newcomer proved by its key handshake to be the same peer.
    succeeded: bool,
    /// When the endpoint is to ask by another connection who is there; of the client.
    ask: Option<Instant>,
    /// What was said.
    reset: Reset,
}

impl Doubt {
    /// Time that a peer has, beyond two round trips, to say that it is still there.
    const LEAST: Duration = Duration::from_millis(300);
    /// Between two connections that ask who is there.
    const ASK_EVERY: Duration = Duration::from_secs(1);
    /// A connection that asks and has come to nothing by then gives way to the next.
    const ASK_PATIENCE: Duration = Duration::from_secs(8);

    pub(super) fn timeout(&self) -> Option<Instant> {
        [self.until, self.ask].into_iter().flatten().min()
    }
}

impl Connection {
    /// A Reset in clear: the peer may have lost its state, or somebody who sees packets sent it.
    /// Who is there still answers a Sync, which nobody else can. A client asks by a second
    /// connection who is there.
    pub(super) fn doubt_peer(&mut self, now: Instant, reset: Reset) {
        let client = !self.is_server;
        if let Some(doubt) = self.begin_doubt(now, reset).filter(|_| client) {
            doubt.ask.get_or_insert(now);
        }
        self.pace_asking(now);
    }

    /// A newcomer proved by its key handshake to be the same peer: this connection ends unless its
    /// peer sends a record soon.
    pub(crate) fn succeed(&mut self, now: Instant) {
        if self.begin_doubt(now, Reset::new(ResetCode::NO_CONNECTION)).is_none() {
            return;
        }
        let until = self.time_to_answer(now);
        if let Some(doubt) = self.protection.as_mut().and_then(|it| it.doubt.as_mut()) {
            (doubt.until, doubt.succeeded) = (Some(until), true);
        }
    }

    /// Asks whoever is there. Returns until when it has time to answer.
    fn time_to_answer(&mut self, now: Instant) -> Instant {
        let ack = self.numbers.acknowledgeable;
        self.control(Control::Sync { ack });
        now + Doubt::LEAST + self.rtt_or_default() * 2
    }

    fn begin_doubt(&mut self, now: Instant, reset: Reset) -> Option<&mut Doubt> {
        if matches!(self.phase, Phase::Closed { .. }) {
            return None;
        }
        let doubted = self.protection.as_ref()?.doubt.is_some();
        let until = if doubted { None } else { Some(self.time_to_answer(now)) };
        let doubt = &mut self.protection.as_mut()?.doubt;
        Some(doubt.get_or_insert(Doubt { until, succeeded: false, ask: None, reset }))
    }

    /// Asking costs a handshake, and a Reset in clear costs nobody anything: one a second.
    fn pace_asking(&mut self, now: Instant) {
        let Some(it) = &mut self.protection else { return };
        let earliest = it.asked.map_or(now, |asked| asked + Doubt::ASK_EVERY);
        if let Some(ask) = it.doubt.as_mut().and_then(|doubt| doubt.ask.as_mut()) {
            *ask = earliest.max(*ask);
        }
    }

    /// Returns `true` if the endpoint is to ask now, by another connection, who is there.
    pub(crate) fn take_question(&mut self, now: Instant) -> bool {
        if matches!(self.phase, Phase::Closed { .. }) {
            return false;
        }
        let Some(it) = &mut self.protection else { return false };
        let Some(ask) = it.doubt.as_mut().and_then(|doubt| doubt.ask.as_mut()).filter(|at| **at <= now) else {
            return false;
        };
        *ask = now + Doubt::ASK_PATIENCE;
        it.asked = Some(now);
        true
    }

    /// The connection that was to ask came to nothing: another one does, if there is still doubt.
    pub(crate) fn ask_again(&mut self, now: Instant) {
        if let Some(doubt) = self.protection.as_mut().and_then(|it| it.doubt.as_mut()) {
            doubt.ask = Some(now);
        }
        self.pace_asking(now);
    }

    /// Returns `true` if it is not known at present whether the peer still has its state.
    pub(crate) fn is_doubted(&self) -> bool {
        let is_up = !matches!(self.phase, Phase::Closed { .. });
        is_up && self.protection.as_ref().is_some_and(|it| it.doubt.is_some())
    }

    /// Returns `true` if keys protect all that comes and goes.
    pub(crate) fn is_protected(&self) -> bool {
        self.protection.as_ref().is_some_and(|it| it.is_protected())
    }

    /// Who proved to be at the other end.
    pub(crate) fn peer(&self) -> Option<Peer> {
        self.standing().map(|standing| standing.peer)
    }

    /// When something valid came last.
    pub(crate) const fn heard_at(&self) -> Instant {
        self.last_valid
    }

    /// The time to answer is over.
    pub(super) fn handle_doubt_timeout(&mut self, now: Instant) {
        let Some(doubt) = self.protection.as_mut().and_then(|it| it.doubt.as_mut()) else { return };
        if doubt.until.take_if(|until| *until <= now).is_some() && doubt.succeeded {
            let reset = doubt.reset;
            self.controls.clear();
            self.closed(CloseReason::Reset(reset, String::new()), false);
        }
    }
}
