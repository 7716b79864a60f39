//! What systemd is told of a service (sd_notify): that it is ready, that it is still at work, that it ends.

use braidcast_core::Instant;
use sd_notify::NotifyState;
use std::time::Duration;

/// A service at work, or a command that nobody supervises: then nothing is done.
pub(crate) struct Service {
    /// How often systemd is to hear of it: half of `WatchdogSec`.
    every: Option<Duration>,
    next: Instant,
}

impl Service {
    /// Everything is open: says so.
    pub(crate) fn ready(now: Instant) -> Self {
        let mut timeout = 0;
        let watched = sd_notify::watchdog_enabled(false, &mut timeout);
        tell(NotifyState::Ready);
        Self { every: watched.then(|| Duration::from_micros(timeout / 2)), next: now }
    }

    /// Called in each turn of the loop: says that it goes on, when that is due. Returns when the next turn must be.
    pub(crate) fn goes_on(&mut self, now: Instant) -> Option<Instant> {
        let every = self.every?;
        if now >= self.next {
            tell(NotifyState::Watchdog);
            self.next = now + every;
        }
        Some(self.next)
    }

    /// It ends: what takes long from here is no hang.
    pub(crate) fn ends(&self) {
        tell(NotifyState::Stopping);
    }
}

/// Nobody who does not hear it is worth ending a stream for.
fn tell(state: NotifyState<'_>) {
    let _nobody_listens = sd_notify::notify(false, &[state]);
}
