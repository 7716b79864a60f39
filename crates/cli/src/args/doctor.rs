use super::SharedArgs;
use super::destination::{self, To};
use super::via::{Via, via};
use braidcast_sim::link::parse;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// `braidcast doctor`.
#[derive(Args, Debug)]
#[command(after_help = "\
Without an address it looks at this machine alone. A receiver answers beside its stream: no stream begins, none is \
disturbed, and no file is made. What the paths carry is measured against `braidcast perf server 9000 --keep`. Two relays, or \
two ports of one, tell what kind of NAT is in between.
Exit status: 0 if a stream could go, 1 if not.

Examples:
  braidcast doctor
  braidcast doctor home.example:9000 --via wlan0,wwan0 --key-file stream.key
  braidcast doctor @ticket.txt --via wlan0,wwan0")]
pub(crate) struct DoctorArgs {
    /// The other end: a receiver, a `braidcast perf server`, or a relay; several with commas. Or a ticket, braid:…;
    /// @FILE reads it from FILE
    #[arg(value_name = "TICKET|HOST:PORT", value_delimiter = ',', value_parser = destination::to)]
    pub(crate) to: Vec<To>,
    /// Networks to look at: interfaces or local addresses; several with commas, or repeated [default: as the system
    /// routes]
    #[arg(long, short = 'i', value_name = "IFACE|ADDR[?name=NAME]", value_delimiter = ',', value_parser = via)]
    pub(crate) via: Vec<Via>,
    /// How long the paths carry all that they can, to a `braidcast perf server`
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    pub(crate) duration: Duration,
    /// The key by which relays with a list know this end
    #[arg(long, value_name = "FILE")]
    pub(crate) relay_key: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) shared: SharedArgs,
}

/// Long enough for a rate, and not so long that a mobile plan is used up.
fn duration(text: &str) -> Result<Duration, String> {
    match parse::duration(text) {
        Ok(time) if (Duration::from_secs(1)..=Duration::from_secs(60)).contains(&time) => Ok(time),
        Ok(_) => Err("give 1s to 60s, for example 5s".into()),
        Err(error) => Err(error.to_string()),
    }
}
