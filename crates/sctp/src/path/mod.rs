//! One path: everything that RFC 9260 keeps for each destination address, and what multipath adds.
//! Its fields are its own; others change it by verbs that say what happened. What is out over it is
//! the ledger's ([`crate::tx::Ledger`]).

mod acked;
mod asked;
mod detour;
mod ect;
mod failure;
mod heartbeat;
mod index;
mod marks;
mod mistrust;
mod one_way;
mod paths;
mod redundant;
mod sending;
mod sizes;
mod stats;
mod timer;
mod train;

pub(crate) use acked::{Flight, News};
pub(crate) use heartbeat::Info;
pub(crate) use index::PathIndex;
pub(crate) use one_way::{ForwardDelay, OneWay};
pub(crate) use paths::Paths;
pub(crate) use sending::Pending;
pub(crate) use stats::PathStats;

use crate::api::{CwndUnit, MarkResponse, Options, PathReport, PathState};
use crate::number::Order;
use crate::wire::Header;
use crate::wire::chunk::{Data, Redundancy};
use asked::Asked;
use braidcast_cc::{
    Backlog, Capacity, Conditions, Congestion, Controller, Coupled, Pacer, PathMtu, Policing, QueueingDelay, Rack,
    RateSampler, RttEstimator, Setup, Siblings, Signal, Standard, shows_congestion,
};
use braidcast_core::events::PathMetrics;
use braidcast_core::{Instant, PathId, Route, SlidingSum};
use braidcast_fec::LossMeter;
use braidcast_mpath::{Delay, PathView};
use core::time::Duration;
use ect::Ect;
use heartbeat::Heartbeats;
use marks::Marks;
use mistrust::Mistrust;
use redundant::Redundant;
use sizes::PacketSizes;
use std::sync::Arc;
use timer::{Timer, TimerTable};
use train::Trains;

/// What a path delivers now is measured over this time.
const MOMENT: Duration = Duration::from_millis(150);
/// A path that delivers nothing now is taken to deliver this fraction of its usual rate: one part in
/// `LEAST_SHARE`.
const LEAST_SHARE: f64 = 20.0;

/// What says that the peer is there, though nobody there has answered yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Hearsay {
    /// The source of a packet, which anybody can choose who sends the packet on (RFC 5061 §4.2.1).
    Source,
    /// The peer's word, which may name anybody.
    Word,
}

/// How a path shows congestion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Congested {
    Lost,
    Marked,
}

