//! One path: everything that RFC 9260 keeps for each destination address, and what multipath adds.

mod ect;
mod heartbeat;
mod redundant;

use crate::api::{CwndUnit, FecWindow, Options, PathReport, PathState};
use crate::tx::{LossCause, PseudoCumack};
use crate::wire::Header;
use crate::wire::chunk::{Data, Redundancy};
use braidcast_cc::{LossResponse, Pacer, PathMtu, QueueingDelay, Rack, RttEstimator, Window};
use braidcast_core::{Instant, PathId, Route};
use braidcast_fec::LossMeter;
use core::time::Duration;
use ect::Ect;
pub(crate) use heartbeat::{Heartbeats, Info};
use redundant::Redundant;
use std::collections::VecDeque;

/// A path of an association.
#[derive(Debug)]
pub(crate) struct Path {
    pub(crate) id: PathId,
    pub(crate) route: Route,
    pub(crate) state: PathState,
    pub(crate) rtt: RttEstimator,
    pub(crate) window: Window,
    /// Bytes of a full packet that do not count for the window.
    uncounted: usize,
    pub(crate) pacer: Pacer,
    pub(crate) rack: Rack,
    pub(crate) queueing: QueueingDelay,
    /// The same by acknowledgements that came back over other paths, as those of a slow path do: the way round is another, but
    /// how much longer than the shortest it takes is the time in queues there too.
    pub(crate) detour: QueueingDelay,
    /// The last round was measured by a detour.
    pub(crate) detoured: bool,
    /// The next round that is measured by a detour comes from this place in the order on.
    pub(crate) next_detour_order: u64,
    pub(crate) pmtu: PathMtu,
    /// What the last MTU probe was marked with.
    pub(crate) pmtu_nonce: u64,
    pub(crate) heartbeats: Heartbeats,
    /// Bytes sent over this path and neither acknowledged nor taken for lost.
    pub(crate) in_flight: usize,
    redundant: Redundant,
    /// Repairs that are due for each chunk sent over it.
    pub(crate) redundancy_owed: f64,
    /// The highest place in the send order that was acknowledged.
    acked_order: u64,
    /// Bytes last sent over this path that the cumulative acknowledgement has not reached.
    pub(crate) unacked: usize,
    /// Of those, what the peer promised to keep (NR-SACK).
    pub(crate) non_renegable: usize,
    /// What was sent over this path, oldest first, as TSN and place in the order. Entries go stale when a chunk is
    /// acknowledged or sent again, and are dropped when they get to the front.
    pub(crate) sent: VecDeque<(u64, u64)>,
    next_order: u64,
    /// What must be acknowledged for the window to grow.
    pub(crate) cumack: PseudoCumack,
    /// Packets with data since the last acknowledgement, for Max.Burst.
    pub(crate) burst: u32,
    /// Share of the chunks that were lost of late; each one weighs 1/64.
    pub(crate) loss_rate: f32,
    /// How many were lost of late, and in what bursts.
    pub(crate) losses: LossMeter,
    /// Recovery lasts until something sent from this place on is acknowledged (RFC 9260 §7.2.4 fast recovery).
    pub(crate) recovery: Option<u64>,
    pub(crate) marks: Marks,
    pub(crate) ect: Ect,
    /// When the RTT was last measured, or asked for.
    pub(crate) measured: Instant,
    /// When the path last answered.
    pub(crate) answered: Instant,
    /// RTT is measured once each round trip: the next measurement comes from this place in the order on.
    pub(crate) next_rtt_order: u64,
    /// Timeouts in a row (RFC 9260 §8.2).
    pub(crate) errors: u32,
    /// Since when nothing that was sent has been answered, past the probe timeout: new data prefers other paths.
    pub(crate) silent_since: Option<Instant>,
    /// Probes sent since the last answer (RFC 8985 §7.3).
    pub(crate) probes: u32,
    pub(crate) timers: Timers,
    pub(crate) pending: Pending,
    pub(crate) last_sent: Instant,
    pub(crate) stats: PathStats,
}

/// When each timer of a path expires.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Timers {
    /// T3-rtx (RFC 9260 §6.3).
    pub(crate) retransmission: Option<Instant>,
    /// Probe of a tail that nobody answers (RFC 8985 §7).
    pub(crate) probe: Option<Instant>,
    /// A packet overtaken by later ones becomes lost (RFC 8985 §6.3).
    pub(crate) reordering: Option<Instant>,
    /// F-Timer: FORWARD-TSN is repeated (PRCMT §4.3).
    pub(crate) forward: Option<Instant>,
}

/// What ECN marks did to a path.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Marks {
    /// Marks of what was sent before this place in the order came too late to reduce the window once more.
    pub(crate) reduced_at: u64,
    /// When the last CWR left over this path, and the TSN in it.
    pub(crate) answered: Option<(Instant, u64)>,
    /// A packet came marked that had redundancy and no data: the mark is told of with the next data.
    pub(crate) owed: bool,
}

