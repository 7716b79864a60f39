//! dcSCTP, the stack of WebRTC, on the simulator.

use crate::interop_support::{Dcsctp, Either, Link, Ours, Told, messages, options};
use braidcast_core::Instant;
use braidcast_sctp::Reliability;
use core::time::Duration;

/// An association between the two that is up. `we_connect`: the handshake is ours to begin.
fn up(we_connect: bool, interleaving: bool, loss: &str) -> Link<Dcsctp> {
    let options = options().with(|it| it.interleaving = interleaving);
    let (ours, theirs) = if we_connect {
        (Ours::connecting(Instant::ZERO, &options, 1), Dcsctp::waiting(interleaving))
    } else {
        (Ours::listening(&options, 1), Dcsctp::connecting(Instant::ZERO, interleaving))
    };
    let mut link = Link::new(ours, theirs, loss);
    link.connected();
    braidcast_testing::peers::met("dcsctp");
    assert_eq!(link.ours().interleaves(), interleaving);
    link
}

const WAYS: [(bool, bool); 4] = [(true, true), (true, false), (false, true), (false, false)];

#[test]
fn messages_go_both_ways_in_order_and_out_of_it() {
    for (we_connect, interleaving) in WAYS {
        let mut link = up(we_connect, interleaving, "none");
        for from in [0, 1] {
            link.carry(from, &messages(500, 1200, 5), false);
            link.carry(from, &messages(500, 100, 3), true);
        }
        link.shut_down(usize::from(we_connect));
    }
}

#[test]
fn long_messages_survive_five_percent_loss() {
    for (we_connect, interleaving) in WAYS {
        let mut link = up(we_connect, interleaving, "5%");
        for from in [0, 1] {
            link.carry(from, &messages(20, 100_000, 4), false);
            link.carry(from, &messages(20, 30_000, 4), true);
        }
    }
}

#[test]
fn one_that_does_not_interleave_gets_plain_data() {
    for (ours, theirs) in [(true, false), (false, true)] {
        let options = options().with(|it| it.interleaving = ours);
        let mut link = Link::new(Ours::connecting(Instant::ZERO, &options, 1), Dcsctp::waiting(theirs), "none");
        link.connected();
        assert!(!link.ours().interleaves());
        link.carry(0, &messages(50, 5000, 2), false);
        link.carry(1, &messages(50, 5000, 2), false);
    }
}

#[test]
fn what_is_too_late_or_repeated_too_often_is_skipped() {
    for (_, interleaving) in WAYS {
        for reliability in [Reliability::Lifetime(Duration::from_millis(25)), Reliability::Retransmissions(0)] {
            for from in [0, 1] {
                let mut link = up(from == 0, interleaving, "10%");
                let came = link.carry_some(from, 200, reliability);
                // Theirs halts for 400 ms and more whenever a packet's last repeat is lost.
                let least = if from == 0 { 50 } else { 1 };
                assert!((least..200).contains(&came), "{came} of 200 came from {from} with {reliability:?}");
                if from == 0 {
                    assert!(link.ours().abandoned > 0);
                }
            }
        }
    }
}

#[test]
fn they_go_on_after_we_restart() {
    for interleaving in [true, false] {
        let mut link = up(true, interleaving, "none");
        link.carry(0, &messages(20, 1000, 2), false);
        let options = options().with(|it| it.interleaving = interleaving);
        link.with(0, |end, now| *end = Either::Ours(Ours::connecting(now, &options, 2)));
        link.until(10, "restart", |link| link.told[1].contains(&Told::Restarted));
        link.carry(0, &messages(20, 1000, 2), false);
        link.carry(1, &messages(20, 1000, 2), false);
        link.shut_down(0);
    }
}

#[test]
fn we_go_on_after_they_restart() {
    for interleaving in [true, false] {
        let mut link = up(false, interleaving, "none");
        link.carry(1, &messages(20, 1000, 2), false);
        link.with(1, |end, now| *end = Either::Theirs(Dcsctp::connecting(now, interleaving)));
        link.until(10, "restart", |link| link.told[0].contains(&Told::Restarted));
        link.carry(1, &messages(20, 1000, 2), false);
        link.carry(0, &messages(20, 1000, 2), false);
        link.shut_down(1);
    }
}
