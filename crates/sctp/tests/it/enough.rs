//! New data goes over the least set of paths that carries it with ease, where a queue can tell.

use crate::common::{Pair, link, ms, pattern};
use braidcast_core::Instant;
use braidcast_sctp::{
    Algorithm, Frame, MessagePriority, Method, NeededBy, Options, QueueScope, Reliability, SchedulerKind, SendOptions,
};
use braidcast_sim::Duplex;

fn options(scheduler: SchedulerKind) -> Options {
    Options::live().with(|it| {
        it.congestion.algorithm = Algorithm::Live;
        it.queue.method = Some(Method::ByWorth);
        it.queue.scope = QueueScope::Alone;
        it.paths.scheduler = scheduler;
    })
}

/// Frames of 8 kB, 25 in a second, 1.6 Mbit/s, for `seconds` from the number `from` on. Returns how
/// many come within half a second.
fn play(pair: &mut Pair, from: u64, seconds: u64) -> usize {
    let mut on_time = 0;
    for id in from..from + 25 * seconds {
        let due: Instant = pair.now() + ms(500);
        let group = id - id % 25;
        let needs = (id > group).then(|| id - 1);
        let frame = Frame { group, needs, needed_by: NeededBy::Rest, ..Frame::alone(id, 256, 8000, Some(due)) };
        let how = SendOptions {
            unordered: true,
            stream: 1,
            reliability: Reliability::Lifetime(ms(500)),
            deadline: Some(due),
            priority: MessagePriority::new(if id == group { 1 } else { 2 }).unwrap(),
            frame: Some(frame),
            ..SendOptions::default()
        };
        pair.client_send(&pattern(8000, id), how);
        pair.run(ms(40));
        on_time += pair.server_recv().len();
    }
    pair.run(ms(450));
    on_time + pair.server_recv().len()
}

/// Chunks that went over the far path in the second half of 8 s, beside one of `mbit` that is near.
fn over_the_far_one(scheduler: SchedulerKind, mbit: u64) -> u64 {
    let mut pair = Pair::connected(&options(scheduler), vec![Duplex::both(link(mbit, 20)), Duplex::both(link(3, 180))]);
    play(&mut pair, 0, 4);
    let before = pair.client_path(1).unwrap().sent_chunks;
    play(&mut pair, 100, 4);
    pair.client_path(1).unwrap().sent_chunks - before
}

#[test]
fn a_far_path_carries_nothing_new_where_a_near_one_is_enough() {
    let spared = over_the_far_one(SchedulerKind::EarliestDelivery, 4);
    let needed = over_the_far_one(SchedulerKind::EarliestDelivery, 1);
    let by_paper = over_the_far_one(SchedulerKind::RoundRobin, 4);
    // Of some 600.
    assert!(spared < 12 && needed > 120 && by_paper > 120, "{spared} {needed} {by_paper}");
}

#[test]
fn a_path_that_was_not_needed_carries_all_when_the_other_one_is_gone() {
    let links = vec![Duplex::both(link(4, 20)), Duplex::both(link(3, 180))];
    let mut pair = Pair::connected(&options(SchedulerKind::EarliestDelivery), links);
    play(&mut pair, 0, 4);
    let (there, back) = pair.links[0];
    pair.net.set_down(there, true);
    pair.net.set_down(back, true);
    let first = play(&mut pair, 100, 2);
    let then = play(&mut pair, 150, 2);
    println!("{first} and {then} of 50 on time");
    // What was in flight breaks a group, a second of frames.
    assert!(first > 15 && then > 47, "{first} {then}");
}
