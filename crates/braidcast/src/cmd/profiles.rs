//! What each command runs unless told otherwise is one of the profiles, and the one that it should be.

use super::send::options;
use super::tunnel::sctp_options;
use crate::args::{Cli, Command, TunnelCommand};
use braidcast_sctp::{Options, Profile};
use braidcast_session::ReceiverOptions;
use braidcast_session::tunnel::Settings;
use clap::Parser;

fn parsed(line: &str) -> Command {
    Cli::try_parse_from(line.split(' ')).unwrap_or_else(|error| panic!("{line}: {error}")).command
}

/// The transport that a command makes of its defaults.
fn transport(line: &str) -> Options {
    match parsed(line) {
        Command::Send(args) => options::of(&args.how, args.how.reliable).transport(),
        Command::Encode(args) => options::of(&args.how, false).transport(),
        Command::Tunnel(args) => {
            let ends = match args.command {
                TunnelCommand::Server(args) => args.ends,
                TunnelCommand::Client(args) => args.ends,
            };
            sctp_options(&ends).transport(&Settings { queue: ends.queue, ..Settings::default() })
        }
        _ => unreachable!("{line} has no transport of its own"),
    }
}

#[test]
fn commands_run_what_their_profile_has() {
    for (line, profile) in [
        ("braidcast send in.ts --to example.org:9899", Profile::Live),
        ("braidcast send --reliable in.ts --to example.org:9899", Profile::Bulk),
        ("braidcast encode test --to example.org:9899", Profile::Live),
        ("braidcast tunnel server 9899 --over sctp --forward 127.0.0.1:5004", Profile::Voice),
        ("braidcast tunnel client --to example.org:9899 --over sctp --listen 5004", Profile::Voice),
    ] {
        assert_eq!(transport(line).profile(), Some(profile), "{line}");
    }
}

#[test]
fn a_receiver_serves_senders_of_all_profiles() {
    // It sends feedback and acknowledgements, and no profile of its own.
    let receiver = ReceiverOptions::default().transport();
    let expected = Options::prompt().with(|it| {
        it.redundancy.fec_receive = true;
        it.paths.forward_delay = true;
    });
    assert_eq!(format!("{receiver:?}"), format!("{expected:?}"));
}
