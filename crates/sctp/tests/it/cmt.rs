//! Concurrent multipath transfer as the papers have it, each flaw shown beside its cure (Iyengar,
//! Amer, Stewart 2006; THESIS §3.6, §6.2; RFC 9260 §7.2.4).

use crate::common::{CLIENT, Pair, SERVER, bulk, link, ms, pattern};
use braidcast_core::{Datagram, Ecn, Machine, Route, SocketId};
use braidcast_sctp::{
    CwndUpdate, LossDetection, Options, PathReport, RetransmissionPolicy, RttSamples, SackPath, SendOptions, Stats,
};
use braidcast_sim::link::{LinkModel, Loss};
use braidcast_sim::{Duplex, TapAction};
use std::fmt::Write;

/// CMT with a wide receive window, which still fits the queues of the links here: nothing is lost but at random.
fn roomy() -> Options {
    Options::classic().with(|it| {
        it.limits.receive_buffer = 512 << 10;
        it.papers.initial_ssthresh = None;
    })
}

fn duplex(mbit: u64, delay_ms: u64) -> Duplex {
    Duplex::both(LinkModel { queue: "4000p".parse().unwrap(), ..link(mbit, delay_ms) })
}

fn lossy(mbit: u64, delay_ms: u64, loss: f64) -> Duplex {
    let clean = LinkModel { queue: "4000p".parse().unwrap(), ..link(mbit, delay_ms) };
    Duplex::new(LinkModel { loss: Loss::Uniform(loss), ..clean.clone() }, clean)
}

/// Runs until all is acknowledged.
fn settle(pair: &mut Pair) {
    pair.until(ms(60_000), "the rest", |pair| {
        pair.server_recv();
        pair.on_client(|it, _| it.buffered()) == 0
    });
}

fn stats(pair: &mut Pair) -> Stats {
    pair.on_client(|it, _| it.stats())
}

fn paths(pair: &mut Pair) -> [PathReport; 2] {
    [0, 1].map(|i| pair.client_path(i).unwrap())
}

#[test]
fn a_path_whose_acknowledgements_others_overtake_is_measured_all_the_same() {
    // Each SACK over the slow path is old when it comes, so none of its data is measured by one.
    // Its link queues without end.
    let thin = |kbit: u64, delay| LinkModel { rate: format!("{kbit}kbit").parse().unwrap(), ..link(1, delay) };
    let links = vec![Duplex::both(thin(1000, 20)), Duplex::both(thin(500, 90))];
    let mut pair = Pair::connected(&Options::live(), links);
    let how = SendOptions { unordered: true, ..SendOptions::default() };
    let mut worst = ms(0);
    for n in 0..1500_u32 {
        let bytes = pattern(2500, n.into());
        let _ = pair.on_client(|it, now| it.send(now, &bytes, how)); // What does not fit is not sent.
        pair.run(ms(10));
        pair.server_recv();
        if n > 1000 {
            worst = worst.max(pair.client_path(1).unwrap().in_flight as u32 * ms(8) / 500);
        }
    }
    let path = pair.client_path(1).unwrap();
    println!("{worst:?} of data in flight, {:?} measured", path.srtt);
    assert!(worst < ms(350), "{worst:?} of data in flight where 180 ms and a queue of 60 ms are meant");
}

#[test]
fn the_plain_window_rule_starves_where_the_cumulative_tsn_stands_still_and_cuc_does_not() {
    // The slow path holds up the cumulative TSN for most SACKs of the fast one.
    let fill = |cwnd_update, loss| {
        let options = roomy().with(|it| {
            it.papers.cwnd_update = cwnd_update;
            it.papers.retransmission = RetransmissionPolicy::RtxSame;
        });
        // If one packet leaves later, other packets are lost from there on: one run may differ by a tenth.
        let run = |seed| {
            let mut pair = Pair::seeded(seed, &options, vec![lossy(10, 10, loss), lossy(10, 150, loss)]);
            pair.connect();
            bulk(&mut pair, 1400, ms(8000))
        };
        (1..=3).map(run).sum::<usize>()
    };
    let [plain, cuc, cucv2] = [CwndUpdate::Plain, CwndUpdate::Cuc, CwndUpdate::Cucv2].map(|rule| fill(rule, 0.01));
    println!("plain {plain}, cuc {cuc}, cucv2 {cucv2} messages");
    assert!(cuc as f64 > 1.3 * plain as f64, "{plain} {cuc}");
    assert!(cucv2 as f64 > 0.9 * cuc as f64, "{cuc} {cucv2}");
}

