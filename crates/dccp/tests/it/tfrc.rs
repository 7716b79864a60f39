//! CCID 3: TCP-friendly rate control over lossy and long paths.

use crate::common::*;
use braidcast_cc::tfrc::throughput;
use braidcast_core::{Datagram, Ecn, Instant, Machine};
use braidcast_dccp::wire::option::{Ccid3Option, DroppedPackets};
use braidcast_dccp::wire::{Kind, Opt};
use braidcast_dccp::{
    Call, Ccid, FeedbackRate, Options, ReorderOptions, ReorderReport, Rules, SendOptions, TfrcOptions, Variant, Wanted,
};
use braidcast_sim::Duplex;
use braidcast_sim::link::{LinkModel, QueueLimit, Reorder, ReorderHow};
use core::time::Duration;

/// As in ns-2's runs: 1500 bytes with the headers there.
const SIZE: usize = 1468;

fn ccid3(tfrc: TfrcOptions) -> Options {
    Options { ccids: vec![Ccid::Three], max_packet: SIZE + 40, tfrc, ..Options::default() }
}

fn queue(mbit: u64, delay: u64, packets: usize, loss: &str) -> LinkModel {
    LinkModel { queue: QueueLimit::Packets(packets).into(), ..lossy(mbit, delay, loss) }
}

/// Sends messages of [`SIZE`] bytes as fast as they are taken for `duration`, and returns how many
/// came.
fn greedy(pair: &mut Pair, duration: Duration) -> usize {
    let end = pair.net.now() + duration;
    let (mut next, mut got) = (0, 0);
    while pair.net.now() < end {
        while pair.client_send(&message(next, SIZE)).is_ok() {
            next += 1;
        }
        pair.run(ms(5));
        got += pair.server_recv().len();
    }
    got
}

fn client_report(pair: &mut Pair) -> braidcast_dccp::CcidReport {
    pair.on_client(|it, now| it.report(now)).ccid
}

#[test]
fn ccid_3_is_agreed_on_and_reports_once_in_a_round_trip() {
    let mut pair = Pair::connected(&ccid3(TfrcOptions::default()), Duplex::both(queue(1, 50, 50, "0%")));
    let got = greedy(&mut pair, Duration::from_secs(30));
    let report = pair.on_client(|it, now| it.report(now));
    assert_eq!((report.sending, report.receiving), (Ccid::Three, Ccid::Three));
    // 1 Mbit/s is 82.5 packets of 1468 + 48 bytes a second.
    println!("{got} messages in 30 s, {:?}", report.ccid);
    assert!((2150..=2500).contains(&got), "{got}");
    let acks: Vec<_> = pair.record.sent(SERVER).into_iter().filter(|it| it.name() == "Ack").collect();
    let rtts = 30_000 / report.rtt.unwrap().as_millis() as usize;
    assert!(acks.len() > rtts / 2 && acks.len() < 30_000 / 100 * 3 / 2, "{} in about {rtts} round trips", acks.len());
    let options = |it: &Seen| {
        let (mut rate, mut p, mut intervals, mut elapsed) = (false, false, false, false);
        for option in it.packet().options.known() {
            match option {
                Opt::ElapsedTime(_) => elapsed = true,
                Opt::Ccid(raw) => match Ccid3Option::parse(raw) {
                    Some(Ccid3Option::ReceiveRate(_)) => rate = true,
                    Some(Ccid3Option::LossEventRate(_)) => p = true,
                    Some(Ccid3Option::LossIntervals(it)) => intervals = it.skip <= 3,
                    None => {}
                },
                _ => {}
            }
        }
        rate && p && intervals && elapsed
    };
    let feedback = acks.iter().filter(|it| options(it)).count();
    assert!(feedback + 3 >= acks.len(), "{feedback} of {} acks are feedback", acks.len());
}

