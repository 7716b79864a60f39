use core::time::Duration;
use serde::Serialize;

/// The rates that an encoder is able to make, bit/s of all that comes in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct RateLimits {
    /// Less is useless. Default: 100 kbit/s.
    pub least: u64,
    /// More is never asked for. Default: 50 Mbit/s.
    pub greatest: u64,
}

impl RateLimits {
    /// From `least` to `greatest`, bit/s.
    #[must_use]
    pub const fn new(least: u64, greatest: u64) -> Self {
        Self { least, greatest }
    }
}

impl Default for RateLimits {
    fn default() -> Self {
        Self { least: 100_000, greatest: 50_000_000 }
    }
}

impl RateLimits {
    pub(crate) fn clamp(&self, rate: f64) -> f64 {
        rate.clamp(self.least(), self.greatest())
    }

    pub(crate) fn greatest(&self) -> f64 {
        self.greatest.max(self.least) as f64
    }

    pub(crate) const fn least(&self) -> f64 {
        self.least as f64
    }
}

/// What is to be reckoned with if messages are sent, not units of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct RateOptions {
    /// From when a message is sent until it has to be at the other end. Default: 500 ms.
    pub latency: Duration,
    /// The rates that the encoder is able to make.
    pub limits: RateLimits,
    /// From one frame to the next, 4 ms to 1 s. `None`, the default: the times of messages tell,
    /// if each frame is one message or leaves at once.
    pub interval: Option<Duration>,
}

impl RateOptions {
    /// For an encoder that is able to make these rates.
    #[must_use]
    pub fn new(limits: RateLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// The same with this [`latency`](Self::latency).
    #[must_use]
    pub const fn latency(mut self, latency: Duration) -> Self {
        self.latency = latency;
        self
    }

    /// The same with this [`interval`](Self::interval) of frames.
    #[must_use]
    pub const fn interval(mut self, interval: Duration) -> Self {
        self.interval = Some(interval);
        self
    }
}

impl Default for RateOptions {
    fn default() -> Self {
        Self { latency: Duration::from_millis(500), limits: RateLimits::default(), interval: None }
    }
}

/// What an encoder may make now.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct RateReport {
    /// Bits that the next frame may have, its share of the transport stream included, to come in
    /// time with what waits before it. 0: it is not worth encoding, as others wait that have not
    /// left.
    pub next_frame_bits: u64,
    /// What will hold for the next second, bit/s of all that comes in; follows the paths at once.
    #[serde(rename = "rate_bits_per_second")]
    pub rate: f64,
    /// Of that, what is left for video beside audio, tables and the like.
    #[serde(rename = "video_bits_per_second")]
    pub video_rate: f64,
    /// `rate`, smoothed over two seconds for people and slow encoders.
    #[serde(rename = "smoothed_bits_per_second")]
    pub smoothed_rate: f64,
    /// No path was full in the last ten seconds: more may be possible, and is asked for as soon as
    /// the encoder uses this.
    pub is_floor: bool,
    /// The paths carry less than the encoder's minimum, by its [`RateLimits`].
    pub below_least: bool,
    /// Time that all that waits, here and in queues of the network, would take to arrive, ms.
    pub waiting_ms: f64,
    /// Frames of which nothing has left yet.
    pub waiting_frames: u32,
    /// Interval of frames, ms, as they come in.
    pub frame_interval_ms: f64,
}

impl RateReport {
    /// For an encoder that makes a frame each `interval` if nothing can be sent at present: the
    /// minimum rate, and no frame.
    pub fn nothing(limits: RateLimits, interval: Duration) -> Self {
        let (rate, frame_interval_ms) = (limits.least(), (interval.as_secs_f64() * 1e4).round() / 10.0);
        Self { rate, video_rate: rate, smoothed_rate: rate, below_least: true, frame_interval_ms, ..Self::default() }
    }
}
