//! The model of THESIS ch. 7: paths that emit a window of packets each forward delay, and a
//! receiver with little room (§7.1, §7.2).

use super::{Curve, Experiment, Measures};
use crate::plan::{Done, Plan, Run};
use crate::scenario::FlowSpec;
use braidcast_core::Instant;
use braidcast_mpath::{Delay, PathView, Scheduler, View, Waiting};
use core::time::Duration;
use std::collections::{BTreeSet, VecDeque};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "emission-model",
    text: "THESIS's model of two paths (§7.2): each emits B_i·D_i/S packets every D_i; what is handed over and held by then, packet by packet",
    fixed_length: true,
    build: Plan::of,
    measure,
};

/// The step of the model.
const TICK: Duration = Duration::from_millis(1);

/// A run no longer than that is told row by row.
const TABLE: Duration = Duration::from_millis(200);

/// A path of the model.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Emitter {
    /// D_i, in ticks.
    delay: u64,
    /// C_i, packets.
    capacity: usize,
}

/// What the receiver has at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct State {
    tick: u64,
    /// Packets handed over in order.
    delivered: usize,
    /// Packets that wait for others.
    held: usize,
    /// Packets in flight.
    in_flight: usize,
}

/// The model under way.
struct Model<'a> {
    paths: &'a [Emitter],
    scheduler: Box<dyn Scheduler>,
    /// Bytes of a packet.
    size: usize,
    /// Packets that the receiver holds at most; nothing is emitted while it does.
    room: usize,
    /// Percentage by which delays are overestimated.
    error: u32,
    waiting: VecDeque<usize>,
    /// The last packet that was made.
    made: usize,
    /// Packets in flight, by when they arrive.
    on_way: Vec<Vec<(u64, usize)>>,
    held: BTreeSet<usize>,
    next: usize,
}

impl<'a> Model<'a> {
    fn new(flow: &FlowSpec, paths: &'a [Emitter]) -> Self {
        let mut scheduler = flow.sctp.paths.scheduler.scheduler();
        scheduler.reset(paths.len().saturating_sub(1)); // The first path is first.
        let size = flow.traffic.message;
        Self {
            paths,
            scheduler,
            size,
            room: flow.sctp.limits.receive_buffer / size,
            error: flow.sctp.papers.delay_error,
            waiting: VecDeque::new(),
            made: 0,
            on_way: vec![Vec::new(); paths.len()],
            held: BTreeSet::new(),
            next: 1,
        }
    }

    fn views(&self, left: &[usize]) -> Vec<PathView> {
        let view = |(path, &left): (&Emitter, &usize)| {
            let delay = TICK * path.delay as u32;
            let mean = delay * (100 + self.error) / 100;
            let window = path.capacity * self.size;
            PathView {
                ready: left > 0,
                active: true,
                cwnd: 2 * window,
                in_flight: 2 * window - left * self.size,
                rate: Some(window as f64 / delay.as_secs_f64()),
                srtt: Some(mean * 2),
                forward_delay: Some(Delay { mean, deviation: Duration::ZERO }),
                return_delay: Some(Delay { mean, deviation: Duration::ZERO }),
                ..PathView::default()
            }
        };
        self.paths.iter().zip(left).map(view).collect()
    }

    /// What arrives at `tick`, and then what leaves.
    fn step(&mut self, tick: u64) -> State {
        for path in &mut self.on_way {
            path.retain(|&(at, packet)| {
                let arrives = at <= tick;
                if arrives {
                    self.held.insert(packet);
                }
                !arrives
            });
        }
        while self.held.remove(&self.next) {
            self.next += 1;
        }
        self.scheduler.on_acknowledged();
        let emits = |path: &Emitter| tick.is_multiple_of(path.delay) && self.held.len() < self.room;
        let mut left: Vec<usize> = self.paths.iter().map(|it| if emits(it) { it.capacity } else { 0 }).collect();
        while left.iter().any(|&left| left > 0) {
            self.fill();
            let views = self.views(&left);
            let bytes = self.waiting.len() * self.size;
            let peer_room = (self.room - self.held.len()) * self.size;
            let waiting = Waiting { bytes, peer_room, ..Waiting::default() };
            let view = View { now: Instant::ZERO + TICK * tick as u32, paths: &views, waiting };
            let Some(path) = self.scheduler.pick(&view) else { break };
            let ahead = self.scheduler.ahead(&view, path).div_ceil(self.size);
            let Some(packet) = self.waiting.remove(ahead) else { break };
            self.on_way[path].push((tick + self.paths[path].delay, packet));
            self.scheduler.on_sent(path, self.size);
            left[path] -= 1;
        }
        let in_flight = self.on_way.iter().map(Vec::len).sum();
        State { tick, delivered: self.next - 1, held: self.held.len(), in_flight }
    }

