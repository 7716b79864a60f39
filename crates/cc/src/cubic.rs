use crate::HyStart;
use braidcast_core::Instant;
use core::time::Duration;

/// The congestion window of CUBIC (RFC 9438), in packets: after a loss it comes back to where it was as a cubic function of
/// time, not of round trips, so a long fat path is filled in seconds; where Reno would be faster, it does as Reno. The
/// first slow start ends by HyStart++ (RFC 9406), at the latest.
///
/// All integers, so that each machine computes the same: windows in 2⁻²⁰ of a packet, times in milliseconds.
#[derive(Clone, Debug)]
pub struct Cubic {
    cwnd: u64,
    ssthresh: u64,
    /// The window before the last reduction (`W_max`); 0 where the next stage of avoidance is to begin at its own window.
    max: u64,
    /// The same without fast convergence (`cwnd_prior`).
    prior: u64,
    stage: Option<Stage>,
    hystart: HyStart,
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

/// β_cubic of 0.7 (§4.6).
const fn reduced(window: u64) -> u64 {
    window / 10 * 7
}

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
    /// A window in slow start that begins with `initial` packets.
    pub fn new(initial: u32) -> Self {
        Self {
            cwnd: (u64::from(initial.max(1)) * ONE).min(MOST),
            ssthresh: u64::MAX,
            max: 0,
            prior: 0,
            stage: None,
            hystart: HyStart::default(),
        }
    }

    /// Packets that may be out, one at least.
    pub const fn cwnd(&self) -> u32 {
        (self.cwnd / ONE) as u32
    }

    /// Slow start threshold; `u32::MAX` until something has ended slow start.
    pub fn ssthresh(&self) -> u32 {
        u32::try_from(self.ssthresh / ONE).unwrap_or(u32::MAX)
    }

    /// A packet took `rtt` to be acknowledged, and whether all that was out when the last round began is by now.
    pub fn on_rtt(&mut self, rtt: Duration, round_is_over: bool) {
        if self.ssthresh != u64::MAX {
            return; // RFC 9406 §4.3: the first slow start only
        }
        self.hystart.observe(rtt);
        if round_is_over && self.hystart.end_round() {
            self.ssthresh = self.cwnd;
        }
    }

    /// `acked` packets were newly acknowledged outside of recovery; `srtt` is the smoothed round trip. `was_full`: the window
    /// kept packets back; one that the application does not fill does not grow, and its time stands still (§5.8).
    pub fn on_ack(&mut self, now: Instant, acked: u32, was_full: bool, srtt: Duration) {
        /// Packets that one acknowledgement may add without pacing (RFC 9406 §4.3, L).
        const BURST: u32 = 8;
        if self.cwnd < self.ssthresh {
            if was_full {
                let divisor = if self.hystart.is_conservative() { HyStart::DIVISOR } else { 1 };
                let grown = self.cwnd + u64::from(acked.min(BURST)) * ONE / u64::from(divisor);
                self.cwnd = grown.min(self.ssthresh.max(self.cwnd)).min(MOST);
            }
            return;
        }
        let mut stage = self.stage.unwrap_or_else(|| self.begin(now));
        let passed = now - stage.latest;
        stage.latest = now;
        if was_full {
            stage.elapsed += passed;
            self.advance(&mut stage, u64::from(acked), srtt);
        }
        self.stage = Some(stage);
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

    fn advance(&mut self, stage: &mut Stage, acked: u64, srtt: Duration) {
        // §4.3: α_cubic = 3(1 − β)/(1 + β) = 9/17 until Reno would be back at cwnd_prior, then 1.
        let alpha = if stage.reno < self.prior { (9, 17) } else { (1, 1) };
        let share = |of: u64| (u128::from(of) * u128::from(acked) * u128::from(ONE) / u128::from(self.cwnd)) as u64;
        stage.reno = (stage.reno + share(ONE) * alpha.0 / alpha.1).min(MOST);
        if self.at(stage, stage.elapsed) < stage.reno {
            self.cwnd = self.cwnd.max(stage.reno);
        } else {
            // §4.4, §4.5: towards where the function will be in a round trip, but not by more than a half.
            let target = self.at(stage, stage.elapsed + srtt).clamp(self.cwnd, self.cwnd / 2 * 3);
            self.cwnd = self.cwnd.saturating_add(share(target - self.cwnd)).min(target.max(self.cwnd)).min(MOST);
        }
    }

    /// Packets were lost or marked; call once for each round of them (§4.6, §4.7).
    pub fn on_congestion(&mut self) {
        self.reduce();
        self.cwnd = reduced(self.cwnd).max(ONE);
    }

    /// Everything that was out is lost: one packet, and the next stage of avoidance begins wherever slow start ends (§4.8).
    pub fn on_timeout(&mut self) {
        self.reduce();
        self.max = 0;
        self.cwnd = ONE;
    }

    fn reduce(&mut self) {
        // §4.7, fast convergence: a window that did not come back to where it was leaves room to others.
        self.max = if self.cwnd < self.max { self.cwnd / 20 * 17 } else { self.cwnd };
        self.prior = self.cwnd;
        self.ssthresh = reduced(self.cwnd).max(2 * ONE);
        self.stage = None;
    }

    /// Nothing was sent for a timeout: no more than `initial` packets at once, and slow start from there.
    pub fn on_idle(&mut self, initial: u32) {
        self.cwnd = self.cwnd.min(u64::from(initial.max(1)) * ONE);
        self.stage = None;
    }

    /// Slow start ends here.
    pub fn leave_slow_start(&mut self) {
        self.ssthresh = self.ssthresh.min(self.cwnd.max(2 * ONE));
    }

    /// Takes one packet off, down to one.
    pub fn shrink(&mut self) {
        self.cwnd = self.cwnd.saturating_sub(ONE).max(ONE);
    }
}

#[cfg(test)]
#[path = "cubic_tests.rs"]
mod tests;
