use crate::api::SackPath;
use core::time::Duration;

/// When a receiver acknowledges (RFC 9260 §6.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SackOptions {
    /// Packets with data after which a SACK goes out. Default 2.
    pub every: u32,
    /// Longest wait. Default 200 ms; at most 500 ms.
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
