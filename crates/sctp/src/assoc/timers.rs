use super::{Intake, Open, State};
use crate::path::PathIndex;
use braidcast_core::Instant;

impl Open {
    /// Works off all timers that have expired by `now`.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.handle_key_timeout(now);
        self.handle_shutdown_timeout(now);
        if !self.state.is_up() {
            return;
        }
        self.give_up(now);
        if self.state.is_closed() {
            return;
        }
        self.expire(now);
        self.handle_asconf_timeout(now);
        self.handle_stream_request_timeout(now);
        for place in 0..self.paths.places() {
            if let Some(index) = self.paths.at(place) {
                self.handle_path_timeout(now, index);
            }
        }
        self.detect_losses(now);
        self.select_path(now);
        self.advance_shutdown(now);
    }

    fn handle_path_timeout(&mut self, now: Instant, index: PathIndex) {
        let expired = self.paths[index].on_timers(now, self.ledger.in_flight_over(index));
        if expired.forward {
            self.request_forward();
        }
        if expired.retransmission {
            self.handle_retransmission_timeout(now, index);
        } else if expired.probe {
            self.handle_probe_timeout(now, index);
        }
        if let Some(asked) = expired.heartbeat {
            self.handle_heartbeat_failure(now, index, asked);
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) has something to do next.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let state = match &self.state {
            State::Closed => return None,
            State::ShutdownSent(closing) | State::ShutdownAckSent(closing) => Some(closing.repeat.min(closing.guard)),
            State::Established | State::ShutdownPending | State::ShutdownReceived => None,
        };
        let paths = self.paths.iter().filter_map(crate::path::Path::poll_timeout).min();
        Instant::first_of([
            state,
            paths,
            // With no path to send it over, a SACK waits for one.
            self.ack.poll_timeout().filter(|_| self.sack_path().is_some()),
            self.queue.next_expiry(),
            self.asconf_timeout(),
            self.stream_request_timeout(),
            self.give_up_at(),
            self.selection_timeout(),
            self.pacing_timeout(),
            self.key_timeout(),
        ])
    }
}
