//! One file or folder per subcommand. Those that use the network need Linux; `emulate`, `lab`,
//! `viz` and `generate` run anywhere.

mod emulate;
mod generate;
mod interrupt;
mod lab;
mod resolve;
#[cfg(target_os = "linux")]
mod rtmp;
#[cfg(target_os = "linux")]
mod rtp;
mod viz;

#[cfg(target_os = "linux")]
mod authorized;
#[cfg(target_os = "linux")]
mod certificates;
#[cfg(target_os = "linux")]
mod common;
#[cfg(target_os = "linux")]
mod dccp;
#[cfg(target_os = "linux")]
mod demo;
#[cfg(target_os = "linux")]
mod doctor;
#[cfg(target_os = "linux")]
mod encode;
#[cfg(target_os = "linux")]
mod ends;
#[cfg(target_os = "linux")]
mod fifo;
#[cfg(target_os = "linux")]
mod key;
#[cfg(target_os = "linux")]
mod links;
#[cfg(target_os = "linux")]
mod named;
#[cfg(target_os = "linux")]
pub(crate) mod neighbour;
#[cfg(target_os = "linux")]
mod paths;
#[cfg(target_os = "linux")]
mod perf;
#[cfg(target_os = "linux")]
mod probe;
#[cfg(target_os = "linux")]
mod rates;
#[cfg(target_os = "linux")]
mod receive;
#[cfg(target_os = "linux")]
mod relay;
#[cfg(target_os = "linux")]
pub(crate) mod security;
#[cfg(target_os = "linux")]
mod send;
#[cfg(target_os = "linux")]
mod service;
#[cfg(target_os = "linux")]
mod tables;
#[cfg(target_os = "linux")]
mod through;
#[cfg(target_os = "linux")]
mod ticket;
#[cfg(target_os = "linux")]
mod tunnel;
#[cfg(target_os = "linux")]
mod udp;
#[cfg(target_os = "linux")]
pub(crate) mod watch;
#[cfg(not(target_os = "linux"))]
pub(crate) mod watch {
    pub(crate) mod words;
}

use crate::args::{Cli, Command};
use crate::failure::Outcome;

/// Runs what was asked for.
pub(crate) fn run(cli: Cli) -> Outcome {
    let Cli { common, command } = cli;
    match command {
        Command::Generate(args) => generate::run(&args, &common),
        Command::Emulate(args) => emulate::run(&args, &common),
        Command::Lab(args) => lab::run(&args, &common),
        Command::Viz(args) => viz::run(&args, &common),
        #[cfg(target_os = "linux")]
        Command::Demo(args) => demo::run(&args, &common),
        #[cfg(target_os = "linux")]
        Command::Send(args) => send::run(&args, &common),
        #[cfg(target_os = "linux")]
        Command::Encode(args) => encode::run(&args, &common),
        #[cfg(target_os = "linux")]
        Command::Receive(args) => receive::run(&args, &common),
        #[cfg(target_os = "linux")]
        Command::Tunnel(args) => tunnel::run(&args, &common),
        #[cfg(target_os = "linux")]
        Command::Relay(args) => relay::run(&args, &common),
        #[cfg(target_os = "linux")]
        Command::Doctor(args) => doctor::run(&args, &common),
        #[cfg(target_os = "linux")]
        Command::Key(args) => key::run(&args, common.json),
        #[cfg(target_os = "linux")]
        Command::Perf(args) => perf::run(&args, &common),
        #[cfg(not(target_os = "linux"))]
        _ => Err(crate::failure::Failure::usage(
            "this command needs Linux",
            "on this system there are `braidcast lab`, `viz` and `emulate`",
        )),
    }
}
