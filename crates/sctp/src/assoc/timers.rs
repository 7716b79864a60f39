use super::{Association, State};
use braidcast_core::Instant;

impl Association {
    /// Works off all timers that have expired by `now`.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.handle_handshake_timeout(now);
        self.handle_shutdown_timeout(now);
        if !self.state.is_up() {
            return;
        }
        self.expire(now);
        self.handle_asconf_timeout(now);
        for slot in 0..self.paths.slots() {
            self.handle_path_timeout(now, slot);
        }
        self.detect_losses(now);
        self.advance_forward_point();
        self.advance_shutdown(now);
    }

    fn handle_path_timeout(&mut self, now: Instant, slot: usize) {
        let expired = |timer: Option<Instant>| timer.is_some_and(|at| at <= now);
        let rto_idle = |path: &crate::path::Path| path.in_flight == 0 && now - path.last_sent >= path.rtt.rto();
        let Some(path) = self.paths.get_mut(slot) else { return };
        let timers = path.timers;
        // Heartbeats ask paths that carry nothing; else T3 speaks for the path (RFC 9260 §8.3).
        if path.heartbeats.due(now) && path.in_flight > 0 && self.options.paths.quick_failover.is_none() {
            path.heartbeats.postpone(now, path.rtt.rto());
        } else if path.heartbeats.due(now) {
            if rto_idle(path) {
                let mtu = path.mtu();
                path.window.on_idle(mtu);
            }
            path.pending.heartbeat = true;
        }
        path.pending.mtu_probe |= path.is_usable() && expired(path.pmtu.poll_timeout());
        let heartbeat_failed = path.heartbeats.take_failure(now);
        if expired(timers.forward) {
            path.timers.forward = None;
            self.request_forward();
        }
        if expired(timers.retransmission) {
            self.handle_retransmission_timeout(now, slot);
        } else if expired(timers.probe) {
            self.handle_probe_timeout(now, slot);
        }
        if let Some(asked) = heartbeat_failed {
            self.handle_heartbeat_failure(now, slot, asked);
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) has something to do next.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let state = match &self.state {
            State::CookieWait(handshake) | State::CookieEchoed(handshake) => return Some(handshake.due),
            State::Closed => return None,
            State::ShutdownSent(closing) | State::ShutdownAckSent(closing) => Some(closing.repeat.min(closing.guard)),
            State::Established | State::ShutdownPending | State::ShutdownReceived => None,
        };
        let paths = self.paths.iter().filter_map(crate::path::Path::poll_timeout).min();
        [
            state,
            paths,
            // With no path to send it over, a SACK waits for one.
            self.ack.poll_timeout().filter(|_| self.sack_slot().is_some()),
            self.queue.next_expiry(),
            self.reconfiguration.poll_timeout(),
            self.pacing_timeout(),
        ]
        .into_iter()
        .flatten()
        .min()
    }
}
