use super::values::{self, Stats, StatsTarget};
use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;

/// What lets one see inside while a command runs.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Look inside")]
pub(crate) struct WatchArgs {
    /// Write what happens inside, packet by packet and frame by frame, for `braidcast viz` and qlog's tools
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Capture every packet for Wireshark and `braidcast viz`, encrypted as on the network, with a
    /// comment that says what it was for
    #[arg(long, value_name = "FILE")]
    pub(crate) pcap: Option<PathBuf>,
    /// Capture decrypted packets in the --pcap file: anybody with the file can read and watch everything
    #[arg(long, requires = "pcap")]
    pub(crate) pcap_decrypted: bool,
}

/// Live figures for programs and pages.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Look inside")]
pub(crate) struct FiguresArgs {
    /// Write figures at this interval, a line of JSON each time: 1s to stdout, 1s,FILE to a file or named pipe
    #[arg(long, value_name = "TIME[,FILE]", value_parser = values::stats)]
    pub(crate) stats: Option<Stats>,
    /// Serve the same figures to Prometheus at http://ADDR/metrics: a PORT of 127.0.0.1, or ADDR:PORT
    #[arg(long, value_name = "[ADDR:]PORT", value_parser = values::serve_at)]
    pub(crate) metrics: Option<SocketAddr>,
    /// Serve a page with the same figures, to keep open: a PORT of 127.0.0.1, or ADDR:PORT
    #[arg(long, value_name = "[ADDR:]PORT", value_parser = values::serve_at)]
    pub(crate) web: Option<SocketAddr>,
    /// The page's password: FILE's first line, or `none` for a page that whoever reaches it sees [default: beyond this
    /// machine one is made up and said]
    #[arg(long, value_name = "FILE|none", requires = "web")]
    pub(crate) web_password: Option<PathBuf>,
}

impl FiguresArgs {
    /// Returns `true` if statistics go to stdout.
    pub(crate) fn to_stdout(&self) -> bool {
        self.stats.as_ref().is_some_and(|stats| stats.target == StatsTarget::Stdout)
    }
}
