use super::dccp::{self, Congestion};
use super::destination::{self, To};
use super::values::{self, Listen, Remote};
use super::via::{Via, via};
use super::{MeetArgs, SharedArgs, WatchArgs};
use braidcast_mpath::SchedulerKind;
use braidcast_sctp::Algorithm;
use braidcast_session::Redundancy;
use braidcast_sim::link::parse;
use clap::{Args, Subcommand};
use std::path::PathBuf;
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

/// DCCP in place of SCTP.
#[derive(Args, Debug)]
#[command(next_help_heading = "DCCP")]
pub(crate) struct PerfDccpArgs {
    /// Measure DCCP, not SCTP, with this congestion control. A server only prefers it: the client decides
    #[arg(long, value_name = "CCID", value_parser = dccp::congestion())]
    pub(crate) dccp: Option<Congestion>,
    /// Straight over IP (protocol 33) instead of in UDP: needs root, and an address of its own for each end
    #[arg(long, requires = "dccp")]
    pub(crate) native: bool,
    /// Write the inner state at each packet as CSV: time, packet, allowed rate, window, RTT, loss event rate, queue
    #[arg(long, value_name = "FILE", requires = "dccp")]
    pub(crate) probe: Option<PathBuf>,
}

/// `braidcast perf server`.
#[derive(Args, Debug)]
#[command(after_help = "\
Without --json, stdout carries READY when bound and, per client, a last line RESULT bytes=N msgs=N secs=S, after a \
latency test on one machine also lat_us_p50=N lat_us_p99=N lat_us_p999=N lat_us_max=N.")]
pub(crate) struct PerfServerArgs {
    /// Address to listen at: PORT or :PORT for every address of this machine, or ADDR:PORT; several
    /// with commas
    #[arg(value_name = "LISTEN", value_parser = values::listen, required_unless_present_any = ["from", "relay"])]
    #[arg(conflicts_with = "relay")]
    pub(crate) listen: Option<Listen>,
    /// Call the client that waits there (`perf client --at`) in place of listening. Several with commas, or repeated,
    /// are as many paths
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',', value_parser = values::peer)]
    #[arg(conflicts_with_all = ["listen", "keep", "dccp", "native", "probe"])]
    pub(crate) from: Vec<Remote>,
    /// Networks to call from, with --from and --relay: interfaces or local addresses. Several with commas, or
    /// repeated, are as many paths [default: as the system routes]
    #[arg(long, short = 'i', value_name = "IFACE|ADDR[?name=NAME]", value_delimiter = ',', value_parser = via, conflicts_with = "listen")]
    pub(crate) via: Vec<Via>,
    /// Serve client after client, not just one
    #[arg(long)]
    pub(crate) keep: bool,
    #[command(flatten)]
    pub(crate) meet: MeetArgs,
    #[command(flatten)]
    pub(crate) shared: SharedArgs,
    #[command(flatten)]
    pub(crate) dccp: PerfDccpArgs,
    #[command(flatten)]
    pub(crate) watch: WatchArgs,
}

/// `braidcast perf client`.
#[derive(Args, Debug)]
pub(crate) struct PerfClientArgs {
    /// Address of the server. Or a ticket, braid:…, which `perf server --relay` prints; @FILE reads it from FILE, so
    /// that `ps` does not show it
    #[arg(value_name = "HOST:PORT", value_parser = destination::to, required_unless_present = "at")]
    pub(crate) server: Option<To>,
    /// Wait here for a server that calls (`perf server --from`) in place of calling it. Written as LISTEN there
    #[arg(long, value_name = "LISTEN", value_parser = values::listen)]
    #[arg(conflicts_with_all = ["server", "to", "via", "dccp", "native", "probe"])]
    pub(crate) at: Option<Listen>,
    /// Further addresses of the server, reached over other paths; several with commas, or repeated
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',', value_parser = values::peer, conflicts_with = "dccp")]
    pub(crate) to: Vec<Remote>,
    /// Networks to send from: interfaces or local addresses. Several with commas, or repeated, are as many paths
    /// [default: as the system routes]
    #[arg(long, short = 'i', value_name = "IFACE|ADDR[?name=NAME]", value_delimiter = ',', value_parser = via)]
    pub(crate) via: Vec<Via>,
    /// With a ticket by a relay: keep this end's addresses from the other one, so that everything goes by the relay
    #[arg(long, conflicts_with_all = ["at", "to"])]
    pub(crate) relay_only: bool,
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
    /// Send no faster than this [default: as the network takes it; 20mbit with --latency-test]
    #[arg(long, value_name = "RATE", value_parser = parse::rate)]
    pub(crate) rate: Option<u64>,
    /// Redundancy: none, or a code: tetrys:10,9,200, for example, makes one packet of ten redundancy
    #[arg(help_heading = "Experts", long, value_name = "CODE", default_value_t = Redundancy::None, value_parser = values::fixed_redundancy)]
    #[arg(conflicts_with = "dccp")]
    pub(crate) fec: Redundancy,
    /// Which path the next packet takes
    #[arg(help_heading = "Experts", long, value_name = "NAME", default_value_t = SchedulerKind::default(), value_parser = values::scheduler())]
    #[arg(conflicts_with = "dccp")]
    pub(crate) scheduler: SchedulerKind,
    /// How much each path may carry: its congestion controller
    #[arg(help_heading = "Experts", long, value_name = "NAME", default_value_t = Algorithm::Veno, value_parser = values::controller())]
    #[arg(conflicts_with = "dccp")]
    pub(crate) cc: Algorithm,
    #[command(flatten)]
    pub(crate) shared: SharedArgs,
    #[command(flatten)]
    pub(crate) dccp: PerfDccpArgs,
    #[command(flatten)]
    pub(crate) watch: WatchArgs,
}
