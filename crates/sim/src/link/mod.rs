//! One direction of a link as a machine without I/O: [`Link::offer`] packets, wait until
//! [`Link::poll_timeout`], take what arrived with [`Link::poll`].
//!
//! A packet passes, in this order: the MTU, the policer, the queue with its discipline, the wire (rate, schedule or
//! recorded trace, held up by outages that hold), outages that drop, loss, the propagation delay with its jitter and
//! reordering, duplication, bit errors. Loss therefore costs capacity, as it does on the air. [`Discipline::Netem`]
//! has the propagation delay pass in the queue.
//!
//! What happens depends on the model, the seed and the times of the offers alone, never on how often or how
//! late the link is polled: the simulator and the real-time emulator behave alike.

mod codel;
mod delay;
mod loss;
mod model;
mod outage;
mod outcome;
pub mod parse;
mod policer;
mod queue;
mod rate;
mod red;
mod scale;
mod schedule;
mod stats;
mod trace;
mod verdict;

pub use codel::CoDel;
pub use delay::{Jitter, Reorder, ReorderHow};
pub use loss::{GilbertElliott, Loss};
pub use model::{EcnField, LinkModel};
pub use outage::{Outage, OutageEffect, OutageTimes};
pub use outcome::{DropReason, Exit, LinkAction, LinkEvent, Offer, Outcome};
pub use policer::Policer;
pub use queue::{Discipline, Queue, QueueLimit};
pub use rate::Rate;
pub use red::Red;
pub use schedule::{Schedule, ScheduleError, Shape};
pub use stats::LinkStats;
pub use trace::{MAX_OPPORTUNITIES, OPPORTUNITY_BYTES, Trace, TraceError};

use braidcast_core::{Ecn, Instant, Rng};
use core::time::Duration;
use delay::DelayLine;
use loss::LossProcess;
use outage::Outages;
use policer::Bucket;
use queue::{Fifo, Manager, Waiting};
use rate::Server;
use std::collections::VecDeque;
use verdict::Verdict;

/// Maximum number of packets that a link holds: waiting, in flight, and lost but not polled. What
/// comes on top is dropped as [`DropReason::QueueFull`], whatever the model says.
pub const MAX_PACKETS: usize = 1 << 20;

/// The largest packet of a link whose model has no MTU, as CoDel sees it.
const USUAL_MTU: usize = 1500;

/// A packet that has left the queue.
#[derive(Debug)]
struct OnTheWay<P> {
    at: Instant,
    len: usize,
    ecn: Ecn,
    outcome: Outcome<P>,
}

/// One direction of a link; `P` is whatever stands for a packet.
///
/// Times given to it should not go back; one that does counts as the latest one given before.
#[derive(Debug)]
pub struct Link<P> {
    mtu: usize,
    overhead: usize,
    policer: Option<Bucket>,
    queue: Fifo<P>,
    manager: Manager,
    server: Server,
    /// The propagation delay if it passes in the queue, in nanoseconds by the time of the offer.
    held: Option<Schedule>,
    /// When the head of the queue leaves; the end of time if never.
    head_leaves: Option<Instant>,
    down: bool,
    outages: Outages,
    loss: LossProcess,
    ecn_field: EcnField,
    line: DelayLine,
    duplicate: f64,
    corrupt: f64,
    duplicate_rng: Rng,
    corrupt_rng: Rng,
    /// Sorted by arrival, first in first out at the same instant.
    on_the_way: VecDeque<OnTheWay<P>>,
    /// Dropped behind the queue and not handed back yet.
    lost: VecDeque<OnTheWay<P>>,
    /// The latest time seen.
    clock: Instant,
    stats: LinkStats,
}

