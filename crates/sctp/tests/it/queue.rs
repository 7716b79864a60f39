//! Messages that wait in a queue of the application's choice until a path has room.

use crate::common::{Pair, link, ms, pattern};
use braidcast_core::Instant;
use braidcast_sctp::{
    Event, Limits, MessagePriority, Method, Options, Priority, QueueScope, Reliability, SendError, SendOptions, Why,
};
use braidcast_sim::Duplex;
use braidcast_sim::link::LinkModel;
use core::time::Duration;

/// A link of `kbit` kbit/s and `delay_ms`.
fn model(kbit: u64, delay_ms: u64) -> LinkModel {
    LinkModel { rate: format!("{kbit}kbit").parse().unwrap(), ..link(1, delay_ms) }
}

/// The same in each direction.
fn thin(kbit: u64, delay_ms: u64) -> Duplex {
    Duplex::both(model(kbit, delay_ms))
}

/// With a queue of 20 packets.
fn short(kbit: u64, delay_ms: u64) -> Duplex {
    Duplex::both(LinkModel { queue: "20p".parse().unwrap(), ..model(kbit, delay_ms) })
}

fn options(method: Method, messages: usize) -> Options {
    Options::live().with(|it| {
        it.queue.method = Some(method);
        it.queue.limits = Limits::messages(messages);
    })
}

fn priority(level: u8) -> MessagePriority {
    MessagePriority::new(level).unwrap()
}

/// An unordered message of this priority that is worth something for `life` ms.
fn message(level: u8, life: u64) -> SendOptions {
    let reliability = Reliability::Lifetime(ms(life));
    SendOptions { unordered: true, reliability, priority: priority(level), ..SendOptions::default() }
}

/// What was discarded by the queue, and why, by context.
fn discarded(pair: &Pair) -> Vec<(u64, Why)> {
    let told = pair.client_events.iter().filter_map(|event| match event {
        Event::Abandoned { context, why: Some(why), .. } => Some((*context, *why)),
        _ => None,
    });
    told.collect()
}

/// The numbers of what came, in that order; a message is filled with its number.
fn numbers(pair: &mut Pair) -> Vec<u8> {
    pair.server_recv().into_iter().map(|(_, bytes)| bytes[0]).collect()
}

/// Messages of one kind: how many were sent, came, and came in time.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Kind {
    sent: u32,
    came: u32,
    on_time: u32,
}

impl Kind {
    fn share_on_time(self) -> f64 {
        f64::from(self.on_time) / f64::from(self.sent)
    }
}

/// A call of 20 s over two unlike paths that carry two thirds of it: audio of 214 bytes each 20 ms,
/// and 2 Mbit/s of video.
fn call(options: &Options) -> (Pair, [Kind; 2]) {
    let mut pair = Pair::connected(options, vec![short(1000, 20), short(500, 90)]);
    let (mut kinds, begin) = ([Kind::default(); 2], pair.now());
    let deadlines = [ms(200), ms(400)];
    for tick in 0..1000_u64 {
        let video = if tick % 2 == 0 { 10 } else { 0 };
        for n in 0..=video {
            let kind = usize::from(n > 0);
            let mut bytes = vec![kind as u8; [214, 1000][kind]];
            bytes[1..9].copy_from_slice(&pair.now().as_nanos().to_be_bytes());
            let how = message(kind as u8, deadlines[kind].as_millis() as u64);
            kinds[kind].sent += 1;
            // What is refused is lost, as in any live application.
            let _ = pair.on_client(|it, now| it.send(now, &bytes, how));
        }
        let next = begin + ms(20) * (tick as u32 + 1);
        while pair.now() < next {
            pair.run(ms(1));
            for (_, bytes) in pair.server_recv() {
                let kind = usize::from(bytes[0]);
                let sent = Instant::from_nanos(u64::from_be_bytes(bytes[1..9].try_into().unwrap()));
                kinds[kind].came += 1;
                kinds[kind].on_time += u32::from(pair.now() - sent <= deadlines[kind]);
            }
        }
    }
    (pair, kinds)
}

