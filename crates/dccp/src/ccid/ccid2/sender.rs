use super::NUMDUPACK;
use super::ack_ratio::AckRatio;
use super::window::{Congestion, Window};
use crate::ackvec::NonceHistory;
use crate::ccid::{self, Arrival, CcidReport, Feedback, Permit, Sent, Setup};
use crate::seq::{Seq, back, later};
use crate::wire::Opt;
use crate::wire::option::{DropCode, PacketState, from_units};
use braidcast_cc::{
    Acked, Algorithm, Conditions, QueueingDelay, RateSampler, RtoBounds, RttEstimator, Siblings, Stamp,
};
use braidcast_core::Instant;
use core::time::Duration;
use std::collections::VecDeque;

/// A packet that may still be in the network.
#[derive(Clone, Copy, Debug)]
struct Flight {
    at: Instant,
    stamp: Stamp,
    is_data: bool,
    /// Acknowledged, or taken for lost.
    done: bool,
    dropped: Option<DropCode>,
}

/// What one feedback says of the round-trip time.
#[derive(Clone, Copy, Debug, Default)]
struct Measured {
    rtt: Option<Duration>,
    round_is_over: bool,
}

/// The data sender of CCID 2 (RFC 4341 §5): what is out, what was lost, and a window that follows.
#[derive(Debug)]
pub(in crate::ccid) struct Sender {
    window: Window,
    rates: RateSampler,
    queueing: QueueingDelay,
    /// Data packets in the network.
    pipe: u32,
    /// Largest window that the sequence window allows.
    limit: u32,
    initial_window: u32,
    /// Packets from `first` on, by number.
    flights: VecDeque<Flight>,
    first: Seq,
    /// The three greatest numbers known to have come, greatest first.
    greatest: [Option<Seq>; NUMDUPACK],
    rtt: RttEstimator,
    /// A round trip was measured since that was last asked.
    measured: bool,
    /// The next RTT is measured on this number or a later one: once in a window.
    measure_from: Option<Seq>,
    /// What was sent up to here belongs to the last congestion event.
    recovered_after: Option<Seq>,
    /// The window was full with the packets up to this one: only these make it grow (§5.1). Several
    /// acknowledgements may come before anything is sent again, and all of them count.
    full_until: Option<Seq>,
    /// The receiver is slow: no growth before this (RFC 4340 §11.6).
    no_growth_until: Instant,
    timeout: Option<Instant>,
    /// What was sent before this may have been answered while we did not run: no round trip is measured on it.
    measurable_from: Instant,
    last_data: Option<Instant>,
    /// Data packets since one carried an acknowledgement (§6.2).
    since_ack: u32,
    nonces: NonceHistory,
    ack_ratio: AckRatio,
    counts: CcidReport,
}

/// RFC 4341 §5 needs no lower limit of one second; Linux takes 200 ms.
const RTO: RtoBounds = RtoBounds::new(Duration::from_secs(1), Duration::from_millis(200), Duration::from_secs(64));

/// For so long a receiver may hold its acknowledgement (RFC 4340 §11.3). Measured round trips are
/// without it, as Elapsed Time is taken off, so it is added to the timeout.
const DELAYED_ACK: Duration = Duration::from_millis(200);

impl Sender {
    /// Packets that are remembered; beyond that the oldest count as lost.
    const MAX_FLIGHTS: usize = 1 << 16;

    /// A sender whose window is that of `algorithm`.
    pub(in crate::ccid) fn new(setup: &Setup, algorithm: Algorithm) -> Self {
        // RFC 3390: 4380 bytes, but two packets at least and four at most.
        let initial_window = (4380 / setup.packet_size.max(1)).clamp(2, 4) as u32;
        let mut rtt = RttEstimator::new(RTO);
        setup.rtt.into_iter().for_each(|measured| rtt.sample(measured));
        Self {
            window: Window::new(algorithm, setup.packet_size, initial_window),
            rates: RateSampler::default(),
            queueing: QueueingDelay::default(),
            pipe: 0,
            limit: u32::MAX,
            initial_window,
            flights: VecDeque::new(),
            first: Seq::default(),
            greatest: [None; NUMDUPACK],
            rtt,
            measured: false,
            measure_from: None,
            recovered_after: None,
            full_until: None,
            no_growth_until: Instant::ZERO,
            timeout: None,
            measurable_from: Instant::ZERO,
            last_data: None,
            since_ack: 0,
            nonces: NonceHistory::default(),
            ack_ratio: AckRatio::new(),
            counts: CcidReport::default(),
        }
    }

