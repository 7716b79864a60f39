use super::values::{self, Listen};
use clap::Args;
use clap::builder::RangedU64ValueParser;
use std::path::PathBuf;
use std::time::Duration;

/// How `receive` serves what it takes to other receivers.
#[derive(Args, Debug)]
#[command(next_help_heading = "Serve")]
pub(crate) struct ServeArgs {
    /// Serve what comes to other receivers, which call here (`receive --from`): each over its own paths, with its own
    /// latency and repairs. Written as LISTEN. The keys are those of this end
    #[arg(long, value_name = "LISTEN", value_parser = values::listen, conflicts_with_all = ["relay", "ticket"])]
    pub(crate) serve: Option<Listen>,
    /// Serve only the receivers in this file. Each line has a fingerprint (with --cert also dns:HOST) and a name, then
    /// streams=cam1,cam2 if it may not have all, and until=2027-01-31. SIGHUP reads it again
    #[arg(long, value_name = "FILE", requires_all = ["serve", "own"])]
    pub(crate) serve_authorized: Option<PathBuf>,
    /// Time from the output here to the output of a receiver that asks for no other
    #[arg(long, value_name = "TIME", requires = "serve", default_value = "500ms", value_parser = values::latency, allow_hyphen_values = true)]
    pub(crate) serve_latency: Duration,
    /// Most receivers at a time; each may take 10 MiB
    #[arg(long, value_name = "N", requires = "serve", default_value_t = 64, value_parser = RangedU64ValueParser::<usize>::new().range(1..=1000))]
    pub(crate) serve_max: usize,
}