/// ns-2.35's Agent/DCCP/TFRC over 1 Mbit/s and 100 ms with a queue of 50 packets: payload in kbit/s (the steering
/// repository's reference/ns2, experiment G).
const NS2: [(&str, f64); 4] = [("0.5%", 973.66), ("1%", 963.39), ("2%", 878.17), ("5%", 502.27)];

#[test]
fn a_greedy_flow_gets_what_the_equation_and_ns_2_say() {
    for (loss, ns2) in NS2 {
        let model = |loss| LinkModel { rate: "1mbit".parse().unwrap(), ..queue(1, 50, 50, loss) };
        let mut pair = Pair::seeded(4, &ccid3(TfrcOptions::default()), Duplex::new(model(loss), model("0%")));
        pair.connect();
        greedy(&mut pair, Duration::from_secs(30));
        let seconds = 120;
        let got = greedy(&mut pair, Duration::from_secs(seconds));
        let rate = (got * SIZE) as f64 / seconds as f64;
        let report = client_report(&mut pair);
        // Loss events are losses, less those within a round trip after another; the round trip is 100 ms and a packet's
        // 12 ms, as far as the link is not full.
        let (p, rtt) = (loss.trim_end_matches('%').parse::<f64>().unwrap() / 100.0, ms(112));
        let events = (0..20).fold(p, |event, _| {
            1.0 / (1.0 / p + throughput(SIZE as f64, rtt, event) * rtt.as_secs_f64() / SIZE as f64)
        });
        let fair = throughput(SIZE as f64, rtt, events).min(125_000.0 * SIZE as f64 / (SIZE + 48) as f64);
        println!("{loss}: {:.0} kbit/s, equation {:.0}, ns-2 {ns2}; {report:?}", rate * 8e-3, fair * 8e-3);
        assert!((0.75..1.25).contains(&(rate / fair)), "{loss}: {rate} of {fair}");
        assert!((0.75..1.25).contains(&(rate * 8e-3 / ns2)), "{loss}: {} of ns-2's {ns2}", rate * 8e-3);
    }
}

#[test]
fn a_sender_can_do_without_loss_event_rate_options() {
    let rate = |ask_loss_event_rate| {
        let options = ccid3(TfrcOptions { ask_loss_event_rate, ..TfrcOptions::default() });
        let mut pair = Pair::seeded(2, &options, Duplex::new(lossy(10, 50, "2%"), link(10, 50)));
        pair.connect();
        let got = greedy(&mut pair, Duration::from_secs(100));
        let asked = pair.record.sent(CLIENT).iter().any(|it| {
            let options = it.packet().options;
            options.known().any(|it| matches!(it, Opt::Feature(it) if it.feature == 192 && !it.confirm))
        });
        assert_eq!(asked, ask_loss_event_rate);
        got as f64
    };
    let (told, computed) = (rate(true), rate(false));
    assert!((0.8..1.25).contains(&(computed / told)), "{told} and {computed} messages");
}

/// 160 bytes each 20 ms.
fn voice(pair: &mut Pair, duration: Duration) -> usize {
    let end = pair.net.now() + duration;
    let (mut next, mut got) = (0, 0);
    while pair.net.now() < end {
        let _ = pair.client_send(&message(next, 160));
        next += 1;
        pair.run(ms(20));
        got += pair.server_recv().len();
    }
    got
}

