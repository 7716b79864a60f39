use super::{Hearsay, Info, Path, Timer};
use crate::api::PathState;
use crate::number::Order;
use braidcast_cc::Siblings;
use braidcast_core::Instant;
use core::time::Duration;

/// Which timers of a path have expired.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expired {
    pub(crate) forward: bool,
    pub(crate) retransmission: bool,
    pub(crate) probe: bool,
    /// When the heartbeat left that was not answered in time.
    pub(crate) heartbeat: Option<Instant>,
}

/// What a missed answer came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Missed {
    /// It counts for the association (RFC 9260 §8.1): not while the path has yet to be confirmed.
    pub(crate) counts: bool,
    /// The path has failed now.
    pub(crate) down: bool,
}

/// What an answer came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    /// The path can carry data now, as it could not before.
    pub(crate) up: bool,
    /// It answers again after a silence, or for the first time.
    pub(crate) revived: bool,
}

impl Path {
    /// It carried the handshake: that confirms it.
    pub(crate) const fn confirm(&mut self) {
        self.state = PathState::Active;
    }

    /// That the peer is there is not proved.
    pub(crate) const fn take_for_hearsay(&mut self, hearsay: Hearsay) {
        self.hearsay = Some(hearsay);
    }

    /// Returns `true` if nobody has ever answered where the peer only seemed to be, for Path.Max.Retrans
    /// heartbeats and one more (RFC 9260 §8.2).
    pub(crate) fn is_disproved(&self) -> bool {
        self.is_unproved_hearsay() && self.errors > self.options.paths.path_max_retrans
    }

    /// Returns `true` if the peer only seems to be there.
    pub(crate) fn is_unproved_hearsay(&self) -> bool {
        self.hearsay.is_some() && self.state == PathState::Unconfirmed
    }

    /// Returns `true` if nothing came from there, and the peer only said that it is there.
    pub(crate) fn is_unproved_word(&self) -> bool {
        self.hearsay == Some(Hearsay::Word) && self.state == PathState::Unconfirmed
    }

    /// Returns `true` if a packet of `bytes` may go there. If only a packet's source says that the peer is there, no
    /// more than three times the bytes go that came from there, in IP packets (RFC 9000 §8.1 has the same number).
    pub(crate) fn may_get(&self, bytes: usize) -> bool {
        /// Bytes of an IPv4 header and of UDP's.
        const HEADERS: u64 = 28;
        let in_packets = |packets: u64, bytes: u64| packets * HEADERS + bytes;
        let came = in_packets(self.stats.received_packets, self.stats.received_bytes);
        let went = in_packets(self.stats.sent_packets + 1, self.stats.sent_bytes + bytes as u64);
        let unlimited = self.hearsay != Some(Hearsay::Source) || self.state != PathState::Unconfirmed;
        unlimited || went <= 3 * came
    }

    /// The association is up: the path it was set up over is asked and measured from now on.
    pub(crate) fn start(&mut self, now: Instant) {
        self.heartbeats.start(now);
        self.pmtu.start(now);
    }

    /// We did not run for `late`, until `now`: answers may have waited for us all the time. No
    /// timer blames the path for that, and no round trip that we slept through is measured.
    pub(crate) fn on_late_wake(&mut self, now: Instant, late: Duration) {
        self.timers.put_off(late);
        self.heartbeats.put_off(late);
        self.awake_since = now;
    }

