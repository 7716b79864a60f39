//! What the failure of the first path costs: how long nothing comes, when the sender abandons the
//! path, how far the transfer falls behind. Without an outage on that path it measures how often a
//! path is abandoned that had not failed.

use super::{Curve, Experiment, Measures};
use crate::host::{Arrival, SctpReceiver, SctpSender};
use crate::plan::{Done, Plan, Run};
use crate::scenario::FlowSpec;
use braidcast_core::Instant;
use braidcast_sctp::Options;
use braidcast_sim::link::OutageTimes;
use core::time::Duration;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "failover",
    text: "how long the receiver waits once the first path is cut, when the sender abandons it, what is lost",
    fixed_length: false,
    build: Plan::of,
    measure,
};

/// A pause in what arrives that is worth the name, beside the gaps that queues and acknowledgements make.
const SILENCE: Duration = Duration::from_millis(200);
/// The end of a run, over which the rate after the failover is measured.
const SETTLED: Duration = Duration::from_secs(20);

fn measure(run: &Run<'_>, done: &Done<'_>) -> Measures {
    let mut measures = Measures::default();
    let Some(flow) = run.point.flows.first() else { return measures };
    let (Some(sender), Some(receiver)) = (
        done.sender(&flow.name).and_then(|host| host.sctp_sender()),
        done.receiver(&flow.name).and_then(|host| host.sctp_receiver()),
    ) else {
        return measures;
    };
    measures.metric("goodput", "kbit/s", receiver.delivered.goodput() / 1e3);
    let failures = sender.changes.iter().filter(|(_, _, up)| !up).count();
    measures.metric("paths given up", "", failures as f64);
    measures.metric("retransmissions", "packets", sender.grown(|stats| stats.retransmissions) as f64);
    measures.metric("timeouts", "", sender.grown(|stats| stats.t3_expiries) as f64);
    if let Some(cut) = cut_of(run, flow) {
        after_the_cut(cut, flow, sender, receiver, &mut measures);
    }
    measures
}

/// When the first link of the flow's first path is cut for good.
fn cut_of(run: &Run<'_>, flow: &FlowSpec) -> Option<Instant> {
    let link = run.point.links.get(*flow.paths.first()?.first()?)?;
    link.there.outages.iter().find_map(|outage| match outage.times {
        OutageTimes::Window { from, .. } => Some(from),
        OutageTimes::Every { .. } => None,
    })
}

fn after_the_cut(cut: Instant, flow: &FlowSpec, sender: &SctpSender, receiver: &SctpReceiver, measures: &mut Measures) {
    let log = &receiver.delivered.log;
    let Some(end) = log.last().map(|arrival| arrival.at) else { return };
    let seconds = |until: Instant| until.since(cut).as_secs_f64();
    let (first, longest) = silences(log, cut);
    measures.metric("until data flows", "s", first.map_or(0.0, seconds));
    measures.metric("longest silence", "s", longest.as_secs_f64());
    if let Some((at, ..)) = sender.changes.iter().find(|(at, _, up)| *at >= cut && !up) {
        measures.metric("failover time", "s", seconds(*at));
    }
    let before = sender.samples.iter().take_while(|sample| sample.at <= cut).last();
    if let Some(path) = before.and_then(|sample| sample.paths.first()) {
        let theory = failover_time(path.rto, &flow.sctp);
        measures.metric("failover time, theory", "s", theory.as_secs_f64());
    }
    let bytes = |from: Instant| log.iter().filter(|it| it.at >= from).map(|it| it.bytes as f64).sum::<f64>();
    let settled = end - SETTLED;
    if settled > cut {
        let rate = bytes(settled) / SETTLED.as_secs_f64();
        measures.metric("time lost", "s", seconds(end) - bytes(cut) / rate);
    }
    measures.curves.push(progress(log));
}

/// When the first pause after `cut` ended, and how long the longest was.
fn silences(log: &[Arrival], cut: Instant) -> (Option<Instant>, Duration) {
    let pauses = log.windows(2).filter(|pair| pair[1].at > cut).map(|pair| (pair[1].at, pair[1].at - pair[0].at));
    let first = pauses.clone().find(|&(_, pause)| pause >= SILENCE).map(|(at, _)| at);
    (first, pauses.map(|(_, pause)| pause).max().unwrap_or_default())
}

/// Returns the sum of the timeouts until a path is abandoned, from its RTO when it fails. Each is
/// twice the one before, and there is one more than the limit (RFC 9260 §6.3.3 E2, §8.2; RFC 7829
/// §3 for the lower limit of quick failover).
fn failover_time(rto: Duration, options: &Options) -> Duration {
    let limit = options
        .paths
        .quick_failover
        .map_or(options.paths.path_max_retrans, |it| it.min(options.paths.path_max_retrans));
    let timeout = |n: u32| 2_u32.checked_pow(n).and_then(|factor| rto.checked_mul(factor));
    (0..=limit).map(|n| timeout(n).unwrap_or(Duration::MAX).min(options.timers.rto.max)).sum()
}

/// What was handed over by each second.
fn progress(log: &[Arrival]) -> Curve {
    let (mut points, mut sum) = (Vec::<[f64; 2]>::new(), 0.0);
    for arrival in log {
        let second = arrival.at.as_secs_f64().floor();
        while points.last().is_some_and(|&[last, _]| last + 1.0 < second) {
            points.push([points[points.len() - 1][0] + 1.0, sum]);
        }
        if points.last().is_none_or(|&[last, _]| last < second) {
            points.push([second, sum]);
        }
        sum += arrival.bytes as f64 / 1e6;
    }
    Curve { name: "delivered".to_owned(), x: "time (s)", y: "delivered (MB)", points }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_given_up_after_the_sum_of_its_timeouts() {
        let time = |path_max_retrans, quick_failover| {
            let options = Options::classic().with(|it| {
                it.paths.path_max_retrans = path_max_retrans;
                it.paths.quick_failover = quick_failover;
            });
            failover_time(Duration::from_secs(1), &options).as_secs()
        };
        // PATHS §5.1.1: with the recommended limit of 5 "more than one minute".
        assert_eq!([0, 1, 2, 3, 4, 5].map(|limit| time(limit, None)), [1, 3, 7, 15, 31, 63]);
        assert_eq!([time(7, None), time(5, Some(0)), time(5, Some(9))], [63 + 60 + 60, 1, 63]);
    }
}
