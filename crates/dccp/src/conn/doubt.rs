//! Doubt about the state of a protected connection's peer. A Reset in clear says that it
//! has not, which anybody may have sent: it ends nothing.

use super::{Connection, Control, Phase};
use crate::api::CloseReason;
use crate::wire::{Reset, ResetCode};
use braidcast_core::Instant;
use braidcast_secure::{Alias, Doubt, Inquiry, Peer, Verdict};

impl Connection {
    /// A Reset in clear: the peer may have lost its state, or somebody who sees packets sent it.
    /// Who is there still answers a Sync, which nobody else can. A client asks by a second
    /// connection who is there.
    pub(super) fn doubt_peer(&mut self, now: Instant) {
        let client = !self.is_server;
        if self.doubt().is_some_and(|doubt| doubt.raise(now, client)) {
            self.time_to_answer(now);
        }
    }

    /// A newcomer proved by its key handshake to be the same peer. It is asked if it has this
    /// connection, too; and as packets pass, so is whoever is here. `lasting`: it does not only ask.
    pub(crate) fn succeed(&mut self, now: Instant, lasting: bool) {
        self.doubt().into_iter().for_each(|doubt| doubt.succeed(lasting));
        self.time_to_answer(now);
    }

    /// That newcomer has it not: this connection ends unless its peer sends a record soon.
    pub(crate) fn deny(&mut self, now: Instant) {
        if self.doubt().is_some_and(|doubt| doubt.deny()) {
            self.wait_for_record(now);
        }
    }

    /// The newcomer is gone, or has this connection as well: there is no doubt left.
    pub(crate) fn trust(&mut self) {
        self.doubt().into_iter().for_each(Doubt::dispel);
    }

    fn doubt(&mut self) -> Option<&mut Doubt> {
        let is_up = !matches!(self.phase, Phase::Closed { .. });
        self.protection.as_mut().filter(|_| is_up).map(|it| &mut it.doubt)
    }

    fn wait_for_record(&mut self, now: Instant) {
        let until = self.time_to_answer(now);
        self.doubt().into_iter().for_each(|doubt| doubt.wait_until(until));
    }

    /// Asks whoever is there. Returns until when it has time to answer.
    fn time_to_answer(&mut self, now: Instant) -> Instant {
        let ack = self.numbers.acknowledgeable;
        self.control(Control::Sync { ack });
        now + Doubt::LEAST + self.rtt_or_default() * 2
    }

    /// Returns `true` if another connection with the same peer is to be asked now, if there is one.
    pub(crate) fn look_around(&mut self) -> bool {
        self.doubt().is_some_and(Doubt::look_around)
    }

    /// Returns `true` if the endpoint is to ask now, by one more connection, who is there.
    pub(crate) fn take_question(&mut self, now: Instant) -> bool {
        self.doubt().is_some_and(|doubt| doubt.take_question(now))
    }

    /// The connection that was to ask came to nothing: another one does, if there is still doubt.
    pub(crate) fn ask_again(&mut self, now: Instant) {
        self.doubt().into_iter().for_each(|doubt| doubt.ask_again(now));
    }

    /// Returns `true` if it is not known at present whether the peer still has its state.
    pub(crate) fn is_doubted(&self) -> bool {
        let is_up = !matches!(self.phase, Phase::Closed { .. });
        is_up && self.protection.as_ref().is_some_and(|it| it.doubt.is_raised())
    }

    /// Returns `true` if the connection is over, or about to be.
    pub(crate) const fn is_closed(&self) -> bool {
        matches!(self.phase, Phase::Closed { .. })
    }

    /// Returns `true` if keys protect all that comes and goes.
    pub(crate) fn is_protected(&self) -> bool {
        self.protection.as_ref().is_some_and(|it| it.is_protected())
    }

    /// Who proved to be at the other end.
    pub(crate) fn peer(&self) -> Option<Peer> {
        self.standing().map(|standing| standing.peer)
    }

    /// What both ends call the connection, once it is protected.
    pub(crate) fn alias(&self) -> Option<Alias> {
        self.protection.as_ref().and_then(|it| it.alias())
    }

    /// Asks the peer about another connection with it, or answers.
    pub(crate) fn inquire(&mut self, inquiry: Inquiry) {
        self.protection.iter_mut().for_each(|it| it.inquire(inquiry));
        self.tend_keys();
    }

    /// What the peer asked, or answered.
    pub(crate) fn take_inquiry(&mut self) -> Option<Inquiry> {
        self.protection.as_mut()?.take_inquiry()
    }

    /// When something valid came last.
    pub(crate) const fn heard_at(&self) -> Instant {
        self.last_valid
    }

    /// Time passed.
    pub(super) fn handle_doubt_timeout(&mut self, now: Instant) {
        match self.doubt().map(|doubt| doubt.handle_timeout(now)) {
            None | Some(Verdict::Wait) => {}
            Some(Verdict::AskAgain) => self.wait_for_record(now),
            Some(Verdict::Over) => {
                self.controls.clear();
                self.closed(CloseReason::Reset(Reset::new(ResetCode::NO_CONNECTION), String::new()), false);
            }
        }
    }
}
