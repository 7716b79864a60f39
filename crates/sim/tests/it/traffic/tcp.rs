//! What TCP does, exactly.

use super::{A, B, Transfer, lossy, ms, secs, to};
use braidcast_cc::{Algorithm, RtoBounds};
use braidcast_core::{Datagram, Ecn, Instant, Machine, Rng, Transmit};
use braidcast_sim::link::{Jitter, Loss, QueueLimit, Reorder, ReorderHow};
use braidcast_sim::tcp::{Config, FlowId, Host, Segment};
use braidcast_sim::testing::{cases, digest};
use braidcast_sim::traffic::Traffic;
use braidcast_sim::{Duplex, LinkModel, TapAction};
use core::time::Duration;
use proptest::prelude::*;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

const BULK: [Traffic; 1] = [Traffic::Bulk(None)];

/// When each data segment was sent, its sequence number, and whether that was for the first time.
type Log = Rc<RefCell<Vec<(Instant, u32, bool)>>>;

fn log(transfer: &mut Transfer) -> Log {
    let log = Log::default();
    let (shared, mut known) = (log.clone(), BTreeSet::new());
    transfer.net.set_tap(move |event| {
        if let (TapAction::Sent, Ok(segment)) = (event.action, Segment::read(event.payload))
            && !segment.payload.is_empty()
        {
            shared.borrow_mut().push((event.at, segment.sequence, known.insert(segment.sequence)));
        }
    });
    log
}

#[test]
fn slow_start_doubles_each_round_trip() {
    let config = Config { delayed_ack: Duration::ZERO, ..Config::default() };
    let mut transfer = Transfer::new(1, config, lossy(Loss::None), &BULK);
    let log = log(&mut transfer);
    transfer.net.run_until(Instant::from_millis(590));
    let mut rounds = vec![];
    let mut last = Instant::ZERO;
    for &(at, ..) in log.borrow().iter() {
        if at - last > ms(30) {
            rounds.push(0);
        }
        last = at;
        *rounds.last_mut().unwrap_or(&mut 0) += 1;
    }
    assert_eq!(rounds, [2, 4, 8, 16, 32]);
}

#[test]
fn losses_of_one_window_are_repaired_in_one_round_trip_and_halve_it_once() {
    // Number 0 is the SYN; 31 to 62 are one window.
    let lost = Loss::Packets([33, 34, 40, 47, 51].into());
    let config = Config { delayed_ack: Duration::ZERO, ..Config::default() };
    let mut transfer = Transfer::new(1, config, lossy(lost), &BULK);
    let log = log(&mut transfer);
    transfer.net.run_until(secs(3));
    let stats = transfer.sender(0).stats();
    assert_eq!((stats.retransmissions, stats.recoveries, stats.timeouts), (5, 1, 0));
    let repeats: Vec<_> = log.borrow().iter().filter(|(.., first)| !first).map(|(at, ..)| *at).collect();
    assert!(repeats[4] - repeats[0] < ms(100), "{repeats:?}");
    // 32 + 2 segments grown by what came before the loss was noticed, halved.
    let ssthresh = transfer.sender(0).controller().ssthresh() / 1460;
    assert!((16..=18).contains(&ssthresh), "{ssthresh} segments");
    assert_eq!((transfer.receiver(0).wrong(), transfer.receiver(0).duplicates()), (0, 0));
}

#[test]
fn without_sack_each_of_them_takes_a_round_trip() {
    let lost = Loss::Packets([33, 40, 47].into());
    let config = Config { delayed_ack: Duration::ZERO, sack: false, ..Config::default() };
    let mut transfer = Transfer::new(1, config, lossy(lost), &BULK);
    let log = log(&mut transfer);
    transfer.net.run_until(secs(3));
    let stats = transfer.sender(0).stats();
    assert_eq!((stats.retransmissions, stats.recoveries, stats.timeouts), (3, 1, 0));
    let repeats: Vec<_> = log.borrow().iter().filter(|(.., first)| !first).map(|(at, ..)| *at).collect();
    assert!(repeats.windows(2).all(|w| (ms(100)..ms(140)).contains(&(w[1] - w[0]))), "{repeats:?}");
    assert_eq!((transfer.receiver(0).wrong(), transfer.receiver(0).duplicates()), (0, 0));
}

