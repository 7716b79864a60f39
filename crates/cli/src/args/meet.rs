use super::values::{self, Remote};
use clap::Args;
use std::path::PathBuf;

/// Where clients are met if nobody can call either end: for servers.
#[derive(Args, Debug)]
#[command(next_help_heading = "Relay")]
pub(crate) struct MeetArgs {
    /// Meet clients at this relay (`braidcast relay`) in place of listening, and print the ticket that they need: for
    /// two ends that nobody can call. Several with commas, or repeated, are as many paths
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',', value_parser = values::peer, conflicts_with_all = ["from", "key", "key_file", "peer_key", "identity", "cert", "plain"])]
    pub(crate) relay: Vec<Remote>,
    /// Private key by which a relay with a list knows this end, made by `braidcast key identity`. It is for the relay
    /// alone
    #[arg(long, value_name = "FILE")]
    pub(crate) relay_key: Option<PathBuf>,
    /// Keep this end's addresses from the other one: everything goes by the relay, and no path past it is looked for
    #[arg(long)]
    pub(crate) relay_only: bool,
    /// With --relay, a ticket that lasts: `braidcast key ticket` makes, shows and revokes such [default: one for this
    /// run]
    #[arg(long, value_name = "NAME", value_parser = values::ticket_name)]
    pub(crate) ticket: Option<String>,
}
