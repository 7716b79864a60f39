use super::SharedArgs;
use super::values::{self, Listen, Output};
use clap::Args;
use std::path::PathBuf;

/// `braidcast receive`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  braidcast receive 9000 show.ts
  braidcast receive :9000 - | ffplay -
  braidcast receive 192.0.2.1:9000,192.0.2.1:9001 udp://127.0.0.1:5000 --keep")]
pub(crate) struct ReceiveArgs {
    /// Where to listen: PORT or :PORT for every address of this machine, or ADDR:PORT; several with commas
    #[arg(value_name = "LISTEN", value_parser = values::listen)]
    pub(crate) listen: Listen,
    /// Where the stream goes: a FILE, - for stdout, or udp://HOST:PORT
    #[arg(value_name = "OUTPUT", value_parser = values::output)]
    pub(crate) output: Output,
    /// Wait for the next sender when a stream ends
    #[arg(long)]
    pub(crate) keep: bool,
    /// Hand frames out as soon as they are in order: the latency becomes a bound, not a constant wait
    #[arg(long)]
    pub(crate) early: bool,
    /// End a stream when no path has answered for so long; never: wait for as long as it takes [default: 5min, with --keep never]
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
}
