use super::equation::{duration, seconds, throughput};
use super::faster_restart::FasterRestart;
use super::recv_set::RecvSet;
use super::schedule::Schedule;
use super::variant::{FeedbackRate, Rules, Variant};
use braidcast_core::Instant;
use core::time::Duration;
use std::collections::VecDeque;

/// How a sender behaves.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Config {
    /// How packet size and round trip go into the rate.
    pub variant: Variant,
    /// Which edition of TFRC; default RFC 5348.
    pub rules: Rules,
    /// How often the receiver reports: slow start then doubles as often. `None`: as the variant has it.
    pub feedback: Option<FeedbackRate>,
    /// `true` if the rate may quadruple after idle times; default off.
    pub faster_restart: bool,
    /// `true` if a growing round trip slows sending down (RFC 5348 §4.5); default on, as the RFC recommends.
    pub reduce_oscillations: bool,
    /// Bytes of data in a packet until the first is sent; default 1460.
    pub segment_size: usize,
    /// Bytes of headers for TFRC-SP's correction s / (s + oh): RFC 4828 says 40, RFC 5622 says 36; default 40.
    pub header_size: usize,
    /// Highest rate that the application wants, in bytes of data per second; default unlimited.
    pub max_rate: Option<f64>,
    /// Lowest rate that is useful to it; the sender never goes faster for that, but says so; default none.
    pub min_rate: Option<f64>,
    /// How coarse the driver's timers are (t_gran); default 10 ms.
    pub granularity: Duration,
    /// What CCID4-N100 takes for the round trip in its initial rate (THESIS eq. 4.13); zero counts as 1 ms. Default
    /// 100 ms.
    pub nominal_rtt: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            variant: Variant::Tfrc,
            rules: Rules::Rfc5348,
            feedback: None,
            faster_restart: false,
            reduce_oscillations: true,
            segment_size: 1460,
            header_size: 40,
            max_rate: None,
            min_rate: None,
            granularity: Duration::from_millis(10),
            nominal_rtt: Duration::from_millis(100),
        }
    }
}

/// A receiver's report as it reached the sender.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Report {
    /// When the newest packet that the receiver had was sent (t_recvdata).
    pub sent_at: Instant,
    /// How long the receiver held it (t_delay).
    pub elapsed: Duration,
    /// X_recv, bytes per second.
    pub recv_rate: f64,
    /// p, 0.0..=1.0; values out of range count as the nearest end.
    pub loss_event_rate: f64,
    /// `true` if it reports a new loss event.
    pub new_loss: bool,
}

/// A TFRC sender: the allowed rate X, the nofeedback timer, and when the next packet may leave (RFC 5348 §4, RFC 3448
/// §4).
///
/// Ask [`try_send`](Self::try_send) whenever there is data, tell [`on_sent`](Self::on_sent) of each data packet, and
/// [`on_feedback`](Self::on_feedback) of each report; call [`on_timeout`](Self::on_timeout) at
/// [`poll_timeout`](Self::poll_timeout).
#[derive(Clone, Debug)]
pub struct Sender {
    config: Config,
    schedule: Schedule,
    /// Mean bytes of data per packet (s, s_true); `None` before the first.
    mean_size: Option<f64>,
    /// Packets in this mean, as far as they are fewer than it goes back.
    sizes: f64,
    /// X, bytes per second.
    rate: f64,
    /// The equation's rate, once there were losses (X_Bps, X_calc).
    fair_rate: Option<f64>,
    loss_event_rate: f64,
    recv_set: RecvSet,
    restart: FasterRestart,
    rtt: Option<f64>,
    sqrt_rtt_mean: f64,
    sqrt_rtt: f64,
    last_doubled: Option<Instant>,
    /// A report came.
    reported: bool,
    nofeedback_at: Instant,
    /// What was sent before this may have been answered while we did not run: no round trip is measured on it.
    measurable_from: Instant,
    /// Nothing was sent since the nofeedback timer was set.
    idle: bool,
    /// The nofeedback timer has run out and changed nothing, as it would from now on until something is sent.
    dormant: bool,
    /// Times when data had to wait, an eighth of a round trip apart or more, oldest first: the sender was not
    /// data-limited.
    not_limited: VecDeque<Instant>,
}

