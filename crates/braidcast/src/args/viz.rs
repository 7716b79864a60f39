use clap::Args;
use std::path::PathBuf;

/// `braidcast viz`.
#[derive(Args, Debug)]
#[command(after_help = "\
Traces are what --trace writes. With those of both ends, arrows go from one clock to the other: the shortest way is taken to last as \
long in both directions.

Example:
  braidcast send camera.ts --to home.example:9000 --trace send.trace
  braidcast viz send.trace receive.trace --open
Of many traces, those of the two ends of one association share a page:
  braidcast viz target/demo/*.trace")]
pub(crate) struct VizArgs {
    /// The trace of one end, or those of both
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Where the page goes [default: beside the first FILE of an association, with .html]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Open the page in the browser
    #[arg(long)]
    pub(crate) open: bool,
}
