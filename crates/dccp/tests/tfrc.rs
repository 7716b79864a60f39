//! CCID 3: TCP-friendly rate control over lossy and long paths.

mod common;

use braidcast_cc::tfrc::throughput;
use braidcast_core::Instant;
use braidcast_dccp::wire::Opt;
use braidcast_dccp::wire::option::Ccid3Option;
use braidcast_dccp::{Ccid, Options, Rules, TfrcOptions};
use braidcast_sim::Duplex;
use braidcast_sim::link::{LinkModel, QueueLimit};
use common::*;
use core::time::Duration;

const SIZE: usize = 1300;

fn ccid3(tfrc: TfrcOptions) -> Options {
    Options { ccids: vec![Ccid::Three], max_packet: 1400, tfrc, ..Options::default() }
}

fn queue(mbit: u64, delay: u64, packets: usize, loss: &str) -> LinkModel {
    LinkModel { queue: QueueLimit::Packets(packets).into(), ..lossy(mbit, delay, loss) }
}

/// Messages of [`SIZE`] bytes as fast as they are taken for `duration`; how many came.
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
    // 1 Mbit/s is 91.4 packets of 1300 + 68 bytes a second.
    println!("{got} messages in 30 s, {:?}", report.ccid);
    assert!((2400..=2742).contains(&got), "{got}");
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
        // Loss events are losses, less those within a round trip after another; the round trip includes the queue.
        let (p, rtt) = (loss.trim_end_matches('%').parse::<f64>().unwrap() / 100.0, report.srtt.unwrap());
        let events = (0..20).fold(p, |event, _| {
            1.0 / (1.0 / p + throughput(SIZE as f64, rtt, event) * rtt.as_secs_f64() / SIZE as f64)
        });
        let fair = throughput(SIZE as f64, rtt, events).min(125_000.0 * SIZE as f64 / (SIZE + 68) as f64);
        println!(
            "{loss}: {:.0} kbit/s, equation {:.0}, ns-2 {ns2}, p {:?}, rtt {rtt:?}",
            rate * 8e-3,
            fair * 8e-3,
            report.loss_event_rate
        );
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
        let told = pair.record.sent(SERVER).iter().any(|it| {
            let options = it.packet().options;
            options.known().any(|it| match it {
                Opt::Ccid(raw) => matches!(Ccid3Option::parse(raw), Some(Ccid3Option::LossEventRate(_))),
                _ => false,
            })
        });
        assert_eq!(told, ask_loss_event_rate);
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
    for (name, rules, packets) in [("rfc3448", Rules::Rfc3448, 2.0..4.1), ("rfc5348", Rules::Rfc5348, 4.0..8.1)] {
        let options = ccid3(TfrcOptions { rules, ..TfrcOptions::default() });
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
                while it.connection_mut(id).unwrap().send(now, &payload, braidcast_dccp::SendOptions::default()).is_ok()
                {
                }
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
    assert!(sum > 23_000, "{got:?} of 27,400");
}