impl Sender {
    /// The longest time between packets (t_mbi).
    const MAX_BACKOFF: f64 = 64.0;
    /// Weight of the past in the mean RTT (q), and in that of its square root (q2).
    const FILTER: f64 = 0.9;
    /// Nofeedback timer before a round trip was measured.
    const INITIAL_TIMEOUT: Duration = Duration::from_secs(2);
    /// Nominal segment size of TFRC-SP (RFC 4828 §3).
    const NOMINAL_SIZE: f64 = 1460.0;
    /// Least time between TFRC-SP's packets (RFC 4828 §4.3).
    const MIN_INTERVAL: Duration = Duration::from_millis(10);
    /// Weight of a new packet in the mean size: long, as the mean is meant to cover several loss intervals (RFC 5348
    /// §4.1).
    const SIZE_WEIGHT: f64 = 1.0 / 32.0;
    /// Times kept of when data had to wait.
    const NOT_LIMITED: usize = 32;
    /// No report or round trip lifts X above this, in bytes per second.
    const MAX_RATE: f64 = 1e15;
    /// What a loss in a data-limited interval leaves of X_recv (RFC 5348 §4.3).
    const LIMITED_LOSS: f64 = 0.85;

    /// A sender that starts now.
    pub fn new(now: Instant, config: Config) -> Self {
        let min_interval = if config.variant.small_packets() { Self::MIN_INTERVAL } else { Duration::ZERO };
        let mut sender = Self {
            config,
            schedule: Schedule::new(config.granularity, min_interval),
            mean_size: None,
            sizes: 1.0,
            rate: 0.0,
            fair_rate: None,
            loss_event_rate: 0.0,
            recv_set: RecvSet::new(now, f64::INFINITY),
            restart: FasterRestart::default(),
            rtt: None,
            sqrt_rtt_mean: 0.0,
            sqrt_rtt: 0.0,
            last_doubled: None,
            reported: false,
            nofeedback_at: now + Self::INITIAL_TIMEOUT,
            measurable_from: Instant::ZERO,
            idle: true,
            dormant: false,
            not_limited: VecDeque::with_capacity(Self::NOT_LIMITED),
        };
        sender.rate = sender.first_rate();
        sender
    }

    /// A packet per second (RFC 5348 §4.2); CCID4-N counts it as one of 1460 bytes (THESIS §4.5.1).
    fn first_rate(&self) -> f64 {
        match self.config.variant {
            Variant::Tfrc | Variant::TfrcSp => self.s(),
            Variant::Ccid4N | Variant::Ccid4N100 => Self::NOMINAL_SIZE * self.header_correction(),
        }
    }

    /// Returns `true` if a packet may leave now; if not, when. To be asked when there is data: a
    /// refusal shows that the sender is not data-limited (RFC 5348 §4.3, §8.2.1).
    pub fn try_send(&mut self, now: Instant) -> Result<(), Instant> {
        let ready = self.ready_at();
        if ready <= now {
            return Ok(());
        }
        let apart = self.rtt().unwrap_or_default() / 8;
        if self.not_limited.back().is_none_or(|&last| now - last >= apart) {
            if self.not_limited.len() == Self::NOT_LIMITED {
                self.not_limited.pop_front();
            }
            self.not_limited.push_back(now);
        }
        Err(ready)
    }

    /// When the next packet may leave, in the past if at once.
    pub fn ready_at(&self) -> Instant {
        self.schedule.ready_at(self.interval(), self.rtt())
    }

