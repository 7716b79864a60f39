use super::dccp::{self, Congestion};
use super::destination::{self, To};
use super::rates::RateArgs;
use super::values::{self, Deadline, Entrance, Exit, Listen, Over, Remote};
use super::via::{Via, via};
use super::{FiguresArgs, MeetArgs, SharedArgs, WatchArgs};
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
Datagrams to the n-th --listen address of one end go to the n-th --forward of the other end; answers go back to the \
application that asked. Each end may have both, so that applications at either end can begin.

All flows share the rate that congestion control allows. If they send more, --queue decides: by default the more important \
datagrams go first, and late ones are discarded. After a slash, a port has a priority and a lifetime: /audio (priority 0, \
200ms), /video (1, 200ms), or /0 to /7 and a time, for example /300ms. A port without them counts as audio, unless it sends \
datagrams of more than 400 bytes.

Over DCCP a tunnel uses one path. With --over sctp, at both ends, it uses every path that --to and --via name. Losses are \
then retransmitted over another path as long as they are not late, or repaired by --fec auto; datagrams may be of any length.

A telephone here, its exchange there, over a satellite:
  there:  braidcast tunnel server 9000 --forward 127.0.0.1:4569
  here:   braidcast tunnel client --to there.example:9000 --listen 4569 --ccid ccid4-n100 --calls g729
A camera's RTP and RTCP:
  there:  braidcast tunnel server 9000 --forward 127.0.0.1:5004,127.0.0.1:5005
  here:   braidcast tunnel client --to there.example:9000 --listen 5004,5005
Audio and video of a call, audio first:
  there:  braidcast tunnel server 9000 --forward 127.0.0.1:5004,127.0.0.1:5006
  here:   braidcast tunnel client --to there.example:9000 --listen 5004/audio,5006/video/300ms
The same, where only the end with the camera can be reached:
  there:  braidcast tunnel server --from here.example:9000 --forward 127.0.0.1:5004,127.0.0.1:5005
  here:   braidcast tunnel client --at 9000 --listen 5004,5005
Two ends that nobody can call, by a relay:
  there:  braidcast tunnel server --over sctp --relay relay.example:9000 --forward 127.0.0.1:51820
  here:   braidcast tunnel client --over sctp --to @ticket.txt --listen 51820
WireGuard over two networks at once, every packet late after 200 ms:
  there:  braidcast tunnel server 9000 --over sctp --forward 127.0.0.1:51820 --deadline 51820=200ms
  here:   braidcast tunnel client --over sctp --to there.example:9000 --via wlan0,wwan0 --listen 51820 \\
            --deadline 51820=200ms --fec auto")]
pub(crate) struct TunnelArgs {
    #[command(subcommand)]
    pub(crate) command: TunnelCommand,
}

/// The two ends of a tunnel.
#[derive(Subcommand, Debug)]
pub(crate) enum TunnelCommand {
    /// Wait for clients and forward what they send
    Server(TunnelServerArgs),
    /// Connect to a server, and connect again after interruptions
    Client(TunnelClientArgs),
}

/// `braidcast tunnel server`.
#[derive(Args, Debug)]
pub(crate) struct TunnelServerArgs {
    /// Address to listen for clients at: PORT or :PORT for every address of this machine, or
    /// ADDR:PORT; several with commas
    #[arg(value_name = "LISTEN", value_parser = values::listen, required_unless_present_any = ["from", "relay"], conflicts_with = "relay")]
    pub(crate) at: Option<Listen>,
    /// Call the client that waits there (`tunnel client --at`) in place of listening. With --over sctp several with
    /// commas, or repeated, are as many paths
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',', value_parser = values::peer, conflicts_with_all = ["at", "authorized"], help_heading = "Paths")]
    pub(crate) from: Vec<Remote>,
    /// Networks to call from, with --from and --relay: interfaces or local addresses. With --over sctp several, with
    /// commas or repeated, are as many paths [default: as the system routes]
    #[arg(long, short = 'i', value_name = "IFACE|ADDR[?name=NAME]", value_delimiter = ',', value_parser = via, conflicts_with = "at", help_heading = "Paths")]
    pub(crate) via: Vec<Via>,
    #[command(flatten)]
    pub(crate) meet: MeetArgs,
    #[command(flatten)]
    pub(crate) ends: TunnelEndArgs,
    /// Accept only the clients in this file. Each line has a fingerprint (with --cert also
    /// dns:HOST) and a name, then, if wanted, targets that replace --forward (HOST:PORT, several
    /// with commas) and a last day (until=2027-01-31). SIGHUP reads the file again
    #[arg(long, value_name = "FILE", requires = "own", conflicts_with_all = ["peer_key", "relay"], help_heading = "Security")]
    pub(crate) authorized: Option<PathBuf>,
}