#[test]
fn sound_is_on_time_where_the_queue_knows_what_it_is() {
    let shares = |options: &Options| {
        let (mut pair, kinds) = call(options);
        let shares = kinds.map(Kind::share_on_time);
        println!("{:?}: audio {:.3}, video {:.3} on time", options.queue.method, shares[0], shares[1]);
        let stats = pair.on_client(|it, _| it.stats());
        assert_eq!(discarded(&pair).len() as u64, stats.expired + stats.crowded_out);
        shares
    };
    let fifo = shares(&options(Method::Fifo, 64));
    assert!(fifo[0] < 0.1, "waits behind the video");
    assert!(shares(&Options::live())[0] < 0.1, "so it does in streams that rank alike");
    for method in [Method::Sbpn1, Method::Sbpn2, Method::Ring, Method::RingSbpn2] {
        let [audio, video] = shares(&options(method, 64));
        // A full queue that discards nothing refuses audio as well.
        let whole = if matches!(method, Method::Ring | Method::RingSbpn2) { 0.93 } else { 0.85 };
        assert!(audio > whole && video > fifo[1], "{method}: {audio} {video}");
    }
}

#[test]
fn what_only_the_quick_path_brings_in_time_waits_for_it() {
    let run = |method, outage: bool| {
        let options = options(method, 100).with(|it| it.congestion.initial_window = Some(4));
        let mut pair = Pair::connected(&options, vec![thin(400, 20), thin(5000, 250)]);
        if outage {
            pair.cut(0, true);
            pair.run(ms(1500));
        }
        let before = pair.client_path(1).unwrap().sent_chunks;
        // Twenty at once, of 500 bytes: the last leaves after 200 ms over the quick path alone.
        for n in 0..20 {
            pair.client_send(&[n; 500], SendOptions { context: n.into(), ..message(0, 240) });
        }
        let sent = pair.now();
        let mut on_time = 0;
        while pair.now() < sent + ms(1000) {
            pair.run(ms(1));
            let came = pair.server_recv().len();
            on_time += if pair.now() <= sent + ms(240) { came } else { 0 };
        }
        (on_time, discarded(&pair), pair.client_path(1).unwrap().sent_chunks - before)
    };
    // The slow path has room at once, and would bring each message at 250 ms at the soonest.
    let (on_time, gone, slow) = run(Method::Sbpn1, false);
    assert!(on_time >= 17 && slow == 0, "{on_time} on time, {slow} over the slow path");
    assert!(gone.iter().all(|&(_, why)| why == Why::Expired));
    // A queue that knows no expiry takes the room that there is.
    let (on_time, gone, slow) = run(Method::Ring, false);
    assert!(on_time < 15 && gone.is_empty() && slow > 5, "{on_time} on time, {slow} over the slow path");
    // The slow path alone brings nothing in time: all is discarded when it would carry it. SBPN2
    // lets the last of a queue go in any case, which each message is until the window is full.
    let (on_time, gone, slow) = run(Method::Sbpn1, true);
    assert_eq!((on_time, gone.len(), slow), (0, 20, 0));
    let (on_time, gone, slow) = run(Method::Sbpn2, true);
    assert!(on_time == 0 && slow > 1 && gone.len() as u64 + slow == 20, "{on_time} on time, {slow} over the slow path");
}

#[test]
fn the_choice_is_made_when_a_path_has_room() {
    let mut pair = Pair::connected(&options(Method::Ring, 100), vec![thin(500, 20)]);
    for n in 0..60 {
        pair.client_send(&[n; 1000], message(3, 5000));
    }
    pair.run(ms(5));
    // What waits is overtaken by what matters more and came later.
    pair.client_send(&[99; 100], message(0, 5000));
    pair.run(ms(2000));
    let came = numbers(&mut pair);
    let place = came.iter().position(|&n| n == 99).unwrap();
    assert!(came.len() == 61 && place < 25, "at place {place} of {}", came.len());
}

#[test]
fn stream_priorities_come_first_or_not_at_all() {
    for (scope, expected) in
        [(QueueScope::Under, [7, 5, 3, 1, 8, 6, 4, 2]), (QueueScope::Alone, [8, 6, 4, 2, 7, 5, 3, 1])]
    {
        let options = options(Method::LifoPriority, 100).with(|it| it.queue.scope = scope);
        let mut pair = Pair::connected(&options, vec![thin(200, 20)]);
        pair.on_client(|it, _| it.set_priority(1, Priority::new(0)));
        // The window is full of something else.
        pair.client_send(&pattern(40_000, 1), SendOptions { stream: 2, ..message(7, 9000) });
        pair.on_client(|it, _| it.set_priority(2, Priority::new(0)));
        pair.run(ms(1));
        // The important stream has what its application finds less important.
        for n in 1..=8 {
            let (stream, level) = if n % 2 == 1 { (1, 2) } else { (3, 1) };
            pair.client_send(&[n; 300], SendOptions { stream, ..message(level, 9000) });
        }
        pair.run(ms(5000));
        let order: Vec<u8> = pair.server_recv().iter().filter(|(_, b)| b.len() == 300).map(|(_, b)| b[0]).collect();
        assert_eq!(order, expected, "{scope}: the newest first, after the priority");
    }
}