    /// Data packets that may be out.
    fn allowed(&self) -> u32 {
        self.window.cwnd().min(self.limit).max(1)
    }

    /// The number after the last one sent.
    fn next(&self) -> Seq {
        self.first.plus(self.flights.len() as u64)
    }

    fn flight_mut(&mut self, seq: Seq) -> Option<&mut Flight> {
        let at = self.first.distance_to(seq);
        usize::try_from(at).ok().and_then(|at| self.flights.get_mut(at))
    }

    /// The part of `low..=high` that is in `flights`.
    fn overlap(&self, low: Seq, high: Seq) -> Option<(Seq, u64)> {
        if self.flights.is_empty() || high < self.first {
            return None;
        }
        let low = later(low, self.first);
        let high = if high < self.next() { high } else { back(self.next(), 1) };
        (low <= high).then(|| (low, low.distance_to(high) + 1))
    }

    /// What the window may know of the path.
    fn path(&self, now: Instant) -> Conditions<'static> {
        Conditions {
            now,
            mtu: self.window.bytes(1),
            in_flight: self.window.bytes(self.pipe),
            srtt: self.rtt.srtt(),
            queueing: self.queueing.latest(),
            base_rtt: self.queueing.base().unwrap_or_default(),
            shortest_rtt: self.queueing.shortest().unwrap_or_default(),
            loss_rate: 0.0,
            packets: 0,
            lost_packets: 0,
            redundancy: 0,
            siblings: Siblings::default(),
        }
    }

    /// A loss or mark of packet `seq`: reduces the window once for all that was sent before it was noticed (§5).
    fn congestion(&mut self, now: Instant, seq: Seq, why: Congestion) {
        let new_round = self.recovered_after.is_none_or(|end| seq > end);
        if new_round {
            self.recovered_after = Some(back(self.next(), 1));
            self.counts.loss_events += 1;
        }
        self.window.on_congestion(&self.path(now), why, new_round);
    }

    /// Notes which packets not yet acknowledged had their data dropped.
    fn note_dropped(&mut self, feedback: &Feedback<'_>) {
        let mut high = feedback.ack;
        for run in feedback.options.dropped_runs() {
            let low = back(high, u64::from(run.len) - 1);
            if let (Some(code), Some((from, count))) = (run.code, self.overlap(low, high)) {
                for n in 0..count {
                    if let Some(flight) = self.flight_mut(from.plus(n)).filter(|flight| !flight.done) {
                        flight.dropped = Some(code);
                    }
                }
            }
            high = back(low, 1);
        }
    }

    /// Takes packet `seq` for received; gives whether it was unmarked data that is acknowledged for the first time.
    fn arrived(&mut self, now: Instant, seq: Seq, marked: bool) -> bool {
        let Some(flight) = self.flight_mut(seq).filter(|flight| !flight.done) else { return false };
        flight.done = true;
        let Flight { at, stamp, is_data, dropped, .. } = *flight;
        self.note_greatest(seq);
        if !is_data {
            return false;
        }
        self.rates.on_delivered(now, at, stamp, self.window.bytes(1));
        self.pipe = self.pipe.saturating_sub(1);
        self.counts.acked += 1;
        // RFC 4340 §11.7.2: which drops count as congestion.
        let congested = match dropped {
            None | Some(DropCode::ProtocolConstraints | DropCode::NotListening) => marked,
            Some(DropCode::ReceiveBuffer) => {
                self.window.shrink(&self.path(now)); // RFC 4341 §5.2
                marked
            }
            Some(DropCode::Corrupt | DropCode::DeliveredCorrupt | DropCode::Reserved(_)) => {
                self.window.leave_slow_start(&self.path(now));
                true
            }
        };
        self.counts.marked += u64::from(marked);
        if congested {
            self.congestion(now, seq, Congestion::Marked);
        }
        !congested
    }

    fn note_greatest(&mut self, seq: Seq) {
        let at = self.greatest.iter().position(|known| known.is_none_or(|known| seq > known));
        if let Some(at) = at {
            self.greatest[at..].rotate_right(1);
            self.greatest[at] = Some(seq);
        }
    }

    /// What three later packets have overtaken is lost (§5).
    fn find_losses(&mut self, now: Instant) {
        if let Some(bound) = self.greatest[NUMDUPACK - 1] {
            let count =
                if bound > self.first { self.first.distance_to(bound).min(self.flights.len() as u64) } else { 0 };
            for n in 0..count {
                self.lose(now, self.first.plus(n));
            }
        }
        self.forget();
    }

    fn lose(&mut self, now: Instant, seq: Seq) {
        let Some(flight) = self.flight_mut(seq).filter(|flight| !flight.done) else { return };
        flight.done = true;
        if flight.is_data {
            self.counts.lost += 1;
            self.congestion(now, seq, Congestion::Lost);
            self.pipe = self.pipe.saturating_sub(1);
        }
    }

    /// Drops from memory what is done, and what never mattered.
    fn forget(&mut self) {
        while self.flights.front().is_some_and(|flight| flight.done || !flight.is_data) {
            self.flights.pop_front();
            self.first = self.first.plus(1);
        }
        if self.pipe == 0 {
            self.timeout = None;
        }
    }

    /// The round-trip time, on the packet that the peer acknowledges; smoothed once in a window.
    fn measure(&mut self, now: Instant, feedback: &Feedback<'_>) -> Measured {
        let round_is_over = self.measure_from.is_none_or(|from| feedback.ack >= from);
        let Some(flight) = self.flight_mut(feedback.ack).filter(|flight| !flight.done).copied() else {
            return Measured::default();
        };
        if flight.at < self.measurable_from {
            return Measured::default();
        }
        let held = feedback.options.known().find_map(|option| match option {
            Opt::ElapsedTime(units) => Some(from_units(units)),
            _ => None,
        });
        let rtt = now.since(flight.at).saturating_sub(held.unwrap_or_default());
        self.measured = true;
        self.queueing.observe(now, rtt);
        if round_is_over {
            self.rtt.sample(rtt);
            self.queueing.end_round();
            self.measure_from = Some(self.next());
        }
        Measured { rtt: Some(rtt), round_is_over }
    }

    /// Returns `true` if all nonce echoes are right, as far as we can tell (RFC 4340 §12.2).
    fn nonces_match(&self, feedback: &Feedback<'_>) -> bool {
        let mut at = feedback.ack;
        feedback.options.ack_vectors().all(|vector| {
            let (right, next) = self.nonces.check(at, &vector);
            at = next;
            right != Some(false)
        })
    }

    /// `unmarked` more data packets got through that had left while the window was full.
    fn grow(&mut self, now: Instant, unmarked: u32, measured: Measured) {
        let cwnd = self.window.cwnd();
        let acked = Acked {
            bytes: self.window.bytes(unmarked),
            may_grow: now >= self.no_growth_until && cwnd < self.limit,
            was_full: unmarked > 0,
            ack_ratio: self.ack_ratio.get(cwnd),
            rtt: measured.rtt,
            ends_round: measured.round_is_over,
            rate: self.rates.sample(self.rtt.min()),
            ..Acked::default()
        };
        self.window.on_acked(&self.path(now), &acked);
    }
}

