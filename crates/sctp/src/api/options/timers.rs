use super::LEAST_TIME;
use crate::cookie::CookieJar;
use braidcast_cc::RtoBounds;
use braidcast_core::Misuse;
use core::time::Duration;

/// How long an association waits, and how often it tries before it gives up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TimerOptions {
    /// Limits of the retransmission timeout: 1 ms to a day each, and none above `max`. Default RFC 9260: 1 s, 1 s, 60 s.
    pub rto: RtoBounds,
    /// Timeouts in a row, over all paths, after which the association ends (Association.Max.Retrans). Default 10.
    pub association_max_retrans: u32,
    /// How often INIT and COOKIE ECHO are repeated (Max.Init.Retransmits). Default 8.
    pub max_init_retransmits: u32,
    /// How long a cookie is good for (Valid.Cookie.Life), 1 ms to an hour, as its secret changes then. Default 60 s.
    pub cookie_life: Duration,
}

impl Default for TimerOptions {
    fn default() -> Self {
        Self {
            rto: RtoBounds::default(),
            association_max_retrans: 10,
            max_init_retransmits: 8,
            cookie_life: Duration::from_secs(60),
        }
    }
}

impl TimerOptions {
    /// The longest retransmission timeout.
    const LONGEST_RTO: Duration = Duration::from_secs(24 * 3600);

    pub(super) fn check(&self) -> Result<(), Misuse> {
        let rto = &self.rto;
        Misuse::unless_within("timers.rto.min", rto.min, LEAST_TIME..=Self::LONGEST_RTO)?;
        Misuse::unless_within("timers.rto.initial", rto.initial, LEAST_TIME..=Self::LONGEST_RTO)?;
        Misuse::unless_within("timers.rto.max", rto.max, LEAST_TIME..=Self::LONGEST_RTO)?;
        Misuse::above("timers.rto.min", rto.min, "timers.rto.max", rto.max)?;
        Misuse::above("timers.rto.initial", rto.initial, "timers.rto.max", rto.max)?;
        Misuse::unless_within("timers.cookie_life", self.cookie_life, LEAST_TIME..=CookieJar::ROTATION)
    }
}