/// What is to be sent over the path beside data, as soon as possible.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pending {
    pub(crate) heartbeat: bool,
    pub(crate) forward: bool,
    pub(crate) mtu_probe: bool,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PathStats {
    pub(crate) sent_packets: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) sent_chunks: u64,
    pub(crate) lost_chunks: u64,
    pub(crate) retransmitted_chunks: u64,
    pub(crate) copied_chunks: u64,
    pub(crate) repaired_chunks: u64,
    pub(crate) redundancy_chunks: u64,
    pub(crate) fast_retransmissions: u64,
    pub(crate) timeout_retransmissions: u64,
    pub(crate) t3_expiries: u64,
    pub(crate) timeouts: u64,
    pub(crate) received_packets: u64,
    pub(crate) received_bytes: u64,
    pub(crate) marked_packets: u64,
    pub(crate) mark_reductions: u64,
}

impl Path {
    pub(crate) fn new(now: Instant, id: PathId, route: Route, state: PathState, options: &Options) -> Self {
        let uncounted = match options.papers.cwnd_unit {
            CwndUnit::Mtu => 0,
            CwndUnit::Payload => Header::LEN + Data::HEADER + options.redundancy.fec.map_or(0, Redundancy::reserve),
        };
        let unit = options.paths.base_mtu - uncounted;
        let mut window = Window::new(unit, options.congestion.initial_window.map(|packets| packets * unit));
        window.limit_slow_start(options.papers.initial_ssthresh.unwrap_or(usize::MAX));
        Self {
            id,
            route,
            state,
            rtt: RttEstimator::new(options.timers.rto),
            window,
            uncounted,
            pacer: Pacer::new(now, options.paths.base_mtu),
            rack: Rack::default(),
            queueing: QueueingDelay::default(),
            detour: QueueingDelay::default(),
            detoured: false,
            next_detour_order: 0,
            pmtu: PathMtu::new(options.paths.base_mtu, options.paths.max_mtu),
            pmtu_nonce: 0,
            heartbeats: Heartbeats::new(),
            in_flight: 0,
            redundant: Redundant::default(),
            redundancy_owed: 0.0,
            acked_order: 0,
            unacked: 0,
            non_renegable: 0,
            sent: VecDeque::new(),
            next_order: 0,
            cumack: PseudoCumack::default(),
            burst: 0,
            loss_rate: 0.0,
            losses: LossMeter::default(),
            recovery: None,
            marks: Marks::default(),
            ect: Ect::default(),
            measured: now,
            answered: now,
            next_rtt_order: 0,
            errors: 0,
            silent_since: None,
            probes: 0,
            timers: Timers::default(),
            pending: Pending::default(),
            last_sent: now,
            stats: PathStats::default(),
        }
    }

    /// Sends a heartbeat as soon as it can: does the path carry packets both ways?
    pub(crate) fn ask(&mut self, now: Instant) {
        self.heartbeats.start(now);
        self.pending.heartbeat = true;
    }

    /// The largest SCTP packet, bytes.
    pub(crate) const fn mtu(&self) -> usize {
        self.pmtu.current()
    }

    /// What a full packet counts for in the window, bytes.
    pub(crate) const fn unit(&self) -> usize {
        self.mtu() - self.uncounted
    }

    /// Whether `in_flight` bytes used the window up ([`CwndUnit`]).
    pub(crate) const fn was_full(&self, in_flight: usize) -> bool {
        let missing = if self.uncounted == 0 { self.unit() } else { 1 };
        in_flight + missing > self.window.cwnd()
    }

    /// The place in the send order that the next chunk gets.
    pub(crate) const fn next_order(&self) -> u64 {
        self.next_order
    }

    /// A chunk of `len` bytes leaves over this path; its place in the order.
    pub(crate) fn on_chunk_sent(&mut self, now: Instant, tsn: u64, len: usize, again: Option<LossCause>) -> u64 {
        let order = self.next_order;
        self.next_order += 1;
        self.sent.push_back((tsn, order));
        self.in_flight += len;
        self.stats.sent_chunks += 1;
        if let Some(cause) = again {
            self.cumack.on_repeat(tsn);
            self.stats.retransmitted_chunks += 1;
            self.stats.fast_retransmissions += u64::from(cause == LossCause::Reported);
            self.stats.timeout_retransmissions += u64::from(cause == LossCause::Timeout);
        }
        if self.timers.retransmission.is_none() {
            self.timers.retransmission = Some(now + self.rtt.rto());
        }
        order
    }

    /// How long to wait for an answer before asking: two round trips and the peer's SACK delay (RFC 8985 §7.2).
    pub(crate) fn probe_timeout(&self, ack_delay: Duration) -> Option<Duration> {
        let srtt = self.rtt.srtt()?;
        let timeout = srtt + (self.rtt.rttvar() * 4).max(Duration::from_millis(1)).max(srtt) + ack_delay;
        Some(timeout.min(self.rtt.rto()) * (1 << self.probes.min(4)))
    }