    /// A packet with `size` bytes of data left.
    pub fn on_sent(&mut self, now: Instant, size: usize) {
        let size = (size as f64).max(1.0);
        match &mut self.mean_size {
            // The first packets weigh alike: a first one that is larger than the others would make
            // all intervals too long.
            Some(mean) => {
                self.sizes = (self.sizes + 1.0).min(1.0 / Self::SIZE_WEIGHT);
                let before = *mean;
                *mean += (size - *mean) / self.sizes;
                if self.rtt.is_none() && matches!(self.config.variant, Variant::Tfrc | Variant::TfrcSp) {
                    // As many packets each second, however small the first one was (RFC 5348 §4.2).
                    self.rate *= *mean / before;
                }
            }
            None => {
                self.mean_size = Some(size);
                // Only now is s known, in which the initial rate is counted.
                self.rate = if self.rtt.is_some() { self.initial_rate() } else { self.first_rate() };
            }
        }
        if core::mem::take(&mut self.dormant) {
            self.restart_timer(now);
        }
        let interval = self.interval();
        self.schedule.on_sent(now, interval, self.rtt());
        self.idle = false;
    }

    /// A packet left, perhaps before its time, as the flights of a key handshake do. Were each charged with an interval
    /// of 64 s, a repetition every 4 s would keep the next packet back for days.
    pub fn on_sent_early(&mut self, now: Instant, size: usize) {
        self.on_sent(now, size);
        self.schedule.forgive(now, self.interval());
    }

    /// A turn to send passes, and nothing goes: the next packet may leave an interval later.
    pub fn skip_turn(&mut self, now: Instant) {
        let interval = self.interval();
        self.schedule.on_sent(now, interval, self.rtt());
    }

    /// A round trip measured otherwise, as by the connection's handshake: the initial rate need not wait for a report.
    pub fn on_rtt(&mut self, now: Instant, sample: Duration) {
        if self.rtt.is_none() {
            self.add_rtt(sample);
            self.start(now);
            self.restart_timer(now);
        }
    }

    /// The receiver's report arrived (§4.3 of either RFC).
    pub fn on_feedback(&mut self, now: Instant, report: &Report) {
        let recv_rate = if report.recv_rate >= 0.0 { report.recv_rate.min(Self::MAX_RATE) } else { 0.0 };
        let p = if report.loss_event_rate >= 0.0 { report.loss_event_rate.min(1.0) } else { 0.0 };
        let loss = report.new_loss || p > self.loss_event_rate;
        // The first report covers one packet and says 0, which is no limit yet: where the set of
        // receive rates does not hold infinity for that (RFC 5348 §4.2), the rate is the initial
        // one, though a handshake gave the round trip before.
        let first = !core::mem::replace(&mut self.reported, true) && self.config.rules != Rules::Rfc5348;
        let starts = first || self.rtt.is_none();
        if report.sent_at >= self.measurable_from || self.rtt.is_none() {
            self.add_rtt((now - report.sent_at).saturating_sub(report.elapsed));
        }
        let data_limited = self.is_data_limited(report.sent_at) && recv_rate > 0.0;
        self.loss_event_rate = p;
        let rtt = self.rtt().unwrap_or_default();
        // A receiver of RFC 5348 never reports less than a packet each round trip (§6.2). Those of
        // RFC 4342, as Linux's, count silence: after an idle hour they would stop a sender for
        // good.
        let least = if self.config.rules == Rules::Rfc5348 && recv_rate > 0.0 { self.s() / seconds(rtt) } else { 0.0 };
        let recv_rate = recv_rate.max(least);
        self.fair_rate = (p > 0.0).then(|| self.equation(rtt, p));
        if self.config.faster_restart {
            self.restart.on_feedback(now, recv_rate, loss);
        }
        if starts && p == 0.0 {
            self.start(now);
        } else {
            let limit = self.recv_limit(now, recv_rate, rtt, data_limited, loss);
            self.update_rate(now, limit);
        }
        self.dormant = false;
        self.restart_timer(now);
    }

    /// When to call [`on_timeout`](Self::on_timeout).
    pub const fn poll_timeout(&self) -> Instant {
        self.nofeedback_at
    }

