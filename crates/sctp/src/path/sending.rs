use super::{Info, Path, Timer};
use crate::api::{FecWindow, RttSamples};
use crate::number::Order;
use crate::tx::{Departure, LossCause};
use crate::wire::Header;
use braidcast_cc::{Siblings, Stamp};
use braidcast_core::Instant;
use core::time::Duration;

/// Bytes of IPv4's and UDP's headers. IPv6 has 20 more, less than 2 % of a full packet.
const IP_AND_UDP: usize = 28;

/// What is to be sent over the path beside data, as soon as possible.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pending {
    pub(crate) heartbeat: bool,
    pub(crate) forward: bool,
    pub(crate) mtu_probe: bool,
    pub(crate) train: bool,
}

impl Pending {
    pub(crate) const fn any(self) -> bool {
        self.heartbeat || self.forward || self.mtu_probe || self.train
    }
}

/// One place of four, as by chance: the next packet would often be the first of a burst, which
/// finds the queue at its shortest.
const fn is_drawn(order: Order) -> bool {
    // SplitMix64's finalizer, so that no pattern of bursts keeps step with it.
    let n = order.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (n ^ (n >> 31)) & 3 == 0
}

impl Path {
    /// Sends a heartbeat as soon as it can: does the path carry packets in both directions?
    pub(crate) fn ask(&mut self, now: Instant) {
        self.heartbeats.start(now);
        self.pending.heartbeat = true;
    }

    /// FORWARD-TSN goes over it as soon as it can.
    pub(crate) const fn request_forward(&mut self) {
        self.pending.forward = true;
    }

    /// There is nothing to tell by FORWARD-TSN any more.
    pub(crate) const fn stop_forward(&mut self) {
        self.pending.forward = false;
        self.timers.stop(Timer::Forward);
    }

    pub(crate) const fn pending(&self) -> Pending {
        self.pending
    }

    /// What was pending leaves now.
    pub(crate) const fn take_pending(&mut self) -> Pending {
        let none = Pending { heartbeat: false, forward: false, mtu_probe: false, train: false };
        core::mem::replace(&mut self.pending, none)
    }

    /// An MTU probe waits for a packet of its own: what is with it may be lost with it.
    pub(crate) const fn postpone_mtu_probe(&mut self) {
        self.pending.mtu_probe = true;
    }

    /// FORWARD-TSN leaves; it is repeated after an RTO.
    pub(crate) fn on_forward_sent(&mut self, now: Instant) {
        self.timers.set(Timer::Forward, now + self.rtt.rto());
    }

    /// A heartbeat leaves, marked with `nonce`. Returns what stands in it.
    pub(crate) fn send_heartbeat(&mut self, now: Instant, nonce: u64) -> Info {
        // What was asked and is not answered yet is asked again: with another nonce its answer would count for nothing.
        let nonce = self.heartbeats.asked().unwrap_or(nonce);
        if !self.heartbeats.is_asked_again(now) {
            self.heartbeats.sent(now, nonce, self.heartbeat_timeout());
        }
        self.heartbeats.ask_again(now, self.silent_pause(now));
        Info { path: self.id, sent: now, nonce, probe_size: 0, place: None }
    }

    /// From an answer to the next heartbeat (RFC 9260 §8.3).
    pub(super) fn heartbeat_pause(&self) -> Duration {
        let paths = &self.options.paths;
        let pause = match paths.heartbeat_jitter {
            false => paths.heartbeat_interval,
            true => self.rtt.rto() + paths.heartbeat_interval.mul_f64(self.heartbeats.jitter()),
        };
        // Three are asked within the time after which silence ends the association: an end that only receives hears
        // no other answer.
        let patience = self.options.timers.give_up.map(|it| (it / 3).max(self.rtt.srtt().unwrap_or_default()));
        pause.min(patience.unwrap_or(Duration::MAX))
    }

    /// After which a path that does not answer is asked again, though what it was asked may still be answered.
    fn silent_pause(&self, now: Instant) -> Option<Duration> {
        let least = self.options.paths.silent_interval?.max(self.rtt.srtt().unwrap_or_default());
        self.rank().is_some_and(|rank| rank > 0).then(|| least.max((now - self.answered) / 16))
    }

    /// How long a heartbeat is waited for. If the peer may have named somebody else, each wait is
    /// twice as long as the one before (RFC 9260 §8.3).
    fn heartbeat_timeout(&self) -> Duration {
        let rto = self.rtt.rto();
        if self.is_unproved_word() {
            return rto;
        }
        let longest = self.options.paths.longest_silence.map(|longest| longest.max(self.rtt.unbacked_rto()));
        longest.map_or(rto, |longest| rto.min(longest))
    }

    /// An MTU probe leaves, if one is due. Returns its size and what stands in it.
    pub(crate) fn send_mtu_probe(&mut self, now: Instant, nonce: u64) -> Option<(usize, Info)> {
        let size = self.pmtu.due(now)?;
        self.pmtu.sent(now, self.rtt.rto());
        self.pmtu_nonce = nonce;
        Some((size, Info { path: self.id, sent: now, nonce, probe_size: size as u16, place: None }))
    }

