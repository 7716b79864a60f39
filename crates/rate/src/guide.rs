use crate::input::Input;
use crate::path::{self, PathMeter, PathSample};
use crate::{RateLimits, RateOptions, RateReport};
use braidcast_core::Instant;
use core::time::Duration;
use std::collections::BTreeMap;

/// Shortest interval at which the guide looks at the paths.
const STEP: Duration = Duration::from_millis(20);
/// Until anything is known, bit/s.
const START: f64 = 1_000_000.0;
/// Of what full paths deliver, an encoder gets this: frames vary.
const SHARE: f64 = 0.95;
/// And this at most as soon as half of what may wait waits.
const EARLY: f64 = 1.15;
/// The rate grows by this in a second, as e^x, far from the rate at which something was full last, and near it.
const GROWTH_FAR: f64 = 3.0;
const GROWTH_NEAR: f64 = 0.4;
/// Near is from and to these shares of it.
const NEAR: (f64, f64) = (0.85, 1.1);
/// The rate at which something was full is forgotten with this time constant, s.
const FORGET: f64 = 5.0;
/// If the input exceeds what leaves by this factor, the transport refuses it.
const REFUSED: f64 = 3.0;
/// A longer wait is not told apart, s.
pub(crate) const LONGEST: f64 = 10.0;
/// While no path has answered for longer than this the rate falls, s.
const GONE: f64 = 0.5;
/// The rate for people follows with this time constant, s.
const SMOOTH: f64 = 2.0;
/// An encoder that uses less of its rate than this share says nothing of what more would do. At low
/// rates x264 with a buffer of one frame uses half.
const USED: f64 = 0.35;
/// Limit of the rate, as a multiple of what is known to be carried, or comes in.
const MOST: f64 = 2.5;
/// Looks in a row, a fifth of a second, for which the paths must have carried less than the
/// minimum: a stream that begins does not do so.
const LASTING: u32 = 10;
/// Frames that wait, and a multiple of what may wait; beyond both, the next one is not worth
/// encoding.
const MOST_WAITING: u32 = 2;
const MUCH: f64 = 1.5;
/// Share of what may wait that is to wait if something is full: then no path runs empty.
const STANDING: f64 = 0.6;
/// Limit of the next frame: what leaves in this multiple of its own time.
const LEAP: f64 = 1.5;

/// What the guide looks at.
///
/// It is generic over the paths so that none is copied into a list first.
#[derive(Clone, Copy, Debug)]
pub struct View<P> {
    /// All paths that there are, each once.
    pub paths: P,
    /// Bytes of messages of which nothing was sent yet.
    pub waiting: usize,
}

/// Follows the paths of a sender and what comes in. Memory: some 10 kB.
#[derive(Clone, Debug)]
pub struct RateGuide {
    limits: RateLimits,
    latency: Duration,
    paths: BTreeMap<u16, PathMeter>,
    /// Bit/s, raw and smoothed.
    rate: f64,
    smoothed: f64,
    /// What all paths delivered when something was full last.
    full: Option<(Instant, f64)>,
    is_connected: bool,
    /// When it looked last.
    looked_at: Instant,
    /// For how many looks in a row too much has waited.
    over: u32,
    /// For how many the paths have carried less than the minimum.
    short: u32,
    /// Bytes of messages that waited then.
    waiting: usize,
    /// Time that all that waits would take to arrive, s.
    lag: f64,
    input: Input,
}

impl RateGuide {
    /// Of frames that have to be at the other end `latency` after they began. Each
    /// [`on_unit`](Self::on_unit) is told of one.
    pub fn new(now: Instant, latency: Duration, limits: RateLimits) -> Self {
        let rate = limits.clamp(START);
        Self {
            limits,
            latency,
            paths: BTreeMap::new(),
            rate,
            smoothed: rate,
            full: None,
            is_connected: false,
            looked_at: now,
            over: 0,
            short: 0,
            waiting: 0,
            lag: 0.0,
            input: Input::default(),
        }
    }