#[test]
fn an_idle_sender_is_quiet_and_starts_again_at_the_recover_rate() {
    for (name, rules, faster_restart, packets) in [
        ("rfc3448", Rules::Rfc3448, false, 2.0..4.1),
        ("rfc5348", Rules::Rfc5348, false, 4.0..8.1),
        ("rfc5348 and Faster Restart", Rules::Rfc5348, true, 8.0..16.1),
    ] {
        let options = ccid3(TfrcOptions { rules, faster_restart, ..TfrcOptions::default() });
        let mut pair = Pair::connected(&options, Duplex::both(link(10, 125)));
        voice(&mut pair, Duration::from_secs(20));
        pair.run(Duration::from_secs(60));
        pair.record.clear();
        pair.run(Duration::from_secs(3600));
        assert!(pair.record.all().is_empty(), "an idle hour");
        let report = client_report(&mut pair);
        let per_rtt = report.allowed_rate.unwrap() * report.srtt.unwrap().as_secs_f64() / 160.0;
        println!("{name}: {per_rtt:.2} packets per round trip after an hour");
        assert!(packets.contains(&per_rtt), "{name}: {per_rtt}");
        let got = voice(&mut pair, Duration::from_secs(10));
        assert!(got > 400, "{name}: {got} of 500 packets after the silence");
    }
}

#[test]
fn without_feedback_the_rate_falls_and_recovers() {
    let mut pair = Pair::connected(&ccid3(TfrcOptions::default()), Duplex::both(queue(2, 20, 50, "0%")));
    greedy(&mut pair, Duration::from_secs(10));
    let before = client_report(&mut pair).allowed_rate.unwrap();
    let back = pair.links.1;
    pair.net.set_down(back, true);
    greedy(&mut pair, Duration::from_secs(5));
    let during = client_report(&mut pair);
    assert!(during.allowed_rate.unwrap() < before / 16.0 && during.timeouts >= 4, "{before}, then {during:?}");
    pair.net.set_down(back, false);
    greedy(&mut pair, Duration::from_secs(20));
    let after = client_report(&mut pair).allowed_rate.unwrap();
    assert!(after > before / 2.0, "{before}, then {after}");
}

#[test]
fn two_flows_of_ccid_3_share_a_link() {
    let options = ccid3(TfrcOptions::default());
    let mut pair = Pair::connected(&options, Duplex::both(queue(2, 50, 30, "0%")));
    let first = pair.client_id;
    let route = pair.on_client(|it, _| it.route());
    let second = pair
        .net
        .with(pair.client, |it, now: Instant| it.connect(now, route, 4002, PORT, SERVICE))
        .expect("a second connection");
    pair.run(ms(500));
    let ids: Vec<_> = pair.net.node(pair.server).connections().collect();
    assert_eq!(ids.len(), 2);
    let mut got = [0_usize; 2];
    let payload = [1; SIZE];
    for step in 0..36_000 {
        for id in [first, second] {
            pair.net.with(pair.client, |it, now| {
                while it.connection_mut(id).unwrap().send(now, &payload, SendOptions::default()).is_ok() {}
            });
        }
        pair.run(ms(5));
        for (id, count) in ids.iter().zip(&mut got) {
            let mut buf = Vec::new();
            pair.net.with(pair.server, |it, _| {
                while it.connection_mut(*id).unwrap().recv(&mut buf) {
                    *count += usize::from(step > 6000);
                }
            });
        }
        pair.record.clear();
    }
    let (sum, squares) = (got[0] + got[1], got[0] * got[0] + got[1] * got[1]);
    let jain = (sum * sum) as f64 / (2 * squares) as f64;
    println!("{got:?}, Jain's index {jain:.4}");
    assert!(jain > 0.95, "{got:?}");
    assert!(sum > 21_000, "{got:?} of 24,700");
}

/// Payload rate in kbit/s of a greedy flow over 1 Mbit/s where 5 % of packets are late as in THESIS table 5.1, and what
/// the receiver's buffer says.
fn reordered(late: u64, rtt: u64, reorder: Option<ReorderOptions>) -> (f64, f64, Option<ReorderReport>) {
    let options = Options { reorder, ..ccid3(TfrcOptions::default()) };
    let there =
        LinkModel { reorder: Reorder { share: 0.05, how: ReorderHow::Late(ms(late)) }, ..queue(1, rtt / 2, 50, "0%") };
    let mut pair = Pair::seeded(3, &options, Duplex::new(there, queue(1, rtt / 2, 50, "0%")));
    pair.connect();
    greedy(&mut pair, Duration::from_secs(30));
    pair.record.clear();
    let got = greedy(&mut pair, Duration::from_secs(60));
    let p = client_report(&mut pair).loss_event_rate.unwrap();
    ((got * SIZE) as f64 * 8e-3 / 60.0, p, pair.on_server(|it, now| it.report(now)).reorder)
}