    /// The share of the window that a loss now leaves.
    pub(crate) fn kept(&self, response: LossResponse) -> f64 {
        let base = self.queueing.base().unwrap_or_default();
        response.kept(self.window.cwnd(), self.unit(), self.queued(), base)
    }

    /// Whether a loss now speaks of congestion, as TCP Veno sees it.
    pub(crate) fn shows_congestion(&self) -> bool {
        self.kept(LossResponse::Veno) <= self.kept(LossResponse::Reno)
    }

    /// How long packets stood in queues of late.
    pub(crate) fn queued(&self) -> Duration {
        if self.detoured { self.detour.latest() } else { self.queueing.latest() }
    }

    /// At the end of a round: less may be out if packets stood in queues longer than `limit`.
    pub(crate) fn shorten_queue(&mut self, limit: Option<Duration>, detoured: bool) {
        let unit = self.unit();
        self.detoured = detoured;
        let round = if detoured { self.detour.end_round() } else { self.queueing.end_round() };
        if let (Some(limit), Some((queueing, base))) = (limit, round)
            && queueing > limit
        {
            self.window.on_queueing(queueing, limit, base, unit);
        }
    }

    /// A chunk sent over this path was acknowledged or lost, or `None`: nothing was heard of it in time. What a path does with
    /// packets that does not answer cannot be told: most may arrive yet.
    pub(crate) fn note_fate(&mut self, lost: Option<bool>) {
        self.loss_rate += (f32::from(u8::from(lost != Some(false))) - self.loss_rate) / 64.0;
        if let Some(lost) = lost {
            self.losses.on_packet(lost);
        }
    }

    /// Whether data may go here as far as congestion control is concerned (RFC 9260 §6.1 B and D).
    pub(crate) fn has_room(&self, max_burst: Option<u32>) -> bool {
        let in_burst = max_burst.is_none_or(|most| self.burst < most || self.in_flight == 0);
        self.occupied() < self.window.cwnd() && in_burst
    }

    /// Bytes that take room in the window: data in flight, and redundancy, but with no data out nothing would ever free that.
    pub(crate) const fn occupied(&self) -> usize {
        if self.in_flight == 0 { 0 } else { self.in_flight + self.redundant.bytes() }
    }

    /// A redundancy chunk of `len` bytes, headers not counted, leaves over this path.
    pub(crate) fn on_redundancy_sent(&mut self, len: usize, window: FecWindow) {
        self.stats.redundancy_chunks += 1;
        if window == FecWindow::Inside {
            self.redundant.on_sent(self.next_order.saturating_sub(1), len);
            self.burst += 1;
        }
    }

    /// The data in place `order` was acknowledged.
    pub(crate) fn on_order_acked(&mut self, order: u64) {
        self.redundant.on_acked(order);
        self.acked_order = self.acked_order.max(order);
    }

    /// Whether something that was sent after the data in place `order` was acknowledged.
    pub(crate) const fn was_overtaken(&self, order: u64) -> bool {
        order < self.acked_order
    }

    /// Bytes per second to spread packets at: 2 windows per round trip in slow start, 1.25 later, as Linux TCP does.
    pub(crate) fn pacing_rate(&self) -> Option<f64> {
        let srtt = self.rtt.srtt()?.as_secs_f64().max(1e-6);
        let gain = if self.window.in_slow_start() { 2.0 } else { 1.25 };
        Some(gain * self.window.cwnd() as f64 / srtt)
    }

    pub(crate) const fn is_usable(&self) -> bool {
        !matches!(self.state, PathState::Unconfirmed)
    }

    /// When the first timer expires.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let Timers { retransmission, probe, reordering, forward } = self.timers;
        [retransmission, probe, reordering, forward, self.heartbeats.poll_timeout(), self.pmtu.poll_timeout()]
            .into_iter()
            .flatten()
            .min()
    }

    pub(crate) const fn report(&self) -> PathReport {
        let PathStats {
            sent_packets,
            sent_bytes,
            sent_chunks,
            lost_chunks,
            retransmitted_chunks,
            copied_chunks,
            repaired_chunks,
            redundancy_chunks,
            fast_retransmissions,
            timeout_retransmissions,
            t3_expiries,
            timeouts,
            received_packets,
            received_bytes,
            marked_packets,
            mark_reductions,
        } = self.stats;
        PathReport {
            id: self.id,
            route: self.route,
            state: self.state,
            srtt: self.rtt.srtt(),
            rttvar: self.rtt.rttvar(),
            min_rtt: self.rtt.min(),
            rto: self.rtt.rto(),
            cwnd: self.window.cwnd(),
            ssthresh: self.window.ssthresh(),
            in_flight: self.in_flight,
            mtu: self.mtu(),
            takes_ect: self.ect.is_on(),
            sent_packets,
            sent_bytes,
            sent_chunks,
            lost_chunks,
            retransmitted_chunks,
            copied_chunks,
            repaired_chunks,
            redundancy_chunks,
            fast_retransmissions,
            timeout_retransmissions,
            t3_expiries,
            timeouts,
            received_packets,
            received_bytes,
            marked_packets,
            mark_reductions,
        }
    }
}
