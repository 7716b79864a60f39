//! sctp-proto, the stack of str0m, on the simulator. It knows no I-DATA.

use crate::interop_support::{Either, Link, Ours, Proto, Told, messages, options};
use braidcast_core::Instant;
use braidcast_sctp::Reliability;
use core::time::Duration;

/// An association between the two that is up. `we_connect`: the handshake is ours to begin.
fn up(we_connect: bool, loss: &str) -> Link<Proto> {
    let (ours, theirs) = if we_connect {
        (Ours::connecting(Instant::ZERO, &options(), 1), Proto::waiting(Instant::ZERO))
    } else {
        (Ours::listening(&options(), 1), Proto::connecting(Instant::ZERO))
    };
    let mut link = Link::new(ours, theirs, loss);
    link.connected();
    braidcast_testing::peers::met("sctp-proto");
    assert!(!link.ours().interleaves());
    link
}

#[test]
fn messages_go_both_ways_in_order_and_out_of_it() {
    for we_connect in [true, false] {
        let mut link = up(we_connect, "none");
        for from in [0, 1] {
            link.carry(from, &messages(500, 1200, 5), false);
            link.carry(from, &messages(500, 100, 3), true);
        }
        link.shut_down(usize::from(we_connect));
    }
}

#[test]
fn long_messages_survive_five_percent_loss() {
    for we_connect in [true, false] {
        let mut link = up(we_connect, "5%");
        for from in [0, 1] {
            link.carry(from, &messages(20, 100_000, 4), false);
            link.carry(from, &messages(20, 30_000, 4), true);
        }
    }
}

#[test]
fn what_is_too_late_or_repeated_too_often_is_skipped() {
    for reliability in [Reliability::Lifetime(Duration::from_millis(25)), Reliability::Retransmissions(0)] {
        for from in [0, 1] {
            let mut link = up(from == 0, "10%");
            let came = link.carry_some(from, 200, reliability);
            assert!((10..200).contains(&came), "{came} of 200 came from {from} with {reliability:?}");
            if from == 0 {
                assert!(link.ours().abandoned > 0);
            }
        }
    }
}

/// The reverse is not possible: an INIT makes sctp-proto 0.10.8 end an association that is up.
#[test]
fn we_go_on_after_they_restart() {
    let mut link = up(false, "none");
    link.carry(1, &messages(20, 1000, 2), false);
    link.with(1, |end, now| *end = Either::Theirs(Proto::connecting(now)));
    link.until(10, "restart", |link| link.told[0].contains(&Told::Restarted));
    // What is written before is refused, but takes a number in its stream.
    link.until(10, "handshake", |link| link.told[1].len() == 2);
    link.carry(1, &messages(20, 1000, 2), false);
    link.carry(0, &messages(20, 1000, 2), false);
    link.shut_down(0);
}
