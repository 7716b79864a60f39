//! Multihoming with one path in use at a time (RFC 9260 §6.4, §8.2): what goes over the alternate path, and when.

use crate::common::{Pair, link, ms, pattern, route, transfer};
use braidcast_sctp::{Event, Options, PathState, RetransmissionPolicy, SendOptions};
use braidcast_sim::Duplex;
use core::time::Duration;

fn options(path_max_retrans: u32, retransmission: RetransmissionPolicy) -> Options {
    let heartbeat_interval = ms(5000);
    Options::classic().with(|it| {
        it.paths.concurrent = false;
        it.paths.path_max_retrans = path_max_retrans;
        it.papers.retransmission = retransmission;
        it.paths.heartbeat_interval = heartbeat_interval;
    })
}

fn pair(options: &Options) -> Pair {
    Pair::connected(options, vec![Duplex::both(link(10, 15)), Duplex::both(link(10, 25))])
}

/// New chunks and chunks sent again, over each path.
fn counts(pair: &mut Pair) -> [(u64, u64); 2] {
    [0, 1].map(|i| {
        let path = pair.client_path(i).unwrap();
        (path.sent_chunks - path.retransmitted_chunks, path.retransmitted_chunks)
    })
}

#[test]
fn new_data_takes_the_primary_path_alone() {
    let mut pair = pair(&options(5, RetransmissionPolicy::RtxSame));
    transfer(&mut pair, 500_000, 1000);
    let [primary, alternate] = counts(&mut pair);
    assert!(primary.0 >= 500 && primary.1 == 0 && alternate == (0, 0), "{primary:?} {alternate:?}");
    assert!(pair.on_client(|it, _| it.set_primary(route(1))));
    assert!(!pair.on_client(|it, _| it.set_primary(route(2))));
    transfer(&mut pair, 500_000, 1000);
    let after = counts(&mut pair);
    assert!(after[0] == primary && after[1].0 >= 500, "{after:?}");
}

/// Has the server send, and says how much of that went over each path.
fn server_sends(pair: &mut Pair) -> [u64; 2] {
    let sent = |pair: &mut Pair| {
        pair.on_server(|it, _| {
            [0, 1].map(|i| it.paths().find(|path| path.id.0 == i).map_or(0, |path| path.sent_chunks))
        })
    };
    let before = sent(pair);
    for n in 0..50 {
        pair.on_server(|it, now| it.send(now, &pattern(1000, n), SendOptions::default())).unwrap();
        pair.run(ms(20));
        assert!(pair.client_recv().len() <= 2);
    }
    let after = sent(pair);
    [0, 1].map(|i| after[i] - before[i])
}

/// RFC 5061 §4.2.4.
#[test]
fn the_peer_sends_over_the_path_that_it_is_asked_to() {
    let mut pair = pair(&options(5, RetransmissionPolicy::RtxSame));
    assert_eq!(server_sends(&mut pair), [50, 0]);
    assert!(pair.on_client(|it, now| it.ask_primary(now, route(1))));
    pair.run(ms(200));
    assert_eq!(server_sends(&mut pair), [0, 50]);
    assert_eq!(counts(&mut pair), [(0, 0); 2], "our own choice is another matter");
    // A wish for a path that does not work waits until it does; the path that works stays in use.
    pair.cut(0, true);
    trickle(&mut pair, 70);
    assert!(pair.on_client(|it, now| it.ask_primary(now, route(0))));
    pair.run(ms(2000));
    assert_eq!(server_sends(&mut pair), [0, 50]);
    pair.cut(0, false);
    pair.until(ms(130_000), "the path's return", |pair| {
        let active = |it: &mut braidcast_sctp::Association| it.paths().all(|path| path.state == PathState::Active);
        pair.on_client(|it, _| active(it)) && pair.on_server(|it, _| active(it))
    });
    pair.run(ms(8000));
    assert_eq!(server_sends(&mut pair), [50, 0]);
}

/// Sends a message of 1000 bytes every 20 ms for `seconds`, and returns how many arrived.
fn trickle(pair: &mut Pair, seconds: u64) -> usize {
    let mut received = 0;
    for n in 0..seconds * 50 {
        let _ = pair.on_client(|it, now| it.send(now, &pattern(1000, n), SendOptions::default()));
        pair.run(ms(20));
        received += pair.server_recv().len();
    }
    received
}

