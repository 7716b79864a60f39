//! What an encoder may make: one number, from all that a sender knows of its paths.
//!
//! The sender knows how fast each path delivers, what waits before a frame, and when the frame has to be there. From that the guide says, for each
//! frame, how many bits it may have, and which rate will hold for the next second. It is read only: nothing that is sent depends on it.
//!
//! How it works, in the terms of RFC 8836 (requirements of congestion control for interactive media): what is *full* is measured, what is not
//! full is tried. A path is full when more is in flight than it carries in a round trip; then its delivery rate is what it carries. While
//! nothing is full the rate grows, slowly near the rate at which something was full last. A frame that would wait is made smaller at once,
//! before any rate is measured anew.

pub(crate) mod allowed;
mod path;

use braidcast_core::Instant;
use core::time::Duration;
use path::PathMeter;
pub(crate) use path::PathSample;
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};

/// The guide looks at the paths so often at most.
pub(crate) const STEP: Duration = Duration::from_millis(20);
/// Until anything is known, bit/s.
const START: f64 = 1_000_000.0;
/// What came in is measured over this time.
const INPUT: Duration = Duration::from_millis(500);
/// Frames of the last second that are remembered at most.
const MOST_FRAMES: usize = 256;
/// Of what full paths deliver, an encoder gets this: frames vary.
const SHARE: f64 = 0.95;
/// And this at most as soon as half of what may wait waits.
const EARLY: f64 = 1.15;
/// Before anything was full the rate grows by this in a second, as e^x.
const GROWTH_AT_FIRST: f64 = 1.5;
/// And then, far from the rate at which something was full, and near it.
const GROWTH_FAR: f64 = 1.2;
const GROWTH_NEAR: f64 = 0.4;
/// Near is from and to these shares of it.
const NEAR: (f64, f64) = (0.85, 1.1);
/// The rate at which something was full is forgotten with this time constant, s.
const FORGET: f64 = 5.0;
/// So many times what leaves comes in where the transport refuses it.
const REFUSED: f64 = 3.0;
/// A longer wait is not told apart, s.
const LONGEST: f64 = 10.0;
/// While no path has answered for longer than this the rate falls, s.
const GONE: f64 = 0.5;
/// The rate for people follows with this time constant, s.
const SMOOTH: f64 = 2.0;
/// An encoder that uses less of its rate says nothing of what more would do. x264 with a buffer of one picture uses half of little.
const USED: f64 = 0.35;
/// The rate is no more than so many times what is known to be carried, or comes in.
const MOST: f64 = 2.5;
/// Too much has waited for so many looks in a row, a fifth of a second: it is not how a stream begins.
const LASTING: u32 = 10;
/// Frames that wait, and so many times what may wait; beyond both, the next one is not worth encoding.
const MOST_WAITING: u32 = 2;
const MUCH: f64 = 1.5;

/// The rates that an encoder is able to make, bit/s of all that comes in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RateLimits {
    /// Less is of no use. Default: 100 kbit/s.
    pub least: u64,
    /// More is never asked for. Default: 50 Mbit/s.
    pub greatest: u64,
}

impl Default for RateLimits {
    fn default() -> Self {
        Self { least: 100_000, greatest: 50_000_000 }
    }
}

impl RateLimits {
    fn clamp(&self, rate: f64) -> f64 {
        rate.clamp(self.least(), self.greatest.max(self.least) as f64)
    }

    const fn least(&self) -> f64 {
        self.least as f64
    }
}

/// What an encoder may make now.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct RateReport {
    /// The next picture may have so many bits, its share of the transport stream included, and comes in time with what waits before it.
    /// 0: it is not worth encoding, as others wait that have not left.
    pub next_frame_bits: u64,
    /// What will hold for the next second, bit/s of all that comes in; follows the paths at once.
    #[serde(rename = "rate_bits_per_second")]
    pub rate: f64,
    /// Of that, what is left for pictures beside audio, tables and the like.
    #[serde(rename = "video_bits_per_second")]
    pub video_rate: f64,
    /// `rate`, smoothed over two seconds for people and slow encoders.
    #[serde(rename = "smoothed_bits_per_second")]
    pub smoothed_rate: f64,
    /// No path was full in the last ten seconds: more may be possible, and is asked for as soon as the encoder uses this.
    pub is_floor: bool,
    /// The paths carry less than the least that the encoder is able to make, by its [`RateLimits`].
    pub below_least: bool,
    /// What waits, here and in queues of the network, would take so long to arrive, ms.
    pub waiting_ms: f64,
    /// Pictures of which nothing has left yet.
    pub waiting_frames: u32,
    /// From one picture to the next, ms, as they come in.
    pub frame_interval_ms: f64,
}

