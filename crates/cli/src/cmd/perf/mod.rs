//! `braidcast perf`: throughput of one or more paths, and how long messages take; over SCTP or DCCP.

mod client;
mod dccp;
mod latency;
mod pace;
pub(in crate::cmd) mod protocol;
mod sctp;
mod server;

use crate::args::{Common, PerfArgs, PerfCommand};
use crate::failure::Outcome;

pub(super) fn run(args: &PerfArgs, common: &Common) -> Outcome {
    match &args.command {
        PerfCommand::Server(args) => server::run(args, common),
        PerfCommand::Client(args) => client::run(args, common),
    }
}