/// `braidcast tunnel client`.
#[derive(Args, Debug)]
pub(crate) struct TunnelClientArgs {
    /// Address of `braidcast tunnel server`; with --over sctp several with commas, or repeated, are as many paths. Or,
    /// with --over sctp, a ticket, braid:…, which `tunnel server --relay` prints; @FILE reads it from FILE, so that
    /// `ps` does not show it
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',', value_parser = destination::to, required_unless_present = "at", help_heading = "Paths")]
    pub(crate) to: Vec<To>,
    /// With a ticket by a relay: keep this end's addresses from the other one, so that everything goes by the relay
    #[arg(long, conflicts_with = "at", help_heading = "Paths")]
    pub(crate) relay_only: bool,
    /// Wait here for a server that calls (`tunnel server --from`) in place of calling it. Written as LISTEN there
    #[arg(long, value_name = "LISTEN", value_parser = values::listen, conflicts_with_all = ["to", "via"], help_heading = "Paths")]
    pub(crate) at: Option<Listen>,
    /// Networks to send from: interfaces or local addresses. With --over sctp several, with commas or repeated, are as
    /// many paths [default: as the system routes]
    #[arg(long, short = 'i', value_name = "IFACE|ADDR[?name=NAME]", value_delimiter = ',', value_parser = via, help_heading = "Paths")]
    pub(crate) via: Vec<Via>,
    #[command(flatten)]
    pub(crate) ends: TunnelEndArgs,
}

