use super::cubic::Cubic;
use super::{Acked, Conditions, Controller, Setup, Signal};
use braidcast_core::Instant;
use core::time::Duration;

/// Interval of the checks that look for other flows, and the rounds that each lasts.
const CHECK_EACH: Duration = Duration::from_secs(5);
const CHECK_ROUNDS: u32 = 2;
/// The queue is ours if the round trip falls by at least this share of the time that the bytes taken
/// away need on the path,
const OURS: f64 = 0.5;
/// to the shortest recent one, or to at most one part in `EMPTY` above it.
const EMPTY: u32 = 8;
/// Checks in a row that find so; others' windows change at such a moment by chance.
const CHECKS: u32 = 3;

/// What the live controller does while a queue stands that it did not make: others hold it, most
/// likely by CUBIC (RFC 9438), so it goes by CUBIC too, and gives way for a moment now and then to
/// see whose the queue is.
#[derive(Clone, Debug)]
pub(super) struct Beside {
    cubic: Cubic,
    step: Step,
    /// Checks in a row that found the queue to be ours.
    ours: u32,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Compete {
        check_at: Instant,
    },
    Check {
        rounds: u32,
        window: usize,
        /// What a round trip took before, and how fast the path delivered, bytes in a second.
        rtt: Duration,
        rate: f64,
    },
}

fn round_trip(path: &Conditions<'_>) -> Duration {
    path.base_rtt + path.queueing
}

impl Beside {
    /// Begins with `window`.
    pub(super) fn new(now: Instant, setup: &Setup, window: usize) -> Self {
        let setup = Setup { initial: window, ssthresh: window, ..*setup };
        Self { cubic: Cubic::new(&setup), step: Step::Compete { check_at: now + CHECK_EACH }, ours: 0 }
    }

    pub(super) fn window(&self) -> usize {
        match self.step {
            Step::Compete { .. } => self.cubic.window(),
            Step::Check { window, .. } => window,
        }
    }

    pub(super) fn on_acked(&mut self, path: &Conditions<'_>, acked: &Acked) {
        if let Step::Compete { .. } = self.step {
            // The transport may let no window grow while a queue stands. This queue is that of others.
            self.cubic.on_acked(path, &Acked { may_grow: acked.bytes > 0, ..*acked });
        }
    }

    pub(super) fn on_lost(&mut self, path: &Conditions<'_>, lost: &Signal) {
        if let Step::Compete { .. } = self.step {
            self.cubic.on_lost(path, lost);
        }
    }

    pub(super) fn on_marked(&mut self, path: &Conditions<'_>, marked: &Signal) {
        if let Step::Compete { .. } = self.step {
            self.cubic.on_marked(path, marked);
        }
    }

    /// A round is over, in which the path delivered at `rate`. A check leaves the window `low`.
    /// Returns `true` if the queue is ours.
    pub(super) fn on_round(&mut self, path: &Conditions<'_>, rate: f64, low: usize) -> bool {
        self.step = match self.step {
            Step::Compete { check_at } if path.now >= check_at => {
                Step::Check { rounds: 0, window: low.min(self.cubic.window()), rtt: round_trip(path), rate }
            }
            Step::Check { rounds, window, rtt, rate } if rounds >= CHECK_ROUNDS => {
                let fell = rtt.saturating_sub(round_trip(path)).as_secs_f64() * rate;
                let taken = self.cubic.window().saturating_sub(window) as f64;
                let emptied = path.queueing <= rtt.saturating_sub(path.base_rtt) / EMPTY;
                self.ours = if emptied && fell > OURS * taken { self.ours + 1 } else { 0 };
                Step::Compete { check_at: path.now + CHECK_EACH }
            }
            Step::Check { rounds, window, rtt, rate } => Step::Check { rounds: rounds + 1, window, rtt, rate },
            same @ Step::Compete { .. } => same,
        };
        self.ours >= CHECKS
    }
}
