use super::{LabSurveyArgs, values};
use braidcast_sim::link::parse;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

/// `braidcast lab`.
#[derive(Args, Debug)]
pub(crate) struct LabArgs {
    #[command(subcommand)]
    pub(crate) command: LabCommand,
}

/// What to do with experiments.
#[derive(Subcommand, Debug)]
pub(crate) enum LabCommand {
    /// List the experiments, or what a scenario can contain
    List(LabListArgs),
    /// Run experiments, many times each, and compare with published values and ns-2's
    Run(LabRunArgs),
    /// Make one HTML page of all results
    Report(LabReportArgs),
    /// Try every claim in fewer and shorter runs, and say which verdicts differ from a list
    Check(LabCheckArgs),
    /// Make a clip (sizes and times of frames) from a recording, for `live` experiments
    Clip(LabClipArgs),
    /// Draw sets of links at random, and count where one more link makes it worse
    Survey(LabSurveyArgs),
}

/// `braidcast lab list`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  braidcast lab list
  braidcast lab list traffic
  braidcast lab list keys sctp")]
pub(crate) struct LabListArgs {
    /// What to name
    #[arg(value_name = "WHAT", value_enum, default_value_t = LabKind::Experiments)]
    pub(crate) what: LabKind,
    /// Only this section of `keys`, for example live
    #[arg(value_name = "SECTION")]
    pub(crate) section: Option<String>,
}

/// What `braidcast lab list` names.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum LabKind {
    /// Scenarios inside, for `lab run NAME`
    Experiments,
    /// The code that measures, for `experiment = "NAME"`
    Measures,
    /// Words for `source` in `[traffic]`
    Traffic,
    /// Words for the values in [link.NAME]
    Links,
    /// Every section of a scenario and its keys: options of the protocols and of `send`
    Keys,
}

/// `braidcast lab check`.
#[derive(Args, Debug)]
#[command(after_help = "\
A verdict that differs is tried again with other seeds, four times at most. If it differs each time, it has changed: then the exit status is 1.

Examples:
  braidcast lab check
  braidcast lab check cmt-loss fairness
  braidcast lab check --seed 501
  braidcast lab check cmt-loss --update")]
pub(crate) struct LabCheckArgs {
    /// Experiments of the list [default: all]
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// The list of verdicts
    #[arg(long, value_name = "FILE", default_value = "crates/lab/verdicts.toml")]
    pub(crate) list: PathBuf,
    /// Seed of the first run at each point; further tries have others
    #[arg(long, value_name = "S", default_value_t = 1, allow_negative_numbers = true, value_parser = values::seed)]
    pub(crate) seed: u64,
    /// Write into the list the verdicts that most of five tries come to; adds experiments that are named
    #[arg(long)]
    pub(crate) update: bool,
}

/// `braidcast lab clip`.
#[derive(Args, Debug)]
#[command(after_help = "\
A clip is text, a line for each frame: MS BYTES KIND [PTS].

Example:
  braidcast lab clip my-camera.ts --out my-camera.clip")]
pub(crate) struct LabClipArgs {
    /// The recording, an MPEG transport stream
    #[arg(value_name = "FILE")]
    pub(crate) input: PathBuf,
    /// The clip to write [default: stdout]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

/// `braidcast lab run`.
#[derive(Args, Debug)]
#[command(after_help = "\
Results are kept in files too, for `braidcast lab report`. Ctrl-C ends early and keeps what is done.

Examples:
  braidcast lab run cmt-rtt-asymmetry
  braidcast lab run all --runs 10
  braidcast lab run my-network.toml --variant sack --param rtt=50ms --seed 7 --runs 1
  braidcast lab run live-two --seed 7 --viz --open")]
pub(crate) struct LabRunArgs {
    /// Experiments by name, scenario files by path, or `all`
    #[arg(value_name = "NAME", required = true)]
    pub(crate) names: Vec<String>,
    /// Runs at each point, each with a seed of its own [default: as the scenario says]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) runs: Option<u32>,
    /// Seed of the first run; the others count up from it
    #[arg(long, value_name = "S", default_value_t = 1, allow_negative_numbers = true, value_parser = values::seed)]
    pub(crate) seed: u64,
    /// How long each run measures [default: as the scenario says]
    #[arg(long, value_name = "TIME", value_parser = parse::duration)]
    pub(crate) duration: Option<Duration>,
    /// Only this variant
    #[arg(long, value_name = "NAME")]
    pub(crate) variant: Option<String>,
    /// Only points where the parameter has this value; repeatable
    #[arg(long, value_name = "NAME=VALUE", value_parser = param)]
    pub(crate) param: Vec<(String, String)>,
    /// On real sockets of this machine with emulated links, in real time, instead of in the simulator
    #[arg(long)]
    pub(crate) real_time: bool,
    /// Print the rows as CSV on stdout
    #[arg(long, conflicts_with = "json")]
    pub(crate) csv: bool,
    /// Folder for results
    #[arg(long, value_name = "DIR", default_value = "lab-results")]
    pub(crate) results: PathBuf,
    /// Do only the first run that --variant, --param and --seed leave, and write what happens
    /// inside each host, for `braidcast viz`. With run.trace the files are run.FLOW.sender.trace
    /// and run.FLOW.receiver.trace. Results are printed, not kept
    #[arg(long, value_name = "FILE", help_heading = "Look inside")]
    pub(crate) trace: Option<PathBuf>,
    /// Show that run on a page for each flow [traces: DIR/NAME.trace unless --trace says where]
    #[arg(long, help_heading = "Look inside")]
    pub(crate) viz: bool,
    /// Open the pages in the browser
    #[arg(long, requires = "viz", help_heading = "Look inside")]
    pub(crate) open: bool,
}

/// `braidcast lab report`.
#[derive(Args, Debug)]
pub(crate) struct LabReportArgs {
    /// The page to write
    #[arg(long, value_name = "FILE", default_value = "lab-report.html")]
    pub(crate) out: PathBuf,
    /// Folder with results
    #[arg(long, value_name = "DIR", default_value = "lab-results")]
    pub(crate) results: PathBuf,
}

fn param(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!("'{text}' is not NAME=VALUE")),
    }
}
