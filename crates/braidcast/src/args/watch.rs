use clap::Args;
use std::path::PathBuf;

/// What lets one see inside while a command runs.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "See inside")]
pub(crate) struct WatchArgs {
    /// Write what happens inside, packet by packet and frame by frame, for `braidcast viz` and qlog's tools
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
}
