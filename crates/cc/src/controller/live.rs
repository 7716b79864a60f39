//! The controller for live media: it follows what the path delivers, holds the time in queues below
//! a bound, and takes losses for what they are on radio links. After BBR's model of a path by its
//! delivery rate and its shortest round trip (draft-ietf-ccwg-bbr-05 §2), Copa's way of telling a
//! queue of others from its own (Arun, Balakrishnan, "Copa: Practical Delay-Based Congestion
//! Control for the Internet", NSDI 2018, §2.2), and SCReAM's bound on queueing (RFC 8298 §4.1).

use super::beside::Beside;
use super::policed::{LEAST, Policed};
use super::recent::RecentRate;
use super::unloaded::UnloadedLoss;
use super::{Acked, Conditions, Controller, Policing, Setup, Signal};
use braidcast_core::Instant;
use core::time::Duration;

/// If a queue persists for this many rounds and this long although our window has shrunk, another
/// flow holds it.
const ROUNDS_TO_COMPETE: u32 = 6;
const TIME_TO_COMPETE: Duration = Duration::from_secs(1);
/// If a path's queue has not been empty for this long, it is drained for this number of rounds: only
/// then is the base round trip visible.
const EMPTY_EACH: Duration = Duration::from_secs(4);
const EMPTYING_ROUNDS: u32 = 2;
/// A queue is empty if packets stand in it for less than one part in `EMPTY` of the bound.
const EMPTY: u32 = 8;
/// A longer queue than this is no aim; times computed from it stay within their type.
const LONGEST_QUEUE: Duration = Duration::from_secs(60);
/// Target queue as a share of the bound: this on a path of steady rate, plus `UNSTEADY` times the
/// spread of its rate. Otherwise a link whose rate rises would be idle until the next
/// acknowledgement.
const STEADY: f64 = 0.4;
const UNSTEADY: f64 = 1.7;
/// Shortest span over which the highest rate is taken.
const LEAST_SPAN: Duration = Duration::from_millis(200);
/// A path is slow if four packets stand in its queue for this multiple of the bound: of 1,472 bytes, and a bound of
/// 60 ms, below 131 kbit/s. A window of four costs the audio of a stream half of its time there.
const SLOW: u32 = 6;
/// A larger share of lost packets than this is high. If the loss exceeds the loss at low load by as
/// much, a short queue overflows.
const LOSSY: f64 = 0.1;
/// A path with such a loss is drained this often until its loss at low load is known.
const LOOK_EACH: Duration = Duration::from_secs(1);
/// For this long after a fall, this share of the momentary rate counts as the rate, up to what the
/// rate was before: flights that end now still contain a fade that is over.
const RISE_FOR: Duration = Duration::from_millis(500);
const RISE: f64 = 0.9;
/// A window counts as unused if less than this fraction of it, one part in `USED`, is in flight.
const USED: usize = 4;
/// What a path carried is remembered for this long once the application sends too little to fill it.
const KNOWN_FOR: Duration = Duration::from_secs(1);
/// After that it may carry this many times as much, and [`LEAST`] in any case: a queue that goes by the rate of a link
/// that drops what is too large for it sends nothing more that could show another one.
const DOUBT: f64 = 1.5;

/// See the page of this file.
#[derive(Clone, Debug)]
pub(super) struct Live {
    setup: Setup,
    window: usize,
    /// How long packets of ours may stand in queues at most.
    bound: Duration,
    /// How long they are to stand there, as steady as the path is.
    target: Duration,
    rate: DeliveryRate,
    recent: RecentRate,
    unloaded: UnloadedLoss,
    policed: Policed,
    fall: Fall,
    phase: Phase,
    /// How much of `target` is used, 0.1 to 1: less where a short queue runs over.
    share: f64,
    /// Rounds and time in which a queue of twice the bound stood, one after the other.
    standing: Option<(Instant, u32, usize)>,
    /// When the path's queue was last empty, and for how many rounds it has been emptied since.
    empty_at: Instant,
    emptying: Option<u32>,
    /// The round trip is known to be longer than the shortest one ever measured, and to be this: the route has changed.
    route: Option<Duration>,
    /// Nothing was acknowledged since the timer expired.
    timed_out: bool,
}

