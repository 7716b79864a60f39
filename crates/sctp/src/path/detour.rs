//! What is known of delays where acknowledgements come back over another path ([`SackPath::Quickest`]): all that do so
//! over the same one share its return delay, so that their times differ by forward delays alone (decision 34).

use super::Path;
use crate::api::SackPath;
use braidcast_core::Instant;
use core::time::Duration;

impl Path {
    /// Returns `true` if acknowledgements came back over another path in the last round, and tell the delay one way.
    #[inline]
    pub(crate) fn is_one_way(&self) -> bool {
        self.detoured && self.options.sack.path == SackPath::Quickest
    }

    /// The shortest delay from here to the peer, without queues. Where acknowledgements come back over
    /// another path, it differs from that of the other path by what was measured, whichever way
    /// back is the longer one; else it is half of the shortest round trip.
    pub(crate) fn shortest_delay(&self) -> Option<Duration> {
        let measured = if self.is_one_way() { self.detour.base() } else { None };
        measured.or_else(|| self.shortest_round_trip().map(|it| it / 2))
    }

    /// The return delay that an `answer` has in it ([`shortest_answer`](Self::shortest_answer)).
    pub(crate) fn return_within(&self, answer: Duration) -> Duration {
        if self.is_one_way() { self.return_delay } else { answer / 2 }
    }

    /// From sending a packet to its acknowledgement, without queues, by the way that it comes back now.
    pub(crate) fn shortest_answer(&self) -> Option<Duration> {
        if self.is_one_way()
            && let Some(delay) = self.detour.base()
        {
            return Some(delay + self.return_delay);
        }
        self.shortest_round_trip()
    }

    /// The same with the queues of late.
    pub(crate) fn answer(&self) -> Option<Duration> {
        if self.is_one_way() { Some(self.shortest_answer()? + self.queue_to_expect()) } else { self.rtt.srtt() }
    }

    /// From here to the peer now, where acknowledgements come back over another path; `None`: they do not.
    pub(crate) fn measured_delay(&self) -> Option<Duration> {
        if !self.is_one_way() {
            return None;
        }
        Some(self.detour.base()? + self.queue_to_expect())
    }

    /// The same for what leaves now, behind what was sent a moment ago.
    pub(crate) fn forecast_delay(&self, now: Instant) -> Option<Duration> {
        if !self.is_one_way() {
            return None;
        }
        Some(self.detour.base()? + self.time_in_queue(now)?)
    }

    /// How long what leaves now will stand in the path's queue; `None` where that is not counted.
    pub(crate) fn time_in_queue(&self, now: Instant) -> Option<Duration> {
        Some(self.backlog.time(now, self.drain_rate()?))
    }

    /// Bytes in a second at which the path's queue drains, where what stands in it is counted.
    pub(super) fn drain_rate(&self) -> Option<f64> {
        if self.options.sack.path == SackPath::Quickest { self.measured_rate() } else { None }
    }

    /// What left at `sent` stood in queues for `queued`.
    pub(super) fn correct_backlog(&mut self, now: Instant, sent: Instant, queued: Duration) {
        if let Some(rate) = self.drain_rate() {
            self.backlog.on_acked(now, sent, queued, rate);
        }
    }

    /// The time in queues of the latest round, which smoothing hides, or the usual one if that is longer.
    fn queue_to_expect(&self) -> Duration {
        self.queued().max(self.usual_queue.unwrap_or_default())
    }

    /// When a packet that is lost is known to be, after it was sent; `None` before a round trip was measured.
    pub(crate) fn loss_known(&self) -> Option<Duration> {
        Some(self.answer()? + self.reordering())
    }

    /// The same; `None` where the scheduler is to go by round trips, as it does without [`SackPath::Quickest`].
    #[inline]
    pub(super) fn known_lost(&self) -> Option<Duration> {
        if self.options.sack.path == SackPath::Quickest { self.loss_known() } else { None }
    }

    /// How long a packet may be overtaken before it counts as lost.
    fn reordering(&self) -> Duration {
        self.rack.reordering_window(self.reordering_trip(), self.rtt.srtt())
    }

    /// The shortest round trip as the reordering window has it, which is a quarter of that.
    pub(super) fn reordering_trip(&self) -> Option<Duration> {
        let shortest = self.rtt.min()?;
        let most = if self.is_one_way() { self.options.timers.reordering } else { None };
        Some(most.map_or(shortest, |most| shortest.min(4 * most)))
    }
}
