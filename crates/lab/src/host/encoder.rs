//! An encoder whose rate is changed while it runs: the frames of a source, larger or smaller (THESIS §9.1).

use braidcast_core::Instant;
use braidcast_sim::link::{Schedule, parse};
use core::fmt;
use core::str::FromStr;
use core::time::Duration;

/// What an encoder follows.
#[derive(Clone, PartialEq, Debug)]
pub enum Rate {
    /// What congestion control allows; for the first second, in which nothing is known, this rate
    /// in bit/s.
    Allowed(u64),
    /// What somebody knows beforehand, bit/s from the first frame on.
    Known(Schedule),
}

/// What the word of [`Rate::Allowed`] begins with.
const ALLOWED: &str = "allowed:";

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let rate = match text.strip_prefix(ALLOWED) {
            Some(first) => parse::rate(first).map(Self::Allowed),
            None => parse::rate_schedule(text).map(Self::Known),
        };
        let example = "write for example allowed:1mbit or 0s:1mbit,15s:700kbit";
        rate.map_err(|_| format!("'{text}' is not a rate that an encoder follows; {example}"))
    }
}

/// Share of a rate that is payload: IP, UDP, DCCP and the headers that separate frames take the
/// rest.
const PAYLOAD: f64 = 0.93;
/// At this share of its own rate and below an encoder has no smaller frames.
const LEAST: f64 = 0.1;
/// Nothing is known before data has flowed.
const BLIND: Duration = Duration::from_secs(1);

/// An encoder that runs.
pub(super) struct Encoder {
    rate: Rate,
    /// What its source has, bit/s: no more is made.
    most: f64,
    begun: Option<Instant>,
}

impl Encoder {
    pub(super) const fn new(rate: Rate, most: f64) -> Self {
        Self { rate, most, begun: None }
    }

    /// How many times as large as its source says a frame is that is made at `now`, where
    /// congestion control allows `allowed` bytes in a second.
    pub(super) fn scale(&mut self, now: Instant, allowed: Option<f64>) -> f64 {
        let since = now.since(*self.begun.get_or_insert(now));
        let wanted = match &self.rate {
            Rate::Allowed(first) if since < BLIND => *first as f64,
            Rate::Allowed(first) => allowed.map_or(*first as f64, |bytes| bytes * 8.0 * PAYLOAD),
            Rate::Known(schedule) => schedule.value_at(Instant::ZERO + since) as f64 * PAYLOAD,
        };
        (wanted / self.most).clamp(LEAST, 1.0)
    }
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Encoder({:?}, {} bit/s at most)", self.rate, self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64) -> Instant {
        Instant::ZERO + Duration::from_secs_f64(seconds)
    }

    #[test]
    fn it_follows_what_is_allowed_between_a_tenth_of_its_rate_and_all_of_it() {
        let mut encoder = Encoder::new("allowed:500kbit".parse().unwrap(), 1e6);
        assert_eq!(encoder.scale(at(7.0), Some(1.0)), 0.5, "nothing is known in the first second");
        assert!((encoder.scale(at(8.5), Some(50_000.0)) - 0.4 * PAYLOAD).abs() < 1e-9);
        assert_eq!(encoder.scale(at(9.0), Some(1e6)), 1.0);
        assert_eq!(encoder.scale(at(9.1), Some(10.0)), LEAST);
        assert_eq!(encoder.scale(at(9.2), None), 0.5, "its congestion control names no rate");
    }

    #[test]
    fn what_is_known_counts_from_its_first_frame() {
        let mut encoder = Encoder::new("0s:1mbit,15s:500kbit".parse().unwrap(), 1e6);
        assert_eq!(encoder.scale(at(3.0), None), PAYLOAD);
        assert_eq!(encoder.scale(at(17.9), None), PAYLOAD);
        assert_eq!(encoder.scale(at(18.0), None), 0.5 * PAYLOAD);
    }

    #[test]
    fn what_is_no_rate_is_refused_with_an_example() {
        for text in ["allowed", "allowed:", "allowed:1mb", "5s:1mbit", "quick"] {
            let why = text.parse::<Rate>().unwrap_err();
            assert!(why.contains("write for example allowed:1mbit"), "{text}: {why}");
        }
    }
}
