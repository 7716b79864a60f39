//! Data, its congestion control, and what is told about it.

use crate::common::*;
use braidcast_core::events::{DccpEvent, EventSink, TraceEvent, Tracer};
use braidcast_core::{Ecn, Instant, Machine};
use braidcast_dccp::wire::option::DropCode;
use braidcast_dccp::wire::{Checksum, Opt, Packet};
use braidcast_dccp::{Options, SendError, SendOptions};
use braidcast_sim::Duplex;
use braidcast_sim::link::{LinkModel, QueueLimit, Reorder};
use braidcast_sim::testing::cases;
use core::time::Duration;
use proptest::prelude::*;
use std::sync::{Arc, Mutex};

/// Sends messages of `len` bytes as fast as they are taken, for `duration`; the numbers of those that came.
fn stream(pair: &mut Pair, len: usize, duration: Duration) -> Vec<u32> {
    let end = pair.net.now() + duration;
    let (mut next, mut got) = (0, Vec::new());
    while pair.net.now() < end {
        while pair.client_send(&message(next, len)).is_ok() {
            next += 1;
        }
        pair.run(ms(5));
        got.extend(pair.server_recv().iter().map(|it| number(it)));
    }
    got
}

fn queue(mbit: u64, delay: u64, packets: usize) -> LinkModel {
    LinkModel { queue: QueueLimit::Packets(packets).into(), ..link(mbit, delay) }
}

#[test]
fn ccid_2_fills_a_link_and_halves_once_for_each_congestion_event() {
    let mut pair = Pair::connected(&Options::default(), Duplex::both(queue(8, 20, 40)));
    let got = stream(&mut pair, 1000, Duration::from_secs(30));
    // 8 Mbit/s carry 936 packets of 1000 + 68 bytes a second.
    assert!(got.len() > 26_000, "{} messages in 30 s", got.len());
    assert!(got.windows(2).all(|pair| pair[0] < pair[1]));
    let report = pair.on_client(|it, now| it.report(now)).ccid;
    assert!(report.lost > 10 && report.timeouts == 0, "{report:?}");
    assert!(report.cwnd.unwrap() >= 35 && report.cwnd.unwrap() <= 90, "{report:?}");
    // As with TCP's delayed acknowledgements.
    let acks = pair.record.names(SERVER).iter().filter(|name| **name == "Ack").count();
    assert!(acks > got.len() / 3 && acks < got.len() * 2 / 3, "{acks} acks for {} messages", got.len());
}

#[test]
fn the_sequence_window_grows_with_a_long_fat_pipe() {
    let options = Options { sequence_window: 100, ..Options::default() };
    let mut pair = Pair::connected(&options, Duplex::both(queue(50, 60, 1500)));
    let got = stream(&mut pair, 1300, Duration::from_secs(20));
    let report = pair.on_client(|it, now| it.report(now));
    // 4500 packets of 1300 bytes a second, 540 in a round trip.
    assert!(got.len() > 70_000, "{} messages, {report:?}", got.len());
    assert!(report.sequence_window > 2500, "{report:?}");
    // The server's window must hold its acknowledgements.
    assert_eq!(pair.on_server(|it, now| it.report(now).stats.invalid_packets), 0);
}

/// Throughput falls as the square root of the loss rate: RFC 4341 behaves as TCP does.
#[test]
fn loss_slows_ccid_2_as_it_slows_tcp() {
    let rate = |loss: &str| {
        let mut pair = Pair::seeded(3, &Options::default(), Duplex::new(lossy(100, 50, loss), link(100, 50)));
        pair.connect();
        stream(&mut pair, 1000, Duration::from_secs(100)).len() as f64 / 100.0
    };
    let (one, four) = (rate("1%"), rate("4%"));
    // Packets per round trip of 0.1 s: about 1.22 / sqrt(p) with each packet acknowledged, 0.87 with every second.
    assert!((80.0..150.0).contains(&one), "{one} packets/s at 1 %");
    assert!((one / four - 2.0).abs() < 0.7, "{one} and {four} packets/s");
}