/// A path of an association.
#[derive(Debug)]
pub(crate) struct Path {
    options: Arc<Options>,
    id: PathId,
    route: Route,
    state: PathState,
    /// What alone says that the peer is there, if it has not chosen the path by what it sends.
    hearsay: Option<Hearsay>,
    rtt: RttEstimator,
    cc: Box<dyn Controller>,
    /// The first window, bytes.
    initial_window: usize,
    rates: RateSampler,
    capacity: Capacity,
    /// Bytes of a full packet that do not count for the window.
    uncounted: usize,
    pacer: Pacer,
    backlog: Backlog,
    /// The maximum that may be sent over it, bytes per second with all headers.
    limit: Option<f64>,
    rack: Rack,
    queueing: QueueingDelay,
    /// Bytes acknowledged a moment ago.
    recent: SlidingSum<10>,
    /// The same by acknowledgements that came back over other paths, as those of a slow path do: the
    /// way round is another, but how much longer than the shortest it takes is the time in queues
    /// there too. With `SackPath::Quickest` without `return_delay`: what is left is one way.
    detour: QueueingDelay,
    /// Half of the shortest round trip over the path that the latest of those came back over; zero
    /// without `SackPath::Quickest`.
    return_delay: Duration,
    /// How long packets stand in queues as a rule: the rounds' times, each weighing 1/8.
    usual_queue: Option<Duration>,
    /// The last round was measured by a detour.
    detoured: bool,
    /// The next round that is measured by a detour comes from this place in the order on.
    next_detour_order: Order,
    one_way: OneWay,
    pmtu: PathMtu,
    /// Of the packets that data left in.
    sizes: PacketSizes,
    /// Bytes that protection adds to a packet.
    protection: usize,
    /// What the last MTU probe was marked with.
    pmtu_nonce: u64,
    heartbeats: Heartbeats,
    trains: Trains,
    redundant: Redundant,
    /// Repairs that are due for each chunk sent over it.
    redundancy_owed: f64,
    /// The highest place in the send order that was acknowledged.
    acked_order: Order,
    /// The same of chunks that were acknowledged when a copy that went over another path may have arrived.
    copied_order: Order,
    /// Packets with data since the last acknowledgement, for Max.Burst.
    burst: u32,
    /// Max.Burst bounds them.
    burst_bounded: bool,
    /// Share of the chunks that were lost of late; each one weighs 1/64.
    loss_rate: f32,
    /// How many were lost of late, and in what bursts.
    losses: LossMeter,
    policing: Policing,
    /// Of redundancy chunks, sent so far.
    redundancy_bytes: u64,
    /// Packets of which it is known whether they arrived, and how many did not.
    known: (u64, u64),
    /// Recovery lasts until something sent from this place on is acknowledged (RFC 9260 §7.2.4 fast recovery).
    recovery: Option<Order>,
    marks: Marks,
    ect: Ect,
    /// When the RTT was last measured, or asked for.
    measured: Instant,
    /// When the path last answered.
    answered: Instant,
    /// What was sent before measures our own pause.
    awake_since: Instant,
    /// RTT is measured once each round trip: the next measurement comes from this place in the order on.
    next_rtt_order: Order,
    /// A round of [`queueing`](Self::queueing) ends by what went from this place on.
    next_queue_order: Order,
    asked: Asked,
    /// When a SACK told of other paths too.
    shared: Option<Instant>,
    /// The controller's round trips: the present one ends when something sent from this place on is acknowledged.
    cc_round: Order,
    /// Timeouts in a row (RFC 9260 §8.2).
    errors: u32,
    /// There was one: perhaps somebody in between drops packets without checksum, and this
    /// may cost at most two timeouts (RFC 9653 §3).
    needs_checksum: bool,
    /// Since when nothing that was sent has been answered, past the probe timeout: new data prefers other paths.
    silent_since: Option<Instant>,
    mistrust: Mistrust,
    /// Probes sent since the last answer (RFC 8985 §7.3).
    probes: u32,
    timers: TimerTable,
    pending: Pending,
    last_sent: Instant,
    stats: PathStats,
}

impl Path {
    pub(crate) fn new(now: Instant, id: PathId, route: Route, state: PathState, options: Arc<Options>) -> Self {
        let uncounted = match options.papers.cwnd_unit {
            CwndUnit::Mtu => 0,
            CwndUnit::Payload => Header::LEN + Data::HEADER + options.redundancy.fec.map_or(0, Redundancy::reserve),
        };
        let unit = options.paths.base_mtu - uncounted;
        let setup = setup(&options, unit);
        Self {
            id,
            route,
            state,
            hearsay: None,
            rtt: RttEstimator::new(options.timers.rto),
            cc: controller(&options, &setup),
            initial_window: setup.initial,
            rates: RateSampler::default(),
            capacity: Capacity::default(),
            uncounted,
            pacer: Pacer::new(now, options.paths.base_mtu),
            backlog: Backlog::default(),
            limit: None,
            rack: Rack::default(),
            queueing: QueueingDelay::default(),
            recent: SlidingSum::new(MOMENT),
            detour: QueueingDelay::default(),
            return_delay: Duration::ZERO,
            usual_queue: None,
            detoured: false,
            next_detour_order: Order::FIRST,
            one_way: OneWay::default(),
            protection: if options.security.is_some() { crate::wire::PROTECTION } else { 0 },
            pmtu: PathMtu::new(options.paths.base_mtu, options.paths.max_mtu),
            sizes: PacketSizes::default(),
            pmtu_nonce: 0,
            heartbeats: Heartbeats::new(),
            trains: Trains::default(),
            redundant: Redundant::default(),
            redundancy_owed: 0.0,
            acked_order: Order::FIRST,
            copied_order: Order::FIRST,
            burst: 0,
            burst_bounded: !options.papers.max_burst_after_retransmission,
            loss_rate: 0.0,
            losses: LossMeter::default(),
            policing: Policing::None,
            redundancy_bytes: 0,
            known: (0, 0),
            recovery: None,
            marks: Marks::default(),
            ect: Ect::default(),
            measured: now,
            answered: now,
            awake_since: Instant::ZERO,
            next_rtt_order: Order::FIRST,
            next_queue_order: Order::FIRST,
            asked: Asked::None,
            shared: None,
            cc_round: Order::FIRST,
            errors: 0,
            needs_checksum: false,
            silent_since: None,
            mistrust: Mistrust::default(),
            probes: 0,
            timers: TimerTable::default(),
            pending: Pending::default(),
            last_sent: now,
            stats: PathStats::default(),
            options,
        }
    }