    /// Of messages, each of which is a frame, or a part of one that others follow at once: what
    /// comes within 4 ms, or within half of the interval that `options` name, is taken together.
    pub fn of_messages(now: Instant, options: &RateOptions) -> Self {
        Self { input: Input::of_messages(options.interval), ..Self::new(now, options.latency, options.limits) }
    }

    /// The encoder is able to make these rates.
    pub fn set_limits(&mut self, limits: RateLimits) {
        self.limits = limits;
        (self.rate, self.smoothed) = (limits.clamp(self.rate), limits.clamp(self.smoothed));
    }

    /// Frames have to be at the other end so long after they began, from now on.
    pub const fn set_latency(&mut self, latency: Duration) {
        self.latency = latency;
    }

    /// A unit of `bytes` came in, `age` after its first packet. Look at the paths before, if that
    /// [is due](Self::is_due).
    pub fn on_unit(&mut self, now: Instant, bytes: usize, is_video: bool, age: Duration) {
        self.input.add(now, bytes, is_video, age);
    }

    /// The association is over. The next one may go over other networks.
    pub fn restart(&mut self) {
        self.paths.clear();
        self.full = None;
        self.is_connected = false;
        self.rate = self.limits.clamp(self.rate.min(START));
        (self.over, self.short, self.waiting, self.lag) = (0, 0, 0, 0.0);
    }

    /// Returns `true` if it is time to [`look`](Self::look) again.
    pub fn is_due(&self, now: Instant) -> bool {
        !self.is_connected || now.since(self.looked_at) >= STEP
    }

    /// Looks at the paths of an association that is up.
    pub fn look(&mut self, now: Instant, view: View<impl Iterator<Item = PathSample>>) {
        let dt = if self.is_connected { now.since(self.looked_at).as_secs_f64() } else { 0.0 };
        (self.is_connected, self.looked_at, self.waiting) = (true, now, view.waiting);
        let held_back = view.waiting > 0;
        // Frames come at once: that is no queue yet.
        let usual = 1.25 * self.input.interval();
        for sample in view.paths {
            self.paths.entry(sample.id).or_insert_with(|| PathMeter::new(now)).look(now, &sample, held_back, usual);
        }
        self.paths.retain(|_, path| path.seen_at() == now);
        let carried = self.carried();
        let queued: f64 = self.paths.values().map(PathMeter::backlog).sum();
        let stalled = self.stalled();
        self.lag = match carried {
            _ if !self.is_known() => stalled,
            0.0 => stalled.max(self.lag),
            _ => ((view.waiting as f64 + queued) * 8.0 / carried).max(stalled).min(LONGEST),
        };
        self.follow(now, dt, carried);
        self.short = if self.is_short(now, carried) { self.short.saturating_add(1) } else { 0 };
        let weight = 1.0 - libm::exp(-dt / SMOOTH);
        self.smoothed += (self.rate - self.smoothed) * weight;
    }

    /// Sets the rate by what was seen.
    fn follow(&mut self, now: Instant, dt: f64, carried: f64) {
        let (low, _) = self.bounds();
        // Frames that come at once make a queue of their own, which the next round trip takes away.
        self.over = if self.lag > low { self.over.saturating_add(1) } else { 0 };
        if self.stalled() > GONE {
            // Whatever comes back may be slower.
            self.rate = self.limits.clamp(self.rate * libm::exp(-dt));
            return;
        }
        if self.over >= 2 && carried > 0.0 {
            self.full = Some((now, carried.max(self.level(now).unwrap_or(0.0))));
            self.rate = self.limits.clamp(self.rate.min(SHARE * carried));
            return;
        }
        if self.lag > low / 2.0 && carried > 0.0 && self.paths.values().all(|path| !path.carries() || path.is_full()) {
            // Not too much yet: the rate comes down to what is carried before it is.
            let near = (2.0 * self.lag / low - 1.0).clamp(0.0, 1.0);
            let most = carried * (EARLY + (SHARE - EARLY) * near);
            self.rate = self.limits.clamp(self.rate.min(most));
            return;
        }
        let (input, delivered) = (self.input.rate(now), self.delivered());
        if self.is_known() && self.lag < low && input > REFUSED * delivered.max(self.limits.least()) {
            // The input does not leave: the transport underestimates the paths, and is to be
            // convinced step by step. (Nothing can have come back yet for the first frames.)
            self.rate = self.limits.clamp(self.rate.min(1.5 * delivered));
            return;
        }
        if self.input.is_of_messages() && self.lag <= low / 2.0 {
            // Not all who send messages do what they are told: what comes in time is carried, whatever the rate was.
            self.rate = self.limits.clamp(self.rate.max(SHARE * input.min(delivered)));
        }
        let used = input.min(delivered) >= USED * self.rate;
        if self.lag > low / 2.0 || !used || self.is_short(now, carried) {
            return;
        }
        let is_near = |full: f64| self.rate > NEAR.0 * full && self.rate < NEAR.1 * full;
        let growth = if self.level(now).is_some_and(is_near) { GROWTH_NEAR } else { GROWTH_FAR };
        // Where the latency is short there is less room for what turns out to be too much.
        let room = (self.latency.as_secs_f64() / 0.5).clamp(0.2, 1.0);
        let most = MOST * carried.max(input) + 64_000.0;
        let grown = (self.rate * libm::exp(growth * room * dt)).min(most);
        self.rate = self.limits.clamp(grown.max(self.rate));
    }

