use super::{Acked, Conditions, Controller, Setup, Signal, Standard};
use crate::{Decrease, HyStart};
use braidcast_core::Instant;
use core::time::Duration;

/// The congestion window of CUBIC (RFC 9438): after a loss it comes back to where it was as a cubic function of
/// time, not of round trips, so a long fat path is filled in seconds; where Reno would be faster, it does as Reno. The
/// first slow start ends by HyStart++ (RFC 9406), at the latest.
///
/// Inside, windows are in 2⁻²⁰ of a packet, as the RFC's constants are about packets, and times in
/// milliseconds. There is no cube root in floating point, so each machine computes the same.
#[derive(Clone, Debug)]
pub(super) struct Cubic {
    standard: Standard,
    /// Bytes of a packet.
    mtu: usize,
    cwnd: u64,
    ssthresh: u64,
    /// The window before the last reduction (`W_max`); 0 where the next stage of avoidance is to
    /// begin at its own window.
    max: u64,
    /// The same without fast convergence (`cwnd_prior`).
    prior: u64,
    stage: Option<Stage>,
    hystart: HyStart,
    before_timeout: Option<Saved>,
}

/// What a timeout takes away, restored if it proves spurious (§4.9.1).
#[derive(Clone, Copy, Debug)]
struct Saved {
    cwnd: u64,
    ssthresh: u64,
    max: u64,
    prior: u64,
    stage: Option<Stage>,
}

/// A stage of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Stage {
    /// How long it has lasted, without the time in which the application did not fill the window (§5.8).
    elapsed: Duration,
    latest: Instant,
    /// When it will be back at `W_max`: K, milliseconds.
    k: u64,
    /// What Reno would have (`W_est`).
    reno: u64,
}

/// One packet.
const ONE: u64 = 1 << 20;
/// More packets than fit any path; keeps the arithmetic far from its limits.
const MOST: u64 = ONE << 24;
/// Milliseconds on either side of K beyond which the cubic is not followed: 10⁷ of them are 2.8 hours.
const FARTHEST: u64 = 10_000_000;

/// What a loss leaves, β_cubic (§4.6).
const KEPT: f64 = 0.7;
/// What a mark leaves with ABE (Khademi et al., IFIP Networking 2017, for CUBIC).
const KEPT_ABE: f64 = 0.85;
/// Packets that one acknowledgement may add to slow start without pacing (RFC 9406 §4.3, L).
const BURST: u64 = 8 * ONE;

/// C·t³ for t in milliseconds, C being 0.4 packets/s³ (§5): t³ / (2.5 · 10⁹) packets.
const fn cubed(ms: u64) -> u64 {
    let t = if ms < FARTHEST { ms } else { FARTHEST } as u128;
    (t * t * t * ONE as u128 / 2_500_000_000) as u64
}