#[test]
fn the_primary_fails_after_so_many_timeouts_and_is_taken_again_when_it_answers() {
    for limit in 0..=5 {
        let mut pair = pair(&options(limit, RetransmissionPolicy::RtxSame));
        trickle(&mut pair, 1);
        let primary = pair.client_path(0).unwrap().id;
        pair.cut(0, true);
        let cut = pair.now();
        while !pair.client_events.contains(&Event::PathDown(primary, route(0))) {
            assert!(pair.now() - cut < ms(90_000), "PMR {limit}");
            assert_eq!(counts(&mut pair)[1], (0, 0), "PMR {limit}: the alternate path waits");
            trickle(&mut pair, 1);
        }
        // RTO is 1 s and doubles: 1, 3, 7, 15, 31, 63 s.
        let noticed = (pair.now() - cut).as_secs_f64();
        let expected = f64::from((1_u32 << (limit + 1)) - 1);
        assert!(noticed >= expected && noticed <= expected + 1.1, "PMR {limit}: {noticed} s, not {expected}");
        assert_eq!(pair.client_path(0).unwrap().state, PathState::Inactive, "PMR {limit}");
        trickle(&mut pair, 3);
        let before = counts(&mut pair);
        assert!(before[1].0 > 100 && before[1].1 > 0, "PMR {limit}: new data and the rest of the old: {before:?}");
        pair.cut(0, false);
        pair.client_events.clear();
        pair.until(ms(130_000), "the primary's return", |pair| {
            pair.client_events.contains(&Event::PathUp(primary, route(0)))
        });
        let before = counts(&mut pair);
        assert!(trickle(&mut pair, 2) > 50);
        let after = counts(&mut pair);
        assert_eq!(after[1].0, before[1].0, "PMR {limit}: new data goes over the primary again");
        assert!(after[0].0 > before[0].0 + 90, "PMR {limit}");
    }
}

#[test]
fn quick_failover_leaves_a_path_at_the_first_timeout_whatever_its_limit() {
    for (quick_failover, expected) in [(Some(0), 1.0), (Some(1), 3.0), (None, 31.0)] {
        let mut pair =
            pair(&options(4, RetransmissionPolicy::RtxSame).with(|it| it.paths.quick_failover = quick_failover));
        trickle(&mut pair, 1);
        pair.cut(0, true);
        let cut = pair.now();
        pair.until(ms(40_000), "the failover", |pair| {
            let _ = trickle_once(pair);
            counts(pair)[1].0 > 0
        });
        let after = (pair.now() - cut).as_secs_f64();
        assert!(after >= expected && after <= expected + 0.2, "{quick_failover:?}: {after} s");
    }
}

/// RFC 7829 §5: data stays where it is when the old primary path answers again, and goes back when this one fails.
#[test]
fn a_path_that_did_not_answer_is_asked_often_and_back_at_once() {
    let options = Options::live();
    let back_after = |silent_interval| {
        let mut pair = pair(&options.clone().with(|it| it.paths.silent_interval = silent_interval));
        trickle(&mut pair, 2);
        let mut waited = Duration::ZERO;
        for n in 0..20 {
            pair.cut(0, true);
            trickle(&mut pair, 1);
            pair.run(ms(30 * n));
            pair.cut(0, false);
            let (back, before) = (pair.now(), counts(&mut pair)[0].0);
            while counts(&mut pair)[0].0 == before {
                assert!(pair.now() - back < ms(5000));
                let _ = pair.on_client(|it, now| it.send(now, &[0; 1000], SendOptions::default()));
                pair.run(ms(5));
                pair.server_recv();
            }
            waited += pair.now() - back;
            trickle(&mut pair, 1);
        }
        waited / 20
    };
    let (often, seldom) = (back_after(options.paths.silent_interval), back_after(None));
    assert!(often < ms(120) && seldom > ms(200), "{often:?}, and each half second {seldom:?}");
}

