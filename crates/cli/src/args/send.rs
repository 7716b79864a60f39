use super::destination::{self, To};
use super::one_path;
use super::rates::{self, RateArgs};
use super::values::{self, Input, Listen};
use super::via::{Via, via};
use super::{FiguresArgs, SharedArgs, WatchArgs};
use braidcast_mpath::{RetransmissionPolicy, SchedulerKind};
use braidcast_sctp::Algorithm;
use braidcast_sctp::Method;
use braidcast_session::Redundancy;
use clap::Args;
use std::time::Duration;

/// `braidcast send`.
#[derive(Args, Debug)]
#[command(after_help = "\
Paths: with one --via (or none) each --to is a path; with one --to each --via is a path; with the same number of \
both, the n-th --via goes with the n-th --to. An interface named by --via that appears or vanishes while running \
joins or leaves by itself. All addresses of a name are tried, and it is asked for again when none answers. Neither \
need be there at the start.

Examples:
  braidcast send camera.ts --to home.example:9000 --via wlan0,wwan0
  ffmpeg -i … -f mpegts - | braidcast send - --to home.example:9000 --via wlan0,wwan0
  braidcast send udp://127.0.0.1:5000 --to 192.0.2.1:9000,192.0.2.1:9001
  braidcast send 'srt://:5000?passphrase=@srt.key&latency=200' --to home.example:9000
  braidcast send camera.ts --at 9000
  braidcast send camera.ts --to @ticket.txt --via wlan0,wwan0")]
pub(crate) struct SendArgs {
    /// What to send: a FILE, - for stdin, udp://HOST:PORT to listen on, srt://:PORT, srtla://:PORT or rist://:PORT
    /// for who calls, or srt://HOST:PORT to call. MPEG-TS is recognised; a FILE of it is played at its own speed
    /// unless --reliable
    #[arg(value_name = "INPUT", value_parser = values::input)]
    pub(crate) input: Input,
    #[command(flatten)]
    pub(crate) how: StreamArgs,
}