#[test]
fn counting_without_the_split_repeats_what_was_never_lost() {
    let repeated = |loss_detection| {
        let options = roomy().with(|it| it.papers.loss_detection = loss_detection);
        let mut pair = Pair::connected(&options, vec![duplex(10, 5), duplex(10, 80)]);
        bulk(&mut pair, 1400, ms(4000));
        settle(&mut pair);
        let stats = stats(&mut pair);
        (stats.fast_retransmissions, stats.duplicates_reported, stats.t3_expiries)
    };
    assert_eq!(repeated(LossDetection::Count), (0, 0, 0));
    assert_eq!(repeated(LossDetection::Time), (0, 0, 0));
    let (fast, duplicates, t3) = repeated(LossDetection::PlainCount);
    println!("plain-count: {fast} fast retransmissions, {duplicates} duplicates, {t3} T3 expiries");
    assert!(fast > 20 && duplicates * 10 > fast * 9, "{fast} {duplicates}");
}

#[test]
fn a_chunk_is_fast_retransmitted_once_and_then_waits_for_t3() {
    let sack = roomy().with(|it| it.sack.every = 1).sack;
    let options = roomy().with(|it| {
        it.sack = sack;
        it.congestion.initial_window = Some(10);
        it.papers.max_burst = None;
    });
    let mut pair = Pair::connected(&options, vec![duplex(10, 20)]);
    let (there, _) = pair.links[0];
    let send = |pair: &mut Pair| pair.client_send(&pattern(1000, 1), SendOptions::default());
    pair.net.set_down(there, true);
    send(&mut pair);
    pair.run(ms(2));
    pair.net.set_down(there, false);
    (0..3).for_each(|_| send(&mut pair));
    pair.run(ms(30));
    // They have arrived, and their SACKs are on the return path; the repeat is lost too.
    pair.net.set_down(there, true);
    pair.until(ms(100), "a fast retransmission", |pair| stats(pair).fast_retransmissions == 1);
    pair.run(ms(2));
    pair.net.set_down(there, false);
    for _ in 0..20 {
        send(&mut pair);
        pair.run(ms(10));
    }
    let counted = stats(&mut pair);
    assert_eq!((counted.fast_retransmissions, counted.t3_expiries), (1, 0));
    pair.run(ms(1500));
    let counted = stats(&mut pair);
    assert_eq!((counted.fast_retransmissions, counted.t3_expiries, counted.timeout_retransmissions > 0), (1, 1, true));
    assert_eq!(pair.server_recv().len(), 24);
}

/// Which path carried what was lost on path 0: chunks sent again over each path, fast and after timeouts.
fn repeats(retransmission: RetransmissionPolicy, concurrent: bool) -> [(u64, u64); 2] {
    let options = roomy().with(|it| {
        it.papers.retransmission = retransmission;
        it.paths.concurrent = concurrent;
    });
    let mut pair = Pair::connected(&options, vec![lossy(4, 20, 0.08), duplex(4, 20)]);
    for _ in 0..20 {
        bulk(&mut pair, 1400, ms(1000));
        // Now and then all that is out on path 0 is lost.
        let (there, _) = pair.links[0];
        pair.net.set_down(there, true);
        bulk(&mut pair, 1400, ms(100));
        pair.net.set_down(there, false);
        settle(&mut pair);
    }
    paths(&mut pair).map(|path| (path.fast_retransmissions, path.timeout_retransmissions))
}

