use braidcast_core::named;
use core::fmt;
use core::str::FromStr;
use core::time::Duration;

/// How packet size and round trip go into the rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Variant {
    /// TFRC (RFC 5348), CCID3 (RFC 4342).
    #[default]
    Tfrc,
    /// TFRC-SP (RFC 4828), CCID4 (RFC 5622).
    TfrcSp,
    /// TFRC-SP whose initial rate is that of 1460-byte packets too (THESIS §4.5.1, eq. 4.7).
    Ccid4N,
    /// The same with a nominal RTT for the initial rate, 100 ms unless told otherwise (THESIS §4.5.3, eq. 4.13).
    Ccid4N100,
}

impl Variant {
    /// Returns `true` if it is one of the small-packet kind.
    pub const fn small_packets(self) -> bool {
        !matches!(self, Self::Tfrc)
    }

    /// How often its receiver reports unless told otherwise (THESIS §4.5.2).
    pub const fn feedback(self) -> FeedbackRate {
        match self {
            Self::Tfrc | Self::TfrcSp => FeedbackRate::Times(1),
            Self::Ccid4N | Self::Ccid4N100 => FeedbackRate::Dynamic,
        }
    }
}

/// Which edition of TFRC the sender obeys (THESIS table 4.9 says how they differ).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Rules {
    /// RFC 3448: starts at one packet per RTT, twice the last receive rate is the limit, two packets per RTT after
    /// idling.
    Rfc3448,
    /// RFC 3448 as RFC 4342 §5 and §5.1 amend it for CCID 3: starts at up to four packets per RTT
    /// (RFC 3390; THESIS eq. 4.3), which is also what idling leaves.
    Rfc4342,
    /// RFC 5348: starts at up to four packets per RTT, remembers two RTTs of receive rates, spares data-limited
    /// senders.
    #[default]
    Rfc5348,
}

/// How many times in a round trip the receiver reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FeedbackRate {
    /// As many times; 1 is standard, 0 counts as 1.
    Times(u8),
    /// Once per 100 ms of round trip, as far as packets come that often (THESIS eq. 4.8).
    Dynamic,
    /// The same with another RTT_ref than 100 ms; zero counts as 1 ms.
    Each(Duration),
}

impl Default for FeedbackRate {
    fn default() -> Self {
        Self::Times(1)
    }
}

impl FeedbackRate {
    /// RTT_ref of THESIS eq. 4.8.
    const REFERENCE_RTT: Duration = Duration::from_millis(100);

    /// N_Fb of THESIS eq. 4.8: 1.0 or more, and at most 255.
    ///
    /// `recv_rate` in bytes per second and mean packet size `s` in bytes limit it to a packet for each report.
    pub fn per_rtt(self, rtt: Duration, recv_rate: f64, s: f64) -> f64 {
        let reference = match self {
            Self::Times(n) => return f64::from(n.max(1)),
            Self::Dynamic => Self::REFERENCE_RTT,
            Self::Each(reference) => reference.max(Duration::from_millis(1)),
        };
        let (rtt, reference) = (rtt.as_secs_f64(), reference.as_secs_f64());
        (rtt / reference).round().max(1.0).min(rtt * recv_rate / s.max(1.0)).clamp(1.0, 255.0)
    }
}

named! {
    /// Every variant, by the name that options and scenarios use.
    Variant, "TFRC variant" {
        "tfrc" => Tfrc,
        "tfrc-sp" => TfrcSp,
        "ccid4-n" => Ccid4N,
        "ccid4-n100" => Ccid4N100,
    }
}

named! {
    /// All of them, by the name that options and scenarios use.
    Rules, "edition of TFRC" {
        "rfc3448" => Rfc3448,
        "rfc4342" => Rfc4342,
        "rfc5348" => Rfc5348,
    }
}

impl FromStr for FeedbackRate {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name.parse() {
            Ok(n @ 1..) => Ok(Self::Times(n)),
            _ if name == "dynamic" => Ok(Self::Dynamic),
            _ => match name.strip_suffix("ms").map(str::parse) {
                Some(Ok(ms @ 1..=10_000)) => Ok(Self::Each(Duration::from_millis(ms))),
                _ => Err(format!(
                    "'{name}' is not a number of reports per RTT; give 1 to 255, a time for one report of 1ms to 10000ms, or \
                     'dynamic', which is 100ms"
                )),
            },
        }
    }
}

impl fmt::Display for FeedbackRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Times(n) => n.fmt(f),
            Self::Dynamic => f.write_str("dynamic"),
            Self::Each(reference) => write!(f, "{}ms", reference.as_millis()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_both_ways() {
        for (name, it) in Variant::ALL {
            assert_eq!((name.parse(), it.to_string().as_str()), (Ok(it), name));
        }
        for (name, it) in Rules::ALL {
            assert_eq!((name.parse(), it.to_string().as_str()), (Ok(it), name));
        }
        let each = FeedbackRate::Each(Duration::from_millis(250));
        let rates = [
            ("1", FeedbackRate::Times(1)),
            ("7", FeedbackRate::Times(7)),
            ("dynamic", FeedbackRate::Dynamic),
            ("250ms", each),
        ];
        for (name, it) in rates {
            assert_eq!((name.parse(), it.to_string().as_str()), (Ok(it), name));
        }
        assert!("0".parse::<FeedbackRate>().is_err() && "256".parse::<FeedbackRate>().is_err());
        assert!(["0ms", "10001ms", "-1ms", "1.5ms"].iter().all(|name| name.parse::<FeedbackRate>().is_err()));
        assert!("ccid9".parse::<Variant>().unwrap_err().to_string().contains("tfrc-sp"));
    }

    /// THESIS eq. 4.8 with 20 ms voice packets of 160 bytes.
    #[test]
    fn dynamic_feedback() {
        let n = |rtt, rate| FeedbackRate::Dynamic.per_rtt(Duration::from_millis(rtt), rate, 160.0);
        assert_eq!([n(40, 8000.0), n(100, 8000.0), n(600, 8000.0), n(1040, 8000.0)], [1.0, 1.0, 6.0, 10.0]);
        assert_eq!(n(1000, 480.0), 3.0, "no more reports than packets");
        assert_eq!(n(1000, 0.0), 1.0);
        let each = |reference| {
            FeedbackRate::Each(Duration::from_millis(reference)).per_rtt(Duration::from_millis(600), 8000.0, 160.0)
        };
        assert_eq!([each(0), each(50), each(100), each(200), each(2000)], [30.0, 12.0, 6.0, 3.0, 1.0]);
    }
}
