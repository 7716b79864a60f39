//! `braidcast`: live video and voice over several bad networks at once, on time.
//!
//! Exit status: 0 done, 1 failed, 2 wrong use. `--json` puts exactly one JSON document on stdout; everything
//! else goes to stderr.
#![cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, unused_imports, reason = "arguments and tables of commands that need Linux")
)]

#[macro_use]
mod out;

mod args;
mod cmd;
mod config;
#[cfg(not(target_os = "linux"))]
mod elsewhere;
mod failure;
#[cfg(target_os = "linux")]
mod process;

#[cfg(not(target_os = "linux"))]
use elsewhere as process;

use std::process::ExitCode;

fn main() -> ExitCode {
    let argv: Vec<_> = std::env::args_os().collect();
    #[cfg(target_os = "linux")]
    if let [_, command] = argv.as_slice()
        && command == cmd::watch::thumbnail::confined::COMMAND
    {
        // Nobody reads what it says; its parent starts another one, or none.
        let _why = cmd::watch::thumbnail::confined::become_decoder();
        return ExitCode::FAILURE;
    }
    let cli = match config::parse(argv.clone()) {
        Ok(cli) => cli,
        Err(config::Refused::Empty) => {
            say!("{}", args::brief::START);
            return ExitCode::from(2);
        }
        Err(config::Refused::Clap(mut error)) => {
            args::advice::advise(&mut error, &argv);
            // Help and version come this way too; a reader that went away is no failure.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
        Err(config::Refused::File(failure)) => return failure.report(),
    };
    #[cfg(target_os = "linux")]
    if let Some(error) = process::hide_key(&argv) {
        let (what, fix) = ("cannot hide --key from the process list", "give it as BRAIDCAST_KEY or by --key-file");
        return failure::Failure::new(format!("{what}: {error}"), fix).report();
    }
    if let Some(words) = cmd::watch::words::init(cli.common.verbose) {
        out::live::Live::new(true).warn(words);
    }
    match cmd::run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
