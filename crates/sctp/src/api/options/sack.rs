use crate::api::SackPath;
use braidcast_core::Misuse;
use core::time::Duration;

/// When a receiver acknowledges (RFC 9260 §6.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SackOptions {
    /// Packets with data after which a SACK goes out, 1 or more. Default 2.
    pub every: u32,
    /// Longest wait, 500 ms at most. Default 200 ms.
    pub delay: Duration,
    /// Delayed acknowledgement for CMT, "DAC": reordering, which several paths always bring, does not force a SACK.
    /// Default true, as loss detection counts time and does not need the early report.
    pub dac: bool,
    /// Over which path it goes back. Default in rotation.
    pub path: SackPath,
}

impl Default for SackOptions {
    fn default() -> Self {
        Self { every: 2, delay: Duration::from_millis(200), dac: true, path: SackPath::default() }
    }
}

impl SackOptions {
    /// The longest `delay` (RFC 9260 §6.2).
    pub const MAX_DELAY: Duration = Duration::from_millis(500);

    pub(super) fn check(&self) -> Result<(), Misuse> {
        Misuse::below("sack.every", self.every, 1)?;
        Misuse::unless_within("sack.delay", self.delay, Duration::ZERO..=Self::MAX_DELAY)
    }
}
