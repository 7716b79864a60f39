use super::dccp::{self, Congestion};
use super::values::{self, Deadline, Entrance, Exit, Listen, Over, Remote};
use super::{FiguresArgs, SharedArgs, WatchArgs};
use braidcast_dccp::Method;
use braidcast_media::voice::Codec;
use braidcast_mpath::SchedulerKind;
use braidcast_sctp::Algorithm;
use braidcast_session::Redundancy;
use braidcast_session::tunnel::Settings;
use braidcast_sim::link::parse;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::time::Duration;

/// `braidcast tunnel`.
#[derive(Args, Debug)]
#[command(after_help = "\
What an application sends to the n-th --listen address of one end leaves at the other end for its n-th --forward, and \
answers come back to who asked. Each end may have both, so either side's applications can begin.

All flows share what the network gives. Where that is less than they send, --queue decides what goes: unless told otherwise \
what is more important, and only what still comes in time. Behind a slash stands how important a port's datagrams are and \
how long they are of use: /audio (priority 0, 200ms), /video (1, 200ms), or a priority from /0 to /7 and a lifetime such \
as /300ms. A port of which nothing is said is taken for sound, unless it sends datagrams of more than 400 bytes.

Over DCCP a tunnel takes one path. With --over sctp, at both ends, it takes as many as --to and --via name: what is lost on
one is repeated over another where it still comes in time, or made up for by --fec auto, and datagrams may be of any length.

A telephone here, its exchange there, over a satellite:
  there:  braidcast tunnel server 9000 --forward 127.0.0.1:4569
  here:   braidcast tunnel client --to there.example:9000 --listen 4569 --ccid ccid4-n100 --calls g729
A camera's RTP and RTCP:
  there:  braidcast tunnel server 9000 --forward 127.0.0.1:5004,127.0.0.1:5005
  here:   braidcast tunnel client --to there.example:9000 --listen 5004,5005
Sound and pictures of a call, sound first:
  there:  braidcast tunnel server 9000 --forward 127.0.0.1:5004,127.0.0.1:5006
  here:   braidcast tunnel client --to there.example:9000 --listen 5004/audio,5006/video/300ms
WireGuard over two networks at once, every packet of use for 200 ms:
  there:  braidcast tunnel server 9000 --over sctp --forward 127.0.0.1:51820 --deadline 51820=200ms
  here:   braidcast tunnel client --over sctp --to there.example:9000 --via wlan0 --via wwan0 --listen 51820 \\
            --deadline 51820=200ms --fec auto")]
pub(crate) struct TunnelArgs {
    #[command(subcommand)]
    pub(crate) command: TunnelCommand,
}

/// The two ends of a tunnel.
#[derive(Subcommand, Debug)]
pub(crate) enum TunnelCommand {
    /// Wait for clients and pass on what they send
    Server(TunnelServerArgs),
    /// Connect to a server, again and again if it must be
    Client(TunnelClientArgs),
}

/// `braidcast tunnel server`.
#[derive(Args, Debug)]
pub(crate) struct TunnelServerArgs {
    /// Where clients come in: PORT or :PORT for every address of this machine, or ADDR:PORT; several with commas
    #[arg(value_name = "LISTEN", value_parser = values::listen)]
    pub(crate) at: Listen,
    /// Take only the clients in this file: a line for each has fingerprint (with --cert also dns:HOST) and name, then what it reaches in place of --forward
    /// (HOST:PORT, several with commas), and until=2027-01-31. SIGHUP has it read again
    #[arg(long, value_name = "FILE", requires = "own", conflicts_with = "peer_key")]
    pub(crate) authorized: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) ends: TunnelEndArgs,
}

/// `braidcast tunnel client`.
#[derive(Args, Debug)]
pub(crate) struct TunnelClientArgs {
    /// Where `braidcast tunnel server` is; with --over sctp repeat for more paths
    #[arg(long, required = true, value_name = "HOST:PORT", value_parser = values::peer)]
    pub(crate) to: Vec<Remote>,
    /// Network interface or local address to send from; with --over sctp repeat for more paths [default: as the system routes]
    #[arg(long, value_name = "IFACE|ADDR")]
    pub(crate) via: Vec<String>,
    #[command(flatten)]
    pub(crate) ends: TunnelEndArgs,
}

