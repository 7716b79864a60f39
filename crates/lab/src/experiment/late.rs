//! Messages that have to be there in time: how many come late or not at all, and how video in them looks (ECMT §III-B).

use super::{Experiment, Measures, transfer};
use crate::host::{Arrival, Host};
use crate::plan::{Done, Plan, Run};
use crate::scenario::{FlowSpec, Traffic};
use braidcast_core::Rng;
use braidcast_media::video::Screen;
use braidcast_sim::traffic::Traffic as Source;
use core::time::Duration;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "late-loss",
    text: "messages of paced SCTP flows that come later than `deadline` or not at all (needs `log`), their jitter, and MOS (G.1070)",
    fixed_length: false,
    build: Plan::of,
    measure,
};

/// Frames per second (ECMT §III-B).
const FPS: f64 = 30.0;

fn measure(run: &Run<'_>, done: &Done<'_>) -> Measures {
    let mut measures = Measures::default();
    for flow in &run.point.flows {
        let prefix = transfer::prefix(run, flow);
        let Some(receiver) = done.receiver(&flow.name).and_then(Host::sctp_receiver) else { continue };
        let delivered = &receiver.delivered;
        let due = due(run, flow, &delivered.log);
        let (late, missing) = missed(&flow.traffic, due, &delivered.log);
        let goodput = delivered.goodput() / 1e3;
        let rate = if let Source::Cbr(stream) = flow.traffic.source { stream.rate as f64 / 1e3 } else { goodput };
        let mut metric = |name: &str, unit, value| measures.metric(format!("{prefix}{name}"), unit, value);
        metric("late or lost", "%", 100.0 * (late + missing));
        metric("not there at the end", "%", 100.0 * missing);
        metric("MOS", "", Screen::Mpeg4Qvga.mos(rate, FPS, late + missing));
        metric("goodput", "kbit/s", goodput);
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        metric("delay", "ms", delivered.meter.delay_mean().map_or(0.0, ms));
        metric("jitter", "ms", ms(delivered.meter.jitter_mean()));
        metric("99 % of delays", "ms", delivered.meter.delays().quantile(0.99).map_or(0.0, ms));
        if let Some(sender) = done.sender(&flow.name).and_then(Host::sctp_sender) {
            transfer::sent(&prefix, sender, &mut measures);
        }
    }
    measures
}

/// How many messages of the source could have come in time before the run ended.
fn due(run: &Run<'_>, flow: &FlowSpec, log: &[Arrival]) -> u64 {
    let emissions = flow.traffic.source.source(Rng::from_seed(run.seed));
    let before = run.duration.saturating_sub(flow.traffic.deadline);
    if matches!(flow.traffic.source, Source::Bulk(None)) {
        return taken(before, log); // It has always one more: those that the transport took.
    }
    emissions.take_while(|it| it.at < before).count() as u64
}

/// Returns how many messages were taken in the time `before`, as far as the arrivals show.
fn taken(before: Duration, log: &[Arrival]) -> u64 {
    let Some(first) = log.iter().map(|it| it.header.sent).min() else { return 0 };
    let in_time = log.iter().filter(|it| it.header.sent - first < before);
    in_time.map(|it| it.header.sequence + 1).max().unwrap_or(0)
}

/// Shares of the first `due` messages that came later than the deadline, and that did not come.
fn missed(traffic: &Traffic, due: u64, log: &[Arrival]) -> (f64, f64) {
    let came = || log.iter().filter(|it| it.header.sequence < due);
    let on_time = came().filter(|it| it.at - it.header.sent <= traffic.deadline).count() as f64;
    let came = came().count() as f64;
    let all = due.max(1) as f64;
    ((came - on_time) / all, 1.0 - came / all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Header;
    use braidcast_core::{Instant, PathId};
    use braidcast_sim::traffic::Kind;

    #[test]
    fn what_comes_late_is_told_from_what_does_not_come() {
        let arrival = |sequence: u64, delay: u64| {
            let sent = Instant::from_millis(10 * sequence);
            let at = sent + Duration::from_millis(delay);
            let header = Header { sequence, sent, kind: Kind::Data, flow: 0, frame: sequence };
            Arrival { header, whole: at, at, path: PathId(0), bytes: 100 }
        };
        let traffic = Traffic { deadline: core::time::Duration::from_millis(150), ..Traffic::default() };
        // Number 3 did not come, 2 came late, 1 just in time; 4 was sent too late to count.
        let log = [arrival(0, 60), arrival(1, 150), arrival(2, 151), arrival(4, 300)];
        assert_eq!(missed(&traffic, 4, &log), (0.25, 0.25));
        // Of a source that has always one more, those count that were taken early enough.
        let millis = |ms| taken(Duration::from_millis(ms), &log);
        assert_eq!([millis(20), millis(21), millis(100)], [2, 3, 5]);
        assert_eq!(taken(Duration::from_secs(1), &[]), 0);
    }
}