#[test]
fn ack_vectors_stay_small_while_data_flows_one_way() {
    let mut pair = Pair::seeded(5, &Options::default(), Duplex::new(lossy(10, 20, "2%"), lossy(10, 20, "2%")));
    pair.connect();
    let got = stream(&mut pair, 500, Duration::from_secs(20));
    assert!(got.len() > 1000, "{}", got.len());
    let acks: Vec<_> = pair.record.sent(SERVER).into_iter().filter(|it| it.name() == "Ack").collect();
    let longest = acks.iter().map(|it| it.packet().options.as_bytes().len()).max().unwrap();
    assert!(longest < 100, "{longest} bytes of options on an acknowledgement");
    assert!(pair.record.names(CLIENT).contains(&"DataAck"), "the sender acknowledges acknowledgements");
}

#[test]
fn a_lossy_way_back_raises_the_ack_ratio() {
    let mut pair = Pair::seeded(2, &Options::default(), Duplex::new(queue(8, 30, 60), lossy(8, 30, "20%")));
    pair.connect();
    let (mut got, mut ratios) = (0, Vec::new());
    for _ in 0..20 {
        got += stream(&mut pair, 1000, Duration::from_secs(1)).len();
        // A timeout takes the window, and with it the ratio, down for a moment.
        ratios.extend(pair.on_client(|it, now| it.report(now)).ccid.ack_ratio);
    }
    let acks = pair.record.names(SERVER).iter().filter(|name| **name == "Ack").count();
    assert!(ratios.iter().filter(|&&ratio| ratio > 4).count() > 5, "{ratios:?}");
    assert!(acks * 5 < got * 2, "{acks} acks for {got} messages");
}

/// Linux acknowledges each second packet and has no timer for the last one, so that a window of one packet would get no
/// answer but after timeouts, and never grow again.
#[test]
fn a_window_of_one_packet_has_each_packet_acknowledged() {
    let mut pair = Pair::seeded(2, &Options::default(), Duplex::new(lossy(8, 30, "40%"), link(8, 30)));
    pair.connect();
    stream(&mut pair, 1000, Duration::from_secs(10));
    let report = pair.on_client(|it, now| it.report(now)).ccid;
    assert!(report.timeouts > 0, "{report:?}");
    let one = |it: &Opt<'_>| matches!(it, Opt::Feature(it) if it.feature == 5 && !it.confirm && it.values == [0, 1]);
    let told = pair.record.sent(CLIENT).iter().any(|it| it.packet().options.known().any(|it| one(&it)));
    assert!(told, "the receiver knows");
}

/// RFC 4341 §6.1.2: not beyond half the window. A receiver that waits for more than is out answers too late, or never.
#[test]
fn the_ack_ratio_follows_a_falling_window_within_two_round_trips() {
    let mut pair = Pair::seeded(4, &Options::default(), Duplex::new(lossy(2, 30, "2%"), lossy(2, 30, "10%")));
    pair.connect();
    let (mut told, mut too_high, mut longest, mut highest) = (2, 0, 0, 0);
    for _ in 0..10_000 {
        stream(&mut pair, 1000, ms(5));
        let change = |it: &Seen| {
            let change = |it| match it {
                Opt::Feature(it) if it.feature == 5 && !it.confirm => it.values.last().copied(),
                _ => None,
            };
            it.packet().options.known().find_map(change).map(u16::from)
        };
        told = pair.record.sent(CLIENT).iter().rev().find_map(change).unwrap_or(told);
        pair.record.clear();
        let report = pair.on_client(|it, now| it.report(now)).ccid;
        highest = highest.max(told);
        let most = report.cwnd.unwrap().div_ceil(2).max(2);
        too_high = if u32::from(told) > most { too_high + 5 } else { 0 };
        longest = longest.max(too_high);
    }
    assert!(highest > 2 && longest <= 150, "up to {highest}, too high for {longest} ms");
}