    /// The nofeedback timer (§4.4 of either RFC): without reports the rate is halved, unless an idle sender is slow
    /// enough.
    pub fn on_timeout(&mut self, now: Instant) {
        if now < self.nofeedback_at {
            return;
        }
        let recv_rate = self.recv_set.max();
        let before = self.rate;
        match self.rtt {
            // RFC 3448 does not spare an idle sender here.
            None if self.idle && self.config.rules == Rules::Rfc5348 => {}
            None => self.halve(),
            Some(_) if self.idle && self.is_at_recover_rate(recv_rate) => {}
            Some(_) => match self.fair_rate {
                None if self.config.rules == Rules::Rfc5348 => self.halve(),
                Some(fair) if fair <= 2.0 * recv_rate => self.limit_to(now, fair / 2.0),
                // 2 X_recv is the limit, so its half is X_recv; there is none before the first report.
                _ => self.limit_to(now, if recv_rate.is_finite() { recv_rate } else { self.rate / 2.0 }),
            },
        }
        self.dormant = self.idle && self.rate >= before;
        self.restart_timer(now);
    }

    /// We did not run until `now`: reports may wait to be read, and the nofeedback timer waits for them once more.
    pub fn on_late_wake(&mut self, now: Instant) {
        self.measurable_from = now;
        if self.nofeedback_at <= now {
            let idle = self.idle;
            self.restart_timer(now);
            self.idle = idle;
        }
    }

    /// Returns `true` if the nofeedback timer need not be set, as an idle sender's rate has come to
    /// rest; it runs again from the next packet on.
    pub const fn is_dormant(&self) -> bool {
        self.dormant
    }

    /// Returns `true` if idling shall not halve the rate. RFC 3448 §4.4 tests X_recv for four
    /// packets per RTT "to ensure that the allowed rate is never below two", which would keep four:
    /// the allowed rate is meant (THESIS table 4.9 says two).
    fn is_at_recover_rate(&self, recv_rate: f64) -> bool {
        match (self.config.rules, self.fair_rate) {
            (Rules::Rfc5348, Some(_)) => recv_rate < self.recover_rate(),
            _ => self.rate < 2.0 * self.recover_rate(),
        }
    }

    /// X when the round trip is first known.
    fn start(&mut self, now: Instant) {
        self.schedule.restart();
        self.rate = self.initial_rate();
        self.last_doubled = Some(now);
        self.recv_set.restamp(now);
    }

    /// The limit on X that receive rates set: 2 X_recv, or 5348's recv_limit.
    fn recv_limit(&mut self, now: Instant, recv_rate: f64, rtt: Duration, data_limited: bool, loss: bool) -> f64 {
        match self.config.rules {
            Rules::Rfc3448 | Rules::Rfc4342 => self.recv_set.replace(now, recv_rate),
            Rules::Rfc5348 if data_limited && loss => {
                self.recv_set.halve();
                self.recv_set.maximize(now, Self::LIMITED_LOSS * recv_rate);
                return self.recv_set.max();
            }
            Rules::Rfc5348 if data_limited => self.recv_set.maximize(now, recv_rate),
            Rules::Rfc5348 => self.recv_set.update(now, recv_rate, rtt),
        }
        self.grown(now, self.recv_set.max())
    }

    /// `rate` doubled; quadrupled as far as Faster Restart knows the path to carry it.
    fn grown(&self, now: Instant, rate: f64) -> f64 {
        let known = if self.config.faster_restart { self.restart.limit(now) } else { 0.0 };
        (2.0 * rate).max((FasterRestart::FACTOR * rate).min(known))
    }

