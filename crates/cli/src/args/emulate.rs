use super::values::{self, Listen, Remote};
use braidcast_sim::link::{Jitter, Loss, Outage, Queue, Rate, Reorder, Schedule, parse};
use clap::{ArgGroup, Args};
use std::path::PathBuf;
use std::time::Duration;

/// `braidcast emulate`.
#[derive(Args, Debug)]
#[command(group = ArgGroup::new("limit").args(["rate", "trace"]), after_help = "\
What reaches LISTEN goes on to FORWARD, and answers go back. Delay, jitter and outages act in both directions; rate, trace, \
queue, loss, reordering and duplication towards FORWARD only, unless --both. Times count from the start.

Examples:
  braidcast emulate :9001 192.0.2.1:9000 --rate 8mbit --delay 15ms --loss 5%
  braidcast emulate :9002 192.0.2.1:9000 --trace uplink.up --delay 30ms --queue 300ms
  braidcast emulate :9003 192.0.2.1:9000 --rate 3mbit --loss burst:5%,4 --outage 10s-20s --outage every:2s,250ms,hold")]
pub(crate) struct EmulateArgs {
    /// Address that takes datagrams: PORT or :PORT for every address of this machine, or ADDR:PORT
    #[arg(value_name = "LISTEN", value_parser = values::listen)]
    pub(crate) listen: Listen,
    /// Address that they are sent on to
    #[arg(value_name = "FORWARD", value_parser = values::peer)]
    pub(crate) forward: Remote,
    /// Rate: 8mbit, or one that changes: 0s:8mbit,10s:2mbit in steps, ramp:0s:8mbit,10s:2mbit in straight lines;
    /// with ,repeat:20s again and again [default: no limit]
    #[arg(long, value_name = "RATE", conflicts_with = "trace")]
    pub(crate) rate: Option<Rate>,
    /// One-way delay: 15ms, or one that changes as a rate does: 0s:15ms,10s:80ms
    #[arg(long, value_name = "TIME", default_value = "0ms", value_parser = parse::delay_schedule)]
    pub(crate) delay: Schedule,
    /// Variation of the delay: 5ms (uniform, plus or minus) or normal:5ms (standard deviation)
    #[arg(long, value_name = "TIME")]
    pub(crate) jitter: Option<Jitter>,
    /// Loss: 5%, burst:5%,4 (mean loss, mean packets in a burst), or ge:p=1%,r=30%,bad=100%,good=0%
    #[arg(long, value_name = "LOSS", default_value = "0%")]
    pub(crate) loss: Loss,
    /// What may wait before the link: 100p, 64kB or 300ms; or RED, red:5p,15p,10% (min, max, probability), or CoDel,
    /// codel:5ms,100ms (target, interval), both with ,ecn to mark packets and ,limit=100p
    #[arg(long, value_name = "QUEUE", default_value = "300ms", requires = "limit")]
    pub(crate) queue: Queue,
    /// Packets out of order: 2% (they skip the delay) or 2%,30ms (they come that much later)
    #[arg(long, value_name = "SHARE")]
    pub(crate) reorder: Option<Reorder>,
    /// Packets that arrive twice, for example 1%
    #[arg(long, value_name = "SHARE", default_value = "0%", value_parser = parse::share)]
    pub(crate) duplicate: f64,
    /// A recorded link instead of --rate: a line for each chance to deliver 1500 bytes, its time in ms (mahimahi's
    /// format)
    #[arg(long, value_name = "FILE", conflicts_with = "rate")]
    pub(crate) trace: Option<PathBuf>,
    /// Position in the recording to begin at
    #[arg(long, value_name = "TIME", default_value = "0s", requires = "trace", value_parser = parse::duration)]
    pub(crate) trace_from: Duration,
    /// Time without service: 10s-12s or every:3s,250ms (means); with ,hold packets wait instead of being lost;
    /// repeatable
    #[arg(long, value_name = "TIMES")]
    pub(crate) outage: Vec<Outage>,
    /// Apply everything in both directions
    #[arg(long)]
    pub(crate) both: bool,
    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true, value_parser = values::seed)]
    pub(crate) seed: u64,
    /// End after this time [default: at Ctrl-C]
    #[arg(long, value_name = "TIME", value_parser = parse::duration)]
    pub(crate) duration: Option<Duration>,
}
