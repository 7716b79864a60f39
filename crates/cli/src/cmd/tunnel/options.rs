//! What the flags of a tunnel's end say together, and what they cannot mean.

use crate::args::TunnelEndArgs;
use crate::args::dccp;
use crate::args::values::Over;
use crate::cmd::dccp::{IPV6_AND_UDP, is_rate_based};
use crate::failure::{Failure, Outcome};
use braidcast_dccp::{Options, ReorderOptions};
use braidcast_session::tunnel::{Class, SctpOptions};
use std::time::Duration;

/// Time of unanswered requests after which an end that calls begins anew, with pauses that are short again.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// What DCCP is told; refuses what does not go together. `by_key`: a list of keys may say what is to be carried where.
pub(super) fn options(args: &TunnelEndArgs, by_key: bool) -> Outcome<Options> {
    if args.listen.is_empty() && args.forward.is_empty() && !by_key {
        return Err(Failure::usage(
            "there is nothing to carry",
            "give --listen PORT for applications here that send, or --forward HOST:PORT for those that wait",
        ));
    }
    refuse_what_the_other_has(args)?;
    let ccid = args.ccid.unwrap_or_else(dccp::congestion_by_default);
    let mut options = ccid.options();
    let needs_rate = [
        ("--faster-restart", args.faster_restart),
        ("--reorder", args.reorder.is_some()),
        ("--min-rate", args.min_rate.is_some()),
        ("--max-rate", args.max_rate.is_some()),
        ("--max-loss", args.max_loss.is_some()),
        ("--rate-report", args.rates.rate_report.is_some()),
    ];
    if let Some((flag, _)) = needs_rate.iter().find(|(_, given)| *given && !is_rate_based(&options)) {
        return Err(Failure::usage(
            format!("{flag} has no effect with {ccid}, which has no rate"),
            "give --ccid ccid3 or ccid4",
        ));
    }
    if let (Some(min), Some(max)) = (args.min_rate, args.max_rate)
        && min > max
    {
        return Err(Failure::usage("--min-rate is more than --max-rate", "give a lower --min-rate"));
    }
    options.tfrc.faster_restart = args.faster_restart;
    options.reorder = args.reorder.map(ReorderOptions::new);
    options.max_packet = usize::from(args.mtu) - IPV6_AND_UDP;
    options.request_timeout = CONNECT_TIMEOUT;
    Ok(options)
}

/// What SCTP is told.
pub(super) fn over_sctp(args: &TunnelEndArgs) -> SctpOptions {
    let usual = SctpOptions::default();
    SctpOptions {
        redundancy: args.fec.unwrap_or(usual.redundancy),
        scheduler: args.scheduler.unwrap_or(usual.scheduler),
        congestion: args.cc.unwrap_or(usual.congestion),
        security: None,
    }
}

/// Flags of one protocol say nothing of the other.
fn refuse_what_the_other_has(args: &TunnelEndArgs) -> Outcome {
    let (flags, other) = match args.over {
        Over::Dccp => (
            vec![("--fec", args.fec.is_some()), ("--scheduler", args.scheduler.is_some()), ("--cc", args.cc.is_some())],
            Over::Sctp,
        ),
        Over::Sctp => (
            vec![
                ("--ccid", args.ccid.is_some()),
                ("--faster-restart", args.faster_restart),
                ("--reorder", args.reorder.is_some()),
                ("--min-rate", args.min_rate.is_some()),
                ("--max-rate", args.max_rate.is_some()),
                ("--max-loss", args.max_loss.is_some()),
                ("--one-way-delay", args.one_way_delay.is_some()),
                ("--probe", args.probe.is_some()),
            ],
            Over::Dccp,
        ),
    };
    match flags.iter().find(|(_, given)| *given) {
        Some((flag, _)) => Err(Failure::usage(
            format!("{flag} is for --over {other}, and this tunnel goes over {}", args.over),
            format!("leave out {flag}, or give --over {other} at both ends"),
        )),
        None => Ok(()),
    }
}

/// What was said of a port, with the deadline that was given apart.
pub(super) fn with_deadline(args: &TunnelEndArgs, port: u16, class: Class) -> Class {
    let given = args.deadline.iter().find(|it| it.port == port).map(|it| it.time);
    Class { lifetime: given.or(class.lifetime), ..class }
}

/// A deadline for a port that is not there is a slip.
pub(super) fn check_deadlines(args: &TunnelEndArgs) -> Outcome {
    let known = |port| args.listen.iter().any(|it| it.port == port) || args.forward.iter().any(|it| it.to.port == port);
    match args.deadline.iter().find(|it| !known(it.port)) {
        Some(it) => Err(Failure::usage(
            format!("--deadline names port {}, which neither --listen nor --forward has", it.port),
            "give the port of an application at this end",
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command, TunnelCommand};
    use braidcast_session::tunnel::Settings;
    use braidcast_testing::assert_runs_as_documented;
    use clap::Parser;

    #[test]
    fn a_tunnel_over_sctp_runs_as_documented() {
        let line = "braidcast tunnel client --over sctp --to 192.0.2.1:9000 --listen 5004";
        let cli = Cli::try_parse_from(line.split(' ')).unwrap();
        let Command::Tunnel(args) = cli.command else { panic!("it is `tunnel`") };
        let TunnelCommand::Client(client) = args.command else { panic!("it is a client") };
        let options = over_sctp(&client.ends);
        let settings = Settings { queue: client.ends.queue, ..Settings::default() };
        assert_runs_as_documented!("`tunnel --over sctp`", options.transport(&settings), options.redundancy);
    }
}
