use super::entrances::{Entrances, entrances};
use super::serve::ServeArgs;
use super::values::{self, Accept, Output, Remote};
use super::via::{Via, via};
use super::{FiguresArgs, SharedArgs, WatchArgs};
use crate::failure::{Failure, Outcome};
use clap::Args;
use clap::builder::RangedU64ValueParser;
use std::path::PathBuf;
use std::time::Duration;

/// What stands first behind `receive`: LISTEN, or with `--from` an output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct First {
    /// As it was typed.
    text: String,
    /// What it says as LISTEN, or why it says nothing.
    listen: Result<Entrances, String>,
}

/// Any text: what it has to be is known with the other flags.
#[allow(clippy::unnecessary_wraps, reason = "clap asks for a result")]
fn first(text: &str) -> Result<First, String> {
    Ok(First { text: text.into(), listen: entrances(text) })
}

/// `braidcast receive`.
#[derive(Args, Debug)]
#[command(after_help = "\
An existing file is neither overwritten nor continued, unless an interrupted `receive` left it: then it is continued. While a \
stream is being written, FILE.braidcast beside the file says which stream it is. With it a sender of a file (--reliable) can \
continue where the receiver's file ends.

Examples:
  braidcast receive 9000 show.ts
  braidcast receive :9000 - | ffplay -
  braidcast receive 9000 show-%Y%m%d-%H%M%S.ts udp://127.0.0.1:5000 --keep --segment 10min
  braidcast receive 9000 --accept cam1=one.ts --accept cam2=udp://127.0.0.1:5002 --keep
  braidcast receive 192.0.2.1:9000,192.0.2.1:9001 {name}.ts --keep
  braidcast receive 9000,srtla://:5000?latency=1500ms show.ts
  braidcast receive 9000 rtmps://live.example/app/@stream.key show.ts --keep
  braidcast receive --from camera.example:9000 --via wlan0,wwan0 show.ts
  braidcast receive --relay relay.example:9000 show.ts
  braidcast receive 9000 --serve 9001 --keep
  braidcast receive --from hub.example:9001 --name cam1 - | ffplay -")]
pub(crate) struct ReceiveArgs {
    /// Address to listen at: PORT or :PORT for every address of this machine, or ADDR:PORT; or srt://:PORT,
    /// srtla://:PORT (phones that bond), rist://:PORT, rtp://:PORT or rtmp://:PORT/APP/KEY for who speaks that; several with
    /// commas
    #[arg(value_name = "LISTEN", value_parser = first, required_unless_present_any = ["from", "relay"])]
    pub(crate) listen: Option<First>,
    /// Destination of the stream: a FILE, - for stdout, udp://HOST:PORT, srt://HOST:PORT or rist://HOST:PORT to call,
    /// srt://:PORT for who calls, or rtmp://HOST/APP/KEY or rtmps://HOST/APP/KEY (KEY or @FILE) to publish it on a
    /// server; each of several gets all of it. In a FILE {name} is the stream's name, and %Y %m %d %H %M %S are the
    /// time when it begins
    #[arg(value_name = "OUTPUT", value_parser = values::output, required_unless_present_any = ["accept", "authorized", "from", "relay", "serve"], conflicts_with = "accept")]
    pub(crate) output: Vec<Output>,
    /// Call the sender that waits there (`send --at`) in place of listening: for a receiver behind a NAT. There is no
    /// LISTEN then. Several with commas, or repeated, are as many paths
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',', value_parser = values::peer, help_heading = "Paths")]
    pub(crate) from: Vec<Remote>,
    /// Meet the sender at this relay (`braidcast relay`) in place of listening, and print the ticket that it needs:
    /// for two ends that nobody can call. There is no LISTEN then. Several with commas, or repeated, are as many
    /// paths
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',', value_parser = values::peer, conflicts_with_all = ["from", "authorized", "key", "key_file", "peer_key", "identity", "cert", "plain"], help_heading = "Paths")]
    pub(crate) relay: Vec<Remote>,
    /// Private key by which a relay with a list knows this end, made by `braidcast key identity`. It is for the relay
    /// alone
    #[arg(long, value_name = "FILE", help_heading = "Paths")]
    pub(crate) relay_key: Option<PathBuf>,
    /// Keep this end's addresses from the other one: everything goes by the relay, and no path past it is looked for
    #[arg(long, help_heading = "Paths")]
    pub(crate) relay_only: bool,
    /// Networks to call from, with --from and --relay: interfaces or local addresses. Several with commas, or
    /// repeated, are as many paths [default: as the system routes]
    #[arg(long, short = 'i', value_name = "IFACE|ADDR[?name=NAME]", value_delimiter = ',', value_parser = via, help_heading = "Paths")]
    pub(crate) via: Vec<Via>,
    /// Take a stream of this name (`send --name`) to this output, beside the others; repeat for more
    #[arg(long, value_name = "NAME=OUTPUT", value_parser = values::accept)]
    pub(crate) accept: Vec<Accept>,
    /// Wait for the next sender when a stream ends
    #[arg(long)]
    pub(crate) keep: bool,
    /// Streams at a time, if each has an output by its own name; one by SRT may hold 37 MB [default: 64]
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..=256))]
    pub(crate) streams: Option<usize>,
    /// Append to FILE
    #[arg(long, conflicts_with = "overwrite")]
    pub(crate) append: bool,
    /// Replace what is in FILE already, once there is a stream
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Start a new file this often, at an I frame
    #[arg(long, value_name = "TIME", value_parser = values::segment)]
    pub(crate) segment: Option<Duration>,
    /// With --from, of a stream that is served to many (`receive --serve`): time from the output there to the output
    /// here [default: as it is set there]
    #[arg(long, value_name = "TIME", value_parser = values::latency, allow_hyphen_values = true, help_heading = "Quality")]
    pub(crate) latency: Option<Duration>,
    /// With --from: take the stream of this name, where there are several
    #[arg(long, value_name = "NAME", value_parser = values::name, help_heading = "Paths")]
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) serve: ServeArgs,
    /// Output frames as soon as they are in order: the latency becomes an upper bound instead of a constant delay
    #[arg(long, help_heading = "Quality")]
    pub(crate) early: bool,
    /// End a stream if its sender has been gone for this long; never: keep waiting [default: 5min, with --keep never]
    #[arg(long, value_name = "TIME|never", value_parser = values::patience, help_heading = "Paths")]
    pub(crate) give_up: Option<values::Patience>,
    /// Accept only the senders in this file. Each line has a fingerprint (with --cert also
    /// dns:HOST) and a name, then an OUTPUT (unless the command has one with {name}) and limits:
    /// max-rate=5mbit, until=2027-01-31. SIGHUP reads it again
    #[arg(long, value_name = "FILE", requires = "own", conflicts_with_all = ["accept", "peer_key"], help_heading = "Security")]
    pub(crate) authorized: Option<PathBuf>,
    /// Print a ticket, with which alone `braidcast send --to braid:…` reaches this receiver, and take nobody
    /// without it. It is good for this run; --ticket=NAME is one that lasts, and is kept in your folder for
    /// configuration: `braidcast key ticket` makes, shows and revokes such
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true, default_missing_value = "", value_parser = values::maybe_ticket, conflicts_with_all = ["from", "authorized", "key", "key_file", "peer_key", "identity", "cert", "plain"], help_heading = "Security")]
    pub(crate) ticket: Option<String>,
    #[command(flatten)]
    pub(crate) shared: SharedArgs,
    /// Write a line of CSV for each frame: when it was captured, when it arrived, whether it was on time
    #[arg(long, value_name = "FILE", help_heading = "Look inside")]
    pub(crate) log: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) watch: WatchArgs,
    #[command(flatten)]
    pub(crate) figures: FiguresArgs,
    /// Show what comes on the page of --web, an image each second of up to four streams; ffmpeg decodes it, as a child
    /// without rights
    #[arg(help_heading = "Look inside", long, requires = "web")]
    pub(crate) thumbnail: bool,
    /// Output together what is due within this time, up to that much early and never late; at least fifty times in each
    /// latency. Longer slices use less CPU. 0: output each packet when it is due
    #[arg(long, value_name = "TIME", default_value = "4ms", value_parser = values::slice, help_heading = "Experts")]
    pub(crate) slice: Duration,
    /// Make the protocol's random choices repeatable
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = values::seed, help_heading = "Experts")]
    pub(crate) seed: Option<u64>,
}