#[test]
fn ecn_marks_slow_the_sender_before_anything_is_lost() {
    let mut pair = Pair::connected(&Options::default(), Duplex::both(link(10, 20)));
    pair.run(ms(100));
    for n in 0..3 {
        pair.client_send(&message(n, 100)).unwrap();
    }
    pair.run(ms(300));
    let marked = |pair: &mut Pair| pair.on_client(|it, now| it.report(now)).ccid;
    let before = marked(&mut pair).cwnd.unwrap();
    let next = pair.record.last(CLIENT, "Data").map_or(0, |it| it.packet().header.seq) + 1;
    let route = braidcast_core::Route::new(braidcast_core::SocketId(0), CLIENT.parse().unwrap());
    pair.client_send(&message(9, 100)).unwrap();
    let sent = pair.record.sent(CLIENT).pop().unwrap();
    assert_eq!((sent.packet().header.seq >= next, sent.ecn), (true, Ecn::Ect0));
    // The mark overtakes the unmarked original.
    pair.net.with(pair.server, |endpoint, now| {
        endpoint.handle_datagram(now, braidcast_core::Datagram { route, ecn: Ecn::Ce, payload: &sent.bytes });
    });
    pair.run(ms(300));
    let after = marked(&mut pair);
    assert_eq!((after.marked, after.lost, after.cwnd), (1, 0, Some((before / 2).max(1))));
}

#[test]
fn nonce_echoes_are_right_over_a_lossy_link() {
    let options = Options { ecn_nonce: true, ..Options::default() };
    let mut pair = Pair::seeded(7, &options, Duplex::both(lossy(10, 10, "3%")));
    pair.connect();
    for _ in 0..10 {
        let _ = stream(&mut pair, 300, ms(1000));
        let _ = pair.server_send(b"and back");
    }
    let report = pair.on_client(|it, now| it.report(now)).ccid;
    assert!(report.acked > 500 && report.lost > 5, "{report:?}");
    assert_eq!(report.nonce_mismatches, 0);
    assert!(pair.record.sent(CLIENT).iter().any(|it| it.ecn == Ecn::Ect1));
}

#[test]
fn short_sequence_numbers_ndp_counts_and_data_checksums_are_used_once_agreed() {
    let options = Options { short_seqnos: true, ndp_count: true, data_checksum: true, ..Options::default() };
    let mut pair = Pair::connected(&options, Duplex::both(link(10, 10)));
    let got = stream(&mut pair, 200, Duration::from_secs(3));
    assert!(got.len() > 500);
    pair.record.clear();
    let more = stream(&mut pair, 200, Duration::from_secs(1));
    assert!(more.len() > 100);
    for seen in pair.record.sent(CLIENT).iter().filter(|it| it.name() == "Data") {
        let packet = seen.packet();
        assert!(packet.header.short);
        assert!(packet.options.known().any(|option| matches!(option, Opt::DataChecksum(_))));
    }
    let acks = pair.record.sent(SERVER);
    assert!(acks.iter().filter(|it| it.packet().options.known().any(|o| matches!(o, Opt::NdpCount(_)))).count() > 50);
    assert_eq!(pair.on_server(|it, now| it.report(now).stats.dropped), 0);
}

#[test]
fn what_does_not_reach_the_application_is_reported() {
    let options = Options { receive_buffer: 1000, ..Options::default() };
    let mut pair = Pair::connected(&options, Duplex::both(link(10, 10)));
    for n in 0..8 {
        while pair.client_send(&message(n, 400)).is_err() {
            pair.run(ms(5));
        }
        pair.run(ms(30));
    }
    pair.run(ms(3000));
    assert_eq!(pair.server_recv().len(), 2);
    assert_eq!(pair.on_server(|it, now| it.report(now).stats.dropped), 6);
    let codes = |pair: &Pair| -> Vec<_> {
        let sent = pair.record.sent(SERVER);
        sent.iter()
            .flat_map(|it| it.packet().options.dropped_runs().filter_map(|run| run.code).collect::<Vec<_>>())
            .collect()
    };
    assert!(codes(&pair).iter().all(|code| *code == DropCode::ReceiveBuffer) && !codes(&pair).is_empty());
    pair.on_server(|it, _| it.stop_receiving());
    pair.client_send(b"are you there?").unwrap();
    pair.run(ms(300));
    assert_eq!(codes(&pair).last(), Some(&DropCode::NotListening));
    assert_eq!(pair.client_send(b"hello?"), Err(SendError::NotListening));
}