impl ccid::Sender for Sender {
    fn permit(&mut self, now: Instant, _payload: usize) -> Permit {
        if self.pipe == 0 && self.last_data.is_some_and(|at| now.since(at) > self.rtt.rto() + DELAYED_ACK) {
            // §5.1: slow start after an idle period. A window of one packet whose acknowledgement is held back is none.
            self.window.on_idle(&self.path(now), self.initial_window);
            self.last_data = None;
        }
        if self.pipe < self.allowed() {
            return Permit::Now;
        }
        self.full_until = Some(back(self.next(), 1));
        Permit::Wait
    }

    fn on_handshake_rtt(&mut self, _: Instant, rtt: Duration) {
        if self.rtt.srtt().is_none() {
            self.rtt.sample(rtt);
        }
    }

    fn on_sent(&mut self, now: Instant, sent: &Sent) {
        if self.flights.is_empty() {
            self.first = sent.seq;
        }
        // Numbers that were skipped were never sent, so they cannot be lost.
        let skipped = Flight { at: now, stamp: Stamp::default(), is_data: false, done: true, dropped: None };
        while self.next() < sent.seq && self.flights.len() < Self::MAX_FLIGHTS {
            self.flights.push_back(skipped);
        }
        let path = self.path(now);
        let stamp = if sent.is_data { self.rates.on_sent(now, path.in_flight) } else { Stamp::default() };
        self.flights.push_back(Flight { stamp, is_data: sent.is_data, done: false, ..skipped });
        self.nonces.sent(sent.seq, sent.nonce);
        if sent.is_data {
            self.window.on_sent(&path);
            self.pipe += 1;
            self.since_ack += 1;
            self.last_data = Some(now);
            self.timeout.get_or_insert(now + self.rtt.rto() + DELAYED_ACK);
        } else {
            self.forget();
        }
        if sent.is_ack {
            self.since_ack = 0;
        }
        if self.flights.len() > Self::MAX_FLIGHTS {
            self.lose(now, self.first);
            self.forget();
        }
    }