impl ReceiveArgs {
    /// Returns what LISTEN says, unless this end calls, and the outputs given by position: with
    /// `--from` all positions are.
    pub(crate) fn places(&self) -> Outcome<(Option<Entrances>, Vec<Output>)> {
        if self.from.is_empty() && self.latency.is_some() {
            return Err(Failure::usage(
                "--latency is for --from, where a stream is served to many: else the sender sets the latency",
                "write braidcast send --latency TIME; --early hands frames out sooner",
            ));
        }
        if self.from.is_empty() && self.name.is_some() {
            return Err(Failure::usage(
                "--name is for --from: a receiver that is called takes streams by --accept NAME=OUTPUT",
                "write --accept NAME=OUTPUT, or {name} in FILE",
            ));
        }
        if self.from.is_empty() && self.relay.is_empty() {
            if !self.via.is_empty() {
                return Err(Failure::usage(
                    "--via is for --from and --relay: a receiver that listens takes what comes over any network",
                    "leave out --via, or write LISTEN as ADDR:PORT to choose one address",
                ));
            }
            let listen = self.listen.as_ref().map(|first| first.listen.clone()).transpose();
            let listen = listen.map_err(|why| {
                Failure::usage(format!("invalid value for <LISTEN>: {why}"), "`braidcast receive --help` says more")
            })?;
            return Ok((listen, self.output.clone()));
        }
        let first = self.listen.as_ref().map(|first| values::output(&first.text)).transpose();
        let first = first.map_err(|why| {
            Failure::usage(format!("invalid value for <OUTPUT>: {why}"), "`braidcast receive --help` says more")
        })?;
        let outputs: Vec<Output> = first.into_iter().chain(self.output.iter().cloned()).collect();
        if outputs.is_empty() && self.accept.is_empty() && self.authorized.is_none() && self.serve.serve.is_none() {
            return Err(Failure::usage(
                "there is no <OUTPUT>",
                "say where the stream goes: a FILE, - or udp://HOST:PORT",
            ));
        }
        if !outputs.is_empty() && !self.accept.is_empty() {
            return Err(Failure::usage(
                "an <OUTPUT> does not go with --accept",
                "give each name its output by --accept",
            ));
        }
        Ok((None, outputs))
    }
}
