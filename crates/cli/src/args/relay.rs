use super::values::{self, Listen, Stats};
use braidcast_sim::link::parse;
use clap::{ArgGroup, Args};
use std::net::SocketAddr;
use std::path::PathBuf;

/// `braidcast relay`.
#[derive(Args, Debug)]
#[command(group = ArgGroup::new("who").args(["authorized", "open"]).required(true), after_help = "\
Both ends of a stream dial out to the relay: `braidcast receive --relay HOST:PORT OUTPUT` prints a ticket, and `braidcast send \
INPUT --to braid:…` needs nothing else. The relay cannot read what it passes on. Before each packet it has 8 bytes.

Examples:
  braidcast relay 9000 --authorized receivers.txt --metrics 9100
  braidcast relay 9000 --open --max-rate 5mbit")]
pub(crate) struct RelayArgs {
    /// UDP port to take packets at: PORT or :PORT for every address of this machine, or ADDR:PORT; several with
    /// commas
    #[arg(value_name = "LISTEN", value_parser = values::listen)]
    pub(crate) listen: Listen,
    /// Who may open circuits, a line for each: a fingerprint (`braidcast key identity FILE` prints that of the key
    /// for `receive --relay-key FILE`) and a name, then limits: max-rate=20mbit, circuits=4, quota=500gb/month (or
    /// /week, /day), until=2027-01-31. SIGHUP reads it again
    #[arg(long, value_name = "FILE", help_heading = "Security")]
    pub(crate) authorized: Option<PathBuf>,
    /// Anybody may open circuits, 64 for each address
    #[arg(long, help_heading = "Security")]
    pub(crate) open: bool,
    /// Highest rate of what the circuits of one client carry together, unless its line says another [default: no
    /// limit]
    #[arg(long, value_name = "RATE", value_parser = parse::rate)]
    pub(crate) max_rate: Option<u64>,
    /// Addresses that may be here at a time: each end of a stream has one for each of its paths
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(2..=65_536))]
    pub(crate) members: u32,
    /// Threads that pass packets on [default: one for each core, up to 16]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) threads: Option<u16>,
    /// Write figures at this interval, a line of JSON each time: 1s to stdout, 1s,FILE to a file or named pipe
    #[arg(long, value_name = "TIME[,FILE]", value_parser = values::stats, help_heading = "Look inside")]
    pub(crate) stats: Option<Stats>,
    /// Serve the same figures to Prometheus at http://ADDR/metrics: a PORT of 127.0.0.1, or ADDR:PORT
    #[arg(long, value_name = "[ADDR:]PORT", value_parser = values::serve_at, help_heading = "Look inside")]
    pub(crate) metrics: Option<SocketAddr>,
}
