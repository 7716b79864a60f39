//! Small buffers over paths that differ: who blocks whom, and what buffer splitting and NR-SACK do about it.

use crate::common::{CLIENT, Pair, SERVER, link, ms, on, packet, pattern, tag, transfer};
use braidcast_sctp::wire::chunk::kind;
use braidcast_sctp::{BlockingReport, BufferSplit, Options, Reliability, SackPolicy, SchedulerKind, SendOptions};
use braidcast_sim::Duplex;
use braidcast_sim::link::{LinkModel, QueueLimit};
use core::time::Duration;

const BUFFER: usize = 32_768;

/// A link of `kbit` kbit/s and `delay_ms` in each direction, with a queue of 50 packets.
fn duplex(kbit: u64, delay_ms: u64) -> Duplex {
    let rate = format!("{kbit}kbit").parse().unwrap();
    Duplex::both(LinkModel { rate, delay: ms(delay_ms), queue: QueueLimit::Packets(50).into(), ..LinkModel::default() })
}

/// CMT as the papers have it, packets in turn over the paths.
fn cmt() -> Options {
    Options::default().with(|it| {
        it.paths.scheduler = SchedulerKind::RoundRobin;
        it.sack = SackPolicy::EveryPacket.into();
        it.limits.max_message = 16_384;
    })
}

/// Goodput of a bulk transfer in Mbit/s over 30 s after 10 s, and what blocked: at the receiver, and at the sender.
fn bulk(options: &Options, links: Vec<Duplex>) -> (f64, BlockingReport, BlockingReport) {
    const MEASURED: Duration = Duration::from_secs(30);
    let mut pair = Pair::connected(options, links);
    let (start, mut bytes) = (pair.now() + ms(10_000), 0);
    while pair.now() < start + MEASURED {
        pair.on_client(|association, now| {
            while association.send_room() >= 1000 && association.send(now, &[7; 1000], SendOptions::default()).is_ok() {
            }
        });
        pair.run(ms(5));
        let late = pair.now() > start;
        bytes += pair.server_recv().iter().filter(|_| late).map(|(_, message)| message.len()).sum::<usize>();
    }
    let goodput = bytes as f64 * 8e-6 / MEASURED.as_secs_f64();
    (goodput, pair.on_server(|it, _| it.blocking()), pair.on_client(|it, _| it.blocking()))
}

#[test]
fn a_small_receive_window_is_blocked_by_a_slow_path_unless_it_is_split() {
    let fast = || duplex(1000, 10);
    for scheduler in [SchedulerKind::RoundRobin, SchedulerKind::LowestDelay] {
        let options = cmt().with(|it| {
            it.paths.scheduler = scheduler;
            it.limits.receive_buffer = BUFFER;
        });
        let alone = bulk(&options, vec![fast()]).0;
        let run = |buffer_split| {
            bulk(&options.clone().with(|it| it.papers.buffer_split = buffer_split), vec![fast(), duplex(1000, 150)])
        };
        let (shared, _, blocked) = run(BufferSplit::None);
        let (split, ..) = run(BufferSplit::Receiver);
        println!("{scheduler}: fast path alone {alone:.2}, both {shared:.2}, split {split:.2} Mbit/s");
        assert!(split > 1.3 * alone, "{scheduler}: {split:.2} Mbit/s with both paths, {alone:.2} with the fast one");
        // In turn the slow path makes it worse than without it; by delay it just adds nothing.
        let gain = if scheduler == SchedulerKind::RoundRobin { 0.9 } else { 1.05 };
        assert!(shared < gain * alone, "{scheduler}: {shared:.2} Mbit/s with both paths, {alone:.2} with the fast one");
        let share = blocked.held_by_peer.total.as_secs_f64() / 40.0;
        assert!(share > 0.5, "{scheduler}: blocked for {share:.2} of the time");
    }
}

