use braidcast_core::Instant;
use core::time::Duration;
use std::collections::VecDeque;

/// Age after which a measurement of a full path is stale: the path may carry more, or less, by now.
pub(crate) const FULL_OF_LATE: Duration = Duration::from_secs(10);
/// What a path delivers is measured over a round trip, and over these times at least and at most.
const SPAN: (Duration, Duration) = (Duration::from_millis(250), Duration::from_millis(400));
/// Measurements that are kept; they come fifty times a second at most.
const MOST: usize = 48;
/// A shorter queue than this is none, s.
const QUEUE: f64 = 0.025;
/// Shortest time that packets of a full path stood in a queue, s.
const STOOD: f64 = 0.015;
/// Time without an answer after which a path does not count, s.
const DEAD: f64 = 0.15;
/// Bytes in the longest span that say how fast a path is.
const ENOUGH: u64 = 4_800;
/// The rate of a full path follows what it delivers with this time constant, s; that of another rises with the second.
const FOLLOW: f64 = 0.3;
const RISE: f64 = 0.5;

/// The state of a path at one time.
#[derive(Clone, Copy, Debug)]
pub struct PathSample {
    /// Its number, which no other path of the same guide has.
    pub id: u16,
    /// New data goes over it.
    pub carries: bool,
    /// Bytes acknowledged so far.
    pub delivered: u64,
    /// Bytes sent and neither acknowledged nor taken for lost.
    pub in_flight: usize,
    /// Smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// Smallest round-trip time.
    pub min_rtt: Option<Duration>,
    /// Bytes of data per second that it was seen to carry in a flight.
    pub capacity: Option<u64>,
    /// How long packets stood in queues of late, by their round trips.
    pub queued: Duration,
}

/// Follows what a path delivers.
#[derive(Clone, Debug)]
pub(crate) struct PathMeter {
    /// When, and bytes delivered so far; over the longest span.
    samples: VecDeque<(Instant, u64)>,
    seen_at: Instant,
    /// When anything was acknowledged last, or nothing was out.
    progress_at: Instant,
    carries: bool,
    /// Enough was delivered to say how fast it is, at least.
    is_known: bool,
    was_full: bool,
    /// Bytes in a second: what it delivers when it is full, or has delivered at least.
    rate: f64,
    /// Bytes that stand in its queue.
    backlog: f64,
    /// Without any queue, s.
    one_way: Option<f64>,
    /// Round-trip time, s.
    round_trip: f64,
}

impl PathMeter {
    pub(crate) const fn new(now: Instant) -> Self {
        Self {
            samples: VecDeque::new(),
            seen_at: now,
            progress_at: now,
            carries: false,
            is_known: false,
            was_full: false,
            rate: 0.0,
            backlog: 0.0,
            one_way: None,
            round_trip: 0.0,
        }
    }

    /// Takes a measurement. `held_back`: there is more to be sent than paths have room for. Less
    /// than `usual`, s, in a queue is none.
    pub(crate) fn look(&mut self, now: Instant, sample: &PathSample, held_back: bool, usual: f64) {
        let dt = now.since(self.seen_at).as_secs_f64();
        (self.seen_at, self.carries) = (now, sample.carries);
        let before = self.samples.back().map_or(sample.delivered, |(_, delivered)| *delivered);
        if sample.delivered > before || sample.in_flight == 0 {
            self.progress_at = now;
        }
        while self.samples.len() >= MOST || self.samples.get(1).is_some_and(|(at, _)| now.since(*at) >= SPAN.1) {
            self.samples.pop_front();
        }
        self.samples.push_back((now, sample.delivered));
        let shortest = sample.min_rtt.unwrap_or_default().as_secs_f64();
        self.round_trip = sample.srtt.unwrap_or_default().as_secs_f64().max(shortest);
        self.one_way = sample.min_rtt.map(|_| shortest / 2.0);
        self.is_known |= self.delivered(now, SPAN.1).is_some_and(|(bytes, _)| bytes >= ENOUGH);
        let in_flight = sample.in_flight as f64;
        let queue = |rate: f64| (in_flight - rate * shortest).max(0.0);
        let span = sample.srtt.unwrap_or_default().clamp(SPAN.0, SPAN.1);
        if let Some((bytes, seconds)) = self.delivered(now, span).filter(|(bytes, _)| *bytes > 0) {
            let delivered = bytes as f64 / seconds;
            // What is in flight shows a queue earlier than packets that stood in it; but by a rate
            // that is far too low, it shows one that does not exist.
            let stood = self.is_known && sample.queued.as_secs_f64() >= STOOD;
            let stands = queue(self.rate) > QUEUE.max(usual) * self.rate;
            if stood && (stands || (held_back && sample.in_flight > 0)) {
                self.was_full = true;
                self.rate += (delivered - self.rate) * (1.0 - libm::exp(-dt / FOLLOW));
            } else if !self.was_full {
                // One flight says more than a time in which little was sent.
                self.rate = self.rate.max(delivered).max(sample.capacity.unwrap_or(0) as f64);
            } else if delivered > self.rate {
                self.rate += (delivered - self.rate) * (1.0 - libm::exp(-dt / RISE));
            }
        }
        self.backlog = match self.stalled() {
            _ if !self.is_known => 0.0,
            0.0 => queue(self.rate),
            _ => in_flight,
        };
    }