    /// The rate at which something was full last. It counts for less as time goes by.
    fn level(&self, now: Instant) -> Option<f64> {
        self.full.map(|(at, level)| level * libm::exp(-now.since(at).as_secs_f64() / FORGET))
    }

    /// Returns `true` if something was full of late: what is carried was measured then.
    fn is_full(&self, now: Instant) -> bool {
        self.full.is_some_and(|(at, _)| now.since(at) <= path::FULL_OF_LATE)
    }

    /// Returns `true` if the paths carry less than the minimum.
    fn is_short(&self, now: Instant, carried: f64) -> bool {
        self.is_full(now) && SHARE * carried < self.limits.least()
    }

    /// What was acknowledged of late, bit/s.
    fn delivered(&self) -> f64 {
        self.paths.values().map(|path| path.delivered_rate() * 8.0).sum()
    }

    /// Returns `true` if any path's rate is worth anything.
    fn is_known(&self) -> bool {
        self.paths.values().any(PathMeter::is_known)
    }

    /// Returns the seconds for which no path that carries data has answered.
    fn stalled(&self) -> f64 {
        let stalled = self.paths.values().filter(|path| path.carries()).map(PathMeter::stalled);
        stalled.reduce(f64::min).unwrap_or(LONGEST)
    }

    /// What all paths deliver that carry data, as far as known, bit/s.
    fn carried(&self) -> f64 {
        self.paths.values().map(|path| path.rate() * 8.0).sum()
    }

    /// What may wait, s: from the first on frames get smaller, from the second on there is none.
    fn bounds(&self) -> (f64, f64) {
        let one_way = self.paths.values().filter_map(PathMeter::one_way).fold(f64::INFINITY, f64::min);
        let one_way = if one_way.is_finite() { one_way } else { 0.0 };
        let room = self.latency.as_secs_f64() - self.input.age() - one_way;
        let low = (room / 4.0).clamp(0.02, 0.1).max(1.25 * self.input.interval());
        (low, (room / 1.5).max(low + 0.02))
    }

    /// Returns the bits of the next frame, from the video's share of the rate beside `other`,
    /// bit/s.
    fn next_frame(&self, now: Instant, video: f64, other: f64, waiting_frames: u32) -> f64 {
        let (interval, (low, high)) = (self.input.interval(), self.bounds());
        let room = ((high - self.lag) / (high - low)).clamp(0.0, 1.0);
        let waits = waiting_frames >= MOST_WAITING && self.lag > MUCH * low;
        if !self.is_connected || waits || room <= 0.0 {
            return 0.0;
        }
        let bits = if self.is_full(now) {
            // After it there waits what keeps the paths busy, whatever the encoder made of the frames before.
            let time = (interval + STANDING * low - self.lag).clamp(0.0, LEAP * interval);
            ((self.carried() - other) * time).min((self.limits.greatest() - other) * interval)
        } else {
            video * interval * room
        };
        bits.max(0.25 * self.limits.least() * interval)
    }