    /// X from the equation, or slow start's next step (step 4 of §4.3).
    fn update_rate(&mut self, now: Instant, recv_limit: f64) {
        if let Some(fair) = self.fair_rate {
            self.rate = fair.min(recv_limit).max(self.min_rate());
            return;
        }
        let Some(rtt) = self.rtt() else { return };
        // With N reports per round trip X follows each (THESIS §4.5.2): that it is twice what arrived keeps it from
        // more than doubling in a round trip. If that limit is not known yet, it is set once per round trip.
        let steps = if recv_limit.is_finite() { self.reports_per_rtt(recv_limit / 2.0) } else { 1.0 };
        if self.last_doubled.is_none_or(|at| now - at >= rtt.div_f64(steps)) {
            self.rate = self.grown(now, self.rate).min(recv_limit).max(self.slow_start_floor()).min(Self::MAX_RATE);
            self.last_doubled = Some(now);
        }
    }

    fn halve(&mut self) {
        self.rate = (self.rate / 2.0).max(self.min_rate());
    }

    /// "Update_Limits": at most `limit` from now on, until reports say otherwise. A timeout never raises the rate.
    fn limit_to(&mut self, now: Instant, limit: f64) {
        let limit = limit.max(self.min_rate());
        self.recv_set.replace(now, limit / 2.0);
        self.rate = match self.fair_rate {
            Some(fair) => fair.min(limit).max(self.min_rate()),
            // RFC 3448 §4.3: slow start keeps a packet per round trip.
            None => limit.max(self.slow_start_floor()),
        }
        .min(self.rate);
    }

    fn add_rtt(&mut self, sample: Duration) {
        let sample = seconds(sample);
        self.sqrt_rtt = sample.sqrt();
        if let Some(rtt) = &mut self.rtt {
            *rtt = Self::FILTER * *rtt + (1.0 - Self::FILTER) * sample;
            self.sqrt_rtt_mean = Self::FILTER * self.sqrt_rtt_mean + (1.0 - Self::FILTER) * self.sqrt_rtt;
        } else {
            (self.rtt, self.sqrt_rtt_mean) = (Some(sample), self.sqrt_rtt);
        }
    }

    /// Returns `true` if no data had to wait in the whole round trip that a report covers. RFC 5348
    /// §8.2.1 keeps two times, which is too few with several reports in a round trip; it allows for
    /// more.
    fn is_data_limited(&mut self, sent_at: Instant) -> bool {
        let from = sent_at - self.rtt().unwrap_or_default();
        while self.not_limited.front().is_some_and(|&at| at <= from) {
            self.not_limited.pop_front();
        }
        self.not_limited.front().is_none_or(|&at| at > sent_at)
    }

    fn restart_timer(&mut self, now: Instant) {
        let packets = duration(2.0 * self.s() / self.rate);
        let base = self.rtt().map_or(Self::INITIAL_TIMEOUT, |it| it.saturating_mul(4));
        self.nofeedback_at = now + base.max(packets).max(self.config.granularity);
        self.idle = true;
    }

    /// Mean bytes of data per packet (s, or s_true for TFRC-SP).
    fn s(&self) -> f64 {
        self.mean_size.unwrap_or((self.config.segment_size as f64).max(1.0))
    }

    /// s / (s + oh) (RFC 4828 §4.2).
    fn header_correction(&self) -> f64 {
        self.s() / (self.s() + self.config.header_size as f64)
    }

    /// The equation's rate: eq. 4.5, or for small packets eq. 4.6.
    fn equation(&self, rtt: Duration, p: f64) -> f64 {
        if self.config.variant.small_packets() {
            throughput(Self::NOMINAL_SIZE, rtt, p) * self.header_correction()
        } else {
            throughput(self.s(), rtt, p)
        }
    }

    /// A packet each 64 seconds (s / t_mbi).
    fn min_rate(&self) -> f64 {
        self.s() / Self::MAX_BACKOFF
    }

