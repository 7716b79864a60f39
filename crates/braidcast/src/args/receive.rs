use super::values::{self, Accept, Listen, Output};
use super::{FiguresArgs, SharedArgs, WatchArgs};
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// `braidcast receive`.
#[derive(Args, Debug)]
#[command(after_help = "\
A file that is there already is neither overwritten nor continued, unless it is what an interrupted `receive` left: that goes on. \
While a stream is being written, FILE.braidcast beside it says which; a sender of a file (--reliable) goes on from there.

Examples:
  braidcast receive 9000 show.ts
  braidcast receive :9000 - | ffplay -
  braidcast receive 9000 show-%Y%m%d-%H%M%S.ts udp://127.0.0.1:5000 --keep --segment 10min
  braidcast receive 9000 --accept cam1=one.ts --accept cam2=udp://127.0.0.1:5002 --keep
  braidcast receive 192.0.2.1:9000,192.0.2.1:9001 {name}.ts --keep")]
pub(crate) struct ReceiveArgs {
    /// Where to listen: PORT or :PORT for every address of this machine, or ADDR:PORT; several with commas
    #[arg(value_name = "LISTEN", value_parser = values::listen)]
    pub(crate) listen: Listen,
    /// Where the stream goes: a FILE, - for stdout, or udp://HOST:PORT; several all get it. In a FILE {name} is the stream's name, and
    /// %Y %m %d %H %M %S are the time when it begins
    #[arg(value_name = "OUTPUT", value_parser = values::output, required_unless_present_any = ["accept", "authorized"], conflicts_with = "accept")]
    pub(crate) output: Vec<Output>,
    /// Take a stream of this name (`send --name`) to this output, beside the others; repeat for more
    #[arg(long, value_name = "NAME=OUTPUT", value_parser = values::accept)]
    pub(crate) accept: Vec<Accept>,
    /// Take only the senders in this file: a line for each has fingerprint and name, then an OUTPUT unless the command has one with
    /// {name}, and limits: max-rate=5mbit, until=2027-01-31. SIGHUP has it read again
    #[arg(long, value_name = "FILE", requires = "identity", conflicts_with_all = ["accept", "peer_key"])]
    pub(crate) authorized: Option<PathBuf>,
    /// Wait for the next sender when a stream ends
    #[arg(long)]
    pub(crate) keep: bool,
    /// Write behind what is in FILE already
    #[arg(long, conflicts_with = "overwrite")]
    pub(crate) append: bool,
    /// Replace what is in FILE already, once there is a stream
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Begin another file this often, at a picture that needs no other
    #[arg(long, value_name = "TIME", value_parser = values::segment)]
    pub(crate) segment: Option<Duration>,
    /// Hand frames out as soon as they are in order: the latency becomes a bound, not a constant wait
    #[arg(long)]
    pub(crate) early: bool,
    /// End a stream when its sender has been gone for so long; never: wait for as long as it takes [default: 5min, with --keep never]
    #[arg(long, value_name = "TIME|never", value_parser = values::patience)]
    pub(crate) give_up: Option<values::Patience>,
    #[command(flatten)]
    pub(crate) shared: SharedArgs,
    /// Write a line of CSV for each frame: when it was captured, when it arrived, whether it was on time
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
    /// Make the protocol's random choices repeatable
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) watch: WatchArgs,
    #[command(flatten)]
    pub(crate) figures: FiguresArgs,
}