/// The latest fall of the rate.
#[derive(Clone, Copy, Debug, Default)]
struct Fall {
    at: Option<Instant>,
    /// What it had been.
    from: f64,
}

impl Fall {
    fn is_recent(&self, now: Instant, span: Duration) -> bool {
        self.at.is_some_and(|at| now - at < span)
    }

    /// The rate falls from `rate`. Falls of the same fade are one.
    fn on_fall(&mut self, now: Instant, rate: f64) {
        if rate > self.from || !self.is_recent(now, 2 * RISE_FOR) {
            self.from = rate;
        }
        self.at = Some(now);
    }
}

#[derive(Clone, Debug)]
enum Phase {
    /// The window doubles each round trip until the path is full.
    Start { best: f64, stale: u32 },
    /// The path's queue is ours alone.
    Alone,
    /// Others hold the queue full.
    Beside(Box<Beside>),
}

/// The highest rate at which the path delivered in the last one to two spans of time, bytes in a second.
#[derive(Clone, Copy, Debug, Default)]
struct DeliveryRate {
    present: f64,
    before: f64,
    since: Instant,
    latest: f64,
    /// When the application last had enough to send.
    full_at: Option<Instant>,
    is_known: bool,
}

impl DeliveryRate {
    fn get(&self) -> f64 {
        self.present.max(self.before)
    }

    fn observe(&mut self, now: Instant, rate: f64, app_limited: bool, span: Duration) {
        self.latest = rate;
        if !app_limited {
            self.full_at = Some(now);
            // What the application could not fill says nothing against what was measured before.
            if now - self.since >= span {
                (self.before, self.present, self.since) = (self.present, 0.0, now);
            }
        }
        if !app_limited || rate > self.get() {
            self.present = self.present.max(rate);
        }
        self.is_known = self.full_at.is_some_and(|at| now - at <= KNOWN_FOR);
    }

    /// It is `rate` now, whatever it was.
    const fn set(&mut self, now: Instant, rate: f64) {
        (self.present, self.before, self.since) = (rate, 0.0, now);
    }
}

impl Live {
    pub(super) fn new(setup: &Setup) -> Self {
        let bound = setup.queueing.min(LONGEST_QUEUE);
        Self {
            window: setup.initial.max(setup.mtu),
            bound,
            target: bound.mul_f64(STEADY),
            setup: *setup,
            rate: DeliveryRate::default(),
            recent: RecentRate::new(),
            unloaded: UnloadedLoss::default(),
            policed: Policed::new(),
            fall: Fall::default(),
            phase: Phase::Start { best: 0.0, stale: 0 },
            share: 1.0,
            standing: None,
            empty_at: Instant::ZERO,
            emptying: None,
            route: None,
            timed_out: false,
        }
    }

    /// Bytes that fill the path and its queue for `queue` more.
    fn fill(&self, path: &Conditions<'_>, queue: Duration) -> usize {
        if self.rate.get() <= 0.0 {
            return self.window.max(4 * path.mtu); // The transport measures no rates.
        }
        (self.product(path, queue) as usize).max(self.least(path))
    }

    /// The smallest window: 4 packets, or 2 if it is known that 4 stand in the queue for [`SLOW`] times the bound.
    fn least(&self, path: &Conditions<'_>) -> usize {
        let within = self.rate.get() * (SLOW * self.bound).as_secs_f64();
        if self.rate.is_known && within < (4 * path.mtu) as f64 { 2 * path.mtu } else { 4 * path.mtu }
    }

    /// The same without the lower limit, 0 if no rate is known. Of what is sent, the path loses some and
    /// delivers the rest at its rate.
    fn product(&self, path: &Conditions<'_>, queue: Duration) -> f64 {
        let base = if path.base_rtt.is_zero() { path.srtt.unwrap_or_default() } else { path.base_rtt };
        self.rate.get() * (base + queue).as_secs_f64() / (1.0 - self.unloaded.of(path.loss_rate.into()))
    }

    /// Bytes that leave the path half empty, so that its queue drains.
    fn low(&self, path: &Conditions<'_>) -> usize {
        let least = if loses_much(path) { 2 * path.mtu } else { self.least(path) };
        (self.fill(path, Duration::ZERO) / 2).max(least)
    }