    /// Its name outside of the association.
    pub(crate) const fn id(&self) -> PathId {
        self.id
    }

    pub(crate) const fn route(&self) -> Route {
        self.route
    }

    pub(crate) const fn state(&self) -> PathState {
        self.state
    }

    /// Returns `true` if packets over it have a checksum even where they could do without.
    pub(crate) const fn needs_checksum(&self) -> bool {
        self.needs_checksum
    }

    pub(crate) const fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    /// For how long it has not answered though it should have: since its last answer, or since the
    /// oldest data that is out, which was sent at `oldest`, should have been answered. Zero where
    /// nothing is out.
    pub(crate) fn silent_for(&self, now: Instant, oldest: Option<Instant>) -> Duration {
        let due = oldest.map(|sent| sent + self.answer().unwrap_or_default());
        due.map_or(Duration::ZERO, |due| now.since(self.answered.max(due)))
    }

    /// Returns `true` if a round trip was measured.
    pub(crate) const fn is_measured(&self) -> bool {
        self.rtt.srtt().is_some()
    }

    /// Congestion window, bytes.
    pub(crate) fn cwnd(&self) -> usize {
        self.cc.window()
    }

    /// Bytes acknowledged since the last loss or between the two before it, whichever is more.
    pub(crate) fn between_losses(&self) -> u64 {
        self.cc.between_losses()
    }

    /// How many chunks were lost of late, and in what bursts.
    pub(crate) const fn losses(&self) -> &LossMeter {
        &self.losses
    }

    pub(crate) const fn stats(&self) -> &PathStats {
        &self.stats
    }

    /// Timeouts in a row.
    pub(crate) const fn errors(&self) -> u32 {
        self.errors
    }

    /// The largest SCTP packet, bytes, before it is protected.
    pub(crate) const fn mtu(&self) -> usize {
        self.pmtu.current() - self.protection
    }

    /// What a full packet counts for in the window, bytes.
    pub(crate) const fn unit(&self) -> usize {
        self.mtu() - self.uncounted
    }

    /// Returns `true` if it may carry data as far as the peer is concerned.
    pub(crate) const fn is_usable(&self) -> bool {
        !matches!(self.state, PathState::Unconfirmed)
    }

    /// Returns `true` if what was asked of it goes unanswered.
    pub(crate) const fn has_failed(&self) -> bool {
        matches!(self.state, PathState::PotentiallyFailed | PathState::Inactive)
    }

    /// How good the path is for sending, 0 best: it answers; it is silent; it failed; it is given
    /// up. `None`: it may not be used at all. New data goes only to the best that there are (RFC
    /// 7829 §3).
    pub(crate) const fn rank(&self) -> Option<u8> {
        match self.state {
            PathState::Unconfirmed => None,
            PathState::Active if self.silent_since.is_none() => Some(0),
            PathState::Active => Some(1),
            PathState::PotentiallyFailed => Some(2),
            PathState::Inactive => Some(3),
        }
    }

    /// What timestamps say of the way to the peer.
    pub(crate) const fn one_way(&self) -> &OneWay {
        &self.one_way
    }

