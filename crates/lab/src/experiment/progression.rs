//! The sequence progression of a transfer: what came over each path, and what of it the application
//! got (THESIS §6.2.2).

use super::stalls::{stalls, unevenness};
use super::{Curve, Experiment, Measures, transfer};
use crate::host::{Arrival, Host};
use crate::plan::{Done, Plan, Run};
use braidcast_core::PathId;
use core::time::Duration;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "progression",
    text: "packets that arrived over each path and that were handed over, over the first 10 s; stalls, unevenness",
    fixed_length: false,
    build: Plan::of,
    measure,
};

/// How much of the run the curves show (THESIS fig. 6.7).
const SHOWN: Duration = Duration::from_secs(10);
/// Goodput is called even or uneven over intervals of this length: four frames of video.
const INTERVAL: Duration = Duration::from_millis(100);

fn measure(run: &Run<'_>, done: &Done<'_>) -> Measures {
    let mut measures = (transfer::EXPERIMENT.measure)(run, done);
    let flow = &run.point.flows[0];
    let Some(receiver) = done.receiver(&flow.name).and_then(Host::sctp_receiver) else { return measures };
    let log = &receiver.delivered.log;
    measures.metric("unevenness of goodput", "", unevenness(log, INTERVAL));
    let pauses = log.windows(2).map(|pair| pair[1].at - pair[0].at);
    measures.metric("longest pause", "ms", pauses.max().unwrap_or_default().as_secs_f64() * 1e3);
    let blocked: Duration = stalls(log).sum();
    measures.metric("time blocked", "%", blocked.as_secs_f64() / receiver.delivered.seconds * 100.0);
    for path in 0..flow.paths.len() {
        let id = PathId(path as u16);
        let over = log.iter().filter(|arrival| arrival.path == id);
        measures.curves.push(curve(format!("arrived over path {}", path + 1), log, over, |arrival| arrival.whole));
    }
    measures.curves.push(curve("handed over".to_owned(), log, log.iter(), |arrival| arrival.at));
    measures
}

/// How many of `arrivals` there are by each time, counted from the first of `log` on.
fn curve<'a>(
    name: String,
    log: &[Arrival],
    arrivals: impl Iterator<Item = &'a Arrival>,
    time: fn(&Arrival) -> braidcast_core::Instant,
) -> Curve {
    let start = log.first().map_or(braidcast_core::Instant::ZERO, |first| first.at);
    let mut times: Vec<_> = arrivals.map(|arrival| time(arrival).since(start)).filter(|it| *it <= SHOWN).collect();
    times.sort_unstable();
    let points = times.iter().enumerate().map(|(i, time)| [time.as_secs_f64(), i as f64 + 1.0]).collect();
    Curve { name, x: "time (s)", y: "packets", points }
}