#[test]
fn a_lost_repeat_waits_for_the_timer() {
    let config = Config { delayed_ack: Duration::ZERO, ..Config::default() };
    // 33 and then its repeat, which follows the 32 of that window and two of limited transmit.
    let mut transfer = Transfer::new(1, config, lossy(Loss::Packets([33].into())), &BULK);
    let first = log(&mut transfer);
    transfer.net.run_until(secs(1));
    let repeat = first.borrow().iter().position(|(.., first)| !first).map_or(0, |place| place as u64 + 1);
    let mut transfer = Transfer::new(1, config, lossy(Loss::Packets([33, repeat].into())), &BULK);
    transfer.net.run_until(secs(4));
    let stats = transfer.sender(0).stats();
    assert_eq!((stats.recoveries, stats.timeouts), (1, 1));
    assert_eq!(transfer.receiver(0).wrong(), 0);
}

#[test]
fn while_nothing_answers_the_timer_doubles_and_then_all_goes_on() {
    let rto = RtoBounds::default().with_min(ms(400));
    let mut transfer = Transfer::new(1, Config { rto, ..Config::default() }, lossy(Loss::None), &BULK);
    let log = log(&mut transfer);
    transfer.net.run_until(secs(2));
    let before = transfer.receiver(0).delivered().total();
    let (there, _) = transfer.link;
    transfer.net.set_down(there, true);
    transfer.net.run_until(secs(12));
    let repeats: Vec<_> =
        log.borrow().iter().filter(|(at, _, first)| !first && *at > secs(2)).map(|(at, ..)| *at).collect();
    let gaps: Vec<_> = repeats.windows(2).map(|w| (w[1] - w[0]).as_millis()).collect();
    assert!(gaps.len() >= 3 && gaps.windows(2).all(|w| w[1].abs_diff(2 * w[0]) <= 2), "{gaps:?} ms");
    assert_eq!(transfer.sender(0).stats().timeouts, repeats.len() as u64);
    transfer.net.set_down(there, false);
    transfer.net.run_until(secs(25));
    assert!(transfer.receiver(0).delivered().total() > before + 5_000_000);
    assert_eq!(transfer.receiver(0).wrong(), 0);
}

#[test]
fn a_lost_syn_costs_a_second_and_all_but_one_segment_of_the_window() {
    let mut transfer = Transfer::new(1, Config::default(), lossy(Loss::Packets([0].into())), &BULK);
    let log = log(&mut transfer);
    transfer.net.run_until(Instant::from_millis(1190));
    let sent: Vec<_> = log.borrow().iter().map(|(at, ..)| at.as_micros() / 10_000).collect();
    assert_eq!(sent, [110], "one segment, a second and a round trip after the start");
}

#[test]
fn the_receive_window_limits() {
    let config = Config { receive_window: 8 * 1460, delayed_ack: Duration::ZERO, ..Config::default() };
    let mut transfer = Transfer::new(1, config, lossy(Loss::None), &BULK);
    let goodput = transfer.goodput(0, secs(5), secs(25));
    // Eight segments in a round trip of 100 ms and 1.2 + 0.05 ms of serialisation.
    assert!((goodput / (8.0 * 1460.0 * 8.0 / 0.10125) - 1.0).abs() < 0.02, "{goodput}");
}

#[test]
fn a_source_with_a_pace_is_followed_and_does_not_open_the_window() {
    let traffic = ["cbr:200kbit,500B".parse::<Traffic>().unwrap_or(Traffic::Bulk(None))];
    let mut transfer = Transfer::new(1, Config::default(), lossy(Loss::None), &traffic);
    assert_eq!(transfer.goodput(0, secs(1), secs(11)), 200_000.0);
    assert!(transfer.sender(0).controller().window() < 8 * 1460, "{:?}", transfer.sender(0).controller());
}

#[test]
fn two_flows_share_a_bottleneck_evenly() {
    for seed in 0..3 {
        // Without a little chance, flows fall into step at a drop-tail queue and one loses more
        // often (Floyd and Jacobson, On Traffic Phase Effects, 1992): acknowledgements vary by a
        // packet's time on the bottleneck, as they propose.
        let wire = LinkModel::wire(2_000_000, ms(40));
        let back = LinkModel { jitter: Jitter::Uniform(ms(3)), ..wire.clone() };
        let there = LinkModel { queue: QueueLimit::Packets(25).into(), ..wire };
        let traffic = [Traffic::Bulk(None), Traffic::Bulk(None)];
        let mut transfer = Transfer::new(seed, Config::default(), Duplex::new(there, back), &traffic);
        let rates = [0, 1].map(|flow| transfer.goodput(flow, secs(0), secs(200)));
        let jain = (rates[0] + rates[1]).powi(2) / (2.0 * (rates[0].powi(2) + rates[1].powi(2)));
        println!("seed {seed}: {rates:.0?}, Jain's index {jain:.4}");
        assert!(jain > 0.95, "{rates:?}: {jain}");
        assert!(rates[0] + rates[1] > 0.95 * 2e6 * 1460.0 / 1500.0, "{rates:?}");
    }
}

