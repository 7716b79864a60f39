//! Rates of encoders.

use super::values::{self, StatsTarget};
use crate::failure::{Failure, Outcome};
use braidcast_session::RateLimits;
use braidcast_sim::link::parse;
use clap::Args;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

/// What encoders are told, for all commands that know.
#[derive(Args, Debug)]
#[command(next_help_heading = "Quality")]
pub(crate) struct RateArgs {
    /// Write the rate for an encoder, a line of JSON each time: to a FILE or named pipe, - (stdout), or sse:8081 for
    /// server-sent events on this machine (sse:ADDR:PORT elsewhere). Behind commas: interval=100ms, the limits of the
    /// encoder as range=300kbit-8mbit and, for `send`, mos=4: adds the mean opinion score of the rate (ITU-T G.1070)
    /// and what rate that score takes
    #[arg(long, value_name = "FILE|-|sse:PORT", value_parser = rate_report)]
    pub(crate) rate_report: Option<RateReport>,
    /// How often the rate for an encoder is reported
    #[arg(long, hide = true, value_name = "TIME", value_parser = rate_interval)]
    pub(crate) rate_interval: Option<Duration>,
    /// Lowest and highest rate that the encoder can make [default: 100kbit-50mbit]
    #[arg(long, hide = true, value_name = "RATE-RATE", value_parser = rate_range)]
    pub(crate) rate_range: Option<RateRange>,
}

impl RateArgs {
    /// How often the rate for an encoder is reported.
    pub(crate) fn interval(&self) -> Duration {
        let own = self.rate_report.as_ref().and_then(|it| it.interval);
        own.or(self.rate_interval).unwrap_or(INTERVAL)
    }

    /// What the encoder is able to make.
    pub(crate) fn range(&self) -> RateLimits {
        let own = self.rate_report.as_ref().and_then(|it| it.range);
        own.or(self.rate_range).unwrap_or_default().0
    }

    /// Refuses what is said twice, and what nothing is done with.
    pub(crate) fn check(&self, on_rate: bool) -> Outcome {
        let report = self.rate_report.as_ref();
        let twice = [
            ("interval", "--rate-interval", self.rate_interval.is_some(), report.and_then(|it| it.interval).is_some()),
            ("range", "--rate-range", self.rate_range.is_some(), report.and_then(|it| it.range).is_some()),
        ];
        if let Some((key, flag, ..)) = twice.into_iter().find(|(_, _, flag, key)| *flag && *key) {
            return Err(Failure::usage(
                format!("{key}= of --rate-report and {flag} say the same"),
                format!("leave out {flag}"),
            ));
        }
        if self.rate_interval.is_some() && report.is_none() && !on_rate {
            return Err(Failure::usage(
                "--rate-interval has no effect without --rate-report or --on-rate",
                "say where the report goes: --rate-report FILE, - or sse:PORT",
            ));
        }
        Ok(())
    }
}

/// How often an encoder is told if nothing says otherwise.
const INTERVAL: Duration = Duration::from_millis(100);

/// Destination of rate reports, and how they are made.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct RateReport {
    pub(crate) target: ReportTarget,
    pub(crate) interval: Option<Duration>,
    pub(crate) range: Option<RateRange>,
    /// A mean opinion score that is wanted.
    pub(crate) mos: Option<f64>,
}

/// `TARGET[,interval=TIME][,range=RATE-RATE][,mos=MOS]`.
pub(crate) fn rate_report(text: &str) -> Result<RateReport, String> {
    let (mut target, mut interval, mut range, mut mos) = (text, None, None, None);
    // From behind, as the name of a file may have commas.
    while let Some((before, option)) = target.rsplit_once(',') {
        let twice = match option.split_once('=') {
            Some(("interval", value)) => interval.replace(rate_interval(value)?).is_some(),
            Some(("range", value)) => range.replace(rate_range(value)?).is_some(),
            Some(("mos", value)) => mos.replace(target_quality(value)?).is_some(),
            Some((key, _)) if key.chars().all(|c| c.is_ascii_lowercase()) => {
                return Err(format!("'{key}=' is not known here: there are interval=, range= and mos="));
            }
            _ => break,
        };
        if twice {
            return Err(format!("'{option}' is there twice: give each once"));
        }
        target = before;
    }
    Ok(RateReport { target: report_target(target)?, interval, range, mos })
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
        let RateLimits { least, greatest, .. } = self.0;
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
    Ok(RateRange(RateLimits::new(least, greatest)))
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
        let report = rate_report("a,b.json,interval=50ms,range=1mbit-2mbit,mos=4").unwrap();
        assert_eq!(report.target, ReportTarget::Lines(StatsTarget::File("a,b.json".into())));
        assert_eq!((report.interval, report.mos), (Some(Duration::from_millis(50)), Some(4.0)));
        assert_eq!(report.range.unwrap().to_string(), "1mbit-2mbit");
        assert!(rate_report("x,rate=1").unwrap_err().contains("interval=, range= and mos="));
        assert!(rate_report("x,mos=9").unwrap_err().contains("mean opinion score"));
        assert!(rate_report("x,mos=4,mos=5").unwrap_err().contains("twice"));
        assert!(rate_interval("1ms").is_err() && rate_interval("2h").is_err() && rate_interval("20ms").is_ok());
    }
}
