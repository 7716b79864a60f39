use crate::args::StreamArgs;
use crate::args::one_path::OnePath;
use braidcast_session::SenderOptions;

/// Returns what the user chose, with the defaults of a live or reliable session.
pub(crate) fn of(args: &StreamArgs, reliable: bool) -> SenderOptions {
    let defaults = if reliable { SenderOptions::reliable() } else { SenderOptions::default() };
    SenderOptions {
        latency: args.latency,
        redundancy: args.fec.unwrap_or(defaults.redundancy),
        queue: args.queue.0,
        scheduler: args.scheduler.unwrap_or(defaults.scheduler),
        selection: args.path.and_then(OnePath::selection),
        concurrent: args.path.is_none(),
        hysteresis: args.hysteresis,
        time_guard: args.time_guard,
        probe_interval: args.probe_interval,
        quick_failover: args.quick_failover.0,
        switchover: args.switchover.0,
        path_max_retrans: args.path_max_retrans,
        retransmission: args.retransmission,
        congestion: args.cc.unwrap_or(defaults.congestion),
        give_up: args.give_up.0,
        skip_tsns: true,
        name: args.name.clone().unwrap_or_default(),
        encoder: args.rates.rate_range.0,
        ..defaults
    }
}
