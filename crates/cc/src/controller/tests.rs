//! What holds for every controller, by name.

use super::*;
use crate::{Congestion, Coupled, CoupledPath};
use proptest::prelude::*;

const STANDARDS: [Standard; 3] = [Standard::RFC_9260, Standard::RFC_5681, Standard::RFC_4341];

#[test]
fn names_go_both_ways() {
    for (name, algorithm) in Algorithm::ALL {
        assert_eq!((name.parse(), algorithm.to_string().as_str()), (Ok(algorithm), name));
    }
    let error = "bbr9".parse::<Algorithm>().unwrap_err().to_string();
    assert!(error.starts_with("no congestion control is called 'bbr9'; there are: reno, "), "{error}");
}

/// Packets in the window: as it begins; after three full round trips of slow start; after a loss,
/// with a queue and without; ten full round trips later; after a timeout.
#[test]
fn behaviour() {
    let row = |algorithm: Algorithm, queueing| {
        let mut bench = Bench::new(algorithm, Standard::RFC_9260, Congestion::PerPath, 1000, 10_000);
        bench.queueing = Duration::from_millis(queueing);
        let mut row = vec![bench.packets()];
        bench.fill_for(3);
        row.push(bench.packets());
        bench.controller.on_lost(&bench.path(bench.controller.window()), &Signal { bytes: 1000, new_round: true });
        row.push(bench.packets());
        bench.fill_for(10);
        row.push(bench.packets());
        bench.controller.on_timeout(&bench.path(bench.controller.window()));
        row.push(bench.packets());
        row
    };
    let rows: Vec<_> =
        Algorithm::ALL.iter().map(|&(name, algorithm)| (name, row(algorithm, 0), row(algorithm, 100))).collect();
    let expected = [
        ("reno", vec![10, 80, 40, 50, 1], vec![10, 80, 40, 50, 1]),
        ("veno", vec![10, 80, 64, 74, 1], vec![10, 80, 40, 50, 1]),
        ("cubic", vec![10, 80, 56, 70, 1], vec![10, 80, 56, 70, 1]),
        // It is told no rates here.
        ("live", vec![10, 40, 40, 40, 1], vec![10, 10, 10, 10, 1]),
        ("scream", vec![10, 13, 9, 18, 1], vec![10, 2, 2, 2, 1]),
    ];
    assert_eq!(rows, expected);
}

/// A controller on a path with a round trip of 100 ms.
struct Bench {
    controller: Box<dyn Controller>,
    mtu: usize,
    now: Instant,
    queueing: Duration,
}

impl Bench {
    fn new(algorithm: Algorithm, standard: Standard, rule: Congestion, mtu: usize, initial: usize) -> Self {
        let alone = algorithm.controller(&Setup { initial, ..Setup::new(standard, mtu) });
        let controller = if rule == Congestion::PerPath { alone } else { Box::new(Coupled::new(rule, alone)) };
        Self { controller, mtu, now: Instant::ZERO, queueing: Duration::ZERO }
    }

    fn packets(&self) -> usize {
        self.controller.window() / self.mtu
    }

    fn path(&self, in_flight: usize) -> Conditions<'static> {
        Conditions {
            now: self.now,
            mtu: self.mtu,
            in_flight,
            srtt: Some(Duration::from_millis(100)),
            queueing: self.queueing,
            base_rtt: Duration::from_millis(100),
            shortest_rtt: Duration::from_millis(100),
            loss_rate: 0.0,
            packets: 0,
            lost_packets: 0,
            redundancy: 0,
            siblings: Siblings::default(),
        }
    }

    /// Sends full windows of packets for this number of round trips; each packet is acknowledged alone.
    fn fill_for(&mut self, rounds: usize) {
        for _ in 0..rounds {
            let packets = self.packets();
            for packet in 0..packets {
                self.now += Duration::from_millis(100) / packets as u32;
                let acked = Acked {
                    bytes: self.mtu,
                    may_grow: true,
                    was_full: true,
                    ack_ratio: 2,
                    rtt: Some(Duration::from_millis(100) + self.queueing),
                    ends_round: packet == 0,
                    rate: None,
                    ..Acked::default()
                };
                let in_flight = self.controller.window();
                self.controller.on_acked(&self.path(in_flight), &acked);
            }
        }
    }
}

