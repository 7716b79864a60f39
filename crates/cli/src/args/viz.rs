use braidcast_trace::FlowName;
use clap::Args;
use std::path::PathBuf;

/// `braidcast viz`.
#[derive(Args, Debug)]
#[command(after_help = "\
FILE is a trace that --trace wrote, a capture of SCTP or DCCP, also in UDP (pcapng, pcap), or a wired trace of ns-2: its content says \
which. With the traces of both ends, arrows show how long each packet took. The \
two clocks are compared by assuming that the shortest one-way delay is equal in both directions.

Example:
  braidcast send camera.ts --to home.example:9000 --trace send.trace
  braidcast viz send.trace receive.trace --open
Several traces; the two ends of an association share a page:
  braidcast viz target/demo/*.trace")]
pub(crate) struct VizArgs {
    /// The trace of one end, or those of both
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// File for the page [default: beside the first FILE of an association, with .html]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Which flow of a trace of ns-2 [default: the largest of SCTP, else the largest]
    #[arg(long, value_name = "PROTOCOL/FID", value_parser = flow)]
    pub(crate) flow: Option<FlowName>,
    /// Write Chrome's trace format instead of a page, for Perfetto (ui.perfetto.dev) and its like,
    /// with packets as arrows
    #[arg(long, value_name = "FILE", conflicts_with_all = ["out", "open"])]
    pub(crate) perfetto: Option<PathBuf>,
    /// Open the page in the browser
    #[arg(long)]
    pub(crate) open: bool,
}

fn flow(text: &str) -> Result<FlowName, String> {
    let parts = text.rsplit_once('/').and_then(|(protocol, number)| Some((protocol, number.parse().ok()?)));
    let (protocol, number) = parts.ok_or_else(|| format!("'{text}' is not PROTOCOL/FID, for example sctp/0"))?;
    Ok(FlowName { protocol: protocol.to_owned(), number })
}