#[test]
fn each_retransmission_policy_sends_again_where_it_says() {
    let mut table = String::new();
    for (name, policy) in RetransmissionPolicy::ALL {
        let concurrent = name.starts_with("rtx");
        let [(fast, late), (other_fast, other_late)] = repeats(policy, concurrent);
        let share = |here: u64, there: u64| match (here, there) {
            (0, 0) => "none",
            (_, 0) => "path 0",
            (0, _) => "path 1",
            (here, there) if here > 4 * there => "mostly path 0",
            (here, there) if there > 4 * here => "mostly path 1",
            _ => "both",
        };
        writeln!(table, "{name}: fast {}, timeout {}", share(fast, other_fast), share(late, other_late)).unwrap();
    }
    println!("{table}");
    let expected = "\
rtx-same: fast path 0, timeout path 0
rtx-asap: fast both, timeout both
rtx-cwnd: fast path 1, timeout path 1
rtx-ssthresh: fast path 1, timeout path 1
rtx-lossrate: fast path 1, timeout path 1
all-rtx-same: fast path 0, timeout path 0
all-rtx-alt: fast path 1, timeout path 1
fr-same-rto-alt: fast mostly path 0, timeout path 1
";
    assert_eq!(table, expected);
}

#[test]
fn sacks_that_overtake_each_other_between_return_paths_cause_no_retransmission() {
    for loss_detection in LossDetection::ALL.map(|(_, rule)| rule) {
        // Forward paths alike, so that data arrives in order; return delays of 10 and 150 ms (THESIS fig. 6.8).
        let forward = LinkModel { queue: "4000p".parse().unwrap(), ..link(10, 10) };
        let back = |delay| LinkModel { queue: "4000p".parse().unwrap(), ..link(10, delay) };
        let links = vec![Duplex::new(forward.clone(), back(10)), Duplex::new(forward, back(150))];
        let options = roomy().with(|it| it.papers.loss_detection = loss_detection);
        let mut pair = Pair::connected(&options, links);
        bulk(&mut pair, 1400, ms(6000));
        settle(&mut pair);
        let client = stats(&mut pair);
        let duplicates = pair.on_server(|it, _| it.stats().duplicate_chunks);
        let what = format!("{loss_detection}: {client:?}");
        assert_eq!((duplicates, client.duplicates_reported, client.t3_expiries), (0, 0, 0), "{what}");
        if loss_detection != LossDetection::PlainCount {
            assert_eq!(client.retransmissions, 0, "{what}");
        }
    }
}

#[test]
fn old_sacks_played_again_change_nothing() {
    let mut pair = Pair::connected(&roomy(), vec![duplex(10, 5), duplex(10, 40)]);
    let recording = pair.record();
    bulk(&mut pair, 1400, ms(1000));
    let old: Vec<_> =
        recording.all().into_iter().filter(|it| it.action == TapAction::Delivered && it.is_from(&SERVER)).collect();
    assert!(old.len() > 100);
    let before = paths(&mut pair).map(|path| (path.cwnd, path.ssthresh, path.in_flight));
    for seen in old.iter().take(old.len() - 20) {
        let socket = SERVER.iter().position(|it| it.parse() == Ok(seen.from)).unwrap();
        let route = Route::new(SocketId(socket as u16), seen.from);
        let payload = &seen.bytes;
        let client = pair.client;
        pair.net.with(client, |it, now| it.handle_datagram(now, Datagram { route, ecn: Ecn::NotEct, payload }));
    }
    let after = paths(&mut pair).map(|path| (path.cwnd, path.ssthresh, path.in_flight));
    assert_eq!(before, after);
    bulk(&mut pair, 1400, ms(1000));
    settle(&mut pair);
    let stats = stats(&mut pair);
    assert_eq!((stats.retransmissions, stats.duplicates_reported, stats.t3_expiries), (0, 0, 0));
}