    /// There is always more to send than any plan reaches.
    fn fill(&mut self) {
        while self.waiting.len() < 2000 {
            self.made += 1;
            self.waiting.push_back(self.made);
        }
    }
}

fn measure(run: &Run<'_>, _: &Done<'_>) -> Measures {
    let flow = &run.point.flows[0];
    let emitters: Vec<Emitter> = flow.paths.iter().map(|links| emitter(run, flow, links)).collect();
    let mut model = Model::new(flow, &emitters);
    let ticks = (run.duration.as_millis() / TICK.as_millis()) as u64;
    let states: Vec<State> = (0..=ticks).map(|tick| model.step(tick)).collect();
    let mut measures = Measures::default();
    let last = states.last().copied().unwrap_or(State { tick: 0, delivered: 0, held: 0, in_flight: 0 });
    let seconds = run.duration.as_secs_f64();
    let mean = |value: &dyn Fn(&State) -> usize| states.iter().map(value).sum::<usize>() as f64 / states.len() as f64;
    measures.metric("goodput", "kbit/s", (last.delivered * flow.traffic.message) as f64 * 8e-3 / seconds);
    measures.metric("handed over", "packets", last.delivered as f64);
    measures.metric("held", "packets", last.held as f64);
    measures.metric("mean held", "packets", mean(&|it| it.held));
    measures.metric("most held", "packets", states.iter().map(|it| it.held).max().unwrap_or_default() as f64);
    measures.metric("mean in flight", "packets", mean(&|it| it.in_flight));
    // The rows of the tables.
    for row in states.iter().filter(|it| run.duration <= TABLE && it.tick > 0 && it.tick % 10 == 0) {
        measures.metric(format!("handed over by {} ms", row.tick), "packets", row.delivered as f64);
        measures.metric(format!("held at {} ms", row.tick), "packets", row.held as f64);
    }
    let curve = |name: &str, y, value: &dyn Fn(&State) -> usize| Curve {
        name: name.into(),
        x: "time (s)",
        y,
        points: states.iter().map(|it| [it.tick as f64 * TICK.as_secs_f64(), value(it) as f64]).collect(),
    };
    measures.curves.push(curve("handed over", "packets", &|it| it.delivered));
    measures.curves.push(curve("held", "packets", &|it| it.held));
    measures.curves.push(curve("in flight", "packets", &|it| it.in_flight));
    measures
}

/// A path of the model for these links: B_i·D_i/S packets, one at least.
fn emitter(run: &Run<'_>, flow: &FlowSpec, links: &[usize]) -> Emitter {
    let links = links.iter().map(|&link| &run.point.links[link].there);
    let rate = links.clone().filter_map(|link| link.rate.mean_bits_per_second()).min().unwrap_or(1_000_000);
    let delay: Duration = links.map(|link| link.delay).sum();
    let packets = rate as f64 / 8.0 * delay.as_secs_f64() / flow.traffic.message as f64;
    let ticks = (delay.as_nanos() / TICK.as_nanos()) as u64;
    Emitter { delay: ticks.max(1), capacity: (packets.round() as usize).max(1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    /// The rows of the tables for `scheduler`: transmission time, and at each the packets handed
    /// over and held 10 ms later.
    fn rows(scheduler: &str) -> Vec<(usize, usize)> {
        let scenario = Scenario::find("daps-table").unwrap();
        let points = scenario.points().unwrap();
        let point = points.iter().find(|it| it.variant == scheduler).unwrap();
        let flow = &point.flows[0];
        let paths = [Emitter { delay: 10, capacity: 2 }, Emitter { delay: 100, capacity: 5 }];
        let mut model = Model::new(flow, &paths);
        let states: Vec<State> = (0..=200).map(|tick| model.step(tick)).collect();
        (1..=10).map(|row| (states[row * 10].delivered, states[row * 10].held)).collect()
    }

    /// Table 7.1: blocked from 60 to 100 ms, then 3 to 17 at once.
    #[test]
    fn round_robin_fills_the_receiver() {
        let held = [(2, 0), (2, 2), (2, 4), (2, 6), (2, 8), (2, 10), (2, 10), (2, 10), (2, 10), (17, 0)];
        assert_eq!(rows("round robin"), held);
    }

    /// Table 7.2: 25 packets in 100 ms, none of which ever waits.
    #[test]
    fn daps_hands_over_each_packet_as_it_comes() {
        let expected: Vec<_> = (1..=9).map(|row| (2 * row, 0)).chain([(25, 0)]).collect();
        assert_eq!(rows("daps"), expected);
    }
}