    /// Returns `true` if the path has turned out to carry less than it was trusted to.
    pub(crate) const fn take_narrow_news(&mut self) -> bool {
        self.pmtu.take_narrow_news()
    }

    /// A chunk of `len` bytes is about to leave over this path, where `in_flight` bytes are out.
    /// Returns what it has to keep.
    pub(crate) fn stamp(&mut self, now: Instant, in_flight: usize, len: usize) -> Stamp {
        let conditions = self.conditions(now, in_flight, Siblings::default());
        self.cc.on_sent(&conditions, len);
        self.rates.on_sent(now, in_flight)
    }

    /// Nothing waits to be sent, though the window has room with `in_flight` bytes out.
    pub(crate) const fn on_app_limited(&mut self, in_flight: usize) {
        self.rates.on_app_limited(in_flight);
    }

    /// A chunk leaves over this path.
    pub(crate) fn on_chunk_sent(&mut self, now: Instant, departure: &Departure) {
        self.stats.sent_chunks += 1;
        if let Some(cause) = departure.again {
            self.stats.retransmitted_chunks += 1;
            self.stats.fast_retransmissions += u64::from(cause == LossCause::Reported);
            self.stats.timeout_retransmissions += u64::from(cause == LossCause::Timeout);
        }
        let expiry = now + self.rtt.rto();
        if departure.restarts_timer() {
            self.timers.set(Timer::Retransmission, expiry);
        }
        self.timers.start(Timer::Retransmission, expiry);
    }

    /// A copy of a chunk leaves over this path.
    pub(crate) const fn on_copy_sent(&mut self) {
        self.stats.copied_chunks += 1;
    }

    /// The same for a copy of `size` bytes that [waited](Self::may_copy) for its turn.
    pub(crate) fn on_paced_copy_sent(&mut self, size: usize) {
        self.on_copy_sent();
        self.pacer.on_sent(size);
    }

    /// Returns `true` if a copy outside of the window may go: no faster than the window lets data through.
    pub(crate) fn may_copy(&mut self, now: Instant) -> bool {
        // At the pace of data, which shares the tokens: at another one a copy would slow the data down.
        let (mtu, rate) = (self.mtu(), self.pacing_rate().or_else(|| self.rate()));
        self.pacer.ready_at(now, mtu, rate, self.cwnd(), mtu) <= now
    }

    /// `bytes` of data chunks, all of one packet, leave over this path.
    pub(crate) fn on_data_sent(&mut self, now: Instant, bytes: usize) {
        self.pacer.on_sent(bytes);
        if let Some(rate) = self.drain_rate() {
            self.backlog.on_sent(now, bytes, rate);
        }
        self.burst += 1;
        let timeout = self.probe_timeout().filter(|_| self.options.paths.probe);
        self.timers.set_or_stop(Timer::Probe, timeout.map(|timeout| now + timeout));
    }

    /// Returns `true` if the packet with the chunk in place `order` is to ask for its SACK at once, as others
    /// share SACKs with it: one each round trip does, which is how often SRTT is to be measured
    /// (RFC 6298 §3).
    pub(crate) fn wants_answer(&self, now: Instant, order: Order) -> bool {
        let same_return = self.options.papers.rtt_samples == RttSamples::SameReturn;
        same_return && self.asked.is_none() && is_drawn(order) && self.shares_sacks(now)
    }

    /// A chunk that asks for its SACK at once is written.
    pub(crate) const fn on_asking(&mut self) {
        self.asked.ask();
    }

    /// A packet of `size` bytes leaves with the data before the place `next`.
    pub(crate) fn on_packet_sent(&mut self, next: Order, size: usize) {
        self.asked.end_packet(next);
        self.sizes.on_sent(next, size);
    }

    /// A redundancy chunk of `size` bytes leaves over this path, of which `counted` count for the
    /// window, behind the data in place `last`.
    pub(crate) fn on_redundancy_sent(&mut self, size: usize, counted: usize, last: Order) {
        self.stats.redundancy_chunks += 1;
        self.redundancy_bytes += size as u64;
        self.pacer.on_sent(size);
        if self.options.redundancy.fec_window == FecWindow::Inside {
            self.redundant.on_sent(last, counted);
            self.burst += 1;
        }
    }

    /// `packets` of `bytes` altogether left over this path.
    pub(crate) const fn on_packets_sent(&mut self, now: Instant, packets: usize, bytes: usize) {
        self.last_sent = now;
        self.stats.sent_packets += packets as u64;
        self.stats.sent_bytes += bytes as u64;
    }

