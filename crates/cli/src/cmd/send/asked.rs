//! What the flags ask of a session.

use crate::args::StreamArgs;
use crate::args::one_path::OnePath;
use braidcast_session::SenderOptions;

/// The session that `args` describe; the defaults are those of its kind.
pub(super) fn asked(args: &StreamArgs, reliable: bool) -> SenderOptions {
    let defaults = if reliable { SenderOptions::reliable() } else { SenderOptions::default() };
    defaults.with(|it| {
        it.latency = args.latency;
        it.redundancy = args.fec.unwrap_or(it.redundancy);
        it.queue = args.queue.0;
        it.scheduler = args.scheduler.unwrap_or(it.scheduler);
        it.selection = args.path.and_then(OnePath::selection);
        it.concurrent = args.path.is_none();
        it.hysteresis = args.hysteresis;
        it.time_guard = args.time_guard;
        it.probe_interval = args.probe_interval;
        it.quick_failover = args.quick_failover.0;
        it.switchover = args.switchover.0;
        it.path_max_retrans = args.path_max_retrans;
        it.retransmission = args.retransmission;
        it.congestion = args.cc.unwrap_or(it.congestion);
        it.give_up = args.give_up.0;
        it.end_with_receiver = args.end_with_receiver;
        it.skip_tsns = true;
        it.name = args.name.clone().unwrap_or_default();
        it.encoder = args.rates.range();
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use braidcast_testing::assert_runs_as_documented;
    use clap::Parser;

    #[test]
    fn send_runs_as_documented() {
        let cli = Cli::try_parse_from(["braidcast", "send", "-", "--to", "192.0.2.1:9000"]).unwrap();
        let Command::Send(args) = cli.command else { panic!("it is `send`") };
        let options = asked(&args.how, false);
        assert_runs_as_documented!("`send`", options.transport(), options.redundancy);
    }
}