/// What the guide looks at.
pub(crate) struct View<P> {
    pub(crate) paths: P,
    /// Bytes of messages of which nothing was sent yet.
    pub(crate) waiting: usize,
}

/// Follows the paths of a sender and what comes in. Memory: some 10 kB.
#[derive(Clone, Debug)]
pub(crate) struct RateGuide {
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
    /// Bytes of messages that waited then.
    waiting: usize,
    /// What would take so long to arrive, s.
    lag: f64,
    input: Input,
}

impl RateGuide {
    pub(crate) fn new(now: Instant, latency: Duration, limits: RateLimits) -> Self {
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
            waiting: 0,
            lag: 0.0,
            input: Input::default(),
        }
    }

    /// The encoder is able to make these rates.
    pub(crate) fn set_limits(&mut self, limits: RateLimits) {
        self.limits = limits;
        (self.rate, self.smoothed) = (limits.clamp(self.rate), limits.clamp(self.smoothed));
    }

    /// A unit of `bytes` came in, so long after its first packet.
    pub(crate) fn on_unit(&mut self, now: Instant, bytes: usize, is_video: bool, age: Duration) {
        self.input.add(now, bytes, is_video, age);
    }

    /// The association is over. The next one may go over other networks.
    pub(crate) fn restart(&mut self) {
        self.paths.clear();
        self.full = None;
        self.is_connected = false;
        self.rate = self.limits.clamp(self.rate.min(START));
        (self.over, self.waiting, self.lag) = (0, 0, 0.0);
    }

    /// Whether it is time to [`look`](Self::look) again.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        !self.is_connected || now.since(self.looked_at) >= STEP
    }

    /// Looks at the paths of an association that is up.
    pub(crate) fn look(&mut self, now: Instant, view: View<impl Iterator<Item = PathSample>>) {
        let dt = if self.is_connected { now.since(self.looked_at).as_secs_f64() } else { 0.0 };
        (self.is_connected, self.looked_at, self.waiting) = (true, now, view.waiting);
        let held_back = view.waiting > 0;
        // Pictures come at once: that is no queue yet.
        let usual = 1.25 * self.input.interval();
        for sample in view.paths {
            self.paths.entry(sample.id).or_insert_with(|| PathMeter::new(now)).look(now, &sample, held_back, usual);
        }
        self.paths.retain(|_, path| path.seen_at() == now);
        let carried = self.carried();
        let queued: f64 = self.paths.values().map(PathMeter::backlog).sum();
        let is_known = self.paths.values().any(PathMeter::is_known);
        let stalled = self.stalled();
        self.lag = match carried {
            _ if !is_known => stalled,
            0.0 => stalled.max(self.lag),
            _ => ((view.waiting as f64 + queued) * 8.0 / carried).max(stalled).min(LONGEST),
        };
        self.follow(now, dt, carried);
        let weight = 1.0 - (-dt / SMOOTH).exp();
        self.smoothed += (self.rate - self.smoothed) * weight;
    }

    /// Sets the rate by what was seen.
    fn follow(&mut self, now: Instant, dt: f64, carried: f64) {
        let (low, _) = self.bounds();
        // Frames that come at once make a queue of their own, which the next round trip takes away.
        self.over = if self.lag > low { self.over + 1 } else { 0 };
        if self.stalled() > GONE {
            // Whatever comes back may be slower.
            self.rate = self.limits.clamp(self.rate * (-dt).exp());
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
        if self.lag < low && input > REFUSED * delivered.max(self.limits.least()) {
            // What comes in does not leave: the transport takes the paths for slower, and is to be convinced step by step.
            self.rate = self.limits.clamp(self.rate.min(1.5 * delivered));
            return;
        }
        let used = input.min(delivered) >= USED * self.rate;
        if self.lag > low / 2.0 || !used {
            return;
        }
        let growth = match self.level(now) {
            None => GROWTH_AT_FIRST,
            Some(full) if self.rate > NEAR.0 * full && self.rate < NEAR.1 * full => GROWTH_NEAR,
            Some(_) => GROWTH_FAR,
        };
        // Where the latency is short there is less room for what turns out to be too much.
        let room = (self.latency.as_secs_f64() / 0.5).clamp(0.2, 1.0);
        let most = MOST * carried.max(input) + 64_000.0;
        let grown = (self.rate * (growth * room * dt).exp()).min(most);
        self.rate = self.limits.clamp(grown.max(self.rate));
    }

    /// The rate at which something was full last. It counts for less as time goes by.
    fn level(&self, now: Instant) -> Option<f64> {
        self.full.map(|(at, level)| level * (-now.since(at).as_secs_f64() / FORGET).exp())
    }

    /// What was acknowledged of late, bit/s.
    fn delivered(&self) -> f64 {
        self.paths.values().map(|path| path.delivered_rate() * 8.0).sum()
    }

    /// For so long, s, no path has answered that carries data.
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

    /// What an encoder may make.
    pub(crate) fn report(&self, now: Instant) -> RateReport {
        let interval = self.input.interval();
        let waiting_frames = self.input.unsent(self.waiting);
        let video = (self.rate - self.input.other_rate(now)).max(self.limits.least().min(self.rate));
        let (low, high) = self.bounds();
        let room = ((high - self.lag) / (high - low)).clamp(0.0, 1.0);
        let carried = self.carried();
        let waits = waiting_frames >= MOST_WAITING && self.lag > MUCH * low;
        let worth_it = self.is_connected && !waits && room > 0.0;
        let bits = if worth_it { (video * interval * room).max(0.25 * self.limits.least() * interval) } else { 0.0 };
        RateReport {
            next_frame_bits: bits.round() as u64,
            rate: self.rate.round(),
            video_rate: video.round(),
            smoothed_rate: self.smoothed.round(),
            is_floor: self.full.is_none_or(|(at, _)| now.since(at) > path::FULL_OF_LATE),
            below_least: self.full.is_some() && SHARE * carried < self.limits.least() && self.over >= LASTING,
            waiting_ms: (self.lag * 1e4).round() / 10.0,
            waiting_frames,
            frame_interval_ms: (interval * 1e4).round() / 10.0,
        }
    }
}