    /// Bytes that were delivered in the last `span`, and what time it is exactly, s.
    fn delivered(&self, now: Instant, span: Duration) -> Option<(u64, f64)> {
        let (at, before) = self.samples.iter().rev().find(|(at, _)| now.since(*at) >= span).or(self.samples.front())?;
        let (_, last) = self.samples.back()?;
        let seconds = now.since(*at).as_secs_f64();
        (seconds >= 0.06).then(|| (last.saturating_sub(*before), seconds))
    }

    pub(crate) const fn seen_at(&self) -> Instant {
        self.seen_at
    }

    /// Bytes in a second that were acknowledged of late, whatever it may carry.
    pub(crate) fn delivered_rate(&self) -> f64 {
        self.delivered(self.seen_at, SPAN.1).map_or(0.0, |(bytes, seconds)| bytes as f64 / seconds)
    }

    /// Returns the seconds for which nothing was acknowledged although something was due.
    pub(crate) fn stalled(&self) -> f64 {
        (self.seen_at.since(self.progress_at).as_secs_f64() - self.round_trip - QUEUE).max(0.0)
    }

    /// Bytes in a second that may be reckoned with.
    pub(crate) fn rate(&self) -> f64 {
        if self.carries && self.stalled() < DEAD { self.rate } else { 0.0 }
    }

    /// Returns `true` if new data may go over it.
    pub(crate) const fn carries(&self) -> bool {
        self.carries
    }

    /// Returns `true` if it was ever full, so that its rate is more than a lower bound.
    pub(crate) const fn is_full(&self) -> bool {
        self.was_full
    }

    /// Returns `true` if its rate is worth anything.
    pub(crate) const fn is_known(&self) -> bool {
        self.is_known
    }

    pub(crate) const fn backlog(&self) -> f64 {
        self.backlog
    }

    /// From here to the receiver without queues, s, if new data goes over it.
    pub(crate) fn one_way(&self) -> Option<f64> {
        self.one_way.filter(|_| self.carries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_whose_packets_stood_in_no_queue_is_not_full() {
        // Little was sent so far, 20 kB/s, and now 6 kB at once, of which none has come back: by
        // that rate a queue of 0.24 s.
        let after = |queued: u64| {
            let mut meter = PathMeter::new(Instant::ZERO);
            for ms in (0..=1_000).step_by(20) {
                let (rtt, queued) = (Some(Duration::from_millis(60)), Duration::from_millis(queued));
                let in_flight = if ms < 1_000 { 1_200 } else { 6_000 };
                let (delivered, min_rtt, capacity) = (20 * ms, rtt, None);
                let sample =
                    PathSample { id: 0, carries: true, delivered, in_flight, srtt: rtt, min_rtt, capacity, queued };
                meter.look(Instant::from_millis(ms), &sample, false, 0.04);
            }
            meter.is_known().then(|| meter.is_full())
        };
        assert_eq!((after(0), after(20)), (Some(false), Some(true)));
    }
}
