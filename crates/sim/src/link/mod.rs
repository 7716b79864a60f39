//! One direction of a link as a machine without I/O: [`Link::offer`] packets, wait until
//! [`Link::poll_timeout`], take what arrived with [`Link::poll`].
//!
//! A packet passes, in this order: the MTU, the drop-tail queue, the wire (rate or recorded trace, held up by
//! outages that hold), outages that drop, loss, the propagation delay with its jitter and reordering,
//! duplication, bit errors. Loss therefore costs capacity, as it does on the air.
//!
//! What happens depends on the model, the seed and the times of the offers alone, never on how often or how
//! late the link is polled: the simulator and the real-time emulator behave alike.

mod delay;
mod loss;
mod outage;
pub mod parse;
mod queue;
mod rate;
mod trace;

pub use delay::{Jitter, Reorder, ReorderHow};
pub use loss::{GilbertElliott, Loss};
pub use outage::{Outage, OutageEffect, OutageTimes};
pub use queue::QueueLimit;
pub use rate::Rate;
pub use trace::{MAX_OPPORTUNITIES, OPPORTUNITY_BYTES, Trace, TraceError};

use braidcast_core::{Instant, Rng};
use core::time::Duration;
use delay::DelayLine;
use loss::LossProcess;
use outage::Outages;
use queue::{Fifo, Waiting};
use rate::Server;
use std::collections::VecDeque;

/// Most packets that a link holds: waiting, on the way, and lost but not polled. What comes on top is dropped as
/// [`DropReason::QueueFull`], whatever the model says.
pub const MAX_PACKETS: usize = 1 << 20;

/// How a link treats packets. The default is a perfect wire: no limit, no delay, no loss.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkModel {
    /// How fast packets leave the queue.
    pub rate: Rate,
    /// Propagation delay.
    pub delay: Duration,
    /// Variation of the delay.
    pub jitter: Jitter,
    /// How much may wait.
    pub queue: QueueLimit,
    /// What is lost on the way.
    pub loss: Loss,
    /// What arrives out of order.
    pub reorder: Reorder,
    /// The probability, 0 to 1, that a packet arrives twice.
    pub duplicate: f64,
    /// The probability, 0 to 1, that a packet arrives with one bit flipped ([`Outcome::Corrupted`]).
    pub corrupt: f64,
    /// The largest packet in bytes on the wire; larger ones are dropped without a word, as where ICMP is filtered.
    pub mtu: usize,
    /// Times without service.
    pub outages: Vec<Outage>,
}

impl Default for LinkModel {
    fn default() -> Self {
        Self {
            rate: Rate::default(),
            delay: Duration::ZERO,
            jitter: Jitter::default(),
            queue: QueueLimit::default(),
            loss: Loss::default(),
            reorder: Reorder::default(),
            duplicate: 0.0,
            corrupt: 0.0,
            mtu: usize::MAX,
            outages: Vec::new(),
        }
    }
}

impl LinkModel {
    /// A clean link of so many bit/s and this propagation delay.
    pub fn wire(bits_per_second: u64, delay: Duration) -> Self {
        Self { rate: Rate::Bits(bits_per_second), delay, ..Self::default() }
    }
}

/// Why a link dropped a packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum DropReason {
    /// It was larger than the MTU.
    TooBig,
    /// The queue was full.
    QueueFull,
    /// It left during an outage, or the link was down.
    Outage,
    /// It was lost on the way.
    Loss,
}

/// What became of an offered packet so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Offer<P> {
    /// It is inside the link now.
    Queued,
    /// It was not taken; here it is back.
    Dropped(DropReason, P),
}

/// What became of a packet inside the link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome<P> {
    /// It arrived.
    Arrived(P),
    /// It arrived with one bit wrong: bit `n % bits`, where `bits` is its length in bits.
    Corrupted(P, u64),
    /// It did not arrive; here it is back.
    Dropped(DropReason, P),
}