    /// How long to wait for an answer before asking: two round trips and the peer's SACK delay (RFC 8985 §7.2).
    pub(super) fn probe_timeout(&self) -> Option<Duration> {
        let srtt = self.rtt.srtt()?;
        let variance = (self.rtt.rttvar() * 4).max(Duration::from_millis(1)).max(srtt);
        let timeout = srtt + variance + self.options.sack.delay;
        Some(timeout.min(self.rtt.rto()) * (1 << self.probes.min(4)))
    }

    /// Returns `true` if data may go here as far as congestion control is concerned (RFC 9260 §6.1 B and D),
    /// with `in_flight` bytes out.
    pub(crate) fn has_room(&self, in_flight: usize) -> bool {
        let in_burst = self.options.papers.max_burst.is_none_or(|most| self.burst < most || in_flight == 0);
        self.occupied(in_flight) < self.cwnd() && (in_burst || !self.burst_bounded)
    }

    /// Bytes that take room in the window: data in flight, and redundancy, but with no data out
    /// nothing would ever free that.
    pub(crate) const fn occupied(&self, in_flight: usize) -> usize {
        if in_flight == 0 { 0 } else { in_flight + self.redundant.bytes() }
    }

    /// Bytes per second to spread packets at. `None`: at once.
    fn pacing_rate(&self) -> Option<f64> {
        match (self.controllers_rate(), self.data_limit()) {
            (Some(rate), Some(limit)) => Some(rate.min(limit)),
            (rate, limit) => rate.or(limit),
        }
    }

    /// Sends no more than `limit` from now on, bytes per second with all headers.
    pub(super) const fn set_limit(&mut self, limit: Option<f64>) {
        self.limit = limit;
    }

    /// The [limit](Self::set_limit) in what the pacer counts, which is data in full packets.
    pub(super) fn data_limit(&self) -> Option<f64> {
        let limit = self.limit?;
        let data = self.mtu() - Header::LEN;
        let packet = self.mtu() + self.protection + IP_AND_UDP;
        Some(limit * data as f64 / packet as f64)
    }

    /// The same as far as congestion control is concerned.
    ///
    /// Where SACKs are shared SRTT lags: after a window that fell to a packet it says for seconds
    /// how long the queue was. What the quickest packet of the last round took is no less than the
    /// round trip is now, whichever packet its SACK waited for. If they come back over another path,
    /// a window is through as soon as that.
    fn controllers_rate(&self) -> Option<f64> {
        if !self.options.congestion.pacing {
            return None;
        }
        let srtt = self.rtt.srtt()?;
        if self.is_one_way() {
            return self.cc.pacing_rate(Some(self.shortest_answer()? + self.queued()));
        }
        let quickest = self.queueing.base().filter(|_| self.shared.is_some()).map(|base| base + self.queueing.latest());
        let round_trip = quickest.map_or(srtt, |quickest| quickest.min(srtt));
        self.cc.pacing_rate(Some(round_trip))
    }

    /// Returns `true` if pacing lets a packet go now.
    pub(crate) fn is_paced_in(&mut self, now: Instant) -> bool {
        let (mtu, rate) = (self.mtu(), self.pacing_rate());
        self.pacer.ready_at(now, mtu, rate, self.cwnd(), mtu) <= now
    }

    /// When pacing lets the next packet go; `None`: it does not hold any back.
    pub(crate) fn paced_until(&self) -> Option<Instant> {
        Some(self.pacer.earliest(self.mtu(), self.pacing_rate()?, self.cwnd()))
    }

    /// Repairs that are due for each chunk sent over it.
    pub(crate) const fn redundancy_owed(&self) -> f64 {
        self.redundancy_owed
    }

    pub(crate) const fn owe_redundancy(&mut self, repairs: f64) {
        self.redundancy_owed = repairs;
    }

    /// Redundancy chunks for each data chunk that it carried, were the next one redundancy.
    pub(crate) fn redundancy_share(&self) -> f64 {
        (self.stats.redundancy_chunks + 1) as f64 / (self.stats.sent_chunks + 1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{Options, PathState};
    use braidcast_core::{PathId, Route, SocketId};
    use std::sync::Arc;

    /// The peer asks often over a far path, and each time we ask back.
    #[test]
    fn what_is_asked_again_before_its_answer_can_be_there_is_answered_all_the_same() {
        let (route, at) = (Route::new(SocketId(0), ([192, 0, 2, 1], 9899).into()), Instant::from_millis);
        let mut path = Path::new(at(0), PathId(0), route, PathState::Unconfirmed, Arc::new(Options::live()));
        let asked: Vec<Info> = (0..3)
            .map(|n| {
                path.ask(at(100 * n));
                path.send_heartbeat(at(100 * n), 7 + n)
            })
            .collect();
        assert!(asked.iter().all(|info| info.nonce == asked[0].nonce));
        assert!(path.on_heartbeat_ack(at(300), &asked[0], 0), "the first one is answered");
        assert!(!path.on_heartbeat_ack(at(400), &asked[1], 0), "once");
        path.ask(at(1000));
        assert_ne!(path.send_heartbeat(at(1000), 20).nonce, asked[0].nonce);
    }
}
