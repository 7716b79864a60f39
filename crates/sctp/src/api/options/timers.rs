use braidcast_cc::RtoBounds;
use core::time::Duration;

/// How long an association waits, and how often it tries before it gives up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TimerOptions {
    /// Limits of the retransmission timeout. Default RFC 9260: 1 s, 1 s, 60 s.
    pub rto: RtoBounds,
    /// Timeouts in a row, over all paths, after which the association ends (Association.Max.Retrans). Default 10.
    pub association_max_retrans: u32,
    /// How often INIT and COOKIE ECHO are repeated (Max.Init.Retransmits). Default 8.
    pub max_init_retransmits: u32,
    /// How long a cookie is good for (Valid.Cookie.Life). Default 60 s.
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