impl<P> Link<P> {
    /// An idle link. Everything random about it follows from `rng`'s seed, so give each link a stream of its own.
    pub fn new(model: LinkModel, rng: Rng) -> Self {
        let netem = model.queue.discipline == Discipline::Netem;
        let held = netem.then(|| model.delays());
        let delays = if netem { Schedule::constant(0) } else { model.delays() };
        let max_packet = if model.mtu == usize::MAX { USUAL_MTU } else { model.mtu };
        Self {
            mtu: model.mtu,
            overhead: model.overhead,
            policer: model.policer.map(Bucket::new),
            queue: Fifo::new(model.queue.limit),
            manager: Manager::new(model.queue.discipline, max_packet, &rng),
            server: Server::new(&model.rate),
            held,
            head_leaves: None,
            down: false,
            outages: Outages::new(&model.outages, &rng),
            loss: LossProcess::new(model.loss, rng.stream("loss")),
            ecn_field: model.ecn_field,
            line: DelayLine::new(delays, model.jitter, model.reorder, &rng),
            duplicate: model.duplicate,
            corrupt: model.corrupt,
            duplicate_rng: rng.stream("duplicate"),
            corrupt_rng: rng.stream("corrupt"),
            on_the_way: VecDeque::new(),
            lost: VecDeque::new(),
            clock: Instant::ZERO,
            stats: LinkStats::default(),
        }
    }

    /// When [`poll`](Self::poll) next may have something to do; `None` if the link is empty
    /// or stands still for good.
    ///
    /// There may be nothing to take then, only the next timeout to ask for.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let arrival = self.on_the_way.front().map(|packet| packet.at);
        let departure = self.head_leaves.filter(|at| at.as_nanos() < u64::MAX).map(|at| at + self.line.shortest());
        let loss = self.lost.front().map(|packet| packet.at);
        Instant::first_of([arrival, departure, loss])
    }

    /// When something next happens inside; [`poll_timeout`](Self::poll_timeout) may be later, as nobody outside
    /// notices when packets leave the queue. For who wants [`LinkEvent`]s in time.
    pub fn next_change(&self) -> Option<Instant> {
        let departure = self.head_leaves.filter(|at| at.as_nanos() < u64::MAX);
        self.poll_timeout().into_iter().chain(departure).min()
    }

    /// What the link has done so far, as of the latest offer, poll or [`settle`](Self::settle).
    pub const fn stats(&self) -> LinkStats {
        self.stats
    }

    /// Packets that may still arrive: waiting or in flight.
    pub fn inside(&self) -> usize {
        self.queue.len() + self.on_the_way.len()
    }

    /// Returns `true` if [`MAX_PACKETS`] are held, lost ones that nobody polled included.
    fn is_full(&self) -> bool {
        self.inside() + self.lost.len() >= MAX_PACKETS
    }

    /// Packets and bytes that wait in the queue, as of the latest offer or poll.
    pub fn backlog(&self) -> (usize, usize) {
        (self.queue.len(), self.queue.bytes())
    }

    /// Packets that there is memory for.
    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        self.queue.capacity() + self.on_the_way.capacity() + self.lost.capacity()
    }

    /// Sends a packet, behind those that arrive at the same instant.
    fn carry(&mut self, packet: OnTheWay<P>) {
        if self.on_the_way.back().is_none_or(|last| last.at <= packet.at) {
            self.on_the_way.push_back(packet);
        } else {
            let place = self.on_the_way.partition_point(|other| other.at <= packet.at);
            self.on_the_way.insert(place, packet);
        }
    }
}

impl<P: Clone> Link<P> {
    /// Offers a packet of `len` bytes, [`LinkModel::overhead`] not included, marked as `ecn` says.
    pub fn offer(&mut self, now: Instant, len: usize, ecn: Ecn, packet: P) -> Offer<P> {
        self.offer_watched(now, len, ecn, packet, &mut |_| {})
    }

    /// The next packet that has arrived at the far end by `now`, in order of arrival.
    ///
    /// Corrupted ones count as lost here, as UDP's checksum would have it; [`poll_outcome`](Self::poll_outcome)
    /// gives those too, and how packets are marked.
    pub fn poll(&mut self, now: Instant) -> Option<P> {
        loop {
            if let Outcome::Arrived(packet) = self.poll_outcome(now)?.outcome {
                return Some(packet);
            }
        }
    }

    /// What became of the next packet by `now`: first what was lost, then what arrived.
    pub fn poll_outcome(&mut self, now: Instant) -> Option<Exit<P>> {
        self.poll_watched(now, &mut |_| {})
    }

    /// Cuts the link from `now` on, or fixes it. While it is cut it drops all that is offered or
    /// leaves the queue; what is in flight arrives.
    pub fn set_down(&mut self, now: Instant, down: bool) {
        self.settle(now);
        self.down = down;
    }