    /// Returns `true` if a packet that leaves now takes a timestamp along; if so, it does.
    pub(crate) fn takes_timestamp(&mut self, now: Instant) -> bool {
        let due = self.one_way.is_due(now);
        if due {
            self.one_way.on_stamped(now, self.rtt.srtt());
        }
        due
    }

    /// A timestamp sent over it came back.
    pub(crate) fn on_timestamp_echo(&mut self, now: Instant, measured: i64) {
        self.one_way.observe(now, measured);
    }

    /// How long packets stood in queues of late.
    pub(crate) fn queued(&self) -> Duration {
        if self.detoured { self.detour.latest() } else { self.queueing.latest() }
    }

    /// Packets stood in queues for longer than they are to.
    pub(super) fn has_long_queue(&self) -> bool {
        self.options.congestion.queueing_limit.is_some_and(|limit| self.queued() > limit)
    }

    /// The shortest round trip by what took the path in both directions, if that is known.
    pub(crate) fn shortest_round_trip(&self) -> Option<Duration> {
        self.queueing.base().or(self.rtt.min())
    }

    /// Bytes per second that it delivers where the controller knows that, else those that the
    /// window lets through in a smoothed round trip; no more than it may be given.
    pub(crate) fn rate(&self) -> Option<f64> {
        let window = || Some(self.cwnd() as f64 / self.rtt.srtt()?.as_secs_f64().max(1e-6));
        let rate = self.cc.delivery_rate().or_else(window)?;
        Some(self.data_limit().map_or(rate, |limit| rate.min(limit)))
    }

    /// Bytes per second that it was seen to deliver, if it shows that.
    pub(crate) fn measured_rate(&self) -> Option<f64> {
        self.cc.measured_rate()
    }

    /// Bytes per second that it delivers now, if it has enough to deliver: [`rate`](Self::rate) is
    /// slower to notice a fade. `None` before that is known.
    pub(crate) fn rate_now(&mut self, now: Instant) -> Option<f64> {
        let usual = self.rate()?;
        Some(self.recent.add(now, 0)?.clamp(usual / LEAST_SHARE, usual))
    }

    /// The latest place in the order of what was sent over it that was acknowledged.
    pub(crate) const fn acked_order(&self) -> Order {
        self.acked_order
    }

    /// When it last answered.
    pub(crate) const fn answered(&self) -> Instant {
        self.answered
    }

    /// What policies may know about it; `ready`: it has room.
    pub(crate) fn view(&self, in_flight: usize, active: bool, ready: bool) -> PathView {
        let srtt = self.rtt.srtt();
        let delay = srtt.map(|srtt| Delay::half_of(srtt, self.rtt.rttvar()));
        PathView {
            ready,
            active,
            cwnd: self.cwnd(),
            ssthresh: self.cc.ssthresh(),
            in_flight,
            rate: self.rate(),
            loss_rate: self.loss_rate,
            srtt,
            silent: Duration::ZERO,
            forward_delay: delay,
            return_delay: delay,
            known_lost: self.known_lost(),
        }
    }