/// What a link has done so far, in packets unless said otherwise.
///
/// `offered + duplicated` is always `delivered` plus everything dropped plus [`Link::inside`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LinkStats {
    /// Packets offered.
    pub offered: u64,
    /// Bytes offered.
    pub offered_bytes: u64,
    /// Packets that arrived, copies and corrupted ones included.
    pub delivered: u64,
    /// Bytes that arrived.
    pub delivered_bytes: u64,
    /// Copies made.
    pub duplicated: u64,
    /// Packets whose bits were flipped.
    pub corrupted: u64,
    /// Dropped as too big.
    pub dropped_too_big: u64,
    /// Dropped by the full queue.
    pub dropped_queue: u64,
    /// Dropped by an outage or while down.
    pub dropped_outage: u64,
    /// Lost on the way.
    pub dropped_loss: u64,
    /// The longest that the queue has been.
    pub queue_peak_packets: usize,
    /// The most bytes that waited at once.
    pub queue_peak_bytes: usize,
}

impl LinkStats {
    /// Packets dropped, for whatever reason.
    pub const fn dropped(&self) -> u64 {
        self.dropped_too_big + self.dropped_queue + self.dropped_outage + self.dropped_loss
    }

    fn count_drop(&mut self, reason: DropReason) {
        *match reason {
            DropReason::TooBig => &mut self.dropped_too_big,
            DropReason::QueueFull => &mut self.dropped_queue,
            DropReason::Outage => &mut self.dropped_outage,
            DropReason::Loss => &mut self.dropped_loss,
        } += 1;
    }
}

/// A packet that has left the queue.
#[derive(Debug)]
struct OnTheWay<P> {
    at: Instant,
    len: usize,
    outcome: Outcome<P>,
}

/// One direction of a link; `P` is whatever stands for a packet.
///
/// Times given to it should not go back; one that does counts as the latest one given before.
#[derive(Debug)]
pub struct Link<P> {
    mtu: usize,
    queue: Fifo<P>,
    server: Server,
    /// When the head of the queue leaves; the end of time if never.
    head_leaves: Option<Instant>,
    down: bool,
    outages: Outages,
    loss: LossProcess,
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
        Self {
            mtu: model.mtu,
            queue: Fifo::new(model.queue, &model.rate),
            server: Server::new(&model.rate),
            head_leaves: None,
            down: false,
            outages: Outages::new(&model.outages, &rng),
            loss: LossProcess::new(model.loss, rng.stream("loss")),
            line: DelayLine::new(model.delay, model.jitter, model.reorder, &rng),
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
        [arrival, departure, loss].into_iter().flatten().min()
    }

    /// What the link has done so far.
    pub const fn stats(&self) -> LinkStats {
        self.stats
    }

    /// Packets that may still arrive: waiting or on the way.
    pub fn inside(&self) -> usize {
        self.queue.len() + self.on_the_way.len()
    }

    /// Whether [`MAX_PACKETS`] are held, lost ones that nobody polled included.
    fn is_full(&self) -> bool {
        self.inside() + self.lost.len() >= MAX_PACKETS
    }

    /// Packets and bytes that wait in the queue, as of the latest offer or poll.
    pub fn backlog(&self) -> (usize, usize) {
        (self.queue.len(), self.queue.bytes())
    }

    fn refuse(&mut self, reason: DropReason, packet: P) -> Offer<P> {
        self.stats.count_drop(reason);
        Offer::Dropped(reason, packet)
    }

    /// Serves the packet that became the head of the queue at `since`.
    fn serve_head(&mut self, since: Instant) {
        self.head_leaves = self.queue.front().map(|head| {
            let start = head.since.max(since);
            self.server.finish(start, head.len, &mut self.outages)
        });
    }