    /// Works off the timers that have expired by `now`, as far as they concern the path alone;
    /// `in_flight` bytes are out.
    pub(crate) fn on_timers(&mut self, now: Instant, in_flight: usize) -> Expired {
        let retransmission = self.timers.is_expired(Timer::Retransmission, now);
        let probe = self.timers.is_expired(Timer::Probe, now);
        // Heartbeats ask paths that carry nothing; else T3 speaks for the path (RFC 9260 §8.3).
        if self.heartbeats.due(now) && in_flight > 0 && self.options.paths.quick_failover.is_none() {
            self.heartbeats.postpone(now, self.rtt.rto());
        } else if self.heartbeats.due(now) {
            if in_flight == 0 && now - self.last_sent >= self.rtt.rto() {
                // RFC 9260 §7.2.1: half of the window is warranted, down to the first one or four packets.
                let most = (self.cwnd() / 2).max(self.least_restart());
                self.rest(now, most);
            }
            self.pending.heartbeat = true;
        }
        self.pending.heartbeat |= self.heartbeats.is_asked_again(now);
        if let Some(train) = self.train() {
            if self.state == PathState::Active {
                self.trains.start(now);
                self.pending.train |= self.trains.on_time(now, &train);
            } else {
                self.trains.stop();
            }
        }
        self.pending.mtu_probe |= self.is_usable() && self.pmtu.poll_timeout().is_some_and(|at| at <= now);
        let heartbeat = self.heartbeats.take_failure(now);
        Expired { forward: self.timers.take_expired(Timer::Forward, now), retransmission, probe, heartbeat }
    }

    /// HEARTBEAT ACK with `info` came over this path; `in_flight` bytes are out. Whether it answers a heartbeat.
    pub(crate) fn on_heartbeat_ack(&mut self, now: Instant, info: &Info, in_flight: usize) -> bool {
        if info.probe_size > 0 {
            if info.nonce == self.pmtu_nonce {
                self.pmtu.answered(now, usize::from(info.probe_size));
            }
            return false;
        }
        let late = if self.heartbeats.answered(now, info.nonce, self.heartbeat_pause()) {
            false
        } else if self.heartbeats.answered_late(info.nonce) {
            true
        } else {
            return false;
        };
        self.pmtu.on_small_answered();
        // Late because it stood in a queue, with all else that is under way there, or because the path stood still?
        if (!late || self.errors == 0) && info.sent >= self.awake_since {
            let rtt = now - info.sent;
            self.rtt.sample(rtt);
            self.measured = now;
            if in_flight > 0 {
                self.queueing.observe(now, rtt);
                self.shorten_queue(now, in_flight, false);
            }
        }
        if late {
            self.cc.on_spurious_timeout();
        }
        true
    }

    /// A heartbeat sent at `asked` was not answered within its RTO; `in_flight` bytes are out.
    /// Returns `true` if that speaks against the path.
    pub(crate) fn on_heartbeat_failure(&mut self, now: Instant, asked: Instant, in_flight: usize) -> bool {
        let interval = self.heartbeat_pause();
        if self.answered > asked {
            self.heartbeats.postpone(now, interval);
            return false; // One packet was lost; the data that came through since speaks for the path (RFC 9260 §8.2).
        }
        if in_flight == 0 {
            // What it can carry now is as unknown as at the beginning (RFC 9260 has no rule; the
            // restart window of RFC 5681 §4.1, one of the two choices of RFC 7829 app. B).
            self.rest(now, self.least_restart());
        }
        if self.options.paths.quick_failover.is_some() || self.state == PathState::Unconfirmed {
            self.pending.heartbeat = true; // RFC 7829 §4: each RTO.
        } else {
            self.heartbeats.postpone(now, interval); // RFC 9260 §8.3.
        }
        true
    }

    /// The path can carry data: it was confirmed, or answers again. `forwarding`: FORWARD-TSN is in flight.
    pub(crate) fn on_answer(&mut self, now: Instant, forwarding: bool) -> Answer {
        self.errors = 0;
        self.answered = now;
        let up = self.state != PathState::Active;
        let revived = self.silent_since.take().is_some() || up;
        self.probes = 0;
        self.burst = 0;
        self.rtt.restore_rto();
        if up {
            self.pmtu.start(now);
            self.state = PathState::Active;
            self.pending.forward |= forwarding;
        }
        Answer { up, revived }
    }