    fn on_feedback(&mut self, now: Instant, feedback: &Feedback<'_>) {
        if self.pipe < self.allowed() {
            self.rates.on_app_limited(self.window.bytes(self.pipe));
        }
        let measured = self.measure(now, feedback);
        if !self.nonces_match(feedback) {
            // §12.3: as if a recent packet had been marked.
            self.counts.nonce_mismatches += 1;
            self.congestion(now, feedback.ack, Congestion::Marked);
        }
        if feedback.has_dropped {
            self.note_dropped(feedback);
        }
        let (mut high, mut acked, mut unmarked) = (feedback.ack, 0, 0);
        let before = self.counts.acked;
        for run in feedback.options.ack_vector_runs() {
            let low = back(high, u64::from(run.len) - 1);
            if let (true, Some((from, count))) = (run.state.arrived(), self.overlap(low, high)) {
                for seq in (0..count).rev().map(|n| from.plus(n)) {
                    let counts = u32::from(self.arrived(now, seq, run.state == PacketState::Marked));
                    acked += counts;
                    unmarked += counts * u32::from(self.full_until.is_some_and(|full| seq <= full));
                }
            }
            high = back(low, 1);
        }
        if self.counts.acked > before {
            self.rtt.restore_rto();
            self.timeout = Some(now + self.rtt.rto() + DELAYED_ACK);
        }
        self.find_losses(now);
        self.grow(now, unmarked, measured);
        if acked > 0 {
            self.ack_ratio.on_acked(acked, self.window.cwnd());
        }
    }

    fn on_arrival(&mut self, _: Instant, arrival: &Arrival) {
        self.ack_ratio.on_arrival(arrival);
    }

    fn on_slow_receiver(&mut self, now: Instant) {
        self.window.leave_slow_start(&self.path(now));
        self.no_growth_until = now + self.rtt.srtt().unwrap_or(Duration::from_millis(200));
    }

    fn timer(&self) -> Option<Instant> {
        self.timeout
    }

    fn on_timer(&mut self, now: Instant) {
        if self.timeout.is_none_or(|at| at > now) {
            return;
        }
        // §5: all that is out is lost.
        self.window.on_timeout(&self.path(now));
        self.recovered_after = Some(back(self.next(), 1));
        for n in 0..self.flights.len() as u64 {
            self.lose(now, self.first.plus(n));
        }
        self.counts.loss_events += 1;
        self.counts.timeouts += 1;
        self.rtt.back_off();
        self.forget();
    }

    fn on_late_wake(&mut self, now: Instant) {
        self.measurable_from = now;
        if self.timeout.is_some_and(|at| at <= now) {
            self.timeout = Some(now + self.rtt.rto() + DELAYED_ACK);
        }
    }

    fn wants_ack_of_ack(&self) -> bool {
        self.since_ack + 1 >= self.allowed()
    }

    fn ack_ratio(&self) -> Option<u16> {
        Some(self.ack_ratio.get(self.window.cwnd()))
    }

    fn packets_per_rtt(&self, _: Instant) -> u64 {
        u64::from(self.window.cwnd())
    }

    fn limit(&mut self, packets: u64) {
        self.limit = u32::try_from(packets).unwrap_or(u32::MAX).max(1);
    }

    fn losses(&self) -> u64 {
        self.counts.lost + self.counts.timeouts
    }

    fn srtt(&self) -> Option<Duration> {
        self.rtt.srtt()
    }

    fn take_measured(&mut self) -> bool {
        core::mem::take(&mut self.measured)
    }

    fn report(&self, _: Instant) -> CcidReport {
        CcidReport {
            srtt: self.rtt.srtt(),
            rto: Some(self.rtt.rto()),
            cwnd: Some(self.window.cwnd()),
            ssthresh: Some(self.window.ssthresh()),
            pipe: Some(self.pipe),
            ack_ratio: self.ack_ratio(),
            ..self.counts
        }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