/// What came in of late.
#[derive(Clone, Debug, Default)]
struct Input {
    /// When, bytes, and whether it is a picture; over a second.
    units: VecDeque<(Instant, usize, bool)>,
    /// How long units take to come in, s, smoothed.
    age: f64,
}

impl Input {
    fn add(&mut self, now: Instant, bytes: usize, is_video: bool, age: Duration) {
        let old = |at: Instant| now.since(at) > Duration::from_secs(1);
        while self.units.len() >= MOST_FRAMES || self.units.front().is_some_and(|(at, ..)| old(*at)) {
            self.units.pop_front();
        }
        self.units.push_back((now, bytes, is_video));
        if is_video {
            let age = age.as_secs_f64().min(1.0);
            self.age += (age - self.age) * if self.age == 0.0 { 1.0 } else { 0.1 };
        }
    }

    const fn age(&self) -> f64 {
        self.age
    }

    /// Bit/s over the last half second.
    fn rate(&self, now: Instant) -> f64 {
        self.rate_of(now, INPUT, |_| true)
    }

    /// The same of all that is no picture, over a second: it is little and comes seldom.
    fn other_rate(&self, now: Instant) -> f64 {
        self.rate_of(now, Duration::from_secs(1), |is_video| !is_video)
    }

    fn rate_of(&self, now: Instant, span: Duration, which: impl Fn(bool) -> bool) -> f64 {
        let recent = self.units.iter().rev().take_while(|(at, ..)| now.since(*at) < span);
        let bytes: usize = recent.filter(|(.., is_video)| which(*is_video)).map(|(_, bytes, _)| bytes).sum();
        bytes as f64 * 8.0 / span.as_secs_f64()
    }

    /// From one picture to the next, s; 40 ms before there were two. Where one was left out is no measure.
    fn interval(&self) -> f64 {
        let mean = self.mean_gap(f64::INFINITY).unwrap_or(0.04);
        self.mean_gap(1.5 * mean).unwrap_or(mean).clamp(0.004, 0.25)
    }

    /// The mean of the times between pictures that are no longer than `longest`, s.
    fn mean_gap(&self, longest: f64) -> Option<f64> {
        let times = || self.units.iter().filter(|(.., is_video)| *is_video).map(|(at, ..)| *at);
        let gaps = times().zip(times().skip(1)).map(|(before, after)| after.since(before).as_secs_f64());
        let (sum, count) = gaps.filter(|gap| *gap <= longest).fold((0.0, 0.0), |(sum, n), gap| (sum + gap, n + 1.0));
        (sum > 0.0).then(|| sum / count)
    }

    /// How many of the latest pictures are whole among `waiting` bytes.
    fn unsent(&self, mut waiting: usize) -> u32 {
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
