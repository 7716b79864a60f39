use braidcast_core::Instant;
use core::time::Duration;

/// What a path waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Timer {
    /// T3-rtx (RFC 9260 §6.3): nothing that is out was acknowledged for an RTO.
    Retransmission,
    /// Probe of a tail that nobody answers (RFC 8985 §7).
    Probe,
    /// A packet overtaken by later ones becomes lost (RFC 8985 §6.3).
    Reordering,
    /// F-Timer: FORWARD-TSN is repeated (PRCMT §4.3).
    Forward,
}

/// When each timer of a path expires. Heartbeats and MTU probes keep their own times.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TimerTable {
    expiries: [Option<Instant>; 4],
}

impl TimerTable {
    pub(crate) const fn set(&mut self, timer: Timer, expiry: Instant) {
        self.expiries[timer as usize] = Some(expiry);
    }

    /// Sets the timer unless it runs.
    pub(crate) fn start(&mut self, timer: Timer, expiry: Instant) {
        self.expiries[timer as usize].get_or_insert(expiry);
    }

    /// Sets the timer, or stops it where there is nothing to wait for.
    pub(crate) const fn set_or_stop(&mut self, timer: Timer, expiry: Option<Instant>) {
        self.expiries[timer as usize] = expiry;
    }

    pub(crate) const fn stop(&mut self, timer: Timer) {
        self.expiries[timer as usize] = None;
    }

    pub(crate) fn is_expired(&self, timer: Timer, now: Instant) -> bool {
        self.expiries[timer as usize].is_some_and(|expiry| expiry <= now)
    }

    /// Stops the timer if it has expired. Returns `true` if it had.
    pub(crate) fn take_expired(&mut self, timer: Timer, now: Instant) -> bool {
        self.expiries[timer as usize].take_if(|expiry| *expiry <= now).is_some()
    }

    /// Puts all that run off by `late`.
    pub(crate) fn put_off(&mut self, late: Duration) {
        self.expiries.iter_mut().flatten().for_each(|expiry| *expiry += late);
    }

    /// When the next one expires.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.expiries.iter().flatten().copied().min()
    }
}