#[test]
fn the_reordering_buffer_keeps_the_rate() {
    for (rtt, late) in [(100, 50), (200, 100), (400, 200)] {
        let plain = reordered(late, rtt, None);
        let d_max = ms(late + 20);
        let buffered = reordered(late, rtt, Some(ReorderOptions::new(d_max)));
        let (without, with) = (plain.0, buffered.0);
        let report = buffered.2.unwrap();
        let ratio = with / (with + without);
        println!(
            "RTT {rtt} ms: {without:.0} kbit/s, p {:.4}; with the buffer {with:.0} kbit/s, p {:.4}: {ratio:.2}",
            plain.1, buffered.1
        );
        println!("  {report:?}");
        // THESIS fig. 5.2 has 0.6 and more; at 100 ms we lose less than it does without the buffer,
        // and more than the link carries there is none to win.
        assert!(with > 930.0 && ratio > if rtt > 100 { 0.6 } else { 0.53 }, "RTT {rtt} ms: {without} and {with}");
        assert!(report.longest_delay <= d_max && report.filled > 50, "{report:?}");
        assert_eq!(plain.2, None);
    }
}

#[test]
fn the_reordering_buffer_hands_over_in_order_and_at_last() {
    let options = Options { reorder: Some(ReorderOptions::new(ms(60))), ..ccid3(TfrcOptions::default()) };
    let there = LinkModel { reorder: Reorder { share: 0.2, how: ReorderHow::Late(ms(30)) }, ..link(4, 20) };
    let mut pair = Pair::seeded(5, &options, Duplex::new(there, link(4, 20)));
    pair.connect();
    let mut got = Vec::new();
    for n in 0..300 {
        pair.client_send(&message(n, 160)).unwrap();
        pair.run(ms(10));
        got.extend(pair.server_recv());
    }
    pair.on_client(|it, now| it.close(now));
    pair.run(ms(500));
    let numbers: Vec<u32> = got.iter().map(|it| number(it)).collect();
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{numbers:?}");
    assert!(numbers.len() >= 290, "{}", numbers.len());
}

/// One or more calls of 160 bytes each 20 ms that stop speaking from time to time (DTX), over a
/// satellite link: 1 Mbit/s, 1 s round trip. What is not sent within 40 ms of being spoken is lost
/// between application and transport, as in THESIS §4.4. The share that did not come.
fn satellite_loss(ccid: Ccid, variant: Variant) -> f64 {
    let tfrc = TfrcOptions { ccid4: variant, ..TfrcOptions::default() };
    let options = Options { ccids: vec![ccid], tfrc, ..Options::default() };
    let mut pair = Pair::seeded(1, &options, Duplex::both(queue(1, 500, 200, "0.1%")));
    pair.connect();
    let (mut spoken, mut got) = (0_u32, 0);
    for tick in 0..3000_u32 {
        // Four seconds of speech, two of silence.
        if tick % 300 < 200 {
            let payload = message(spoken, 160);
            spoken += 1;
            let how = SendOptions { deadline: Some(pair.net.now() + ms(40)), ..SendOptions::default() };
            let _ = pair.on_client(|it, now| it.send(now, &payload, how));
        }
        pair.run(ms(20));
        got += pair.server_recv().len();
    }
    pair.run(Duration::from_secs(2));
    got += pair.server_recv().len();
    1.0 - got as f64 / f64::from(spoken)
}

