//! What can be typed. Parsing only: no file is opened and no name resolved here.

pub(crate) mod advice;
pub(crate) mod brief;
pub(crate) mod dccp;
mod demo;
pub(crate) mod destination;
mod doctor;
mod emulate;
mod encode;
pub(crate) mod entrances;
mod generate;
mod key;
mod lab;
mod listen;
pub(crate) mod media;
mod meet;
pub(crate) mod neighbour;
pub(crate) mod one_path;
mod perf;
pub(crate) mod rates;
mod receive;
mod relay;
pub(crate) mod rtmp;
mod scheme;
mod send;
mod serve;
mod survey;
mod tunnel;
pub(crate) mod values;
pub(crate) mod via;
mod viz;
mod watch;

pub(crate) use demo::DemoArgs;
pub(crate) use doctor::DoctorArgs;
pub(crate) use emulate::EmulateArgs;
pub(crate) use encode::EncodeArgs;
pub(crate) use generate::{GenerateArgs, Generated};
pub(crate) use key::{KeyArgs, KeyCommand, SharedArgs};
pub(crate) use lab::{LabArgs, LabCheckArgs, LabClipArgs, LabCommand, LabKind, LabListArgs, LabReportArgs, LabRunArgs};
pub(crate) use meet::MeetArgs;
pub(crate) use perf::{PerfArgs, PerfClientArgs, PerfCommand, PerfDccpArgs, PerfServerArgs};
pub(crate) use receive::ReceiveArgs;
pub(crate) use relay::RelayArgs;
pub(crate) use send::{SendArgs, StreamArgs};
pub(crate) use survey::{LabSurveyArgs, SurveyEncoder};
pub(crate) use tunnel::{TunnelArgs, TunnelClientArgs, TunnelCommand, TunnelEndArgs, TunnelServerArgs};
pub(crate) use viz::VizArgs;
pub(crate) use watch::{FiguresArgs, WatchArgs};

use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// Live video and voice over several bad networks at once, on time
#[derive(Parser, Debug)]
#[command(name = "braidcast", version, subcommand_required = true)]
#[command(after_help = "\
`braidcast COMMAND -h` shows on one screen what a command needs, `braidcast COMMAND --help` all that it takes.
Exit status: 0 done, 1 failed, 2 wrong use. NO_COLOR is obeyed.")]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Flags that every subcommand takes.
#[derive(Args, Debug)]
#[command(next_help_heading = "Everywhere")]
pub(crate) struct Common {
    /// Print one JSON document on stdout when done, and nothing else there
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print only errors and warnings on stderr while running
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Say more on stderr: -v what happens to paths and connections, -vv what is lost, dropped or
    /// late and why. RUST_LOG chooses among these, for example braidcast::frames=debug
    #[arg(long, short, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// TOML file with flags, one section for each subcommand, for example [send]; flags on the command line win
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// The subcommands, in the order in which help shows them.
#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// See it work on this machine: bad Wi-Fi, a fading LTE uplink, and both together
    Demo(DemoArgs),
    /// Receive a stream and write it out on time
    Receive(ReceiveArgs),
    /// Send a stream over one or several networks
    Send(SendArgs),
    /// Encode a camera, a screen, a file or a test video at the rate that the networks carry, and send it
    Encode(Box<EncodeArgs>),
    /// Carry any application's UDP, at a fair rate over DCCP, or over several networks over SCTP
    Tunnel(Box<TunnelArgs>),
    /// Let two ends meet that nobody can call: pass on between them what it cannot read
    Relay(RelayArgs),
    /// Say what is between this machine and the other end, and what to do about it
    Doctor(DoctorArgs),
    /// Make keys for --key
    Key(KeyArgs),
    /// Measure throughput and latency
    Perf(PerfArgs),
    /// Stand in for a bad network: a link in real time between UDP ports, no root needed
    Emulate(Box<EmulateArgs>),
    /// Ask what would happen on a network: experiments by name, in the simulator
    Lab(LabArgs),
    /// Show traces: a page with the exchange of packets, paths over time, frames and what became of them
    Viz(VizArgs),
    /// Make man pages, completions or a page of the manual
    #[command(hide = true)]
    Generate(GenerateArgs),
}