/// SRTT and shortest RTT in ms of paths of 20 and 200 ms, each of which carries a packet every 25 ms.
fn measured(rtt_samples: RttSamples, path: SackPath) -> [(u128, u128); 2] {
    let sack = Options::classic().with(|it| it.sack.path = path).sack;
    let options = roomy().with(|it| {
        it.papers.rtt_samples = rtt_samples;
        it.sack = sack;
        it.congestion.initial_window = Some(200);
        it.papers.max_burst = None;
    });
    let mut pair = Pair::connected(&options, vec![duplex(100, 10), duplex(100, 100)]);
    // One more, so that round robin puts the first of each two on the short path.
    pair.client_send(&pattern(1400, 0), SendOptions::default());
    for n in 0..1000 {
        // Both at once: only the second, over the long path, asks for its SACK at once.
        pair.on_client(|it, now| (0..2).try_for_each(|_| it.send(now, &pattern(1400, n), SendOptions::default())))
            .unwrap();
        pair.run(ms(25));
        pair.server_recv();
    }
    paths(&mut pair).map(|path| (path.srtt.unwrap().as_millis(), path.min_rtt.unwrap().as_millis()))
}

#[test]
fn a_short_path_is_measured_as_short_beside_a_long_one() {
    let rows = SackPath::ALL.map(|(sack, path)| {
        RttSamples::ALL.map(|(name, samples)| {
            let [short, long] = measured(samples, path);
            println!(
                "SACK path {sack}, samples {name}: 20 ms path srtt {} min {}, 200 ms path srtt {} min {}",
                short.0, short.1, long.0, long.1
            );
            [short.0, long.0]
        })
    });
    let [[papers, _], [_, ours], [_, quickest]] = rows;
    assert!(papers[0] > 40, "the papers' rule takes 20 ms for {} ms", papers[0]);
    assert!((20..=25).contains(&ours[0]) && (200..=205).contains(&ours[1]), "{ours:?}");
    assert!((20..=25).contains(&quickest[0]) && (200..=205).contains(&quickest[1]), "{quickest:?}");
}

#[test]
fn bursts_are_limited_to_four_packets_an_acknowledgement() {
    let most = |max_burst| {
        let options = roomy().with(|it| {
            it.papers.max_burst = max_burst;
            it.congestion.initial_window = Some(20);
        });
        let mut pair = Pair::connected(&options, vec![duplex(100, 20)]);
        let recording = pair.record();
        (0..30).for_each(|n| pair.client_send(&pattern(1400, n), SendOptions::default()));
        pair.run(ms(1));
        let burst = recording.sent(&CLIENT).len();
        settle(&mut pair);
        burst
    };
    assert_eq!(most(Some(4)), 4);
    assert!(most(None) >= 20);
}

/// ns-2.35's rule: bursts are as long as the window lets them, but for the one after a repair.
#[test]
fn the_burst_after_a_repair_is_limited_alone_if_that_is_asked() {
    let bursts = |max_burst| {
        let options = roomy().with(|it| {
            (it.papers.max_burst, it.papers.max_burst_after_retransmission) = (max_burst, true);
            it.congestion.initial_window = Some(20);
        });
        let mut pair = Pair::connected(&options, vec![duplex(100, 20)]);
        pair.cut(0, true);
        pair.client_send(&pattern(1400, 0), SendOptions::default());
        pair.run(ms(1));
        pair.cut(0, false);
        let recording = pair.record();
        let burst = |pair: &mut Pair| {
            recording.clear();
            (1..20).for_each(|n| pair.client_send(&pattern(1400, n), SendOptions::default()));
            pair.run(ms(1));
            recording.sent(&CLIENT).len()
        };
        let at_first = burst(&mut pair);
        settle(&mut pair);
        assert_eq!(stats(&mut pair).retransmissions, 1);
        let after = burst(&mut pair);
        settle(&mut pair);
        [at_first, after]
    };
    let [free, limited] = [bursts(None), bursts(Some(4))];
    assert!(free[0] > 10 && free[1] > 4, "{free:?}");
    assert_eq!(limited, [free[0], 4]);
}