    /// When the first timer expires.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let train = self.train().and_then(|train| self.trains.poll_timeout(&train));
        Instant::first_of([self.timers.next(), self.heartbeats.poll_timeout(), self.pmtu.poll_timeout(), train])
    }

    /// Returns `true` if a loss now speaks of congestion, as TCP Veno sees it.
    pub(crate) fn shows_congestion(&self) -> bool {
        shows_congestion(self.cwnd(), &self.conditions(Instant::ZERO, 0, Siblings::default()))
    }

    /// What the controller is to know, with `in_flight` bytes out.
    fn conditions<'a>(&self, now: Instant, in_flight: usize, siblings: Siblings<'a>) -> Conditions<'a> {
        // Of the way round by which `queued` is measured.
        let delays = if self.detoured { &self.detour } else { &self.queueing };
        let (mut base_rtt, mut shortest_rtt) =
            (delays.base().unwrap_or_default(), delays.shortest().unwrap_or_default());
        if self.is_one_way() {
            (base_rtt, shortest_rtt) = (base_rtt + self.return_delay, shortest_rtt + self.return_delay);
        }
        let (mtu, srtt, queueing) = (self.unit(), self.rtt.srtt(), self.queued());
        let (loss_rate, (packets, lost_packets)) = (self.loss_rate, self.known);
        Conditions {
            now,
            mtu,
            in_flight,
            srtt,
            queueing,
            base_rtt,
            shortest_rtt,
            loss_rate,
            packets,
            lost_packets,
            redundancy: self.redundancy_bytes,
            siblings,
        }
    }

    /// Packets were lost or marked, the first since the window was last reduced: losses and marks
    /// of what was sent before `next` are of the same event.
    pub(crate) fn reduce(
        &mut self,
        now: Instant,
        congestion: Congested,
        in_flight: usize,
        siblings: Siblings<'_>,
        next: Order,
    ) {
        let conditions = self.conditions(now, in_flight, siblings);
        let signal = Signal { bytes: self.unit(), new_round: true };
        match congestion {
            Congested::Lost => self.cc.on_lost(&conditions, &signal),
            Congested::Marked => self.cc.on_marked(&conditions, &signal),
        }
        self.marks.reduced_at = next;
    }

    /// Something in place `order` was lost, or marked. Whether that begins a recovery, which lasts
    /// until something sent from `next` on is acknowledged (RFC 9260 §7.2.4 5).
    pub(crate) fn enter_recovery(&mut self, order: Order, next: Order) -> bool {
        let begins = self.recovery.is_none_or(|until| order >= until);
        if begins {
            self.recovery = Some(next);
        }
        begins
    }

    pub(crate) const fn is_recovering(&self) -> bool {
        self.recovery.is_some()
    }

    /// What is told of it, with `in_flight` bytes out.
    pub(crate) fn metrics(&self, in_flight: usize) -> PathMetrics {
        let ssthresh = Some(self.cc.ssthresh()).filter(|&ssthresh| ssthresh < usize::MAX);
        let (srtt, min_rtt, rto) = (self.rtt.srtt(), self.rtt.min(), self.rtt.rto());
        let (queued, mtu) = (self.queued(), self.mtu());
        PathMetrics { cwnd: self.cwnd(), ssthresh, in_flight, srtt, min_rtt, rto, queued, mtu }
    }

    pub(crate) fn report(&self, in_flight: usize) -> PathReport {
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
            ect_packets,
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
            cwnd: self.cwnd(),
            ssthresh: self.cc.ssthresh(),
            in_flight,
            mtu: self.mtu(),
            sealed_mtu: self.pmtu.current(),
            queued: self.queued(),
            delivered_bytes: self.rates.delivered(),
            capacity: self.capacity.rate().map(|rate| rate as u64),
            full_at: self.capacity.full_at(),
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
            ect_packets,
            marked_packets,
            mark_reductions,
        }
    }
}

/// How the controller of a path begins whose full packets count as `unit` bytes.
fn setup(options: &Options, unit: usize) -> Setup {
    let abe = options.congestion.mark_response == MarkResponse::Abe;
    let papers = &options.papers;
    let standard =
        Standard { floor: papers.min_ssthresh, keeps_credit: papers.credit_when_full, abe, ..Standard::RFC_9260 };
    let setup = Setup::new(standard, unit);
    Setup {
        initial: options.congestion.initial_window.map_or(setup.initial, |packets| packets * unit),
        ssthresh: options.papers.initial_ssthresh.unwrap_or(usize::MAX),
        queueing: options.congestion.queueing_limit.unwrap_or(Setup::QUEUEING),
        ..setup
    }
}

/// The controller that the options ask for, coupled to those of the other paths if they ask for that.
fn controller(options: &Options, setup: &Setup) -> Box<dyn Controller> {
    let alone = options.congestion.algorithm.controller(setup);
    match options.congestion.coupling {
        Congestion::PerPath => alone,
        rule => Box::new(Coupled::new(rule, alone)),
    }
}