/// How a stream goes, for all commands that send one.
#[derive(Args, Debug)]
pub(crate) struct StreamArgs {
    /// Name of this stream, for a receiver that serves several: see `receive --accept`
    #[arg(long, value_name = "NAME", value_parser = values::name)]
    pub(crate) name: Option<String>,
    /// Address of `braidcast receive`, as this path reaches it; several with commas, or repeated, are as many
    /// paths. Or a ticket, braid:…, which `braidcast receive --ticket` prints; @FILE reads it from FILE, so that
    /// `ps` does not show it
    #[arg(help_heading = "Paths", long, required_unless_present = "at", value_delimiter = ',', value_name = "HOST:PORT", value_parser = destination::to)]
    pub(crate) to: Vec<To>,
    /// Networks to send from: interfaces or local addresses. Several with commas, or repeated, are as many paths.
    /// 'wwan0?name=O2&max=5mbit' calls one as you do, and sends it no more [default: as the system routes]
    #[arg(help_heading = "Paths", long, short = 'i', value_name = "IFACE|ADDR[?KEY=…]", value_delimiter = ',', value_parser = via)]
    pub(crate) via: Vec<Via>,
    /// With a ticket by a relay: keep this end's addresses from the other one, so that everything goes by the relay
    #[arg(help_heading = "Paths", long, conflicts_with = "at")]
    pub(crate) relay_only: bool,
    /// Wait at this port for `braidcast receive --from` to call, in place of dialing: for a sender whose port can be
    /// reached. PORT, or ADDR:PORT; several with commas
    #[arg(help_heading = "Paths", long, value_name = "PORT", value_parser = values::listen, conflicts_with_all = ["to", "via"])]
    pub(crate) at: Option<Listen>,
    /// End if no receiver has answered for this long; never: keep trying
    #[arg(help_heading = "Paths", long, value_name = "TIME|never", default_value = "never", value_parser = values::patience)]
    pub(crate) give_up: values::Patience,
    /// End when the receiver's user or its output ends, or another sender is being received [default: go on trying,
    /// as a live stream comes from where nobody may be to start it again]
    #[arg(help_heading = "Paths", long, conflicts_with = "reliable")]
    pub(crate) end_with_receiver: bool,
    /// End-to-end delay: each frame is played this long after its capture; a frame that would come later is dropped
    #[arg(help_heading = "Quality", long, short = 'l', value_name = "TIME", default_value = "500ms", value_parser = values::latency, allow_hyphen_values = true, conflicts_with = "reliable")]
    pub(crate) latency: Duration,
    /// Deliver everything, in order, however long it takes: for files, not for live streams. Exit status 0 means that
    /// the receiver has written it all. After an interruption the same command continues where the receiver's file
    /// ends
    #[arg(help_heading = "Quality", long)]
    pub(crate) reliable: bool,
    /// Redundancy that repairs losses if a repetition would come too late: none, auto (chosen from
    /// loss, round trip and latency; nothing on clean paths), or a code; for example
    /// tetrys:10,9,200 (one packet of ten is redundancy) [default: auto; with --reliable: none]
    #[arg(help_heading = "Quality", long, value_name = "CODE")]
    pub(crate) fec: Option<Redundancy>,
    #[command(flatten)]
    pub(crate) rates: RateArgs,
    /// Run this command with sh each time the rate for an encoder changes; BRAIDCAST_RATE has it, and
    /// BRAIDCAST_VIDEO_RATE the video's share (bit/s, smoothed)
    #[arg(help_heading = "Quality", long, value_name = "COMMAND")]
    pub(crate) on_rate: Option<String>,
    /// Add to --rate-report the mean opinion score (1 to 5, ITU-T G.1070) of the rate, and the rate that MOS takes
    #[arg(help_heading = "Quality", long, hide = true, value_name = "MOS", value_parser = rates::target_quality)]
    pub(crate) target_quality: Option<f64>,
    #[command(flatten)]
    pub(crate) shared: SharedArgs,
    #[command(flatten)]
    pub(crate) watch: WatchArgs,
    #[command(flatten)]
    pub(crate) figures: FiguresArgs,
    /// Show what is sent on the page of --web, an image each second; ffmpeg decodes it, as a child without rights
    #[arg(help_heading = "Look inside", long, requires = "web", conflicts_with = "reliable")]
    pub(crate) thumbnail: bool,
    /// Congestion controller of each path [default: live; with --reliable: veno]
    #[arg(help_heading = "Experts", long, value_name = "NAME", value_parser = values::controller())]
    pub(crate) cc: Option<Algorithm>,
    /// Which path the next packet takes [default: earliest-delivery; with --reliable: lowest-delay]
    #[arg(help_heading = "Experts", long, value_name = "NAME", value_parser = values::scheduler())]
    pub(crate) scheduler: Option<SchedulerKind>,
    /// Which frame goes next, and which is discarded, if the paths carry less than comes in. Tables and audio go
    /// before video, I before P before B frames. off: by kind alone; late frames are dropped as they expire
    #[arg(help_heading = "Experts", long, conflicts_with = "reliable", value_name = "METHOD", default_value_t = values::MaybeQueue(Some(Method::ByWorth)), value_parser = values::maybe_queue())]
    pub(crate) queue: values::MaybeQueue,
    /// Read packets that closely follow each other this often at most, many at once; at least fifty times in each
    /// latency. Longer slices use less CPU. 0: read each packet as it comes
    #[arg(help_heading = "Experts", long, value_name = "TIME", default_value = "4ms", value_parser = values::slice)]
    pub(crate) slice: Duration,
    /// Send over one path at a time: primary (the first that connected, while it works), or the
    /// best by this: best-delay (round trip), one-way (delay to the receiver), packet-pair or
    /// packet-train (bottleneck), echo (what a call would sound like) [default: all paths at once]
    #[arg(help_heading = "Experts", long, value_name = "METHOD", value_parser = one_path::selection())]
    pub(crate) path: Option<one_path::OnePath>,
    /// How much shorter another path's delay must be before --path changes to it
    #[arg(help_heading = "Experts", long, value_name = "TIME", default_value = "30ms", value_parser = one_path::pause, requires = "path", allow_hyphen_values = true)]
    pub(crate) hysteresis: Duration,
    /// Another path must stay better for a random time of up to this before --path changes to it
    #[arg(help_heading = "Experts", long, value_name = "TIME", default_value = "0s", value_parser = one_path::pause, requires = "path", allow_hyphen_values = true)]
    pub(crate) time_guard: Duration,
    /// How often --path measures idle paths
    #[arg(help_heading = "Experts", long, value_name = "TIME", default_value = "1s", value_parser = one_path::probing, requires = "path", allow_hyphen_values = true)]
    pub(crate) probe_interval: Duration,
    /// Timeouts in a row after which new data avoids a path (RFC 7829); off: not before it has failed
    #[arg(help_heading = "Experts", long, value_name = "N|off", default_value_t = one_path::Avoided(Some(0)), value_parser = one_path::avoided, allow_hyphen_values = true)]
    pub(crate) quick_failover: one_path::Avoided,
    /// Timeouts in a row after which --path primary stays with the path that took over (RFC 7829);
    /// off: it goes back to the first one
    #[arg(help_heading = "Experts", long, value_name = "N|off", default_value_t = one_path::Avoided(None), value_parser = one_path::avoided, allow_hyphen_values = true)]
    pub(crate) switchover: one_path::Avoided,
    /// Timeouts in a row after which a path has failed (Path.Max.Retrans)
    #[arg(help_heading = "Experts", long, value_name = "N", default_value = "5", value_parser = one_path::timeouts, allow_hyphen_values = true)]
    pub(crate) path_max_retrans: u32,
    /// Which path carries retransmissions
    #[arg(help_heading = "Experts", long, value_name = "POLICY", default_value_t = RetransmissionPolicy::default(), value_parser = one_path::retransmission())]
    pub(crate) retransmission: RetransmissionPolicy,
    /// Make the protocol's random choices repeatable
    #[arg(help_heading = "Experts", long, value_name = "N", allow_negative_numbers = true, value_parser = values::seed)]
    pub(crate) seed: Option<u64>,
}