/// What both ends take.
#[derive(Args, Debug)]
pub(crate) struct TunnelEndArgs {
    /// Protocol that carries the datagrams, the same at both ends: dccp uses one path, sctp every path there is
    #[arg(long, value_name = "PROTOCOL", default_value_t = Over::Dccp, value_parser = values::over())]
    pub(crate) over: Over,
    /// Local UDP ports that applications here send to: PORT on 127.0.0.1, or ADDR:PORT; several
    /// with commas. HOW is priority and lifetime: audio, video, or 0 to 7 and a time, as in
    /// 5004/audio or 5006/1/300ms
    #[arg(long, value_name = "PORT[/HOW]", value_parser = values::entrance, value_delimiter = ',')]
    pub(crate) listen: Vec<Entrance>,
    /// Addresses of applications here: the n-th gets what reaches the other end's n-th --listen;
    /// several with commas. HOW applies to the replies
    #[arg(long, value_name = "HOST:PORT[/HOW]", value_parser = values::exit, value_delimiter = ',')]
    pub(crate) forward: Vec<Exit>,
    /// Lifetime of one port's datagrams, for example 51820=200ms; the same as /200ms after that
    /// port of --listen or --forward. Several with commas
    #[arg(long, value_name = "PORT=TIME", value_parser = values::deadline, value_delimiter = ',')]
    pub(crate) deadline: Vec<Deadline>,
    /// Redundancy, which repairs losses if a retransmission would come too late: none, auto, or a code (sctp)
    #[arg(help_heading = "Quality", long, value_name = "CODE")]
    pub(crate) fec: Option<Redundancy>,
    /// Lifetime of datagrams of all ports that have none of their own. A datagram that would arrive
    /// later is late, and --queue decides what happens to it
    #[arg(help_heading = "Quality", long, value_name = "TIME", default_value = "1s", value_parser = values::lifetime)]
    pub(crate) lifetime: Duration,
    /// The flows are telephone calls: show the quality of each, and how many more would fit
    /// [possible values: g711, g711-plc, g729, g729a-vad, speex]
    #[arg(help_heading = "Quality", long, value_name = "CODEC", value_parser = |name: &str| name.parse::<Codec>())]
    pub(crate) calls: Option<Codec>,
    /// Refuse new calls from this end while the loss event rate is higher than this, or while the
    /// allowed rate has no room for one more call with the codec of --calls. A call is a flow to a
    /// --listen port that has priority 0 or no priority (ccid3, ccid4)
    #[arg(help_heading = "Quality", long, value_name = "PERCENT", requires = "calls", value_parser = parse::share)]
    pub(crate) max_loss: Option<f64>,
    #[command(flatten)]
    pub(crate) rates: RateArgs,
    #[command(flatten)]
    pub(crate) shared: SharedArgs,
    #[command(flatten)]
    pub(crate) watch: WatchArgs,
    #[command(flatten)]
    pub(crate) figures: FiguresArgs,
    /// Which path the next packet takes (sctp) [default: lowest-delay]
    #[arg(help_heading = "Experts", long, value_name = "NAME", value_parser = values::scheduler())]
    pub(crate) scheduler: Option<SchedulerKind>,
    /// Congestion controller of each path (sctp) [default: veno]
    #[arg(help_heading = "Experts", long, value_name = "NAME", value_parser = values::controller())]
    pub(crate) cc: Option<Algorithm>,
    /// Which datagram goes next, and which is discarded, if congestion control allows less than comes in
    #[arg(help_heading = "Experts", long, value_name = "METHOD", default_value_t = Settings::default().queue, value_parser = values::queue())]
    pub(crate) queue: Method,
    /// How many datagrams the queue holds (dccp; over sctp it holds 1 MiB)
    #[arg(help_heading = "Experts", long, value_name = "N", default_value_t = Settings::default().queue_length as u32, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) queue_length: u32,
    /// One-way delay to the other end, to decide which datagrams would be late [default: estimated from round trips]
    #[arg(help_heading = "Experts", long, value_name = "TIME", value_parser = parse::duration)]
    pub(crate) one_way_delay: Option<Duration>,
    /// Congestion control (dccp). The client decides; the server's value is a preference. With
    /// ccid4 both ends must name the same variant [default: ccid3]
    #[arg(help_heading = "Experts", long, value_name = "CCID", value_parser = dccp::congestion())]
    pub(crate) ccid: Option<Congestion>,
    /// Recover from a pause faster: quadruple the rate each round trip, up to where it was (ccid3, ccid4)
    #[arg(help_heading = "Experts", long)]
    pub(crate) faster_restart: bool,
    /// Wait up to this time for packets out of order before they count as lost (ccid3, ccid4)
    #[arg(help_heading = "Experts", long, value_name = "D_MAX", value_parser = parse::duration)]
    pub(crate) reorder: Option<Duration>,
    /// Warn if congestion control allows less than this rate (ccid3, ccid4)
    #[arg(help_heading = "Experts", long, value_name = "RATE", value_parser = parse::rate)]
    pub(crate) min_rate: Option<u64>,
    /// Never send faster than this (ccid3, ccid4)
    #[arg(help_heading = "Experts", long, value_name = "RATE", value_parser = parse::rate)]
    pub(crate) max_rate: Option<u64>,
    /// Longest delay of a listener's jitter buffer, for the figures "on time" and MOS
    #[arg(help_heading = "Experts", long, value_name = "TIME", default_value = "200ms", value_parser = parse::duration)]
    pub(crate) jitter_buffer: Duration,
    /// Largest IP packet that the network carries (dccp; SCTP measures it)
    #[arg(help_heading = "Experts", long, value_name = "BYTES", default_value_t = 1500, value_parser = clap::value_parser!(u16).range(576..=9000))]
    pub(crate) mtu: u16,
    /// Write DCCP's state at each packet as CSV: time, packet, allowed rate, window, RTT, loss event rate, queue
    #[arg(help_heading = "Experts", long, value_name = "FILE")]
    pub(crate) probe: Option<PathBuf>,
}
