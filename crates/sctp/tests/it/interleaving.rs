//! A long message holds up nobody (RFC 8260); what is more important goes first, and equals take turns.

use crate::common::{CLIENT, Pair, Recording, link, ms, on, pattern};
use braidcast_core::Instant;
use braidcast_sctp::wire::{Chunk, Packet};
use braidcast_sctp::{Options, Priority, Reliability};
use braidcast_sim::Duplex;
use core::time::Duration;

fn options(interleaving: bool) -> Options {
    Options::live().with(|it| it.interleaving = interleaving)
}

/// Returns the longest delay of small messages of a more important stream, while messages of 60 kB go
/// over the same slow link. The first two seconds, in which the window overshoots and the link's
/// queue fills, do not count.
fn worst_delay(interleaving: bool) -> Duration {
    let mut pair = Pair::connected(&options(interleaving), vec![Duplex::both(link(2, 20))]);
    pair.on_client(|association, _| {
        association.set_priority(0, Priority::new(0));
        association.set_priority(1, Priority::new(1));
    });
    let (mut sent, mut received) = (Vec::<Instant>::new(), 0);
    let mut worst = Duration::ZERO;
    for step in 0..7000 {
        let sending = step < 6000;
        if sending && pair.on_client(|association, _| association.waiting()) < 60_000 {
            pair.client_send(&pattern(60_000, step), on(1, Reliability::Reliable));
        }
        if sending && step % 20 == 0 {
            pair.client_send(&pattern(200, step), on(0, Reliability::Reliable));
            sent.push(pair.now());
        }
        pair.run(ms(1));
        for (info, _) in pair.server_recv() {
            if info.stream == 0 {
                if received >= 100 {
                    worst = worst.max(pair.now() - sent[received]);
                }
                received += 1;
            }
        }
    }
    assert_eq!(received, sent.len());
    worst
}

#[test]
fn a_long_message_does_not_hold_up_small_ones_with_i_data_and_does_with_data() {
    let (with, without) = (worst_delay(true), worst_delay(false));
    // 60 kB take 240 ms on this link. What stands in its queue is what the window let out.
    assert!(with < ms(150), "{with:?} with I-DATA, {without:?} with DATA");
    assert!(without > ms(200), "{with:?} with I-DATA, {without:?} with DATA");
}

#[test]
fn what_waits_leaves_in_the_order_of_its_priority() {
    for interleaving in [true, false] {
        let mut pair = Pair::new(&options(interleaving), vec![Duplex::both(link(10, 15))]);
        // Nothing can leave before the handshake is done.
        for stream in 0..16_u16 {
            let priority = Priority::new((stream * 5 % 8) as u8);
            pair.on_client(|association, _| association.set_priority(stream, priority));
            pair.client_send(&pattern(3000, u64::from(stream)), on(stream, Reliability::Reliable));
        }
        pair.run(ms(1000));
        let order: Vec<_> = pair.server_recv().iter().map(|(info, _)| info.stream * 5 % 8).collect();
        assert_eq!(order, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7], "interleaving: {interleaving}");
    }
}

#[test]
fn a_priority_that_changes_counts_for_what_waits() {
    let mut pair = Pair::new(&options(true), vec![Duplex::both(link(10, 15))]);
    for stream in 0..3 {
        pair.client_send(&pattern(3000, u64::from(stream)), on(stream, Reliability::Reliable));
    }
    pair.on_client(|association, _| association.set_priority(2, Priority::new(0)));
    pair.run(ms(1000));
    let order: Vec<_> = pair.server_recv().iter().map(|(info, _)| info.stream).collect();
    assert_eq!((order[0], order.len()), (2, 3));
}

/// The streams of the data chunks that the client sent, in order.
fn streams(recording: &Recording) -> Vec<u16> {
    let mut streams = Vec::new();
    for seen in recording.sent(&CLIENT) {
        for raw in Packet::parse(&seen.bytes).unwrap().chunks().flatten() {
            match Chunk::parse(raw) {
                Ok(Chunk::IData(chunk)) => streams.push(chunk.stream),
                Ok(Chunk::Data(chunk)) => streams.push(chunk.stream),
                _ => {}
            }
        }
    }
    streams
}

#[test]
fn streams_of_one_priority_take_turns_by_chunk_or_by_message() {
    for interleaving in [true, false] {
        let mut pair = Pair::new(&options(interleaving), vec![Duplex::both(link(10, 15))]);
        let recording = pair.record();
        for stream in 0..4_u16 {
            for n in 0..2 {
                pair.client_send(&pattern(10_000, n), on(stream, Reliability::Reliable));
            }
        }
        pair.run(ms(2000));
        assert_eq!(pair.server_recv().len(), 8);
        let streams = streams(&recording);
        let turns = streams.chunk_by(|a, b| a == b).map(|run| run[0]).collect::<Vec<_>>();
        if interleaving {
            // Until the first stream runs dry each turn is one chunk.
            let fair = streams.len() - 8;
            assert!(streams[..fair].chunks(4).all(|round| round == [0, 1, 2, 3]), "{streams:?}");
        } else {
            assert_eq!(turns, [0, 1, 2, 3, 0, 1, 2, 3]);
        }
    }
}