    /// What the first measured round trip allows: RFC 5348 §4.2, RFC 4342 §5, RFC 3448 §4.3, THESIS eq. 4.7 and 4.13.
    /// Before a round trip is measured, the rate as it is.
    fn initial_rate(&self) -> f64 {
        let Some(rtt) = self.rtt else { return self.rate };
        let s = self.s();
        match (self.config.variant, self.config.rules) {
            (Variant::Ccid4N, _) => 4380.0 / rtt * self.header_correction(),
            (Variant::Ccid4N100, _) => {
                let nominal = self.config.nominal_rtt.max(Duration::from_millis(1));
                4380.0 / nominal.as_secs_f64() * self.header_correction()
            }
            (_, Rules::Rfc3448) => s / rtt,
            (_, Rules::Rfc4342 | Rules::Rfc5348) => (4.0 * s).min((2.0 * s).max(4380.0)) / rtt,
        }
    }

    /// The least in slow start: the initial rate, but in RFC 3448 §4.3 a packet per round trip, which RFC 4342 leaves.
    fn slow_start_floor(&self) -> f64 {
        match (self.config.variant, self.config.rules, self.rtt) {
            (Variant::Tfrc | Variant::TfrcSp, Rules::Rfc4342, Some(rtt)) => self.s() / rtt,
            _ => self.initial_rate(),
        }
    }

    /// The rate below which idling does not bring the sender: two packets per RTT in RFC 3448, the initial rate in RFC
    /// 4342, RFC 5348 and the variants of THESIS §4.8; with Faster Restart up to eight packets.
    fn recover_rate(&self) -> f64 {
        let Some(rtt) = self.rtt else { return self.rate };
        let standard = match (self.config.variant, self.config.rules) {
            (Variant::Tfrc | Variant::TfrcSp, Rules::Rfc3448) => 2.0 * self.s() / rtt,
            _ => self.initial_rate(),
        };
        let faster = if self.config.faster_restart { FasterRestart::recover_window(self.s()) / rtt } else { 0.0 };
        standard.max(faster)
    }

    fn reports_per_rtt(&self, recv_rate: f64) -> f64 {
        let per_rtt = self.config.feedback.unwrap_or(self.config.variant.feedback());
        per_rtt.per_rtt(self.rtt().unwrap_or_default(), recv_rate, self.s())
    }

    /// t_ipi: between packets of mean size at the rate that the application gets.
    fn interval(&self) -> Duration {
        duration(self.s() / self.sending_rate())
    }

    /// The rate of sending now: X, lowered or raised as the round trip is longer or shorter than its mean (X_inst, RFC
    /// 5348 §4.5), and not more than the application wants. Bytes per second; always positive.
    pub fn sending_rate(&self) -> f64 {
        let calm = self.config.reduce_oscillations && self.sqrt_rtt > 0.0;
        let rate = if calm { self.rate * self.sqrt_rtt_mean / self.sqrt_rtt } else { self.rate };
        rate.min(self.config.max_rate.unwrap_or(f64::INFINITY)).max(self.min_rate())
    }

    /// X, the allowed rate in bytes per second; always positive and finite.
    pub const fn allowed_rate(&self) -> f64 {
        self.rate
    }

    /// The equation's rate, once there were losses.
    pub const fn fair_rate(&self) -> Option<f64> {
        self.fair_rate
    }

    /// The loss event rate that the receiver reported last.
    pub const fn loss_event_rate(&self) -> f64 {
        self.loss_event_rate
    }

    /// Mean round trip, once measured.
    pub fn rtt(&self) -> Option<Duration> {
        self.rtt.map(duration)
    }

    /// Mean bytes of data per packet.
    pub fn segment_size(&self) -> f64 {
        self.s()
    }

    /// Returns `true` if the rate is below the lowest that the application finds useful.
    pub fn is_below_minimum(&self) -> bool {
        self.config.min_rate.is_some_and(|min| self.sending_rate() < min)
    }

    /// Changes what the application wants at most, and at least, in bytes per second.
    pub fn set_wanted(&mut self, min_rate: Option<f64>, max_rate: Option<f64>) {
        (self.config.min_rate, self.config.max_rate) = (min_rate, max_rate);
    }
}

#[cfg(test)]
mod tests;