#[test]
fn corrupt_data_is_dropped_and_partial_coverage_is_taken_where_it_is_wanted() {
    let takes = Options { min_coverage: 1, ..Options::default() };
    let sends = Options { data_checksum: true, ..Options::default() };
    let mut pair = Pair::with(sends, takes, Duplex::both(link(10, 10)));
    pair.connect();
    pair.run(ms(200));
    let how = SendOptions { coverage: 1, ..SendOptions::default() };
    pair.on_client(|it, now| it.send(now, b"fragile", how)).unwrap();
    pair.run(ms(100));
    assert_eq!(pair.server_recv(), [b"fragile"]);
    // What a radio link might do to the next one.
    pair.on_client(|it, now| it.send(now, b"fragile", how)).unwrap();
    let mut bytes = pair.record.sent(CLIENT).pop().unwrap().bytes;
    *bytes.last_mut().unwrap() ^= 1;
    pair.inject(pair.server, &bytes);
    pair.run(ms(500));
    assert!(pair.server_recv().is_empty());
    let told = pair.record.sent(SERVER);
    assert!(told.iter().any(|it| it.packet().options.dropped_runs().any(|run| run.code == Some(DropCode::Corrupt))));
}

#[test]
fn a_slow_receiver_is_heard() {
    let mut pair = Pair::connected(&Options::default(), Duplex::both(link(10, 10)));
    pair.on_server(|it, _| it.set_slow_receiver(true));
    pair.client_send(b"x").unwrap();
    pair.run(ms(400));
    assert!(pair.on_client(|it, now| it.report(now).peer_is_slow));
}

#[test]
fn an_end_that_cannot_read_ecn_gets_no_marks() {
    let blind = Options { ecn: false, ..Options::default() };
    let mut pair = Pair::with(Options::default(), blind, Duplex::both(link(10, 10)));
    pair.connect();
    pair.run(ms(500));
    pair.record.clear();
    pair.client_send(b"x").unwrap();
    pair.run(ms(500));
    assert_eq!(pair.server_recv(), [b"x"]);
    assert!(pair.record.sent(CLIENT).iter().all(|it| it.ecn == Ecn::NotEct));
}

#[test]
fn messages_whose_time_is_up_are_not_sent() {
    let mut pair = Pair::connected(&Options::default(), Duplex::both(link(1, 100)));
    let how = SendOptions { deadline: Some(pair.net.now() + ms(150)), ..SendOptions::default() };
    for n in 0..20 {
        pair.on_client(|it, now| it.send(now, &message(n, 1000), how)).unwrap();
    }
    pair.run(Duration::from_secs(3));
    let got = pair.server_recv().len();
    let expired = pair.on_client(|it, now| it.report(now).stats.expired);
    assert_eq!((got as u64 + expired, got), (20, 3), "the first window, before feedback");
}

#[test]
fn each_packet_is_told_and_what_is_known_after_it() {
    #[derive(Default)]
    struct Ears(Mutex<Vec<DccpEvent>>);
    impl EventSink for Ears {
        fn tell(&self, _: Instant, _: u32, event: &TraceEvent) {
            if let TraceEvent::Dccp(event) = event {
                self.0.lock().unwrap().push(*event);
            }
        }
    }
    let ears = Arc::new(Ears::default());
    let options = Options { events: Tracer::new(ears.clone()), ..Options::default() };
    let mut pair = Pair::connected(&options, Duplex::both(link(10, 10)));
    let _ = stream(&mut pair, 500, ms(500));
    let told = ears.0.lock().unwrap();
    assert!(matches!(told[0], DccpEvent::PacketSent { kind: 0, .. }), "a Request first: {:?}", told[0]);
    assert!(told.iter().any(|it| matches!(it, DccpEvent::PacketReceived { kind: 3, .. })), "no Ack");
    let known = |it: &DccpEvent| if let DccpEvent::Metrics(it) = it { Some(*it) } else { None };
    let windows: Vec<_> = told.iter().filter_map(known).filter_map(|it| it.cwnd).collect();
    assert!(windows.first() < windows.last());
    let acked: Vec<_> = told.iter().filter_map(known).map(|it| it.acked).collect();
    assert!(acked.iter().max() > Some(&10), "{acked:?}");
}

