//! One file or folder per subcommand.

mod authorized;
mod certificates;
mod common;
mod dccp;
mod demo;
mod emulate;
mod encode;
mod generate;
mod key;
mod known;
mod lab;
mod links;
mod paths;
mod perf;
mod probe;
mod receive;
pub(crate) mod security;
mod send;
mod service;
mod tunnel;
mod udp;
mod viz;
pub(crate) mod watch;

use crate::args::{Cli, Command};
use crate::failure::Outcome;

/// Runs what was asked for.
pub(crate) fn run(cli: Cli) -> Outcome {
    let Cli { common, command } = cli;
    match command {
        Command::Generate(args) => generate::run(&args, &common),
        Command::Emulate(args) => emulate::run(&args, &common),
        Command::Lab(args) => lab::run(&args, &common),
        Command::Demo(args) => demo::run(&args, &common),
        Command::Send(args) => send::run(&args, &common),
        Command::Encode(args) => encode::run(&args, &common),
        Command::Receive(args) => receive::run(&args, &common),
        Command::Tunnel(args) => tunnel::run(&args, &common),
        Command::Viz(args) => viz::run(&args, &common),
        Command::Key(args) => key::run(&args, common.json),
        Command::Perf(args) => perf::run(&args, &common),
    }
}