#[test]
fn a_small_send_buffer_takes_both_the_split_and_nr_sack() {
    let options = cmt().with(|it| it.limits.send_buffer = BUFFER);
    let alone = bulk(&options, vec![duplex(4000, 10)]).0;
    let goodput = [
        (BufferSplit::None, false),
        (BufferSplit::Sender, false),
        (BufferSplit::None, true),
        (BufferSplit::Both, true),
    ]
    .map(|(buffer_split, nr_sack)| {
        let options = options.clone().with(|it| {
            it.papers.buffer_split = buffer_split;
            it.papers.nr_sack = nr_sack;
        });
        bulk(&options, vec![duplex(4000, 10), duplex(1000, 150)]).0
    });
    let [neither, split, nr_sack, both] = goodput;
    println!(
        "fast path alone {alone:.2}, neither {neither:.2}, split {split:.2}, NR-SACK {nr_sack:.2}, both {both:.2} Mbit/s"
    );
    assert!(
        neither < 0.3 * alone && split > 1.2 * neither && nr_sack > 1.2 * neither && both > 1.1 * alone,
        "{goodput:.2?}"
    );
}

#[test]
fn nr_sack_frees_what_lies_above_a_gap_and_sack_does_not() {
    for nr_sack in [true, false] {
        let options = Options::default().with(|it| {
            it.papers.nr_sack = nr_sack;
            it.sack = SackPolicy::EveryPacket.into();
        });
        let mut pair = Pair::connected(&options, vec![Duplex::both(link(10, 15))]);
        let recording = pair.record();
        pair.cut(0, true);
        pair.client_send(&pattern(1000, 1), SendOptions::default());
        pair.run(ms(5));
        pair.cut(0, false);
        for n in 2..=4 {
            pair.client_send(&pattern(1000, n), SendOptions::default());
        }
        // A round trip, and too little for the loss to be repaired.
        pair.run(ms(40));
        let left = pair.on_client(|association, _| association.buffered());
        assert_eq!(left, if nr_sack { 1000 } else { 4000 });
        let used = if nr_sack { kind::NR_SACK } else { kind::SACK };
        assert!(recording.count(&SERVER, used) > 0);
        assert_eq!(recording.count(&SERVER, kind::SACK + kind::NR_SACK - used), 0);
        pair.until(ms(3000), "all", |pair| pair.on_client(|association, _| association.buffered()) == 0);
        let messages: Vec<_> = pair.server_recv().into_iter().map(|(_, message)| message).collect();
        assert_eq!(messages, (1..=4).map(|n| pattern(1000, n)).collect::<Vec<_>>());
    }
}

#[test]
fn a_peer_without_nr_sack_gets_sack_and_one_that_sends_it_all_the_same_is_not_heard() {
    let with = Options::default().with(|it| it.papers.nr_sack = true);
    let mut pair = Pair::with(with, Options::default(), vec![Duplex::both(link(10, 15))]);
    pair.connect();
    let recording = pair.record();
    transfer(&mut pair, 50_000, 1000);
    pair.run(ms(500));
    assert!(recording.count(&SERVER, kind::SACK) > 0);
    assert_eq!(recording.count(&SERVER, kind::NR_SACK) + recording.count(&CLIENT, kind::NR_SACK), 0);
    // One out of thin air, for what is in flight.
    pair.cut(0, true);
    pair.client_send(&[1; 1000], SendOptions::default());
    pair.run(ms(1));
    let data = recording.last(&CLIENT, kind::I_DATA).expect("sent");
    let sack = recording.last(&SERVER, kind::SACK).expect("sent");
    let tsn = u32::from_be_bytes(data[16..20].try_into().unwrap());
    let forged = braidcast_sctp::wire::chunk::NrSack {
        sack: braidcast_sctp::wire::chunk::Sack {
            cumulative_tsn: tsn,
            a_rwnd: 1 << 20,
            flags: 0,
            gaps: braidcast_sctp::wire::Entries::EMPTY,
            duplicates: braidcast_sctp::wire::Entries::EMPTY,
        },
        kept: braidcast_sctp::wire::Entries::EMPTY,
    };
    let bytes = packet(tag(&sack), &[braidcast_sctp::wire::Chunk::NrSack(forged)]);
    pair.inject_client(0, SERVER[0], &bytes);
    assert_eq!(pair.on_client(|association, _| association.buffered()), 1000);
}