    /// How long the queue may be at the moment.
    fn allowed(&self) -> Duration {
        self.target.mul_f64(self.share)
    }

    fn on_round(&mut self, path: &Conditions<'_>, was_full: bool, used: bool) {
        let lost = path.loss_rate.into();
        let excess = lost - self.unloaded.of(lost);
        self.share = if excess > LOSSY { (self.share / 2.0).max(0.1) } else { (self.share + 0.05).min(1.0) };
        let now = path.now;
        let low = self.low(path);
        let each = if loses_much(path) && !self.unloaded.is_known() { LOOK_EACH } else { EMPTY_EACH };
        self.emptying = match self.emptying {
            Some(rounds) if rounds >= EMPTYING_ROUNDS => {
                self.empty_at = now;
                None
            }
            Some(rounds) => Some(rounds + 1),
            None => (matches!(self.phase, Phase::Alone) && now - self.empty_at >= each).then_some(0),
        };
        if self.queue_beyond_the_route(path) > 2 * self.bound {
            let (_, rounds, _) = self.standing.get_or_insert((now, 0, self.window));
            *rounds += 1;
        } else {
            self.standing = None;
        }
        match &mut self.phase {
            Phase::Start { best, stale } => {
                let rate = self.rate.get();
                (*best, *stale) = if rate > 1.25 * *best { (rate, 0) } else { (*best, *stale + u32::from(was_full)) };
                if (used && path.queueing > self.bound / 2) || *stale >= 3 {
                    self.phase = Phase::Alone;
                }
            }
            Phase::Alone => {
                if let Some((since, rounds, before)) = self.standing
                    && rounds >= ROUNDS_TO_COMPETE
                    && now - since >= TIME_TO_COMPETE
                {
                    self.phase = Phase::Beside(Box::new(Beside::new(now, &self.setup, self.window.max(before))));
                }
            }
            Phase::Beside(_) if self.standing.is_none() => self.phase = Phase::Alone,
            Phase::Beside(beside) => {
                if beside.on_round(path, self.rate.get(), low) {
                    self.route = Some(path.base_rtt);
                    self.phase = Phase::Alone;
                }
            }
        }
    }

    /// How long packets stand in queues, be they as old as the connection: others' may be.
    fn queue_beyond_the_route(&mut self, path: &Conditions<'_>) -> Duration {
        self.route = self.route.map(|route| route.min(path.base_rtt));
        let route = self.route.unwrap_or(path.shortest_rtt);
        if route.is_zero() { path.queueing } else { (path.base_rtt + path.queueing).saturating_sub(route) }
    }
}

fn loses_much(path: &Conditions<'_>) -> bool {
    f64::from(path.loss_rate) > LOSSY
}

/// How long the newest packet acknowledged stood in queues, as far as that is known.
fn queued(path: &Conditions<'_>, acked: &Acked) -> Duration {
    let rtt = acked.rtt.filter(|_| !path.base_rtt.is_zero());
    rtt.map_or(Duration::ZERO, |rtt| rtt.saturating_sub(path.base_rtt))
}

