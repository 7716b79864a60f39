//! `braidcast perf`: throughput of one or more paths, and how long messages take.
//!
//! What the two ends say to each other fits into the payload protocol identifier: [`BULK`] messages are counted;
//! [`TIMED`] ones begin with the client's clock and a mark of its machine, and their first half comes back as [`ECHO`].

mod client;
mod latency;
mod server;

use crate::args::{Common, PerfArgs, PerfCommand};
use crate::failure::Outcome;

/// Messages to be counted: "BRPB".
const BULK: u32 = 0x4252_5042;
/// Messages that carry the time: "BRPT".
const TIMED: u32 = 0x4252_5054;
/// The time that comes back: "BRPE".
const ECHO: u32 = 0x4252_5045;

pub(super) fn run(args: &PerfArgs, common: &Common) -> Outcome {
    match &args.command {
        PerfCommand::Server(args) => server::run(args, common),
        PerfCommand::Client(args) => client::run(args, common),
    }
}
