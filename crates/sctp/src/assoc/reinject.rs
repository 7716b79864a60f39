//! Re-injection: what is out over a path and would come too late there goes over a second one too.
//! As XLINK does by what its player holds (Zheng et al., "XLINK: QoE-Driven Multi-Path QUIC
//! Transport in Large-scale Video Services", SIGCOMM 2021, §5), copies go before new data that
//! matters less.

use super::Open;
use super::choose::one_way_delay;
use crate::Priority;
use crate::path::PathIndex;
use crate::tx::{Chunk, MessageKey};
use braidcast_core::Instant;
use core::time::Duration;

/// Shortest interval between two looks at the paths.
const EACH: Duration = Duration::from_millis(5);
/// The second path has to be quicker by this, and what is in time by less counts as late: delays are estimates.
const MARGIN: Duration = Duration::from_millis(10);
/// Packets stand in a path's queue if the oldest one out is older than the shortest round trip by this.
const QUEUE: Duration = Duration::from_millis(40);
/// Packets of copies that may leave in a row.
const BURST: f64 = 8.0;
/// Longest time that a path is reckoned to take, s.
const LONGEST: f64 = 10.0;

/// Copies are spared while more waits: this is more than a frame of audio has.
const SPARE: usize = 4096;
/// Round trips that a repeat takes at most: one until the loss shows, and time for a path that is
/// slow at this moment.
const REPEAT: u32 = 3;

/// What copies may still take.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reinjection {
    looked: Instant,
    /// Bytes at the rate of the path that carries them.
    credit: f64,
}

impl Open {
    /// Looks for what is about to be late, and puts it among what is to be copied.
    pub(super) fn reinject(&mut self, now: Instant) {
        if !self.options.redundancy.reinject || now.since(self.reinjection.looked) < EACH {
            return;
        }
        let elapsed = now.since(self.reinjection.looked).as_secs_f64().min(1.0);
        self.reinjection.looked = now;
        let (waits, size) = (self.first_that_waits(), self.paths.common_mtu());
        for place in 0..self.paths.places() {
            let Some(from) = self.paths.at(place).filter(|&from| self.has_queue(now, from)) else { continue };
            let Some(to) = self.paths.best_other(from, size).filter(|&to| self.takes_copies(now, to)) else { continue };
            let Some(rate) = self.paths[to].rate() else { continue };
            let path = &self.paths[from];
            let Some(shortest) = path.shortest_answer() else { continue };
            let back = path.return_within(shortest);
            let Some(pace) = self.paths[from].rate_now(now) else { continue };
            let path = &self.paths[from];
            let (answered, acked) = (path.answered(), path.acked_order());
            let (srtt, slack) = (path.rtt().srtt().unwrap_or_default(), QUEUE.max(4 * path.rtt().rttvar()));
            let there = now + one_way_delay(&self.paths[to], self.ledger.in_flight_over(to));
            let mut through = 0;
            let late = |chunk: &Chunk, priority, expiry| {
                // The time until all that is out is acknowledged; the return path does not matter.
                through += chunk.len();
                let takes = Duration::from_secs_f64((through as f64 / pace).min(LONGEST));
                let here = now + takes.saturating_sub(back);
                let comes_late = here + MARGIN > expiry && there + MARGIN < here;
                // It is lost if the path answered for what was sent after it, or has had the time
                // to answer. Loss detection is surer of that later, which may be too late.
                let overtaken = chunk.place().is_some_and(|(_, order)| order < acked) && there + srtt / 2 > expiry;
                let lost = overtaken || answered.max(chunk.sent() + shortest) + takes + slack < now;
                let goes_first = |waits| priority < waits || lost && priority == waits;
                waits.is_none_or(goes_first) && (comes_late || lost) && there < expiry
            };
            let credit = (self.reinjection.credit + rate * elapsed).min(BURST * size as f64);
            let copied = self.ledger.copy_late(&self.queue, from, credit, late);
            self.reinjection.credit = credit - copied as f64;
            if copied > 0 {
                return;
            }
        }
    }

    /// Returns `true` if what leaves over the path `index` and goes over two paths where it can
    /// (`Association::set_copied`) does so now. It is spared where a queue that chooses has more to
    /// send, which would leave later by what the copies take, and a repeat would be in time.
    pub(super) fn owes_copy(&self, now: Instant, index: PathIndex, key: MessageKey) -> bool {
        let message = self.queue.get(key);
        let repeated = now + REPEAT * self.paths[index].rtt().srtt().unwrap_or_default() + MARGIN;
        let is_spared = self.queue.front().is_some()
            && self.queue.waiting_bytes() > SPARE
            && message.expiry().is_none_or(|expiry| repeated < expiry);
        message.copied && !is_spared
    }

    /// How long the oldest of what is out over the path `index` has been so; zero where nothing is.
    fn waited(&self, now: Instant, index: PathIndex) -> Duration {
        self.ledger.sent_over(index).next().map_or(Duration::ZERO, |(_, _, oldest)| now.since(oldest.sent()))
    }

    fn has_queue(&self, now: Instant, index: PathIndex) -> bool {
        self.paths[index].shortest_answer().is_some_and(|shortest| self.waited(now, index) >= shortest + QUEUE)
    }

    /// A path that should have answered by now may be dead, and what goes over it too would then
    /// say nothing of its own path either.
    fn takes_copies(&self, now: Instant, index: PathIndex) -> bool {
        let rtt = self.paths[index].rtt();
        self.path_has_room(index) && self.waited(now, index) <= rtt.srtt().unwrap_or_default() + 4 * rtt.rttvar()
    }

    /// The priority of what goes next of what was not sent yet.
    fn first_that_waits(&self) -> Option<Priority> {
        let cut = self.queue.peek().map(|(key, _)| self.queue.get(key).priority);
        let front = self.queue.front().and_then(|front| front.head().map(|tag| front.rank(tag)));
        cut.into_iter().chain(front).min()
    }
}
