use super::values;
use braidcast_lab::survey::{Kind, MAX_LINKS, Without};
use braidcast_sim::link::parse;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

/// `braidcast lab survey`.
#[derive(Args, Debug)]
#[command(after_help = "\
A set is hurt if all links together show over 1 point less of the frames than the best subset of them.
Ctrl-C ends early, and the same command goes on from there.
Choose constants on surveys with even seeds, and judge them on odd ones.

Examples:
  braidcast lab survey
  braidcast lab survey --links 3 --load 1.1,2.5 --latency 1s --seed 3
  braidcast lab survey --beside scheduler=ecf --beside 'scheduler=ecf; fec=tetrys:10,9,43'
  braidcast lab survey --kinds drawn,operators --sets 200 --json
  braidcast lab survey --links 3 --load 1.1,2.5 --without loss,changes
  braidcast lab survey --bulk --buffer 64KiB --runs 2 --duration 40s --beside scheduler=blest
  braidcast lab survey --encoder follow
  braidcast lab survey --set-index 17 --scenario set-17.toml")]
pub(crate) struct LabSurveyArgs {
    /// How many sets of links to draw
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) sets: u32,
    /// Links of each set: a number, or a range to draw it from
    #[arg(long, value_name = "N", default_value = "2", value_parser = links)]
    pub(crate) links: (usize, usize),
    /// The stream's rate over that of the first link, drawn between these; above 1 that link alone is too slow
    #[arg(long, value_name = "A,B", default_value = "0.45,1", value_parser = load)]
    pub(crate) load: (f64, f64),
    /// Sources of links: drawn rates and steps, or pieces of recordings; several with commas between
    #[arg(long, value_name = "KIND", value_delimiter = ',', default_value = "drawn", value_parser = kind())]
    pub(crate) kinds: Vec<Kind>,
    /// Spare the same links what they were drawn with, to see what it costs: losses, changes of rate and outages, or
    /// distance (10 ms then); several with commas between
    #[arg(long, value_name = "WHAT", value_delimiter = ',', value_parser = without())]
    pub(crate) without: Vec<Without>,
    /// End-to-end latency
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = values::latency)]
    pub(crate) latency: Duration,
    /// The clip that is sent: test-1.7, test-3.6, bunny-1.7 or bunny-3.6
    #[arg(long, value_name = "NAME", default_value = "test-3.6")]
    pub(crate) clip: String,
    /// Seed of all that is drawn
    #[arg(long, value_name = "S", default_value_t = 1, allow_negative_numbers = true, value_parser = values::seed)]
    pub(crate) seed: u64,
    /// Runs over each subset of a set, each with a seed of its own
    #[arg(long, value_name = "R", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) runs: u32,
    /// How long each run measures
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    pub(crate) duration: Duration,
    /// A setting for all, for example scheduler=ecf: a key of `[live]`, or a whole one; repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// The same sets again with these settings on top, `;` between them, as a further line of the table; repeatable
    #[arg(long, value_name = "SETTINGS")]
    pub(crate) beside: Vec<String>,
    /// How many of the worst sets to name
    #[arg(long, value_name = "N", default_value_t = 12)]
    pub(crate) show: usize,
    /// Folder for what is done until all is, and then for the sums, for `lab report`
    #[arg(long, value_name = "DIR", default_value = "lab-results")]
    pub(crate) results: PathBuf,
    /// Video whose encoder follows, in place of a clip: is it on time, does it freeze, what rate does it reach?
    #[arg(long, value_name = "HOW", value_enum, conflicts_with_all = ["bulk", "clip"])]
    pub(crate) encoder: Option<SurveyEncoder>,
    /// Bulk transfers over SCTP in place of a clip: is it ever slower over all links?
    #[arg(long, conflicts_with_all = ["load", "latency", "clip"], help_heading = "Bulk transfers")]
    pub(crate) bulk: bool,
    /// Their receive buffer, for example 64KiB [default: that of SCTP]
    #[arg(long, value_name = "SIZE", requires = "bulk", value_parser = values::size, help_heading = "Bulk transfers")]
    pub(crate) buffer: Option<u64>,
    /// Only the set of this number, and all that is measured of it
    #[arg(long, value_name = "I", help_heading = "One set", value_parser = clap::value_parser!(u32).range(0..=9_999))]
    pub(crate) set_index: Option<u32>,
    /// Write that set as a scenario for `lab run FILE --viz`, and run nothing
    #[arg(long, value_name = "FILE", requires = "set_index", help_heading = "One set")]
    pub(crate) scenario: Option<PathBuf>,
}

/// How an encoder sets its rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum SurveyEncoder {
    /// Each frame is what the sender says it may be, as with `braidcast encode`
    Follow,
}

fn links(text: &str) -> Result<(usize, usize), String> {
    let (least, most) = text.split_once("..").unwrap_or((text, text));
    let number = |text: &str| text.trim_start_matches('=').parse().ok().filter(|it| (2..=MAX_LINKS).contains(it));
    let range = number(least).zip(number(most)).filter(|(least, most)| least <= most);
    range.ok_or_else(|| format!("'{text}' is not 2 to {MAX_LINKS} links; write for example 3 or 2..4"))
}

fn load(text: &str) -> Result<(f64, f64), String> {
    let number = |text: &str| text.trim().parse().ok().filter(|it| (0.01..=100.0).contains(it));
    let range = text.split_once(',').and_then(|(low, high)| number(low).zip(number(high)));
    let range = range.filter(|(low, high)| low <= high);
    range.ok_or_else(|| format!("'{text}' is not a range of loads from 0.01 to 100; write for example 0.45,1"))
}

fn duration(text: &str) -> Result<Duration, String> {
    let duration = parse::duration(text).map_err(|e| e.to_string())?;
    let is_inside = (Duration::from_secs(1)..=Duration::from_secs(3600)).contains(&duration);
    if is_inside { Ok(duration) } else { Err(format!("'{text}' is not a length from 1s to 1h")) }
}

fn kind() -> impl TypedValueParser<Value = Kind> {
    PossibleValuesParser::new(Kind::ALL.map(|(name, _)| name)).try_map(|name| name.parse::<Kind>())
}

fn without() -> impl TypedValueParser<Value = Without> {
    PossibleValuesParser::new(Without::ALL.map(|(name, _)| name)).try_map(|name| name.parse::<Without>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_and_what_is_none_gets_an_example() {
        assert_eq!([links("3"), links("2..4"), links("2..=4")], [Ok((3, 3)), Ok((2, 4)), Ok((2, 4))]);
        for text in ["1", "9", "4..2", "two", ""] {
            assert!(links(text).unwrap_err().contains("for example 3 or 2..4"), "{text}");
        }
        assert_eq!(load("0.45, 1"), Ok((0.45, 1.0)));
        for text in ["1", "0,1", "2,1", "1,NaN", "a,b"] {
            assert!(load(text).unwrap_err().contains("for example 0.45,1"), "{text}");
        }
        assert!(duration("0s").unwrap_err().contains("1s to 1h"));
    }
}