    /// What an encoder may make.
    pub fn report(&self, now: Instant) -> RateReport {
        let waiting_frames = self.input.unsent(self.waiting);
        let other = self.input.other_rate(now);
        let video = (self.rate - other).max(self.limits.least().min(self.rate));
        RateReport {
            next_frame_bits: self.next_frame(now, video, other, waiting_frames).round() as u64,
            rate: self.rate.round(),
            video_rate: video.round(),
            smoothed_rate: self.smoothed.round(),
            is_floor: !self.is_full(now),
            below_least: self.short >= LASTING,
            waiting_ms: (self.lag * 1e4).round() / 10.0,
            waiting_frames,
            frame_interval_ms: (self.input.interval() * 1e4).round() / 10.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path that acknowledged `delivered` bytes, while `in_flight` are out.
    fn path(id: u16, delivered: u64, in_flight: usize) -> PathSample {
        let rtt = Some(Duration::from_millis(60));
        PathSample {
            id,
            carries: true,
            delivered,
            in_flight,
            srtt: rtt,
            min_rtt: rtt,
            capacity: None,
            queued: Duration::ZERO,
        }
    }

    /// The same path, whose packets stood in a queue for `ms`.
    fn with_queue(path: PathSample, ms: u64) -> PathSample {
        PathSample { queued: Duration::from_millis(ms), ..path }
    }

    /// Sends the first 400 ms of 25 frames a second of 5,000 bytes, over these paths, by ms.
    fn begin(paths: impl Fn(u64) -> Vec<PathSample>) -> RateGuide {
        let mut guide = RateGuide::new(Instant::ZERO, Duration::from_millis(500), RateLimits::default());
        for ms in (0..400).step_by(20) {
            let now = Instant::from_millis(ms);
            guide.look(now, View { paths: paths(ms).into_iter(), waiting: 0 });
            if ms % 40 == 0 {
                guide.on_unit(now, 5_000, true, Duration::ZERO);
            }
        }
        guide
    }

    #[test]
    fn first_pictures_of_which_nothing_has_come_back_were_not_refused() {
        let guide = begin(|ms| vec![path(0, 0, 125 * ms as usize)]);
        assert_eq!(guide.rate, START);
    }

    #[test]
    fn what_went_over_a_path_that_has_not_answered_yet_is_no_queue_of_the_other_one() {
        // 100 kB/s come back over the first; 30 kB went over the second.
        let guide = begin(|ms| vec![path(0, 100 * ms.saturating_sub(60), 6_000), path(1, 0, 30_000)]);
        assert!(guide.full.is_none() && guide.rate >= START, "{guide:?}");
    }

    #[test]
    fn where_something_is_full_the_next_frame_fills_what_waits_up_to_a_bound() {
        // 1 Mbit/s is carried, and 28 kB are too much at once: 160 ms.
        let mut guide = begin(|ms| vec![with_queue(path(0, 125 * ms.saturating_sub(60), 28_000), 160)]);
        assert!(guide.full.is_some(), "{guide:?}");
        let mut next = |ms: u64, queue: f64| {
            let now = Instant::from_millis(ms);
            let in_flight = (125_000.0 * (0.06 + queue)) as usize;
            let sample = with_queue(path(0, 125 * (ms - 60), in_flight), (queue * 1e3) as u64);
            guide.look(now, View { paths: [sample].into_iter(), waiting: 0 });
            let report = guide.report(now);
            (report.next_frame_bits as f64 / guide.carried(), report.waiting_ms / 1e3)
        };
        // 60 ms are to wait after it and 40 ms leave in its time; it has what leaves in 60 ms at most.
        let (time, waits) = next(400, 0.02);
        assert!((0.05..0.09).contains(&waits) && (time - (0.1 - waits)).abs() < 0.001, "{time} s after {waits} s");
        let (time, waits) = next(420, 0.0);
        assert!(waits < 0.04 && (time - 0.06).abs() < 0.001, "{time} s after {waits} s");
    }
}