#[test]
fn every_controller_fills_a_link_and_comes_back_after_losses() {
    for (name, cc) in Algorithm::ALL {
        let wire = LinkModel { queue: QueueLimit::Packets(100).into(), ..LinkModel::wire(10_000_000, ms(20)) };
        let run = |loss: f64| {
            let there = LinkModel { loss: Loss::Uniform(loss), ..wire.clone() };
            let config = Config { cc, ..Config::default() };
            let mut transfer = Transfer::new(1, config, Duplex::new(there, wire.clone()), &BULK);
            let share = transfer.goodput(0, secs(10), secs(40)) / (10e6 * 1460.0 / 1500.0);
            (share, transfer.sender(0).stats())
        };
        let (clean, stats) = run(0.0);
        // SCReAM alone leaves the queue before it is full.
        let fills_queue = cc != Algorithm::Scream;
        assert!(
            clean > 0.95 && (stats.recoveries > 0) == fills_queue && stats.timeouts == 0,
            "{name}: {clean:.3} of the link, {stats:?}"
        );
        let (lossy, _) = run(0.005);
        assert!(lossy > 0.3, "{name}: {lossy:.3} of the link with losses");
    }
}

#[test]
fn veno_gives_up_less_than_reno_where_no_queue_stands() {
    let goodput = |cc| {
        let mut transfer = Transfer::new(1, Config { cc, ..Config::default() }, lossy(Loss::Uniform(0.01)), &BULK);
        transfer.goodput(0, secs(10), secs(100))
    };
    let (reno, veno) = (goodput(Algorithm::Reno), goodput(Algorithm::Veno));
    assert!(veno > 1.2 * reno, "Reno {reno:.0} bit/s, Veno {veno:.0}");
}