    /// The path missed an answer (RFC 9260 §8.2; RFC 7829 §3). `others`: there is a path that may be used.
    pub(crate) fn on_missed_answer(&mut self, others: bool) -> Missed {
        let limit = self.options.paths.path_max_retrans;
        let avoided_after = self.options.paths.avoided_after();
        self.errors += 1;
        self.needs_checksum = true;
        self.stats.timeouts += 1;
        self.rtt.back_off();
        if self.state == PathState::Unconfirmed && others {
            return Missed { counts: false, down: false };
        }
        let down = self.state == PathState::Active && self.errors > avoided_after;
        if down {
            self.state = PathState::PotentiallyFailed;
        }
        if self.errors > limit && self.state != PathState::Unconfirmed {
            self.state = PathState::Inactive;
        }
        Missed { counts: true, down }
    }

    /// T3-rtx expired (RFC 9260 §6.3.3); `next` is the place that the next chunk gets.
    pub(crate) fn on_retransmission_timeout(
        &mut self,
        now: Instant,
        in_flight: usize,
        siblings: Siblings<'_>,
        next: Order,
    ) {
        self.timers.stop(Timer::Retransmission);
        self.timers.stop(Timer::Probe);
        let conditions = self.conditions(now, in_flight, siblings);
        self.cc.on_timeout(&conditions);
        self.recovery = Some(next);
        self.pending.heartbeat |= self.options.paths.quick_failover.is_some();
        self.stats.t3_expiries += 1;
        self.burst = 0;
    }

    /// A timer ran out that the peer's window does not explain: perhaps full packets get lost. `first`:
    /// none is known to have got through.
    pub(crate) fn doubt_mtu_after_timeout(&mut self, now: Instant, first: bool) {
        if first {
            self.pmtu.distrust(now);
        } else {
            self.pmtu.on_timeout(now);
        }
    }

    /// The handshake took this long from what was sent to its answer. Where that is long for the RTO that
    /// timers begin with, they would run out before the first acknowledgement can come.
    pub(crate) fn measure_handshake(&mut self, rtt: Duration) {
        if rtt * 2 > self.options.timers.rto.initial {
            self.rtt.begin_with(rtt);
        }
    }

    /// Nothing is out, and `most` bytes of window are warranted.
    fn rest(&mut self, now: Instant, most: usize) {
        let conditions = self.conditions(now, 0, Siblings::default());
        self.cc.on_idle(&conditions, most);
    }

    /// What a path may always begin anew with, bytes.
    fn least_restart(&self) -> usize {
        self.initial_window.max(4 * self.mtu())
    }

    /// T3-rtx expires at `at`, not before.
    pub(crate) const fn postpone_retransmission(&mut self, at: Instant) {
        self.timers.set(Timer::Retransmission, at);
    }

    /// Fast retransmissions that were held are done instead of a timeout recovery.
    pub(crate) fn restart_retransmission(&mut self, now: Instant) {
        self.timers.set(Timer::Retransmission, now + self.rtt.rto());
    }

    /// Nothing sent for two round trips was answered, of `in_flight` bytes. Whether there is something to be done.
    pub(crate) const fn on_probe_timeout(&mut self, in_flight: usize) -> bool {
        self.timers.stop(Timer::Probe);
        self.probes += (in_flight > 0) as u32;
        in_flight > 0
    }

    /// New data prefers other paths from now on; a heartbeat asks this one, and its own timer takes over.
    pub(crate) fn fall_silent(&mut self, now: Instant) {
        self.silent_since = Some(now);
        self.pending.heartbeat = true;
        self.timers.stop(Timer::Retransmission);
    }

    /// The only path that there is is asked again after a while.
    pub(crate) fn probe_again(&mut self, now: Instant) {
        let timeout = self.probe_timeout();
        self.timers.set_or_stop(Timer::Probe, timeout.map(|timeout| now + timeout));
    }
}
