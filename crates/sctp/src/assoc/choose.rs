//! Messages that wait in a queue of the application's choice ([`Options::queue`](crate::Options)):
//! which of them goes, over which path, and which one never.

use super::Open;
use super::intake::{Desk, Intake};
use crate::path::{Path, PathIndex};
use crate::tx::{Books, MessageKey, PathView, Prospect};
use braidcast_cc::RoundTrips;
use braidcast_core::Instant;
use braidcast_queue::Outlook;
use core::time::Duration;

/// Paths that have room, but nothing that waits is for them: it would come too late over them and
/// not over another one, or the buffer for what was sent is full. Bit n stands for the path with
/// index n.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Avoided(u32);

impl Avoided {
    pub(super) const BITS: usize = u32::BITS as usize;

    pub(super) const fn has(self, index: PathIndex) -> bool {
        index.get() < Self::BITS && self.0 >> index.get() & 1 == 1
    }

    pub(super) const fn remove(&mut self, index: PathIndex) {
        if index.get() < Self::BITS {
            self.0 &= !(1 << index.get());
        }
    }

    pub(super) const fn add(&mut self, index: PathIndex) {
        if index.get() < Self::BITS {
            self.0 |= 1 << index.get();
        }
    }
}

/// From here to the receiver over `path`, with `in_flight` bytes out.
pub(super) fn one_way_delay(path: &Path, in_flight: usize) -> Duration {
    if path.is_one_way()
        && in_flight > 0
        && let Some(delay) = path.measured_delay()
    {
        return delay;
    }
    let shortest = path.shortest_round_trip();
    // Over a path that carries nothing a heartbeat shows its present state.
    let trips = match in_flight {
        0 => RoundTrips::at_rest(path.rtt(), shortest),
        _ => RoundTrips::under_load(path.rtt(), shortest, path.queued()),
    };
    trips.one_way()
}

impl Open {
    /// What a queue is to know about a path with this delay. The rate is that of all paths that data may go over.
    fn outlook(&self, now: Instant, one_way_delay: Duration) -> Outlook {
        Outlook { now, one_way_delay, rate: self.rate(), packet_size: None, ahead: self.ahead() }
    }

    /// Bytes in a second over all paths that data may go over.
    pub(super) fn rate(&self) -> Option<f64> {
        let rate = self.paths.best().filter_map(|(_, path)| path.rate()).sum();
        Some(rate).filter(|rate| *rate > 0.0)
    }

    /// Bytes that leave before what a queue gives now.
    fn ahead(&self) -> usize {
        self.queue.without_front(self.queue.waiting_bytes())
    }

    fn delay_over(&self, index: PathIndex) -> Duration {
        one_way_delay(&self.paths[index], self.ledger.in_flight_over(index))
    }

    /// The delay over the quickest of the paths that data may go over, be there room or not.
    fn least_delay(&self) -> Option<Duration> {
        self.paths.for_data().map(|(index, _)| self.delay_over(index)).min()
    }

    /// What sending promises now.
    pub(super) fn prospect(&self, now: Instant) -> Prospect {
        Prospect { now, soonest: now + self.least_delay().unwrap_or_default(), rate: self.rate() }
    }

    /// The same for the message `key`: without a deadline nobody asks when it arrives.
    pub(super) fn prospect_for(&self, now: Instant, key: MessageKey) -> Prospect {
        if self.queue.get(key).has_deadline() { self.prospect(now) } else { Prospect { now, soonest: now, rate: None } }
    }

    /// The path `index`, as the queue sees it.
    fn view_of(&self, now: Instant, index: PathIndex) -> PathView {
        let heeded = self.queue.front().is_some_and(|front| front.heeds_delay());
        let outlook = self.outlook(now, self.delay_over(index));
        // Of one path alone it is known.
        let has_quicker = heeded
            && self.paths.only() != Some(index)
            && self.least_delay().is_some_and(|least| least < outlook.one_way_delay);
        PathView { outlook, quickest: !has_quicker }
    }

    /// Takes the message that goes next out of the queue, to be cut for the path `index`, unless
    /// what is cut already goes first. `room` says whether a message of that size is worth
    /// beginning.
    pub(super) fn admit(&mut self, now: Instant, index: PathIndex, room: impl Fn(usize) -> bool) {
        if self.queue.front().is_none() {
            return;
        }
        let (view, prospect) = (self.view_of(now, index), self.prospect(now));
        while let Some((level, tag)) =
            self.queue.next_in_front(&view).filter(|&(level, _)| self.may_leave(level, &view))
        {
            if !room(tag.len) || self.queue.admit(level, &view, prospect) {
                break;
            }
        }
        let (ledger, books) = self.books();
        ledger.account_for_discarded(books);
    }

    /// Returns `true` if there is something for the path `index`, as far as the queue is concerned.
    pub(super) fn suits(&self, now: Instant, index: PathIndex) -> bool {
        if self.queue.front().is_none() {
            return true;
        }
        let view = self.view_of(now, index);
        if self.queue.next_in_front(&view).is_some_and(|(level, _)| self.may_leave(level, &view)) {
            return true;
        }
        // The rest of a message that is under way.
        let Some(expiry) = self.queue.peek().map(|(key, _)| self.queue.get(key).expiry()) else { return false };
        let late = |delay| expiry.is_some_and(|expiry| now + delay >= expiry);
        let by_another = self.least_delay().is_some_and(|least| !late(least));
        view.quickest || !late(view.outlook.one_way_delay) || !by_another
    }

    /// Looks for which of the paths that are `ready` there is nothing.
    pub(super) fn choose(&mut self, now: Instant, ready: impl Iterator<Item = PathIndex>) {
        self.avoided = Avoided::default();
        if self.queue.front().is_none() {
            return;
        }
        for index in ready.filter(|index| index.get() < Avoided::BITS) {
            self.avoided.0 |= u32::from(!self.suits(now, index)) << index.get();
        }
    }

    /// Returns `true` if the part of the buffer that is for what was sent has room for the message that goes
    /// next out of a level of the queue.
    fn may_leave(&self, level: usize, view: &PathView) -> bool {
        let Some(front) = self.queue.front() else { return false };
        let sent = self.queue.without_front(self.queue.held_bytes());
        sent == 0 || sent + front.longest_next(level, view) <= self.options.limits.send_buffer - front.most_bytes()
    }
}

impl Intake for Open {
    fn streams(&self) -> Option<u16> {
        self.state.takes_messages().then_some(self.outbound_streams)
    }

    fn prospects(&self, now: Instant) -> Outlook {
        self.outlook(now, self.least_delay().unwrap_or_default())
    }

    fn expire(&mut self, now: Instant) {
        while let Some(key) = self.queue.next_expired(now) {
            let (ledger, books) = self.books();
            ledger.abandon(books, key);
        }
    }

    fn desk(&mut self) -> Desk<'_> {
        let books = Books { queue: &mut self.queue, journal: &mut self.journal };
        Desk { options: &self.options, books, starved: &mut self.starved }
    }
}