#[test]
fn ccid_4_drops_voice_over_a_satellite_and_ccid_4_n100_does_not() {
    let [plain, n, n100] =
        [Variant::TfrcSp, Variant::Ccid4N, Variant::Ccid4N100].map(|it| satellite_loss(Ccid::Four, it));
    println!(
        "lost over 1 s RTT: CCID4 {:.2} %, CCID4-N {:.2} %, CCID4-N100 {:.2} %",
        plain * 100.0,
        n * 100.0,
        n100 * 100.0
    );
    // UDP would lose what the link does: 0.1 %, give or take.
    assert!(n100 < 0.005, "{n100}");
    assert!(n100 < n && n < plain && plain > 10.0 * n100, "{plain} {n} {n100}");
}

#[test]
fn ccid_4_tells_dropped_packets_and_keeps_ten_milliseconds_apart() {
    for ask_loss_event_rate in [true, false] {
        let tfrc = TfrcOptions { ask_loss_event_rate, ..TfrcOptions::default() };
        let options = Options { ccids: vec![Ccid::Four], tfrc, ..Options::default() };
        let mut pair = Pair::seeded(6, &options, Duplex::new(lossy(10, 50, "2%"), link(10, 50)));
        pair.connect();
        let mut next = 0;
        for _ in 0..6000 {
            while pair.client_send(&message(next, 160)).is_ok() {
                next += 1;
            }
            pair.run(ms(10));
            pair.server_recv();
        }
        let sent = pair.record.sent(CLIENT);
        let data: Vec<_> = sent.iter().filter(|it| it.name().starts_with("Data")).map(|it| it.at).collect();
        assert!(data.windows(2).all(|pair| pair[1] - pair[0] >= ms(10)));
        assert!(data.len() > 5000, "at 2 % the fair rate is beyond a hundred packets a second: {}", data.len());
        for seen in pair.record.sent(SERVER) {
            let (mut intervals, mut drops) = (Vec::new(), Vec::new());
            for option in seen.packet().options.known() {
                let Opt::Ccid(raw) = option else { continue };
                if let Some(Ccid3Option::LossIntervals(it)) = Ccid3Option::parse(raw) {
                    intervals.extend(it.iter());
                }
                drops.extend(DroppedPackets::parse(raw).iter().flat_map(DroppedPackets::iter));
            }
            assert_eq!(intervals.len(), drops.len());
            assert!(intervals.iter().zip(&drops).all(|(it, drops)| *drops <= it.loss));
        }
        let p = client_report(&mut pair).loss_event_rate.unwrap();
        assert!((0.008..0.05).contains(&p), "{p}");
    }
}

#[test]
fn the_application_says_what_it_wants_and_hears_what_it_gets() {
    let mut pair = Pair::connected(&ccid3(TfrcOptions::default()), Duplex::both(queue(2, 50, 50, "0%")));
    pair.on_client(|it, _| it.set_wanted(Wanted { min: Some(10_000.0), max: Some(50_000.0) }));
    greedy(&mut pair, Duration::from_secs(5));
    let got = greedy(&mut pair, Duration::from_secs(20)) as f64 * SIZE as f64 / 20.0;
    assert!((45_000.0..51_500.0).contains(&got), "{got} bytes/s of the 50,000 that are wanted");
    let report = client_report(&mut pair);
    assert!(
        !report.below_minimum && report.recv_rate.is_some_and(|rate| (rate / 50_000.0 - 1.0).abs() < 0.2),
        "{report:?}"
    );
    let call = Call { payload: 160, rate: 50.0, max_loss: 0.02 };
    let fit = pair.on_client(|it, now| it.more_calls(now, &call, 1)).unwrap();
    assert_eq!(fit, (report.allowed_rate.unwrap() / 8000.0) as u32 - 1);
    pair.on_client(|it, _| it.set_wanted(Wanted { min: Some(1e9), max: None }));
    assert!(client_report(&mut pair).below_minimum);
}