#[test]
fn packets_of_one_size_leave_at_once_and_a_shorter_one_ends_them() {
    let batches = |lens: &[usize], max_segments| {
        let options = Options { max_segments, ..Options::default() };
        let mut pair = Pair::connected(&options, Duplex::both(link(10, 10)));
        // A window of more than a few packets, of which the last one carries an acknowledgement.
        let _ = stream(&mut pair, 500, ms(500));
        pair.run(ms(300));
        let id = pair.client_id;
        pair.net.with(pair.client, |endpoint, now| {
            for &len in lens {
                endpoint.connection_mut(id).unwrap().send(now, &vec![7; len], SendOptions::default()).unwrap();
            }
            let (mut buf, mut batches) = (Vec::new(), Vec::new());
            while let Some(transmit) = endpoint.poll_transmit(now, &mut buf) {
                let sizes = transmit.datagrams(&buf).map(|it| Packet::parse(it, Checksum::Udp).unwrap().payload.len());
                batches.push(sizes.collect::<Vec<_>>());
            }
            batches
        })
    };
    assert_eq!(batches(&[500, 500, 300], 40), [vec![500, 500, 300]]);
    assert_eq!(batches(&[500, 300, 500], 40), [vec![500, 300], vec![500]]);
    assert_eq!(batches(&[300, 500, 500], 40), [vec![300], vec![500, 500]]);
    assert_eq!(batches(&[500, 500, 500], 2), [vec![500, 500], vec![500]]);
}

/// The same seed gives the same bytes.
#[test]
fn runs_can_be_repeated() {
    let run = || {
        let mut pair = Pair::seeded(11, &Options::default(), Duplex::both(lossy(5, 15, "5%")));
        pair.connect();
        let _ = stream(&mut pair, 700, Duration::from_secs(2));
        pair.record.all().iter().map(|it| (it.at, it.bytes.clone())).collect::<Vec<_>>()
    };
    assert!(run() == run());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(24), ..ProptestConfig::default() })]

    /// Whatever the network does: what comes was sent, whole, and comes once.
    #[test]
    fn nothing_comes_twice_or_changed(
        seed: u64, loss in 0_u32..30, delay in 1_u64..100, reorder in 0_u32..20, short: bool, half_open in 0_usize..2,
    ) {
        let options = Options { short_seqnos: short, half_open, ndp_count: short, ..Options::default() };
        let model = LinkModel {
            loss: format!("{loss}%").parse().unwrap(),
            reorder: Reorder { share: f64::from(reorder) / 100.0, ..Reorder::default() },
            duplicate: 0.1,
            ..link(4, delay)
        };
        let mut pair = Pair::seeded(seed, &options, Duplex::both(model));
        let (mut sent, mut got) = (0, Vec::new());
        for _ in 0..400 {
            if pair.client_send(&message(sent, 20 + sent as usize % 900)).is_ok() {
                sent += 1;
            }
            pair.run(ms(20));
            got.extend(pair.server_recv());
        }
        let mut numbers: Vec<u32> = got.iter().map(|it| number(it)).collect();
        for (bytes, number) in got.iter().zip(&numbers) {
            prop_assert_eq!(bytes, &message(*number, 20 + *number as usize % 900));
        }
        numbers.sort_unstable();
        prop_assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]) && numbers.last().is_none_or(|&it| it < sent));
    }
}