    /// Puts a packet on its way, behind those that arrive at the same instant.
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
    /// Offers a packet of `len` bytes on the wire.
    pub fn offer(&mut self, now: Instant, len: usize, packet: P) -> Offer<P> {
        self.advance(now);
        let number = self.stats.offered;
        self.stats.offered += 1;
        self.stats.offered_bytes += len as u64;
        if self.down {
            return self.refuse(DropReason::Outage, packet);
        }
        if len > self.mtu {
            return self.refuse(DropReason::TooBig, packet);
        }
        if !self.queue.has_room(len) || self.is_full() {
            return self.refuse(DropReason::QueueFull, packet);
        }
        self.queue.push(Waiting { since: self.clock, number, len, packet });
        self.stats.queue_peak_packets = self.stats.queue_peak_packets.max(self.queue.len());
        self.stats.queue_peak_bytes = self.stats.queue_peak_bytes.max(self.queue.bytes());
        if self.head_leaves.is_none() {
            self.serve_head(self.clock);
        }
        Offer::Queued
    }

    /// The next packet that has arrived at the far end by `now`, in order of arrival.
    ///
    /// Corrupted ones count as lost here, as UDP's checksum would have it; [`poll_outcome`](Self::poll_outcome)
    /// gives those too.
    pub fn poll(&mut self, now: Instant) -> Option<P> {
        loop {
            if let (_, Outcome::Arrived(packet)) = self.poll_outcome(now)? {
                return Some(packet);
            }
        }
    }

    /// What became of the next packet by `now`, and when: first what was lost, then what arrived.
    pub fn poll_outcome(&mut self, now: Instant) -> Option<(Instant, Outcome<P>)> {
        self.advance(now);
        if let Some(lost) = self.lost.pop_front() {
            return Some((lost.at, lost.outcome));
        }
        self.on_the_way.front().filter(|packet| packet.at <= self.clock)?;
        let packet = self.on_the_way.pop_front()?;
        self.stats.delivered += 1;
        self.stats.delivered_bytes += packet.len as u64;
        Some((packet.at, packet.outcome))
    }

    /// Cuts the link from `now` on, or mends it. While it is cut it drops all that is offered or leaves the
    /// queue; what is on the way arrives.
    pub fn set_down(&mut self, now: Instant, down: bool) {
        self.advance(now);
        self.down = down;
    }

    /// Lets everything that leaves the queue by `now` leave it.
    fn advance(&mut self, now: Instant) {
        self.clock = self.clock.max(now);
        while let Some(at) = self.head_leaves.filter(|at| *at <= self.clock) {
            if let Some(head) = self.queue.pop() {
                self.depart(at, head);
            }
            self.serve_head(at);
        }
    }

    fn depart(&mut self, at: Instant, head: Waiting<P>) {
        let Waiting { number, len, packet, .. } = head;
        let outage = self.down || self.outages.drops_at(at);
        if outage || self.loss.loses(number) {
            let reason = if outage { DropReason::Outage } else { DropReason::Loss };
            self.stats.count_drop(reason);
            self.lost.push_back(OnTheWay { at, len, outcome: Outcome::Dropped(reason, packet) });
            return;
        }
        let at = self.line.arrival(at);
        if self.duplicate_rng.chance(self.duplicate) && !self.is_full() {
            self.stats.duplicated += 1;
            self.carry(OnTheWay { at, len, outcome: Outcome::Arrived(packet.clone()) });
        }
        let outcome = if self.corrupt_rng.chance(self.corrupt) {
            self.stats.corrupted += 1;
            Outcome::Corrupted(packet, self.corrupt_rng.u64())
        } else {
            Outcome::Arrived(packet)
        };
        self.carry(OnTheWay { at, len, outcome });
    }
}

/// `d` times `factor`, at most the longest duration there is.
fn scale(d: Duration, factor: f64) -> Duration {
    Duration::try_from_secs_f64(d.as_secs_f64() * factor).unwrap_or(Duration::MAX)
}