/// What both ends take.
#[derive(Args, Debug)]
pub(crate) struct TunnelEndArgs {
    /// What carries the datagrams, the same at both ends: dccp, over one path, or sctp, over as many as there are
    #[arg(long, value_name = "PROTOCOL", default_value_t = Over::Dccp, value_parser = values::over())]
    pub(crate) over: Over,
    /// Local UDP ports that applications here send to: PORT on 127.0.0.1, or ADDR:PORT; several with commas
    #[arg(long, value_name = "PORT[/HOW]", value_parser = values::entrance, value_delimiter = ',')]
    pub(crate) listen: Vec<Entrance>,
    /// Where applications here listen, for what comes from the other end's n-th --listen; several with commas. HOW is about
    /// what they answer
    #[arg(long, value_name = "HOST:PORT[/HOW]", value_parser = values::exit, value_delimiter = ',')]
    pub(crate) forward: Vec<Exit>,
    /// How long the datagrams of a port of --listen or --forward are of use, as behind a slash there; several with commas
    #[arg(long, value_name = "PORT=TIME", value_parser = values::deadline, value_delimiter = ',')]
    pub(crate) deadline: Vec<Deadline>,
    /// Redundancy that makes up for lost packets where a repetition would come too late: none, auto, or a code (sctp)
    #[arg(long, value_name = "CODE")]
    pub(crate) fec: Option<Redundancy>,
    /// Which path the next packet takes (sctp) [default: lowest-delay]
    #[arg(long, value_name = "NAME", value_parser = values::scheduler())]
    pub(crate) scheduler: Option<SchedulerKind>,
    /// How much each path may carry: its congestion controller (sctp) [default: veno]
    #[arg(long, value_name = "NAME", value_parser = values::controller())]
    pub(crate) cc: Option<Algorithm>,
    #[command(flatten)]
    pub(crate) shared: SharedArgs,
    /// Which of the datagrams that wait for congestion control goes next, and which not at all
    #[arg(long, value_name = "METHOD", default_value_t = Settings::default().queue, value_parser = values::queue())]
    pub(crate) queue: Method,
    /// How many datagrams may wait (dccp; over SCTP it is 1 MiB)
    #[arg(long, value_name = "N", default_value_t = Settings::default().queue_length as u32, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) queue_length: u32,
    /// How long the way from here to the other end takes, to judge what comes in time [default: by round trips]
    #[arg(long, value_name = "TIME", value_parser = parse::duration)]
    pub(crate) one_way_delay: Option<Duration>,
    /// Congestion control; a server prefers it, its clients decide. Ends that differ in CCID 4's variant disagree on its rate
    /// (dccp) [default: ccid3]
    #[arg(long, value_name = "CCID", value_parser = dccp::congestion())]
    pub(crate) ccid: Option<Congestion>,
    /// Come back from silence faster: quadruple the rate each round trip, up to where it was (ccid3, ccid4)
    #[arg(long)]
    pub(crate) faster_restart: bool,
    /// Wait up to this time for packets out of order before they count as lost (ccid3, ccid4)
    #[arg(long, value_name = "D_MAX", value_parser = parse::duration)]
    pub(crate) reorder: Option<Duration>,
    /// Datagrams are of no use after this time, for ports of which no other is said; --queue decides what becomes of them
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = values::lifetime)]
    pub(crate) lifetime: Duration,
    /// Warn when less than this rate is allowed (ccid3, ccid4)
    #[arg(long, value_name = "RATE", value_parser = parse::rate)]
    pub(crate) min_rate: Option<u64>,
    /// Never send faster, though allowed (ccid3, ccid4)
    #[arg(long, value_name = "RATE", value_parser = parse::rate)]
    pub(crate) max_rate: Option<u64>,
    /// The flows are telephone calls: show how each sounds and how many more would fit [possible values: g711, g711-plc, g729,
    /// g729a-vad, speex]
    #[arg(long, value_name = "CODEC", value_parser = |name: &str| name.parse::<Codec>())]
    pub(crate) calls: Option<Codec>,
    /// The most that a listener's jitter buffer waits, for the figures "on time" and MOS
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = parse::duration)]
    pub(crate) jitter_buffer: Duration,
    /// Largest IP packet that the network carries (dccp; SCTP finds out)
    #[arg(long, value_name = "BYTES", default_value_t = 1500, value_parser = clap::value_parser!(u16).range(576..=9000))]
    pub(crate) mtu: u16,
    /// Write DCCP's inner state at each packet as CSV: time, packet, allowed rate, window, RTT, loss event rate, queue
    #[arg(long, value_name = "FILE")]
    pub(crate) probe: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) watch: WatchArgs,
    #[command(flatten)]
    pub(crate) figures: FiguresArgs,
}
