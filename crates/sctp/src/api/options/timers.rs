use super::LEAST_TIME;
use crate::cookie::CookieJar;
use braidcast_cc::RtoBounds;
use braidcast_core::Misuse;
use core::time::Duration;

/// How long an association waits, and how often it tries before it abandons.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct TimerOptions {
    /// Limits of the retransmission timeout: 1 ms to a day each, and none above `max`. Default RFC
    /// 9260: 1 s, 1 s, 60 s.
    pub rto: RtoBounds,
    /// Timeouts in a row, over all paths, after which the association ends
    /// (Association.Max.Retrans, RFC 9260 §8.1). Default 10. `None`: they are not counted, as the
    /// more paths there are the sooner they add up.
    pub association_max_retrans: Option<u32>,
    /// How long no path may answer before the association ends, 1 ms or more. Default `None`: for
    /// ever, unless the timeouts are counted.
    pub give_up: Option<Duration>,
    /// How long at most a packet may be overtaken by later ones over its path before it counts as lost, where SACKs
    /// come back over another path ([`SackPath::Quickest`](crate::SackPath::Quickest)); 1 ms or more. Each repeat
    /// that was not needed adds as much. Default `None`: a quarter of the shortest round trip (RFC 8985 §6.2), which
    /// is the limit in any case.
    pub reordering: Option<Duration>,
    /// How often INIT and COOKIE ECHO are repeated (Max.Init.Retransmits). Default 8.
    pub max_init_retransmits: u32,
    /// INIT, and COOKIE ECHO when it is repeated, go over all paths at once, and again after so
    /// long at most, 1 ms or more: one path that works is enough for the handshake to take no
    /// longer than that. Default `None`: over one path after the other, after an initial RTO that
    /// doubles (RFC 9260 §5.1).
    pub open_over_all: Option<Duration>,
    /// How long a cookie is good for (Valid.Cookie.Life), 1 ms to an hour, as its secret changes then. Default 60 s.
    pub cookie_life: Duration,
}

impl Default for TimerOptions {
    fn default() -> Self {
        Self {
            rto: RtoBounds::default(),
            association_max_retrans: Some(10),
            give_up: None,
            reordering: None,
            max_init_retransmits: 8,
            open_over_all: None,
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
        if let Some(give_up) = self.give_up {
            Misuse::below("timers.give_up", give_up, LEAST_TIME)?;
        }
        if let Some(reordering) = self.reordering {
            Misuse::below("timers.reordering", reordering, LEAST_TIME)?;
        }
        if let Some(open_over_all) = self.open_over_all {
            Misuse::below("timers.open_over_all", open_over_all, LEAST_TIME)?;
        }
        Misuse::unless_within("timers.cookie_life", self.cookie_life, LEAST_TIME..=CookieJar::ROTATION)
    }
}
