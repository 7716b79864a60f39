//! How a session ends, and what does not end it.

use super::{Phase, Sender};
use crate::event::Event;
use crate::farewell::Farewell;
use braidcast_core::{Instant, Reason};
use braidcast_sctp::CloseReason;
use core::time::Duration;

/// After [`Sender::stop`], a receiver that says nothing for this long beyond the latency will not
/// say anything more.
const PATIENCE: Duration = Duration::from_millis(500);
/// The same in a reliable session, whose latency means nothing.
const RELIABLE_PATIENCE: Duration = Duration::from_secs(2);
/// A live stream that has ended while there is no receiver has nothing to deliver so long after its latency.
const LINGER: Duration = Duration::from_secs(5);

impl Sender {
    /// Ends what can come to no good end any more, or not within the time that the user gives it.
    pub(super) fn end_if_hopeless(&mut self, now: Instant) {
        let reason = || self.last_reason.clone().unwrap_or(CloseReason::NoAnswer);
        let alone = self.attempts.alone(now);
        if self.options.give_up.is_some_and(|limit| alone >= limit) && !self.is_open() {
            return self.end(false, reason(), None);
        }
        let Some(finish_at) = self.finish_at else { return };
        let latency = if self.options.reliable { RELIABLE_PATIENCE } else { self.options.latency + PATIENCE };
        if self.is_open() {
            let silent = now.since(self.heard.1.max(finish_at)) >= latency;
            if self.stopping && silent {
                self.end(false, CloseReason::PathsFailed, Some(Farewell::SenderStopped));
            }
        } else if now.since(finish_at) >= latency + if self.stopping { Duration::ZERO } else { LINGER }
            && (self.stopping || !self.options.reliable)
        {
            self.end(false, reason(), Some(Farewell::SenderStopped));
        }
    }

    /// The association is over: so is the session, or it waits for the next one.
    pub(super) fn closed(&mut self, reason: CloseReason) {
        let mut proved = self.options.security.is_none();
        if let Some(association) = self.id.and_then(|id| self.endpoint.association(id)) {
            self.paths.measure(self.now, association);
            proved |= association.standing().is_some();
        }
        match self.phase {
            Phase::Waiting | Phase::Closed => return,
            Phase::Closing => {
                let complete = self.transfer.confirmed || reason == CloseReason::Shutdown;
                return self.end(complete, reason, None);
            }
            Phase::Connecting | Phase::Up => self.attempts.ended(&reason),
        }
        let given_up = self.options.give_up.is_some() && reason == CloseReason::PathsFailed;
        // Before there are keys anybody who sees packets may say any of this. A receiver that called
        // ends only its own part.
        let farewell = Farewell::of(&reason).filter(|_| proved && !self.attempts.is_called());
        // Who says anything else than that the two do not go together would have taken the stream.
        self.met |= farewell.is_some_and(|why| !why.is_mismatch());
        let is_final = farewell.is_some_and(|why| self.ends_for(why));
        if given_up || self.is_refused_for_good(&reason) || is_final {
            return self.end(false, reason, None);
        }
        self.lost(reason);
    }

    /// Returns `true` if there is nothing to come back for. A live stream comes from where nobody may
    /// be to start it again, so that no other end decides on its end (decision 18), unless it is
    /// known from the beginning that the two cannot work together.
    fn ends_for(&self, why: Farewell) -> bool {
        if self.options.reliable || self.options.end_with_receiver {
            return why.is_final();
        }
        why == Farewell::Replaced || (!self.met && why.is_mismatch())
    }

    /// Returns `true` if the receiver has another key, or one end alone has one. Once there was a session,
    /// nobody who cannot have had part in it ends it. Before that a refusal comes in clear, and
    /// anybody who sees packets can send one: the second in a row is believed, and over several
    /// networks those over each of them.
    fn is_refused_for_good(&self, reason: &CloseReason) -> bool {
        let refused = |reason: &CloseReason| matches!(reason, CloseReason::Insecure(_));
        !self.attempts.is_called()
            && self.connected_at.is_none()
            && refused(reason)
            && self.last_reason.as_ref().is_some_and(refused)
            && self.attempts.believes()
    }

    /// The session is over.
    pub(super) fn end(&mut self, complete: bool, reason: CloseReason, farewell: Option<Farewell>) {
        if self.phase == Phase::Closed {
            return;
        }
        self.phase = Phase::Closed;
        self.ended_at = Some(self.now);
        if let Some(association) = self.id.and_then(|id| self.endpoint.association_mut(id)) {
            association.abort(self.now, farewell.map_or_else(|| "given up".into(), Reason::from));
        }
        if self.connected_at.is_none() {
            self.account.counts.nothing_sent();
        }
        self.events.push_back(Event::Ended { complete, reason });
    }
}