impl Controller for Live {
    fn on_acked(&mut self, path: &Conditions<'_>, acked: &Acked) {
        if acked.bytes == 0 && acked.rate.is_none() {
            return;
        }
        let before = self.window();
        // Packets that leave most of the window empty met jitter, or a queue of others: they say
        // nothing of what the path carries.
        let used = acked.was_full || (path.in_flight + acked.bytes) * USED >= before;
        self.timed_out &= !acked.was_full;
        self.policed.on_acked(path, acked, self.bound / EMPTY);
        if self.policed.policing() != Policing::None && self.in_slow_start() {
            self.phase = Phase::Alone;
        }
        let recent = self.recent.on_delivered(path.now, acked.bytes, acked.was_full);
        self.target = self.bound.mul_f64((STEADY + UNSTEADY * self.recent.spread()).min(1.0));
        let span = path.srtt.map_or(Duration::ZERO, |srtt| 2 * srtt).max(LEAST_SPAN);
        if let Some(sample) = acked.rate {
            let rising = self.fall.is_recent(path.now, RISE_FOR);
            let at_the_moment = if rising { (RISE * recent).min(self.fall.from) } else { 0.0 };
            self.rate.observe(path.now, sample.rate().max(at_the_moment), sample.app_limited, span);
            if used && path.queueing > self.target * 3 / 2 && self.rate.latest < self.rate.get() {
                // The path delivers what it can, and that has become less. What it delivers at the
                // moment is not: a fade is over.
                self.fall.on_fall(path.now, self.rate.get());
                self.rate.set(path.now, self.rate.latest.max(recent).min(self.rate.get()));
            }
        }
        self.unloaded.on_flight(path.in_flight + acked.bytes, self.product(path, Duration::ZERO) + path.mtu as f64);
        if acked.ends_round {
            self.unloaded.on_round(path.packets, path.lost_packets);
            if path.queueing <= self.bound / EMPTY && !loses_much(path) {
                (self.empty_at, self.emptying) = (path.now, None);
            }
            self.on_round(path, acked.was_full, used);
        }
        match &mut self.phase {
            // On a slow path a round ends late: what stood in a queue for too long says so before.
            Phase::Start { .. } if queued(path, acked) > self.bound => {}
            Phase::Start { .. } => self.window += if acked.was_full { acked.bytes } else { 0 },
            Phase::Alone if self.emptying.is_some() => {
                self.window = self.low(path);
            }
            Phase::Alone => {
                let queue = if path.queueing > self.target { self.allowed() / 2 } else { self.allowed() };
                self.window = self.fill(path, queue);
            }
            Phase::Beside(beside) => {
                beside.on_acked(path, acked);
                self.window = beside.window();
            }
        }
        if !acked.was_full {
            self.window = self.window.min(before); // RFC 7661 §1.
        }
    }

    fn on_lost(&mut self, path: &Conditions<'_>, lost: &Signal) {
        if let Phase::Beside(beside) = &mut self.phase
            && path.queueing > self.bound
        {
            beside.on_lost(path, lost);
            self.window = self.window.min(beside.window());
        }
    }

    fn on_marked(&mut self, path: &Conditions<'_>, marked: &Signal) {
        if !marked.new_round {
            return;
        }
        match &mut self.phase {
            Phase::Start { .. } => self.phase = Phase::Alone,
            Phase::Alone => {}
            Phase::Beside(beside) => beside.on_marked(path, marked),
        }
        self.rate.set(path.now, self.rate.get() * 0.85);
        self.window = ((self.window as f64 * 0.85) as usize).max(4 * path.mtu);
    }

    fn on_timeout(&mut self, _: &Conditions<'_>) {
        self.timed_out = true;
    }

    fn on_spurious_timeout(&mut self) {
        self.timed_out = false;
    }

    fn on_idle(&mut self, _: &Conditions<'_>, _: usize) {}

    /// Queues are its own business.
    fn settle(&mut self, _: &Conditions<'_>, _: usize) {}

    fn window(&self) -> usize {
        if self.timed_out { self.window.min(self.setup.mtu) } else { self.window }
    }

    fn ssthresh(&self) -> usize {
        if self.in_slow_start() { usize::MAX } else { self.window }
    }

    fn in_slow_start(&self) -> bool {
        matches!(self.phase, Phase::Start { .. })
    }

    fn pacing_rate(&self, srtt: Option<Duration>) -> Option<f64> {
        let by_window = self.window() as f64 / srtt?.as_secs_f64().max(1e-6);
        let rate = match self.phase {
            Phase::Start { .. } => 2.0 * by_window,
            Phase::Alone => (1.5 * self.rate.get()).max(by_window),
            Phase::Beside(_) => 1.25 * by_window,
        };
        Some(self.policed.limit(rate))
    }

    fn measured_rate(&self) -> Option<f64> {
        let rate = self.policed.limit(self.rate.get());
        (rate > 0.0).then_some(rate)
    }

    fn delivery_rate(&self) -> Option<f64> {
        let rate = self.rate.get();
        let perhaps = if self.rate.is_known { rate } else { (DOUBT * rate).max(LEAST) };
        (rate > 0.0 && !self.in_slow_start()).then_some(self.policed.limit(perhaps))
    }

    fn policing(&self) -> Policing {
        self.policed.policing()
    }
}