/// Something that happens to a path.
#[derive(Clone, Copy, Debug)]
struct Step {
    what: u8,
    bytes: usize,
    ms: u64,
    flag: bool,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (0_u8..14, 0_usize..200_000, 0_u64..3000, any::<bool>());
    prop::collection::vec(step.prop_map(|(what, bytes, ms, flag)| Step { what, bytes, ms, flag }), 1..150)
}

impl Bench {
    fn take(&mut self, step: Step) {
        let Step { what, bytes, ms, flag } = step;
        self.now += Duration::from_millis(ms);
        self.queueing = Duration::from_millis(if flag { ms } else { 0 });
        let window = self.controller.window();
        let others = [
            CoupledPath {
                cwnd: window,
                mtu: self.mtu,
                rtt: Duration::from_millis(100),
                between_losses: self.controller.between_losses(),
            },
            CoupledPath {
                cwnd: bytes.max(1),
                mtu: self.mtu,
                rtt: Duration::from_millis(ms.max(1)),
                between_losses: ms * 1000,
            },
        ];
        let path = Conditions { siblings: Siblings::new(&others, 0), ..self.path(window.min(bytes)) };
        let signal = Signal { bytes: self.mtu, new_round: flag };
        match what {
            0 => self.controller.on_lost(&path, &signal),
            1 => self.controller.on_marked(&path, &signal),
            2 => self.controller.on_timeout(&path),
            3 => self.controller.on_spurious_timeout(),
            4 => self.controller.on_idle(&path, bytes),
            5 => self.controller.settle(&path, bytes),
            6 => self.controller.on_sent(&path, bytes),
            _ => {
                let rtt = flag.then(|| Duration::from_millis(ms));
                let rate = rtt.filter(|rtt| !rtt.is_zero()).map(|interval| RateSample {
                    delivered: bytes as u64,
                    interval,
                    prior_delivered: 0,
                    app_limited: flag,
                });
                let (may_grow, was_full) = (what > 7, what > 8);
                let acked =
                    Acked { bytes, may_grow, was_full, ack_ratio: 2, rtt, ends_round: flag, rate, ..Acked::default() };
                self.controller.on_acked(&path, &acked);
            }
        }
    }
}

fn benches(mtu: usize, initial: usize) -> impl Iterator<Item = (String, Bench)> {
    let couplings = || Congestion::ALL.iter().map(|&(_, rule)| rule);
    let standard = STANDARDS.into_iter().flat_map(|standard| [standard, Standard { abe: true, ..standard }]);
    let all = standard.flat_map(move |standard| couplings().map(move |rule| (standard, rule)));
    all.flat_map(move |(standard, rule)| {
        let bench = move |&(name, algorithm): &(&str, Algorithm)| {
            (format!("{name} {rule} {standard:?}"), Bench::new(algorithm, standard, rule, mtu, initial))
        };
        Algorithm::ALL.iter().map(bench)
    })
}

/// Clock messages before a stream begins: they meet jitter, and their own rate is next to nothing.
#[test]
fn small_messages_that_meet_jitter_do_not_end_the_slow_start_of_live() {
    let mut bench = Bench::new(Algorithm::Live, Standard::RFC_9260, Congestion::PerPath, 1200, 12_000);
    bench.queueing = Duration::from_millis(80);
    for _ in 0..20 {
        bench.now += Duration::from_secs(1);
        let interval = Duration::from_millis(180);
        let rate = Some(RateSample { delivered: 72, interval, prior_delivered: 0, app_limited: true });
        let acked = Acked {
            bytes: 72,
            may_grow: true,
            was_full: false,
            ack_ratio: 2,
            rtt: Some(interval),
            ends_round: true,
            rate,
            ..Acked::default()
        };
        bench.controller.on_acked(&bench.path(0), &acked);
    }
    assert!(bench.controller.in_slow_start());
    assert_eq!(bench.controller.window(), 12_000);
}