#[test]
fn after_a_switchover_nothing_goes_back_to_the_old_primary_path() {
    for switchover in [None, Some(0), Some(2)] {
        let options = options(4, RetransmissionPolicy::RtxSame).with(|it| {
            it.paths.quick_failover = Some(0);
            it.paths.switchover = switchover;
        });
        let mut pair = pair(&options);
        trickle(&mut pair, 1);
        let [old, new] = [0, 1].map(|i| pair.client_path(i).unwrap().id);
        pair.cut(0, true);
        trickle(&mut pair, 10);
        let selected = |pair: &Pair, i: usize| {
            let path = if i == 0 { old } else { new };
            pair.client_events.contains(&Event::PathSelected(path, route(i)))
        };
        assert_eq!(selected(&pair, 1), switchover.is_some(), "{switchover:?}");
        pair.cut(0, false);
        pair.client_events.clear();
        pair.until(ms(130_000), "the old one's return", |pair| {
            pair.client_events.contains(&Event::PathUp(old, route(0)))
        });
        let before = counts(&mut pair);
        trickle(&mut pair, 2);
        let after = counts(&mut pair);
        let used = usize::from(switchover.is_some());
        assert!(after[used].0 > before[used].0 + 90, "{switchover:?}: {before:?} {after:?}");
        assert_eq!(after[1 - used].0, before[1 - used].0, "{switchover:?}");
        if switchover.is_some() {
            pair.cut(1, true);
            trickle(&mut pair, 10);
            assert!(selected(&pair, 0), "{switchover:?}: {:?}", pair.client_events);
        }
    }
}

#[test]
fn a_switchover_before_the_path_is_avoided_is_refused() {
    let options = |quick_failover, switchover| {
        Options::classic().with(|it| {
            it.paths.path_max_retrans = 5;
            (it.paths.quick_failover, it.paths.switchover) = (quick_failover, Some(switchover));
        })
    };
    for (quick_failover, least) in [(None, 5), (Some(3), 3), (Some(9), 5)] {
        assert_eq!(options(quick_failover, least).check(), Ok(()));
        let refused = options(quick_failover, least - 1).check().unwrap_err();
        assert_eq!(refused.option(), "paths.switchover", "{refused}");
    }
}

fn trickle_once(pair: &mut Pair) -> bool {
    pair.on_client(|it, now| it.send(now, &pattern(1000, 1), SendOptions::default())).is_ok()
}

#[test]
fn after_a_timeout_the_policy_says_which_path_and_new_data_stays() {
    // One outage of half a second: one timeout, too few for the path to fail.
    let table = [
        (RetransmissionPolicy::RtxSame, [true, false]),
        (RetransmissionPolicy::AllRtxAlt, [false, true]),
        (RetransmissionPolicy::FrSameRtoAlt, [false, true]),
    ];
    for (policy, expected) in table {
        let mut pair = pair(&options(5, policy));
        trickle(&mut pair, 1);
        pair.cut(0, true);
        trickle_once(&mut pair);
        pair.run(ms(500));
        pair.cut(0, false);
        pair.run(ms(2000));
        let path = pair.client_path(0).unwrap();
        assert_eq!((path.t3_expiries, path.state), (1, PathState::Active), "{policy}");
        assert_eq!(counts(&mut pair).map(|(_, again)| again > 0), expected, "{policy}");
        trickle(&mut pair, 1);
        assert_eq!(counts(&mut pair)[1].0, 0, "{policy}: new data stays on the primary path");
    }
}

/// The SACKs for the last packets that came over the primary path are lost with it. That they did come is told over the
/// alternate path, after the timeout; it is no reason to believe in the primary again.
#[test]
fn what_arrived_before_the_cut_does_not_bring_the_primary_back() {
    for limit in [0, 2] {
        let send_buffer = 500_000;
        let mut pair =
            pair(&options(limit, RetransmissionPolicy::RtxSame).with(|it| it.limits.send_buffer = send_buffer));
        let bulk = |pair: &mut Pair, time| {
            let (end, mut received) = (pair.now() + time, 0);
            while pair.now() < end {
                while pair.on_client(|it, now| it.send(now, &pattern(1452, 1), SendOptions::default())).is_ok() {}
                pair.run(ms(10));
                received += pair.server_recv().len();
            }
            received
        };
        bulk(&mut pair, ms(2000));
        pair.cut(0, true);
        bulk(&mut pair, ms(100));
        let timeouts = ms(1000 * ((1 << (limit + 1)) - 1));
        assert_eq!(bulk(&mut pair, timeouts - ms(200)), 0, "PMR {limit}: nothing before the last timeout");
        assert!(bulk(&mut pair, ms(1000)) > 20, "PMR {limit}: data flows after it");
        let downs = pair.client_events.iter().filter(|event| matches!(event, Event::PathDown(..))).count();
        assert_eq!(downs, 1, "PMR {limit}: and does not go back");
    }
}
