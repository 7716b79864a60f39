//! Rates of encoders.

use super::values::{self, StatsTarget};
use braidcast_session::RateLimits;
use braidcast_sim::link::parse;
use clap::Args;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

/// What encoders are told, for all commands that know.
#[derive(Args, Debug)]
pub(crate) struct RateArgs {
    /// Write the rate for an encoder, a line of JSON each time, to a file or named pipe; - is stdout, sse:8081 serves
    /// them as server-sent events on this machine (sse:ADDR:PORT elsewhere)
    #[arg(long, value_name = "FILE|-|sse:PORT", value_parser = report_target)]
    pub(crate) rate_report: Option<ReportTarget>,
    /// How often the rate for an encoder is reported
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = rate_interval)]
    pub(crate) rate_interval: Duration,
    /// Lowest and highest rate that the encoder can make
    #[arg(long, value_name = "RATE-RATE", default_value_t = RateRange::default(), value_parser = rate_range)]
    pub(crate) rate_range: RateRange,
}

/// How often an encoder is told.
pub(crate) fn rate_interval(text: &str) -> Result<Duration, String> {
    let each = parse::duration(text.trim()).map_err(|error| error.to_string())?;
    if each < Duration::from_millis(20) || each > Duration::from_secs(60) {
        return Err("the rate is reported every 20ms to 60s: write for example 100ms".into());
    }
    Ok(each)
}

/// Destination of rate reports.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum ReportTarget {
    /// Lines of JSON.
    Lines(StatsTarget),
    /// Server-sent events at this address.
    Events(SocketAddr),
}

/// `-`, a file, or `sse:[ADDR:]PORT`.
pub(crate) fn report_target(text: &str) -> Result<ReportTarget, String> {
    match text.trim().strip_prefix("sse:") {
        Some(at) => values::serve_at(at).map(ReportTarget::Events),
        None => values::stats_target(text).map(ReportTarget::Lines),
    }
}

/// A mean opinion score to be reached.
pub(crate) fn target_quality(text: &str) -> Result<f64, String> {
    let mos = text.trim().parse().ok().filter(|mos: &f64| (1.0..=5.0).contains(mos));
    mos.ok_or_else(|| {
        format!("'{text}' is not a mean opinion score: write a number of 1 (bad) to 5 (excellent), for example 4")
    })
}

/// What an encoder is able to make, bit/s.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct RateRange(pub(crate) RateLimits);

impl fmt::Display for RateRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RateLimits { least, greatest } = self.0;
        write!(f, "{}-{}", in_words(least), in_words(greatest))
    }
}

/// Returns `rate`, bit/s, as it is typed.
fn in_words(rate: u64) -> String {
    let units = [(1_000_000, "mbit"), (1_000, "kbit")];
    let whole = units.into_iter().find(|(unit, _)| rate >= *unit && rate.is_multiple_of(*unit));
    whole.map_or_else(|| format!("{rate}bit"), |(unit, name)| format!("{}{name}", rate / unit))
}

/// `LEAST-GREATEST`.
pub(crate) fn rate_range(text: &str) -> Result<RateRange, String> {
    let example = "write the least and the greatest rate, for example 300kbit-8mbit";
    let (least, greatest) = text.split_once('-').ok_or_else(|| format!("'{text}' is not a range: {example}"))?;
    let rate = |text: &str| parse::rate(text.trim()).map_err(|error| error.to_string());
    let (least, greatest) = (rate(least)?, rate(greatest)?);
    if least == 0 || least > greatest {
        return Err(format!(
            "'{text}' is not a range, as the first rate must be above 0 and no more than the second: {example}"
        ));
    }
    Ok(RateRange(RateLimits { least, greatest }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_two_rates_and_the_first_is_no_more_than_the_second() {
        let range = rate_range("300kbit-8mbit").unwrap();
        assert_eq!((range.0.least, range.0.greatest, range.to_string()), (300_000, 8_000_000, "300kbit-8mbit".into()));
        assert_eq!(rate_range(&RateRange::default().to_string()), Ok(RateRange::default()));
        for wrong in ["8mbit", "8mbit-300kbit", "0bit-1mbit", "1-2", "-", ""] {
            assert!(rate_range(wrong).is_err(), "{wrong}");
        }
        assert!(target_quality("4.2") == Ok(4.2) && target_quality("0").is_err() && target_quality("good").is_err());
        assert_eq!(report_target("sse:8081"), Ok(ReportTarget::Events(([127, 0, 0, 1], 8081).into())));
        assert!(report_target("sse:").is_err() && report_target("sse:nowhere").is_err());
        assert_eq!(report_target("-"), Ok(ReportTarget::Lines(StatsTarget::Stdout)));
        assert!(rate_interval("1ms").is_err() && rate_interval("2h").is_err() && rate_interval("20ms").is_ok());
    }
}