#[test]
fn cubic_comes_back_sooner_over_a_long_fat_path() {
    let goodput = |cc| {
        let wire = LinkModel { queue: QueueLimit::Packets(500).into(), ..LinkModel::wire(50_000_000, ms(100)) };
        let there = LinkModel { loss: Loss::Uniform(0.00005), ..wire.clone() };
        let config = Config { cc, receive_window: 16 << 20, ..Config::default() };
        let mut transfer = Transfer::new(1, config, Duplex::new(there, wire), &BULK);
        transfer.goodput(0, secs(20), secs(120))
    };
    let (reno, cubic) = (goodput(Algorithm::Reno), goodput(Algorithm::Cubic));
    assert!(cubic > 1.5 * reno, "Reno {reno:.0} bit/s, CUBIC {cubic:.0}");
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let run = |seed| {
        let mut transfer = Transfer::new(seed, Config::default(), lossy(Loss::Uniform(0.02)), &BULK);
        let digest = digest(&mut transfer.net);
        transfer.net.run_until(secs(10));
        digest.get()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

/// A datagram between two hosts: when it arrives, its number, whether the first host sent it, its mark and its bytes.
type OnTheWay = (Instant, u64, bool, bool, Vec<u8>);

/// Carries datagrams between two hosts with 50 ms in each direction until `until`; `mark` returns
/// `true` for each that is marked.
fn relay(hosts: &mut [Host; 2], until: Instant, mut mark: impl FnMut(Ecn) -> bool) {
    let mut on_the_way: BTreeSet<OnTheWay> = BTreeSet::new();
    let (mut number, mut buf, mut now) = (0, Vec::new(), Instant::ZERO);
    while now <= until {
        for (place, host) in hosts.iter_mut().enumerate() {
            host.handle_timeout(now);
            while let Some(Transmit { ecn, .. }) = host.poll_transmit(now, &mut buf) {
                on_the_way.insert((now + ms(50), number, place == 0, mark(ecn), buf.clone()));
                number += 1;
            }
        }
        let arrival = on_the_way.first().map(|(at, ..)| *at);
        let timers = hosts.iter().filter_map(Machine::poll_timeout);
        now = timers.chain(arrival).min().unwrap_or(until + ms(1));
        if arrival.is_some_and(|at| at <= now)
            && let Some((_, _, from_first, marked, payload)) = on_the_way.pop_first()
        {
            let (host, from) = if from_first { (&mut hosts[1], A) } else { (&mut hosts[0], B) };
            let ecn = if marked { Ecn::Ce } else { Ecn::NotEct };
            host.handle_datagram(now, Datagram { route: to(from), ecn, payload: &payload });
        }
    }
}

/// Two hosts; the first sends without end.
fn pair(config: Config) -> ([Host; 2], FlowId) {
    let mut host = Host::new(config);
    match host.connect(to(B), &BULK[0], Rng::from_seed(1), Instant::ZERO) {
        Some(flow) => ([host, Host::new(config)], flow),
        None => panic!("no flow"),
    }
}

#[test]
fn marks_halve_the_window_once_for_each_round_trip_and_nothing_is_sent_again() {
    let (mut hosts, flow) = pair(Config { ecn: true, delayed_ack: Duration::ZERO, ..Config::default() });
    // Several marks within one window, of data only: acknowledgements, SYN and repeats are not ECN-capable.
    let (mut capable, mut marked) = (0, 0);
    relay(&mut hosts, Instant::from_millis(1500), |ecn| {
        capable += u64::from(ecn == Ecn::Ect0);
        let mark = ecn == Ecn::Ect0 && (40..45).contains(&capable);
        marked += u64::from(mark);
        mark
    });
    let stats = hosts[0].sender(flow).stats();
    assert_eq!((marked, stats.marks, stats.retransmissions, stats.timeouts), (5, 1, 0, 0));
    let window = hosts[0].sender(flow).controller();
    assert!((16 * 1460..32 * 1460).contains(&window.ssthresh()), "{window:?}");
}

#[test]
fn nothing_is_ecn_capable_unless_asked_for() {
    let (mut hosts, flow) = pair(Config::default());
    relay(&mut hosts, Instant::from_millis(500), |ecn| {
        assert_eq!(ecn, Ecn::NotEct);
        false
    });
    assert!(hosts[0].sender(flow).stats().acknowledged > 0);
}

#[test]
fn a_segment_that_was_sent_twice_is_not_timed() {
    // Number 15 begins the fourth round, so it is the segment that is timed.
    let config = Config { delayed_ack: Duration::ZERO, receive_window: 16 * 1460, ..Config::default() };
    let mut transfer = Transfer::new(1, config, lossy(Loss::Packets([15].into())), &BULK);
    let (a, flow) = (transfer.a, transfer.flows[0]);
    let repeated = transfer.net.wait_for(secs(2), |net| {
        net.node(a).as_tcp().is_some_and(|host| host.sender(flow).stats().retransmissions == 1)
    });
    assert!(repeated);
    transfer.net.run_for(ms(150));
    let latest = transfer.sender(0).rtt().latest();
    assert!(latest.is_some_and(|rtt| rtt < ms(130)), "{latest:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(48)))]

    #[test]
    fn every_byte_is_delivered_once_and_in_order_whatever_the_link_does(
        seed: u64,
        loss in 0.0..0.15_f64,
        jitter in 0_u64..40,
        reorder in 0.0..0.2_f64,
        duplicate in 0.0..0.1_f64,
        corrupt in 0.0..0.05_f64,
        ecn: bool,
        sack: bool,
    ) {
        let model = LinkModel {
            loss: Loss::Uniform(loss),
            jitter: Jitter::Uniform(ms(jitter)),
            reorder: Reorder { share: reorder, how: ReorderHow::Late(ms(30)) },
            duplicate,
            corrupt,
            ..LinkModel::wire(5_000_000, ms(40))
        };
        // Beyond where sequence numbers wrap.
        let bytes = 400_000;
        let rto = RtoBounds::default().with_min(ms(200));
        let config = Config { rto, ecn, sack, ..Config::default() };
        let mut transfer = Transfer::new(seed, config, Duplex::both(model), &[Traffic::Bulk(Some(bytes))]);
        let limit = secs(4000);
        let a = transfer.a;
        let flow = transfer.flows[0];
        let done = transfer.net.wait_for(limit, |net| {
            net.node(a).as_tcp().is_some_and(|host| host.sender(flow).stats().finished.is_some())
        });
        prop_assert!(done, "{:?}", transfer.sender(0).stats());
        prop_assert_eq!(transfer.receiver(0).delivered().total(), bytes);
        prop_assert_eq!(transfer.receiver(0).wrong(), 0);
    }
}