#[test]
fn a_message_under_way_is_overtaken_only_where_chunks_interleave() {
    for interleaving in [true, false] {
        let options = options(Method::RingSbpn2, 100).with(|it| it.interleaving = interleaving);
        let mut pair = Pair::connected(&options, vec![thin(400, 20)]);
        pair.client_send(&pattern(60_000, 1), SendOptions { stream: 1, ..message(1, 9000) });
        pair.run(ms(100));
        pair.client_send(&[1; 200], message(0, 9000));
        pair.run(ms(6000));
        let lengths: Vec<usize> = pair.server_recv().iter().map(|(_, bytes)| bytes.len()).collect();
        let expected = if interleaving { [200, 60_000] } else { [60_000, 200] };
        assert_eq!(lengths, expected, "I-DATA {interleaving}");
    }
}

#[test]
fn an_ordered_stream_is_in_the_order_in_which_the_queue_was_left_and_has_no_holes() {
    let mut pair = Pair::connected(&options(Method::Lifo, 100), vec![thin(300, 20)]);
    let ordered = |life| SendOptions { unordered: false, ..message(0, life) };
    // Enough to fill the window, then ten that wait, two of which expire meanwhile.
    pair.client_send(&pattern(30_000, 1), ordered(9000));
    pair.run(ms(1));
    for n in 1..=10 {
        let life = if n == 4 || n == 7 { 100 } else { 9000 };
        pair.client_send(&[n; 300], SendOptions { context: n.into(), ..ordered(life) });
    }
    pair.run(ms(4000));
    let came: Vec<u8> = numbers(&mut pair)[1..].to_vec();
    assert_eq!(came, [10, 9, 8, 6, 5, 3, 2, 1]);
    assert_eq!(discarded(&pair), [(7, Why::Expired), (4, Why::Expired)]);
    assert_eq!(pair.on_client(|it, _| it.buffered()), 0);
}

#[test]
fn every_message_comes_or_is_told_of_once() {
    let (messages, kinds) = (600_u64, [(1, 150), (0, 80), (4, 400)]);
    for (name, method) in Method::ALL {
        for scope in [QueueScope::Alone, QueueScope::Under] {
            let options = options(method, 20).with(|it| it.queue.scope = scope);
            let mut pair = Pair::connected(&options, vec![thin(400, 10), thin(200, 60)]);
            let (mut refused, mut outcomes) = (0, vec![0_u32; messages as usize]);
            for n in 0..messages {
                let (level, life) = kinds[n as usize % 3];
                let how = SendOptions { stream: level.into(), context: n, ..message(level, life) };
                let outcome = pair.on_client(|it, now| it.send(now, &[&n.to_be_bytes()[..], &[0; 492]].concat(), how));
                if let Err(error) = outcome {
                    assert!(matches!(error, SendError::QueueFull { .. }), "{error}");
                    (refused, outcomes[n as usize]) = (refused + 1, 1);
                }
                pair.run(ms(4));
            }
            pair.run(ms(3000));
            for (_, bytes) in pair.server_recv() {
                outcomes[u64::from_be_bytes(bytes[..8].try_into().unwrap()) as usize] += 1;
            }
            for event in &pair.client_events {
                // What was abandoned in flight may have come after all; that is told by SCTP, not by the queue.
                if let Event::Abandoned { context, why, .. } = event {
                    let outcome = &mut outcomes[*context as usize];
                    *outcome = if why.is_some() { *outcome + 1 } else { 1 };
                }
            }
            assert!(outcomes.iter().all(|&outcome| outcome == 1), "{name} {scope}: {outcomes:?}");
            let never_refuses = !matches!(name, "fifo" | "fifo-timed" | "sbpn1" | "sbpn2" | "lifo" | "lifo-priority");
            assert_eq!(refused > 0, !never_refuses, "{name} {scope}");
            assert_eq!(pair.on_client(|it, _| (it.buffered(), it.waiting())), (0, 0), "{name} {scope}");
        }
    }
}

