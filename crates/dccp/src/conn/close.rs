use super::timers::Backoff;
use super::{Connection, Control, Ending, Phase};
use crate::api::CloseReason;
use crate::seq::Seq;
use crate::wire::{Reset, ResetCode};
use braidcast_core::Instant;

impl Connection {
    /// Closes the connection once all that waits has been sent (RFC 4340 §8.3);
    /// [`Event::Closed`](crate::Event) reports the end. Data that comes meanwhile is still received.
    /// Before the handshake is done, that of keys too, this is [`abort`](Self::abort).
    pub fn close(&mut self, now: Instant) {
        match self.phase {
            Phase::Request { .. } | Phase::Respond { .. } => self.abort(),
            Phase::PartOpen { .. } | Phase::Open if !self.was_told() => self.abort(),
            Phase::PartOpen { .. } | Phase::Open => {
                if self.ending == Ending::No {
                    self.ending = Ending::WhenSent(now);
                }
                self.end_when_sent(now);
            }
            Phase::CloseReq { .. } | Phase::Closing { .. } | Phase::Closed { .. } => {}
        }
    }

    /// Ends the connection at once with a Reset "Aborted".
    pub fn abort(&mut self) {
        if matches!(self.phase, Phase::Closed { .. }) {
            return;
        }
        let known = !matches!(self.phase, Phase::Request { .. });
        let ack = if known { self.numbers.acknowledgeable } else { Seq::default() };
        self.controls.clear();
        self.control(Control::Reset { reset: Reset::new(ResetCode::ABORTED), ack });
        self.closed(CloseReason::Aborted, false);
    }

    /// Begins the end if it was asked for and nothing waits any more.
    pub(super) fn end_when_sent(&mut self, now: Instant) {
        if self.ending == Ending::No
            || !self.queue.is_empty()
            || !matches!(self.phase, Phase::PartOpen { .. } | Phase::Open)
        {
            return;
        }
        // A server lets its client hold TIMEWAIT, unless told otherwise; but only from OPEN may it ask (§8.3).
        if self.is_server && !self.options.server_holds_time_wait {
            self.flush(now);
            self.phase = Phase::CloseReq { retry: self.closing_timer(now), give_up: now + self.options.close_timeout };
            self.control(Control::CloseReq);
        } else {
            self.closing(now);
        }
    }

    /// Sends Close and waits for the Reset.
    pub(super) fn closing(&mut self, now: Instant) {
        self.flush(now);
        self.phase = Phase::Closing { retry: self.closing_timer(now), give_up: now + self.options.close_timeout };
        self.queue.clear();
        self.control(Control::Close);
    }

    /// §8.3: two round trips at first.
    fn closing_timer(&self, now: Instant) -> Backoff {
        Backoff::new(now, self.rtt_or_default() * 2)
    }

    /// Returns when to stop waiting for an orderly end, if one was asked for: the peer does not answer
    /// Close, or says nothing at all while data still waits to be sent.
    pub(super) fn close_due(&self) -> Option<Instant> {
        match (&self.phase, self.ending) {
            (Phase::CloseReq { give_up, .. } | Phase::Closing { give_up, .. }, _) => Some(*give_up),
            (Phase::PartOpen { .. } | Phase::Open, Ending::WhenSent(since)) => {
                Some(self.last_valid.max(since) + self.options.close_timeout)
            }
            _ => None,
        }
    }
}
