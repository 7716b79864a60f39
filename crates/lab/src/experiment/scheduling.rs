//! A transfer over unlike paths, as THESIS §7.2 judges schedulers: goodput, what the receiver holds, what is in flight.

use super::{Curve, Experiment, Measures, transfer};
use crate::host::{Arrival, Host};
use crate::plan::{Done, Plan, Run};
use crate::receive_buffer;
use crate::scenario::LinkSpec;
use braidcast_core::Instant;
use core::time::Duration;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "scheduling",
    text: "transfer, and with `log` what the receiver holds that waits for other data, with `sample` what is in flight; the buffer of THESIS eq. 7.2 beside",
    fixed_length: false,
    build: Plan::of,
    measure,
};

/// How much of the run the curves show (THESIS fig. 7.5).
const SHOWN: Duration = Duration::from_secs(5);

fn measure(run: &Run<'_>, done: &Done<'_>) -> Measures {
    let mut measures = (transfer::EXPERIMENT.measure)(run, done);
    let flow = &run.point.flows[0];
    let links = flow.paths.iter().map(|links| links.iter().map(|&link| &run.point.links[link]));
    if let Some(paths) = links.map(|path| path_of(path.collect())).collect::<Option<Vec<_>>>() {
        measures.metric("buffer by eq. 7.2", "kB", receive_buffer::least(&paths) / 1e3);
    }
    if let Some(receiver) = done.receiver(&flow.name).and_then(Host::sctp_receiver) {
        let held = held(&receiver.delivered.log);
        let seconds = receiver.delivered.seconds;
        measures.metric("mean held", "kB", held.mean(seconds) / 1e3);
        measures.metric("most held", "kB", held.most as f64 / 1e3);
        measures.curves.push(held.curve);
        let log = &receiver.delivered.log;
        let start = log.first().map_or(Instant::ZERO, |first| first.at);
        let shown = log.iter().take_while(|arrival| arrival.at.since(start) <= SHOWN);
        let points = shown.enumerate().map(|(i, it)| [it.at.since(start).as_secs_f64(), i as f64 + 1.0]).collect();
        measures.curves.push(Curve { name: "handed over".into(), x: "time (s)", y: "packets", points });
    }
    if let Some(sender) = done.sender(&flow.name).and_then(Host::sctp_sender)
        && !sender.samples.is_empty()
    {
        let in_flight = sender.samples.iter().map(|it| it.paths.iter().map(|path| path.in_flight).sum::<usize>());
        measures.metric("mean in flight", "kB", in_flight.sum::<usize>() as f64 / sender.samples.len() as f64 / 1e3);
    }
    measures
}

/// Bits per second of the narrowest of these links one after the other, on the average, and their
/// round trip; `None` if none has a rate.
pub(super) fn path_of(links: Vec<&LinkSpec>) -> Option<(f64, Duration)> {
    let rates = links.iter().filter_map(|link| link.there.rate.mean_bits_per_second());
    Some((rates.min()? as f64, links.iter().map(|link| link.there.delay + link.back.delay).sum()))
}

/// Bytes of whole messages that wait for their turn.
#[derive(Debug)]
struct Held {
    /// Bytes times seconds.
    area: f64,
    most: usize,
    curve: Curve,
}

impl Held {
    fn mean(&self, seconds: f64) -> f64 {
        self.area / seconds.max(1e-9)
    }
}

fn held(log: &[Arrival]) -> Held {
    let mut changes: Vec<(Instant, bool, usize)> = Vec::with_capacity(2 * log.len());
    for arrival in log.iter().filter(|arrival| arrival.at > arrival.whole) {
        changes.push((arrival.whole, true, arrival.bytes));
        changes.push((arrival.at, false, arrival.bytes));
    }
    changes.sort_unstable();
    let start = log.iter().map(|arrival| arrival.whole).min().unwrap_or(Instant::ZERO);
    let (mut now, mut most, mut points) = (0, 0, Vec::new());
    for &(at, comes, bytes) in &changes {
        now = if comes { now + bytes } else { now - bytes };
        most = most.max(now);
        if at.since(start) <= SHOWN {
            points.push([at.since(start).as_secs_f64(), now as f64 / 1e3]);
        }
    }
    let area = log.iter().map(|it| it.at.since(it.whole).as_secs_f64() * it.bytes as f64).sum();
    Held { area, most, curve: Curve { name: "held".into(), x: "time (s)", y: "held (kB)", points } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Header;
    use braidcast_core::PathId;
    use braidcast_sim::traffic::Kind;

    #[test]
    fn what_waits_is_held_from_when_it_is_whole_until_its_turn() {
        let ms = Instant::from_millis;
        let header = Header { sequence: 0, sent: ms(0), kind: Kind::default(), flow: 0, frame: 0 };
        let arrival = |(whole, at)| Arrival { header, whole: ms(whole), at: ms(at), bytes: 1000, path: PathId(0) };
        let log: Vec<_> = [(10, 10), (40, 40), (20, 40), (30, 40), (50, 50)].map(arrival).into();
        let held = held(&log);
        assert_eq!((held.most, (held.mean(0.1) * 1e3).round()), (2000, 300_000.0));
        assert_eq!(held.curve.points, [[0.01, 1.0], [0.02, 2.0], [0.03, 1.0], [0.03, 0.0]]);
    }
}