#[test]
fn what_the_queue_lets_go_though_it_is_late_is_sent_and_not_repeated() {
    let run = |lost: bool| {
        let mut pair = Pair::connected(&options(Method::NeverDiscard, 100), vec![thin(300, 20)]);
        pair.cut(0, lost);
        pair.client_send(&[7; 300], SendOptions { context: 7, ..message(0, 0) });
        pair.run(ms(100));
        pair.cut(0, false);
        pair.run(ms(3000));
        let came = numbers(&mut pair).contains(&7);
        let told = pair.client_events.iter().any(|it| matches!(it, Event::Abandoned { context: 7, why: None, .. }));
        (came, told, pair.on_client(|it, _| it.buffered()))
    };
    assert_eq!(run(false), (true, false, 0));
    assert_eq!(run(true), (false, true, 0));
}

#[test]
fn what_does_not_fit_is_refused_and_room_is_told_of() {
    let mut pair = Pair::connected(&options(Method::Sbpn2, 10), vec![thin(500, 20)]);
    let mut taken = 0;
    let refused = loop {
        match pair.on_client(|it, now| it.send(now, &[1; 1000], message(0, 9000))) {
            Ok(()) => taken += 1,
            Err(error) => break error,
        }
        pair.run(ms(0));
    };
    assert_eq!(refused, SendError::QueueFull { messages: 10, bytes: 10_000 });
    assert!(taken > 10, "the window took some");
    assert_eq!(pair.on_client(|it, _| it.send_room()), 0);
    pair.client_events.clear();
    pair.run(ms(1000));
    assert!(pair.client_events.contains(&Event::Writable));

    // Half of the send buffer is for what waits.
    for (scope, limit) in [(QueueScope::Alone, 40_000), (QueueScope::Under, 5000)] {
        let options = options(Method::RingSbpn2, 1000).with(|it| {
            it.limits.send_buffer = 80_000;
            it.limits.max_message = 80_000;
            it.queue.scope = scope;
        });
        let mut pair = Pair::connected(&options, vec![thin(500, 20)]);
        let outcome = pair.on_client(|it, now| it.send(now, &vec![1; limit + 1], message(0, 9000)));
        assert_eq!(outcome, Err(SendError::TooLong { len: limit + 1, limit }), "{scope}");
        for n in 0..200 {
            pair.client_send(&pattern(limit / 5, n), SendOptions { stream: (n % 4) as u16, ..message(1, 9000) });
            pair.run(ms(3));
            assert!(pair.on_client(|it, _| it.buffered()) <= 80_000, "{scope}");
        }
        pair.run(ms(5000));
        assert_eq!(pair.server_recv().len() + discarded(&pair).len(), 200, "{scope}");
    }
}

/// What a queue shows may be late when it is to go, so that another message goes, which may be longer.
#[test]
fn the_buffer_has_room_for_whatever_the_queue_gives() {
    for (name, method) in Method::ALL {
        let options = options(method, 1000).with(|it| {
            it.limits.send_buffer = 20_000;
            it.limits.max_message = 20_000;
        });
        let mut pair = Pair::connected(&options, vec![thin(10_000, 20)]);
        pair.cut(0, true);
        for n in 0..9 {
            pair.client_send(&pattern(1000, n), message(1, 9000));
            pair.run(ms(5));
        }
        pair.on_client(|it, now| {
            it.send(now, &[1; 300], message(1, 1)).unwrap();
            it.send(now, &[1; 9000], message(1, 9000)).unwrap();
        });
        pair.run(ms(5));
        let _ = pair.on_client(|it, now| it.send(now, &[1; 10_000], message(1, 9000)));
        assert!(pair.on_client(|it, _| it.buffered()) <= 20_000, "{name}");
    }
}

#[test]
fn an_association_ends_when_the_queue_is_empty() {
    let mut pair = Pair::connected(&options(Method::RingSbpn2, 100), vec![thin(500, 20)]);
    for n in 0..50 {
        pair.client_send(&[n; 1000], message(1, 700));
    }
    pair.on_client(|it, now| it.shutdown(now));
    let begin = pair.now();
    let mut came = 0;
    while !pair.client_events.iter().any(|event| matches!(event, Event::Closed(_))) {
        assert!(pair.now() < begin + Duration::from_secs(5));
        pair.run(ms(1));
        came += pair.server_recv().len();
    }
    let gone = discarded(&pair).len();
    assert!(came >= 30 && came + gone == 50, "{came} came, {gone} were discarded");
}
