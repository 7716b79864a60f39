use braidcast_core::Instant;
use core::time::Duration;
use std::collections::VecDeque;

/// The rate of what came in is measured over this time.
const SPAN: Duration = Duration::from_millis(500);
/// Frames of the last second that are remembered at most.
const MOST: usize = 256;
/// Interval of frames, s: minimum, maximum if it is measured, and maximum if it is given.
const SHORTEST: f64 = 0.004;
const LONGEST: f64 = 0.25;
const LONGEST_GIVEN: f64 = 1.0;

/// What came in of late.
#[derive(Clone, Debug, Default)]
pub(crate) struct Input {
    /// Time, bytes, and `true` for a video frame; over a second.
    units: VecDeque<(Instant, usize, bool)>,
    /// How long units take to come in, s, smoothed.
    age: f64,
    /// Interval of frames, s, if that is known.
    interval: Option<f64>,
    /// The same as the frames that are remembered have it, worked out when one comes: it is asked for far more often.
    measured: Option<f64>,
    /// What comes within this time after the first of a unit is a part of it. Zero if units come whole.
    together: Duration,
}

impl Input {
    /// Of messages, many of which may make one frame, one each `interval`. None: their times show
    /// it.
    pub(crate) fn of_messages(interval: Option<Duration>) -> Self {
        let interval = interval.map(|it| it.as_secs_f64().clamp(SHORTEST, LONGEST_GIVEN));
        // Half, as the parts of a frame come with the beginning of its time, or over all of it.
        let together = interval.map_or(SHORTEST, |interval| (interval / 2.0).max(SHORTEST));
        Self { interval, together: Duration::from_secs_f64(together), ..Self::default() }
    }

    /// A unit came in, `age` after its first byte.
    pub(crate) fn add(&mut self, now: Instant, bytes: usize, is_video: bool, age: Duration) {
        let old = |at: Instant| now.since(at) > Duration::from_secs(1);
        while self.units.len() >= MOST || self.units.front().is_some_and(|(at, ..)| old(*at)) {
            self.units.pop_front();
        }
        match self.units.back_mut() {
            Some((at, so_far, video)) if now.since(*at) < self.together && *video == is_video => *so_far += bytes,
            _ => self.units.push_back((now, bytes, is_video)),
        }
        if is_video {
            let age = age.as_secs_f64().min(1.0);
            self.age += (age - self.age) * if self.age == 0.0 { 1.0 } else { 0.1 };
        }
        if self.interval.is_none() {
            self.measured = self.mean_gap(f64::INFINITY).map(|mean| self.mean_gap(1.5 * mean).unwrap_or(mean));
        }
    }

    /// Returns `true` if messages come in, not units of a stream.
    pub(crate) const fn is_of_messages(&self) -> bool {
        !self.together.is_zero()
    }

    /// How long units take to come in, s.
    pub(crate) const fn age(&self) -> f64 {
        self.age
    }

    /// Bit/s over the last half second.
    pub(crate) fn rate(&self, now: Instant) -> f64 {
        self.rate_of(now, SPAN, |_| true)
    }

    /// The same of all but video, over a second: it is little and comes seldom.
    pub(crate) fn other_rate(&self, now: Instant) -> f64 {
        self.rate_of(now, Duration::from_secs(1), |is_video| !is_video)
    }

    fn rate_of(&self, now: Instant, span: Duration, which: impl Fn(bool) -> bool) -> f64 {
        let recent = self.units.iter().rev().take_while(|(at, ..)| now.since(*at) < span);
        let bytes: usize = recent.filter(|(.., is_video)| which(*is_video)).map(|(_, bytes, _)| bytes).sum();
        bytes as f64 * 8.0 / span.as_secs_f64()
    }

    /// Returns the interval of frames, s; 40 ms before there were two. Gaps of left-out frames do
    /// not count.
    pub(crate) fn interval(&self) -> f64 {
        self.interval.unwrap_or_else(|| self.measured.unwrap_or(0.04).clamp(SHORTEST, LONGEST))
    }

    /// Returns the mean of the times between frames that are no longer than `longest`, s.
    fn mean_gap(&self, longest: f64) -> Option<f64> {
        let times = || self.units.iter().filter(|(.., is_video)| *is_video).map(|(at, ..)| *at);
        let gaps = times().zip(times().skip(1)).map(|(before, after)| after.since(before).as_secs_f64());
        let (sum, count) = gaps.filter(|gap| *gap <= longest).fold((0.0, 0.0), |(sum, n), gap| (sum + gap, n + 1.0));
        (sum > 0.0).then(|| sum / count)
    }

    /// Returns how many of the latest frames are whole among `waiting` bytes.
    pub(crate) fn unsent(&self, mut waiting: usize) -> u32 {
        let mut pictures = 0;
        for (_, bytes, is_video) in self.units.iter().rev() {
            if waiting < *bytes {
                break;
            }
            waiting -= bytes;
            pictures += u32::from(*is_video);
        }
        pictures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what is known after three frames, 40 ms apart, of ten messages each.
    fn three_pictures(mut input: Input, gap: u64) -> Input {
        for n in 0..30 {
            let at = Instant::from_millis(n / 10 * 40 + n % 10 * gap);
            input.add(at, 1_000, true, Duration::ZERO);
        }
        input
    }

    #[test]
    fn messages_that_come_together_are_one_picture() {
        let at_once = three_pictures(Input::of_messages(None), 0);
        assert_eq!((at_once.units.len(), at_once.interval()), (3, 0.04));
        assert_eq!((at_once.unsent(20_000), at_once.unsent(19_999)), (2, 1));
        // Spread over their time, they are told from each other by an interval alone.
        let spread = three_pictures(Input::of_messages(Some(Duration::from_millis(40))), 4);
        assert_eq!((spread.units.len(), spread.interval()), (6, 0.04));
        let units = three_pictures(Input::default(), 0);
        assert_eq!((units.units.len(), units.rate(Instant::from_millis(100))), (30, 30_000.0 * 8.0 / 0.5));
    }

    #[test]
    fn an_interval_that_cannot_be_is_the_nearest_that_can() {
        let of = |time| Input::of_messages(Some(time)).interval();
        assert_eq!((of(Duration::ZERO), of(Duration::MAX)), (SHORTEST, LONGEST_GIVEN));
    }

    #[test]
    fn many_messages_a_second_are_all_counted() {
        let mut input = Input::of_messages(None);
        (0..2_000).for_each(|n| input.add(Instant::from_micros(n * 500), 100, true, Duration::ZERO));
        assert!(input.units.len() <= MOST && (input.rate(Instant::from_millis(1_000)) - 1.6e6).abs() < 2e4);
    }
}
