use braidcast_core::Instant;
use core::time::Duration;
use std::collections::VecDeque;

/// What was full so long ago may carry more, or less, by now.
pub(super) const FULL_OF_LATE: Duration = Duration::from_secs(10);
/// What a path delivers is measured over a round trip, and over these times at least and at most.
const SPAN: (Duration, Duration) = (Duration::from_millis(100), Duration::from_millis(400));
/// Measurements that are kept; they come fifty times a second at most.
const MOST: usize = 32;
/// A shorter queue than this is none, s.
const QUEUE: f64 = 0.025;
/// The rate of a full path follows what it delivers with this time constant, s; that of another rises with the second.
const FOLLOW: f64 = 0.08;
const RISE: f64 = 0.25;

/// What a path tells at one time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathSample {
    pub(crate) id: u16,
    /// New data goes over it.
    pub(crate) carries: bool,
    /// Bytes acknowledged so far.
    pub(crate) delivered: u64,
    /// Bytes sent and neither acknowledged nor taken for lost.
    pub(crate) in_flight: usize,
    pub(crate) srtt: Option<Duration>,
    pub(crate) min_rtt: Option<Duration>,
}

/// Follows what a path delivers.
#[derive(Clone, Debug)]
pub(super) struct PathMeter {
    /// When, and bytes delivered so far.
    samples: VecDeque<(Instant, u64)>,
    seen_at: Instant,
    carries: bool,
    was_full: bool,
    /// Bytes in a second: what it delivers when it is full, or has delivered at least.
    rate: f64,
    /// Bytes that stand in its queue.
    backlog: f64,
    one_way: Option<f64>,
}

impl PathMeter {
    pub(super) const fn new(now: Instant) -> Self {
        Self { samples: VecDeque::new(), seen_at: now, carries: false, was_full: false, rate: 0.0, backlog: 0.0, one_way: None }
    }

    /// Takes a measurement. `held_back`: there is more to be sent than paths have room for. Less than `usual`, s, in a queue is none.
    pub(super) fn look(&mut self, now: Instant, sample: &PathSample, held_back: bool, usual: f64) {
        let dt = now.since(self.seen_at).as_secs_f64();
        (self.seen_at, self.carries) = (now, sample.carries);
        let span = sample.srtt.unwrap_or_default().clamp(SPAN.0, SPAN.1);
        while self.samples.len() >= MOST || self.samples.get(1).is_some_and(|(at, _)| now.since(*at) >= span) {
            self.samples.pop_front();
        }
        self.samples.push_back((now, sample.delivered));
        let shortest = sample.min_rtt.unwrap_or_default().as_secs_f64();
        self.one_way = sample.min_rtt.map(|_| shortest / 2.0);
        let in_flight = sample.in_flight as f64;
        // Until it is known how fast a path is, all that is out may be on its way.
        let queue = |rate: f64| if rate > 0.0 { (in_flight - rate * shortest).max(0.0) } else { 0.0 };
        if let Some(delivered) = self.delivered_rate(now) {
            let full = queue(self.rate) > QUEUE.max(usual) * self.rate || (held_back && sample.in_flight > 0);
            if full && self.rate > 0.0 {
                self.was_full = true;
                self.rate += (delivered - self.rate) * (1.0 - (-dt / super::k("FOLLOW", FOLLOW)).exp());
            } else if !self.was_full {
                self.rate = self.rate.max(delivered);
            } else if delivered > self.rate {
                self.rate += (delivered - self.rate) * (1.0 - (-dt / super::k("RISE", RISE)).exp());
            }
        }
        self.backlog = if self.rate > 0.0 { queue(self.rate) } else { in_flight };
    }

    /// Bytes in a second, of late.
    fn delivered_rate(&self, now: Instant) -> Option<f64> {
        let (at, delivered) = self.samples.front()?;
        let (_, last) = self.samples.back()?;
        let span = now.since(*at).as_secs_f64();
        (span >= 0.06).then(|| last.saturating_sub(*delivered) as f64 / span)
    }

    pub(super) const fn seen_at(&self) -> Instant {
        self.seen_at
    }

    /// Bytes in a second that may be reckoned with.
    pub(super) const fn rate(&self) -> f64 {
        if self.carries { self.rate } else { 0.0 }
    }

    pub(super) const fn backlog(&self) -> f64 {
        self.backlog
    }

    /// From here to the receiver without queues, s, if new data goes over it.
    pub(super) fn one_way(&self) -> Option<f64> {
        self.one_way.filter(|_| self.carries)
    }
}