/// The t for which [`cubed`] gives `window`.
fn cube_root(window: u64) -> u64 {
    let goal = u128::from(window) * 2_500_000_000 / u128::from(ONE);
    let (mut low, mut high) = (0, FARTHEST);
    while low < high {
        let middle = (low + high).div_ceil(2);
        if u128::from(middle).pow(3) <= goal {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}

impl Cubic {
    /// A window in slow start.
    pub(super) fn new(setup: &Setup) -> Self {
        let mut cubic = Self {
            standard: setup.standard,
            mtu: setup.mtu.max(1),
            cwnd: ONE,
            ssthresh: u64::MAX,
            max: 0,
            prior: 0,
            stage: None,
            hystart: HyStart::default(),
            before_timeout: None,
        };
        cubic.cwnd = cubic.packets(setup.initial).max(ONE);
        if setup.ssthresh != usize::MAX {
            cubic.ssthresh = cubic.packets(setup.ssthresh);
        }
        cubic
    }

    /// `bytes` in 2⁻²⁰ of a packet.
    fn packets(&self, bytes: usize) -> u64 {
        (bytes as u128 * u128::from(ONE) / self.mtu as u128).min(u128::from(MOST)) as u64
    }

    fn bytes(&self, window: u64) -> usize {
        usize::try_from(u128::from(window) * self.mtu as u128 / u128::from(ONE)).unwrap_or(usize::MAX)
    }

    /// Packets are of `mtu` bytes from now on: windows keep their bytes.
    fn resize(&mut self, mtu: usize) {
        if mtu == self.mtu || mtu == 0 {
            return;
        }
        let (old, new) = (self.mtu as u128, mtu as u128);
        let resized = |window: u64| (u128::from(window) * old / new).min(u128::from(MOST)) as u64;
        self.cwnd = resized(self.cwnd).max(ONE);
        self.ssthresh = if self.ssthresh == u64::MAX { u64::MAX } else { resized(self.ssthresh) };
        (self.max, self.prior) = (resized(self.max), resized(self.prior));
        self.mtu = mtu;
        self.stage = None;
        self.before_timeout = None;
    }

    fn measure(&mut self, acked: &Acked) {
        if self.ssthresh != u64::MAX {
            return; // RFC 9406 §4.3: the first slow start only.
        }
        acked.rtt.into_iter().for_each(|rtt| self.hystart.observe(rtt));
        if acked.ends_round && self.hystart.end_round() {
            self.ssthresh = self.cwnd;
        }
    }

    /// Begins a stage of avoidance (§4.2); one that follows no reduction begins on the plateau (§4.8, §4.10).
    fn begin(&mut self, now: Instant) -> Stage {
        self.max = self.max.max(self.cwnd);
        self.prior = self.prior.max(self.cwnd);
        let k = cube_root(self.max - self.cwnd);
        Stage { elapsed: Duration::ZERO, latest: now, k, reno: self.cwnd }
    }

    /// The window that W_cubic gives at time `at` of the stage (§4.2, equation 1).
    const fn at(&self, stage: &Stage, at: Duration) -> u64 {
        let ms = at.as_millis() as u64;
        if ms < stage.k {
            self.max.saturating_sub(cubed(stage.k - ms))
        } else {
            self.max.saturating_add(cubed(ms - stage.k))
        }
    }

    /// `acked` packets let a full window grow, by the part `growth` of what one on its own would.
    fn advance(&mut self, stage: &mut Stage, acked: u64, srtt: Duration, growth: f64) {
        // §4.3: α_cubic = 3(1 − β)/(1 + β) = 9/17 until Reno would be back at cwnd_prior, then 1.
        let alpha = if stage.reno < self.prior { (9, 17) } else { (1, 1) };
        let share = |of: u64| (u128::from(of) * u128::from(acked) / u128::from(self.cwnd)) as u64;
        stage.reno = (stage.reno + part(share(ONE) * alpha.0 / alpha.1, growth)).min(MOST);
        if self.at(stage, stage.elapsed) < stage.reno {
            self.cwnd = self.cwnd.max(stage.reno);
        } else {
            // §4.4, §4.5: towards where the function will be in a round trip, but not by more than a half.
            let target = self.at(stage, stage.elapsed + srtt).clamp(self.cwnd, self.cwnd / 2 * 3);
            let step = part(share(target - self.cwnd), growth);
            self.cwnd = self.cwnd.saturating_add(step).min(target.max(self.cwnd)).min(MOST);
        }
    }

    /// A congestion event, of which a path on its own keeps the share `kept` (§4.6, §4.7): what is left of the window.
    fn reduce(&mut self, path: &Conditions<'_>, kept: f64) -> u64 {
        let Decrease { kept, floor } = path.siblings.decrease(Decrease { kept, floor: self.standard.floor });
        // §4.7, fast convergence: a window that did not come back to where it was leaves room to others.
        self.max = if self.cwnd < self.max { self.cwnd / 20 * 17 } else { self.cwnd };
        self.prior = self.cwnd;
        // By tenths: 0.7 of a number is none in binary, 7 of its tenths are.
        let share = ((self.cwnd / 10) as f64 * (kept * 10.0)) as u64;
        let left = share.max(floor as u64 * ONE);
        self.ssthresh = left.max(self.standard.least_ssthresh as u64 * ONE);
        self.stage = None;
        self.hystart = HyStart::default();
        left
    }

    fn respond(&mut self, path: &Conditions<'_>, kept: f64) {
        self.resize(path.mtu);
        self.before_timeout = None;
        self.cwnd = self.reduce(path, kept).max(ONE);
    }
}

/// The part `share` of `of`, none of which is negative.
fn part(of: u64, share: f64) -> u64 {
    if share == 1.0 { of } else { (of as f64 * share.max(0.0)) as u64 }
}

impl Controller for Cubic {
    fn on_acked(&mut self, path: &Conditions<'_>, acked: &Acked) {
        self.resize(path.mtu);
        self.measure(acked);
        let growth = path.siblings.growth();
        let (packets, full) = (self.packets(acked.bytes), acked.may_grow && acked.was_full);
        if self.cwnd < self.ssthresh {
            if full {
                let divisor = if self.hystart.is_conservative() { HyStart::DIVISOR } else { 1 };
                let step = part(packets.min(BURST) / u64::from(divisor), growth.slow_start);
                self.cwnd = (self.cwnd + step).min(self.ssthresh.max(self.cwnd)).min(MOST);
            }
            return;
        }
        let mut stage = self.stage.unwrap_or_else(|| self.begin(path.now));
        let passed = path.now - stage.latest;
        stage.latest = path.now;
        // §5.8: time in which the application does not fill the window does not count.
        if full {
            stage.elapsed += passed;
            self.advance(&mut stage, packets, path.srtt.unwrap_or_default(), growth.avoidance);
        }
        self.stage = Some(stage);
    }

    fn on_lost(&mut self, path: &Conditions<'_>, lost: &Signal) {
        if lost.new_round {
            self.respond(path, KEPT);
        }
    }

    fn on_marked(&mut self, path: &Conditions<'_>, marked: &Signal) {
        if marked.new_round {
            self.respond(path, if self.standard.abe && !self.in_slow_start() { KEPT_ABE } else { KEPT });
        }
    }

    /// One packet, and the next stage of avoidance begins wherever slow start ends (§4.8).
    fn on_timeout(&mut self, path: &Conditions<'_>) {
        self.resize(path.mtu);
        let Self { cwnd, ssthresh, max, prior, stage, .. } = *self;
        self.before_timeout.get_or_insert(Saved { cwnd, ssthresh, max, prior, stage });
        self.reduce(path, KEPT);
        self.max = 0;
        self.cwnd = ONE;
    }

    fn on_spurious_timeout(&mut self) {
        if let Some(saved) = self.before_timeout.take() {
            self.cwnd = self.cwnd.max(saved.cwnd);
            self.ssthresh = self.ssthresh.max(saved.ssthresh);
            (self.max, self.prior, self.stage) = (saved.max, saved.prior, saved.stage);
        }
    }

    fn on_idle(&mut self, path: &Conditions<'_>, most: usize) {
        self.resize(path.mtu);
        self.cwnd = self.cwnd.min(self.packets(most).max(ONE));
        self.stage = None;
    }

    fn settle(&mut self, path: &Conditions<'_>, most: usize) {
        self.resize(path.mtu);
        if most < self.window() {
            self.cwnd = self.packets(most).max(ONE);
            self.stage = None;
        }
        self.ssthresh = self.cwnd.max(self.standard.least_ssthresh as u64 * ONE);
    }

    fn window(&self) -> usize {
        self.bytes(self.cwnd)
    }

    fn ssthresh(&self) -> usize {
        if self.ssthresh == u64::MAX { usize::MAX } else { self.bytes(self.ssthresh) }
    }
}

#[cfg(test)]
#[path = "cubic_tests.rs"]
mod tests;