#[test]
fn marks_slow_ccid_3_without_a_loss() {
    let mut pair = Pair::connected(&ccid3(TfrcOptions::default()), Duplex::both(link(10, 20)));
    greedy(&mut pair, ms(300));
    let sent = pair.record.last(CLIENT, "Data").unwrap();
    let seq = sent.packet().header.seq + 1;
    let bytes = packet(true, seq, Kind::Data, &[], &[0; 100]);
    let route = braidcast_core::Route::new(braidcast_core::SocketId(0), CLIENT.parse().unwrap());
    pair.net.with(pair.server, |endpoint, now| {
        endpoint.handle_datagram(now, Datagram { route, ecn: Ecn::Ce, payload: &bytes });
    });
    pair.client_send(&message(1, 100)).unwrap();
    pair.run(ms(200));
    let report = client_report(&mut pair);
    assert!(report.loss_event_rate.unwrap() > 0.0 && report.loss_events == 1, "{report:?}");
}

#[test]
fn data_both_ways_carries_the_feedback_of_the_other_way() {
    let mut pair = Pair::connected(&ccid3(TfrcOptions::default()), Duplex::both(queue(1, 50, 50, "0%")));
    let (mut there, mut back) = (0, 0);
    for n in 0..12_000 {
        while pair.client_send(&message(n, 1000)).is_ok() {}
        while pair.server_send(&message(n, 1000)).is_ok() {}
        pair.run(ms(5));
        there += pair.server_recv().len();
        back += pair.client_recv().len();
    }
    // 1 Mbit/s is 119 packets a second; slow start takes a part of the minute.
    println!("{there} and {back} messages in a minute");
    assert!(there > 6000 && back > 6000, "{there} and {back}");
    let names = pair.record.names(SERVER);
    let separate = names.iter().filter(|it| **it == "Ack").count();
    assert!(separate * 10 < names.len(), "{separate} of {} packets are acknowledgements alone", names.len());
}

#[test]
fn dynamic_feedback_comes_once_in_a_hundred_milliseconds() {
    let acks = |feedback| {
        let options = ccid3(TfrcOptions { feedback: Some(feedback), ..TfrcOptions::default() });
        let mut pair = Pair::connected(&options, Duplex::both(queue(1, 500, 200, "0%")));
        pair.on_client(|it, _| it.set_wanted(Wanted { min: None, max: Some(60_000.0) }));
        let start = greedy(&mut pair, Duration::from_secs(20));
        pair.record.clear();
        greedy(&mut pair, Duration::from_secs(20));
        let acks = pair.record.names(SERVER).iter().filter(|it| **it == "Ack").count();
        (start, acks)
    };
    let (standard, dynamic) = (acks(FeedbackRate::Times(1)), acks(FeedbackRate::Dynamic));
    println!("messages in the first 20 s, acks in 20 round trips: {standard:?}, dynamic {dynamic:?}");
    assert!((15..=30).contains(&standard.1) && (150..=260).contains(&dynamic.1));
    assert!(dynamic.0 > standard.0, "a faster start (THESIS eq. 4.12)");
}

#[test]
fn who_knows_only_ccid_2_gets_ccid_2_and_is_asked_for_nothing_else() {
    let wants = Options { ccids: vec![Ccid::Three, Ccid::Two], ..Options::default() };
    let mut pair = Pair::with(wants, Options::default(), Duplex::both(link(10, 20)));
    pair.connect();
    pair.client_send(b"hello").unwrap();
    pair.run(ms(2000));
    assert_eq!(pair.server_recv(), [b"hello"]);
    let report = pair.on_client(|it, now| it.report(now));
    assert_eq!((report.sending, report.receiving), (Ccid::Two, Ccid::Two));
    pair.record.clear();
    pair.run(Duration::from_secs(300));
    assert!(pair.record.all().is_empty(), "{}", pair.record.text());
}
