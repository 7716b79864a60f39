use super::values;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// `braidcast demo`.
#[derive(Args, Debug)]
#[command(after_help = "\
Needs ffmpeg. A Wi-Fi and an LTE network, each alone and both together, and two far, lossy networks without and with \
redundancy are emulated at the same time, with real `send` and `receive` processes. The files received stay in the output folder to be watched, and summary.json beside them.")]
pub(crate) struct DemoArgs {
    /// A video with audio to send [default: the one that `make demo` fetched, else ffmpeg's test video]
    #[arg(long, value_name = "FILE")]
    pub(crate) clip: Option<PathBuf>,
    /// How much of it to send; a shorter clip is repeated
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u32).range(5..=3600))]
    pub(crate) seconds: u32,
    /// End-to-end delay: each frame is played this long after its capture
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = values::latency, allow_hyphen_values = true)]
    pub(crate) latency: Duration,
    /// Folder for what was received and for summary.json
    #[arg(long, value_name = "DIR", default_value = "target/demo")]
    pub(crate) out: PathBuf,
    /// Seed of the emulated losses and stalls
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true, value_parser = values::seed)]
    pub(crate) seed: u64,
}
