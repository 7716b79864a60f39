use super::values::{self, Listen, Remote};
use braidcast_mpath::Scheduler;
use braidcast_sim::link::parse;
use clap::{Args, Subcommand};
use std::time::Duration;

/// `braidcast perf`.
#[derive(Args, Debug)]
pub(crate) struct PerfArgs {
    #[command(subcommand)]
    pub(crate) command: PerfCommand,
}

/// The two ends of a measurement.
#[derive(Subcommand, Debug)]
pub(crate) enum PerfCommand {
    /// Take what a client sends and count it
    Server(PerfServerArgs),
    /// Send to a server as fast as the network takes it, or measure message latency
    Client(PerfClientArgs),
}

/// `braidcast perf server`.
#[derive(Args, Debug)]
#[command(after_help = "\
Without --json, stdout carries READY when bound and, per client, a last line RESULT bytes=N msgs=N secs=S, after a \
latency test on one machine also lat_us_p50=N lat_us_p99=N lat_us_p999=N lat_us_max=N.")]
pub(crate) struct PerfServerArgs {
    /// Where to listen: PORT or :PORT for every address of this machine, or ADDR:PORT; several with commas
    #[arg(value_name = "LISTEN", value_parser = values::listen)]
    pub(crate) listen: Listen,
    /// Serve client after client, not just one
    #[arg(long)]
    pub(crate) keep: bool,
    /// Secret shared with the client
    #[arg(long, value_name = "SECRET", env = "BRAIDCAST_KEY", hide_env_values = true)]
    pub(crate) key: Option<String>,
}

/// `braidcast perf client`.
#[derive(Args, Debug)]
pub(crate) struct PerfClientArgs {
    /// Where the server listens
    #[arg(value_name = "HOST:PORT", value_parser = values::remote)]
    pub(crate) server: Remote,
    /// Where the server listens too, as a further path reaches it; repeat for more
    #[arg(long, value_name = "HOST:PORT", value_parser = values::remote)]
    pub(crate) to: Vec<Remote>,
    /// Network interface or local address to send from; repeat for more paths [default: as the system routes]
    #[arg(long, value_name = "IFACE|ADDR")]
    pub(crate) via: Vec<String>,
    /// How much to send [default: as much as --duration takes]
    #[arg(long, value_name = "SIZE", value_parser = values::size, conflicts_with = "duration")]
    pub(crate) bytes: Option<u64>,
    /// How long to send [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = parse::duration, conflicts_with = "bytes")]
    pub(crate) duration: Option<Duration>,
    /// Bytes in a message
    #[arg(long, value_name = "N", default_value_t = 1400, value_parser = clap::value_parser!(u32).range(16..=1_000_000))]
    pub(crate) size: u32,
    /// Send at --rate and measure how long each message takes, there and back
    #[arg(long)]
    pub(crate) latency_test: bool,
    /// Rate of the latency test
    #[arg(long, value_name = "RATE", default_value = "20mbit", value_parser = parse::rate)]
    pub(crate) rate: u64,
    /// Which path the next packet takes
    #[arg(long, value_name = "NAME", default_value_t = Scheduler::default(), value_parser = values::scheduler())]
    pub(crate) scheduler: Scheduler,
    /// Secret shared with the server
    #[arg(long, value_name = "SECRET", env = "BRAIDCAST_KEY", hide_env_values = true)]
    pub(crate) key: Option<String>,
}