    /// From `now` on packets of more than `mtu` bytes without overhead are dropped; what is in the queue passes.
    pub fn set_mtu(&mut self, now: Instant, mtu: usize) {
        self.settle(now);
        self.mtu = mtu;
    }

    /// Lets everything happen that happens by `now`, so that counters are up to date.
    pub fn settle(&mut self, now: Instant) {
        self.settle_watched(now, &mut |_| {});
    }

    /// [`offer`](Self::offer), showing `watch` all that happens meanwhile. Who watches must do so at every call.
    pub fn offer_watched(
        &mut self,
        now: Instant,
        len: usize,
        ecn: Ecn,
        packet: P,
        watch: &mut impl FnMut(LinkEvent<'_, P>),
    ) -> Offer<P> {
        self.settle_watched(now, watch);
        let wire_len = len.saturating_add(self.overhead);
        let waiting = Waiting { since: self.clock, number: self.stats.offered, len: wire_len, ecn, packet };
        self.stats.offered += 1;
        self.stats.offered_bytes += wire_len as u64;
        let verdict = match self.admit(len, &waiting) {
            Ok(verdict) => verdict,
            Err(reason) => {
                self.stats.count_drop(reason);
                self.tell(watch, self.clock, LinkAction::Dropped(reason), (ecn, wire_len), &waiting.packet);
                return Offer::Dropped(reason, waiting.packet);
            }
        };
        let marked = verdict == Verdict::Mark;
        self.stats.marked += u64::from(marked);
        self.queue.push(if marked { Waiting { ecn: Ecn::Ce, ..waiting } } else { waiting });
        self.stats.grew_to(self.queue.len(), self.queue.bytes());
        if let Some(Waiting { packet, .. }) = self.queue.back() {
            self.tell(watch, self.clock, LinkAction::Entered, (ecn, wire_len), packet);
            if marked {
                self.tell(watch, self.clock, LinkAction::Marked, (Ecn::Ce, wire_len), packet);
            }
        }
        if self.head_leaves.is_none() {
            self.serve_head(self.clock, watch);
        }
        Offer::Queued
    }

    /// [`poll_outcome`](Self::poll_outcome), showing `watch` all that happens meanwhile.
    pub fn poll_watched(&mut self, now: Instant, watch: &mut impl FnMut(LinkEvent<'_, P>)) -> Option<Exit<P>> {
        self.settle_watched(now, watch);
        if let Some(lost) = self.lost.pop_front() {
            return Some(Exit { at: lost.at, ecn: lost.ecn, outcome: lost.outcome });
        }
        self.on_the_way.front().filter(|packet| packet.at <= self.clock)?;
        let OnTheWay { at, len, ecn, outcome } = self.on_the_way.pop_front()?;
        self.stats.delivered += 1;
        self.stats.delivered_bytes += len as u64;
        self.tell(watch, at, LinkAction::Arrived, (ecn, len), outcome.packet());
        Some(Exit { at, ecn, outcome })
    }

    /// [`settle`](Self::settle), showing `watch` all that happens.
    pub fn settle_watched(&mut self, now: Instant, watch: &mut impl FnMut(LinkEvent<'_, P>)) {
        self.clock = self.clock.max(now);
        while let Some(at) = self.head_leaves.filter(|at| *at <= self.clock) {
            if let Some(head) = self.pop(at) {
                self.tell(watch, at, LinkAction::Left, (head.ecn, head.len), &head.packet);
                self.depart(at, head, watch);
            }
            self.serve_head(at, watch);
        }
        self.stats.occupied(self.clock, self.queue.len(), self.queue.bytes());
    }

    /// Returns `true` if a packet of `len` bytes without overhead may enter the queue, and whether it is to be marked.
    fn admit(&mut self, len: usize, packet: &Waiting<P>) -> Result<Verdict, DropReason> {
        if self.down {
            return Err(DropReason::Outage);
        }
        if len > self.mtu {
            return Err(DropReason::TooBig);
        }
        let now = self.clock;
        if self.policer.as_mut().is_some_and(|policer| !policer.passes(now, packet.len)) {
            return Err(DropReason::Policed);
        }
        let rate = self.server.bits_per_second(self.clock);
        let verdict = self.manager.arrival(self.clock, self.queue.len(), rate, packet.ecn);
        if !self.queue.has_room(packet.len, rate) || self.is_full() {
            return Err(DropReason::QueueFull);
        }
        if verdict == Verdict::Drop { Err(DropReason::Early) } else { Ok(verdict) }
    }

    /// Takes the head off the queue.
    fn pop(&mut self, at: Instant) -> Option<Waiting<P>> {
        self.stats.occupied(at, self.queue.len(), self.queue.bytes());
        self.queue.pop()
    }

    /// Serves what becomes the head of the queue at `at`, unless the discipline drops it, then the next.
    fn serve_head(&mut self, at: Instant, watch: &mut impl FnMut(LinkEvent<'_, P>)) {
        self.head_leaves = None;
        while let Some(head) = self.queue.front() {
            let (len, since, left) = (head.len, head.since, self.queue.bytes() - head.len);
            match self.manager.head(at, since, left, head.ecn) {
                Verdict::Drop => {
                    self.drop_head(at, watch);
                    continue;
                }
                Verdict::Mark => self.mark_head(at, watch),
                Verdict::Pass => {}
            }
            let there = |delays: &Schedule| since + Duration::from_nanos(delays.value_at(since));
            let start = self.held.as_ref().map_or(at, |delays| at.max(there(delays)));
            self.head_leaves = Some(self.server.finish(start, len, &mut self.outages));
            return;
        }
        self.manager.emptied(at);
    }

    fn drop_head(&mut self, at: Instant, watch: &mut impl FnMut(LinkEvent<'_, P>)) {
        if let Some(head) = self.pop(at) {
            self.lose(at, DropReason::Early, head, watch);
        }
    }

    fn mark_head(&mut self, at: Instant, watch: &mut impl FnMut(LinkEvent<'_, P>)) {
        self.stats.marked += 1;
        self.queue.mark_head();
        if let Some(head) = self.queue.front() {
            self.tell(watch, at, LinkAction::Marked, (Ecn::Ce, head.len), &head.packet);
        }
    }

    /// Keeps a dropped packet until it is handed back.
    fn lose(&mut self, at: Instant, why: DropReason, packet: Waiting<P>, watch: &mut impl FnMut(LinkEvent<'_, P>)) {
        let Waiting { len, ecn, packet, .. } = packet;
        self.stats.count_drop(why);
        self.tell(watch, at, LinkAction::Dropped(why), (ecn, len), &packet);
        self.lost.push_back(OnTheWay { at, len, ecn, outcome: Outcome::Dropped(why, packet) });
    }

    fn depart(&mut self, at: Instant, head: Waiting<P>, watch: &mut impl FnMut(LinkEvent<'_, P>)) {
        if self.down || self.outages.drops_at(at) {
            return self.lose(at, DropReason::Outage, head, watch);
        }
        let refused = self.ecn_field == EcnField::Refused && head.ecn != Ecn::NotEct;
        if self.loss.loses(head.number) || refused {
            return self.lose(at, DropReason::Loss, head, watch);
        }
        let Waiting { len, ecn, packet, .. } = head;
        let ecn = if self.ecn_field == EcnField::Cleared { Ecn::NotEct } else { ecn };
        let at = self.line.arrival(at);
        if self.duplicate_rng.chance(self.duplicate) && !self.is_full() {
            self.stats.duplicated += 1;
            self.carry(OnTheWay { at, len, ecn, outcome: Outcome::Arrived(packet.clone()) });
        }
        let outcome = if self.corrupt_rng.chance(self.corrupt) {
            self.stats.corrupted += 1;
            Outcome::Corrupted(packet, self.corrupt_rng.u64())
        } else {
            Outcome::Arrived(packet)
        };
        self.carry(OnTheWay { at, len, ecn, outcome });
    }

    /// Shows `watch` what happened to a packet of this mark and length.
    fn tell(
        &self,
        watch: &mut impl FnMut(LinkEvent<'_, P>),
        at: Instant,
        action: LinkAction,
        (ecn, len): (Ecn, usize),
        packet: &P,
    ) {
        let (queue_packets, queue_bytes) = self.backlog();
        watch(LinkEvent { at, action, ecn, len, queue_packets, queue_bytes, packet });
    }
}