/// A link drops what is large for a while: hardly anything passes, and then the queue sends nothing but small messages,
/// as all else would be late at that rate.
#[test]
fn a_rate_of_next_to_nothing_is_not_believed_for_ever() {
    let mut bench = Bench::new(Algorithm::Live, Standard::RFC_9260, Congestion::PerPath, 1200, 12_000);
    let mut play = |rounds: u64, app_limited: bool| {
        for _ in 0..rounds {
            bench.now += Duration::from_millis(200);
            let rate = Some(RateSample {
                delivered: 72,
                interval: Duration::from_millis(200),
                prior_delivered: 0,
                app_limited,
            });
            let (was_full, rtt) = (!app_limited, Some(Duration::from_millis(150)));
            let (bytes, may_grow) = (72, true);
            let acked =
                Acked { bytes, may_grow, was_full, ack_ratio: 2, rtt, ends_round: true, rate, ..Acked::default() };
            bench.controller.on_acked(&bench.path(0), &acked);
        }
        bench.controller.delivery_rate()
    };
    assert_eq!(play(8, false), Some(360.0), "measured just now");
    assert_eq!(play(4, true), Some(360.0), "and a moment ago");
    assert_eq!(play(4, true), Some(4000.0), "32 kbit/s are worth a try");
}

proptest! {
    /// Whatever happens: a packet at least; nothing overflows; only an acknowledgement that may, or
    /// an undone timeout, lets the window grow, but for what a loss leaves at least; a timeout
    /// leaves a packet; the same again does the same.
    #[test]
    fn every_controller_keeps_its_bounds(mtu in 500_usize..9000, initial in 1_usize..100_000, steps in steps()) {
        for (name, mut bench) in benches(mtu, initial) {
            let mut windows = Vec::new();
            for &step in &steps {
                let before = bench.controller.window();
                bench.take(step);
                let after = bench.controller.window();
                windows.push(after);
                prop_assert!(after >= mtu, "{name}: {after} after {step:?}");
                let most = if step.what < 2 { before.max(4 * mtu) } else { before };
                let may_grow = step.what == 3 || step.what > 8;
                prop_assert!(may_grow || after <= most, "{name}: {before} to {after} by {step:?}");
                prop_assert!(step.what != 2 || after == mtu, "{name}: {after} after a timeout");
                let rate = bench.controller.pacing_rate(Some(Duration::from_millis(step.ms)));
                prop_assert!(rate.is_some_and(|rate| rate.is_finite() && rate > 0.0), "{name}: {rate:?}");
            }
            let (_, mut again) = benches(mtu, initial).find(|(other, _)| *other == name).expect("the same list");
            let second: Vec<_> = steps.iter().map(|&step| (again.take(step), again.controller.window()).1).collect();
            prop_assert_eq!(windows, second, "{}", name);
        }
    }

    /// A new congestion event leaves less than there was, unless that is what is left at least.
    #[test]
    fn losses_and_marks_of_a_new_round_reduce(mtu in 500_usize..9000, packets in 1_usize..5000) {
        for (name, mut bench) in benches(mtu, packets * mtu) {
            let before = bench.controller.window();
            bench.controller.on_lost(&bench.path(before), &Signal { bytes: mtu, new_round: false });
            prop_assert_eq!(bench.controller.window(), before, "{}", &name);
            bench.controller.on_lost(&bench.path(before), &Signal { bytes: mtu, new_round: true });
            let lost = bench.controller.window();
            // One that follows the rate at which the path delivers heeds no loss where no queue stands.
            let heeds = !name.starts_with("live ");
            prop_assert!(lost < before || before <= 4 * mtu || !heeds, "{name}: {before} to {lost}");
            bench.controller.on_marked(&bench.path(lost), &Signal { bytes: mtu, new_round: true });
            let marked = bench.controller.window();
            prop_assert!(marked < lost || lost <= 4 * mtu, "{name}: {lost} to {marked}");
        }
    }
}
