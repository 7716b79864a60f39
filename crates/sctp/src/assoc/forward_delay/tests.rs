use super::*;
use crate::assoc::testing::Pair;
use crate::wire::Entries;
use crate::wire::{Entry, chunk::StampArrival};
use crate::{Options, SchedulerKind};

/// Two paths with DAPS, whose round trips are 2 ms, and 40 or so measurements of `there` µs over
/// each; clocks are `offset` apart.
fn delays(there: [i64; 2], offset: i64, forward_delay: bool) -> [Option<Delay>; 2] {
    let options = Options::default().with(|it| {
        it.paths.scheduler = SchedulerKind::Daps;
        it.paths.forward_delay = forward_delay;
    });
    let mut pair = Pair::with(options, 2);
    for _ in 0..40 {
        pair.now += Duration::from_millis(10);
        let now = pair.now;
        let open = pair.open();
        let mut bytes = Vec::new();
        for (path, there) in there.iter().enumerate() {
            let sent = micros(now).wrapping_sub(2500);
            let arrived = (i64::from(sent) + there + offset) as u32;
            StampArrival { path: path as u16, sent, arrived, elapsed: 100 }.emit(&mut Writer::new(&mut bytes));
        }
        open.handle_timestamp_echo(now, &TimestampEcho { arrivals: Entries::new(&bytes) });
    }
    let now = pair.now;
    let mut views = Vec::new();
    pair.open().fill_views(now, &mut views);
    [views[0].forward_delay, views[1].forward_delay]
}

fn means(delays: [Option<Delay>; 2]) -> [u128; 2] {
    delays.map(|delay| delay.map_or(u128::MAX, |delay| delay.mean.as_micros()))
}

#[test]
fn differences_of_forward_delays_are_exact_whatever_the_clocks_say() {
    let halves = means(delays([0, 0], 0, false));
    for offset in [0, 5, -5, 4_000_000_000, -3_999_999_999, 1 << 40] {
        let [a, b] = means(delays([700, 1300], offset, true));
        assert_eq!(b - a, 600, "{offset}: {a} {b}");
        assert_eq!(a, halves[0], "the quickest is as round trips have it");
    }
}

#[test]
fn no_way_is_longer_than_its_round_trip() {
    for lie in (0..30_000).step_by(500) {
        let [a, b] = means(delays([100, lie], 0, true));
        assert!(a <= 4100 && b <= 4100, "{lie}: {a} {b} of a round trip of 2 ms, and what is uncertain of it");
    }
}

#[test]
fn who_lies_is_not_believed() {
    let halves = delays([0, 0], 0, false);
    // One path is said to take 20 ms there, of a round trip of 2.
    assert_eq!(delays([100, 20_000], 0, true), halves);
    assert_eq!(delays([-50_000, 100], 0, true), halves);
}

#[test]
fn nonsense_is_passed_over() {
    let options = Options::default().with(|it| {
        (it.paths.scheduler, it.paths.forward_delay) = (SchedulerKind::Daps, true);
    });
    let mut pair = Pair::with(options, 2);
    let now = pair.now;
    let sent = micros(now);
    let wrong = [(7, sent, 0), (0, sent.wrapping_add(1), 0), (0, sent.wrapping_sub(11_000_000), 0), (0, sent, 1)];
    let mut bytes = Vec::new();
    for (path, sent, elapsed) in wrong {
        StampArrival { path, sent, arrived: 5, elapsed }.emit(&mut Writer::new(&mut bytes));
    }
    pair.open().handle_timestamp_echo(now, &TimestampEcho { arrivals: Entries::new(&bytes) });
    assert!(pair.open().paths.iter().all(|path| path.one_way().delay(now).is_none()));
}