#[test]
fn nr_sack_with_loss_partial_reliability_and_long_messages() {
    for interleaving in [true, false] {
        let options = Options::prompt().with(|it| {
            it.papers.nr_sack = true;
            it.interleaving = interleaving;
            it.papers.buffer_split = BufferSplit::Both;
        });
        let lossy = || Duplex::both(LinkModel { loss: "5%".parse().unwrap(), ..link(10, 15) });
        let mut pair = Pair::connected(&options, vec![lossy(), lossy()]);
        transfer(&mut pair, 1_000_000, 50_000);
        for n in 0..400_u64 {
            let how = on((n % 3) as u16, Reliability::Lifetime(ms(60)));
            pair.client_send(&pattern(3000, n), SendOptions { unordered: n % 2 == 0, ..how });
            pair.run(ms(3));
            for (_, message) in pair.server_recv() {
                assert_eq!(message.len(), 3000);
            }
        }
        pair.until(ms(10_000), "all is settled", |pair| pair.on_client(|association, _| association.buffered()) == 0);
        pair.server_recv();
        transfer(&mut pair, 200_000, 1000);
    }
}

#[test]
fn waiting_for_a_gap_is_measured() {
    let options = Options::default().with(|it| {
        it.limits.receive_buffer = 20_000;
        it.limits.max_message = 10_000;
    });
    let mut pair = Pair::connected(&options, vec![Duplex::both(link(10, 15))]);
    pair.cut(0, true);
    pair.client_send(&[1; 1000], SendOptions::default());
    pair.run(ms(5));
    pair.cut(0, false);
    pair.client_send(&[2; 1000], SendOptions::default());
    pair.client_send(&[3; 1000], on(1, Reliability::Reliable));
    pair.run(ms(3000));
    let BlockingReport { ordering, assembling, window_shut, .. } =
        pair.on_server(|association, _| association.blocking());
    assert_eq!((ordering.count, assembling.count), (3, 3));
    assert_eq!(assembling.longest, Duration::ZERO, "all three are of one chunk");
    // The second waited for the repeat of the first; the third, on its own stream, for nothing.
    assert!(ordering.longest > ms(20) && ordering.total == ordering.longest, "{ordering:?}");
    assert_eq!(ordering.mean(), ordering.total / 3);
    assert_eq!(window_shut.count, 0);
    // Nobody reads for a second: the window shuts, and the sender holds back.
    assert_eq!(pair.server_recv().len(), 3);
    for n in 0..40 {
        pair.client_send(&pattern(1000, n), SendOptions::default());
    }
    pair.run(ms(1000));
    pair.until(ms(10_000), "the rest", |pair| {
        pair.server_recv();
        pair.on_client(|association, _| association.buffered()) == 0
    });
    let shut = pair.on_server(|association, _| association.blocking()).window_shut;
    let held = pair.on_client(|association, _| association.blocking()).held_by_peer;
    for (what, waits) in [("shut", shut), ("held", held)] {
        assert!((ms(900)..ms(1100)).contains(&waits.total), "{what}: {waits:?}");
    }
}

#[test]
fn sack_policies_by_name() {
    // Packets of data for each SACK, without and with packets that come in turns over paths of different delay.
    let per_sack = |policy: SackPolicy, delays: &[u64]| {
        let options = Options::default().with(|it| {
            it.sack = policy.into();
            it.paths.scheduler = SchedulerKind::RoundRobin;
        });
        let mut pair = Pair::connected(&options, delays.iter().map(|&delay| Duplex::both(link(10, delay))).collect());
        let recording = pair.record();
        transfer(&mut pair, 500_000, 1400);
        recording.count(&CLIENT, kind::I_DATA) as f64 / recording.count(&SERVER, kind::SACK) as f64
    };
    let rows: Vec<_> = SackPolicy::ALL
        .iter()
        .map(|&(name, policy)| {
            assert_eq!((name.parse(), policy.to_string().as_str()), (Ok(policy), name));
            [per_sack(policy, &[15]), per_sack(policy, &[15, 40])].map(|ratio| (ratio * 2.0).round() / 2.0)
        })
        .collect();
    assert_eq!(rows, [[1.0, 1.0], [2.0, 1.0], [2.0, 2.0]], "every packet, delayed, DAC");
}
