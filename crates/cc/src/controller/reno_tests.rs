use super::*;
use crate::{Congestion, Coupled, CoupledPath, QueueingDelay, Siblings};
use core::time::Duration;

const MTU: usize = 1200;
/// Something stays in flight, so that credit does not lapse.
const PATH: Conditions<'_> = Conditions {
    now: braidcast_core::Instant::ZERO,
    mtu: MTU,
    in_flight: MTU,
    srtt: None,
    queueing: Duration::ZERO,
    base_rtt: Duration::ZERO,
    shortest_rtt: Duration::ZERO,
    loss_rate: 0.0,
    packets: 0,
    lost_packets: 0,
    redundancy: 0,
    siblings: Siblings::new(&[], 0),
};
const LOSS: Signal = Signal { bytes: MTU, new_round: true };

fn reno(standard: Standard, initial: usize) -> Reno {
    Reno::new(&Setup { initial, ..Setup::new(standard, MTU) })
}

fn sctp() -> Reno {
    Reno::new(&Setup::new(Standard::RFC_9260, MTU))
}

fn full(bytes: usize) -> Acked {
    Acked { bytes, may_grow: true, was_full: true, ack_ratio: 2, ..Acked::default() }
}

/// What SCTP lets an idle path keep (RFC 9260 §7.2.1).
fn idle(w: &mut Reno) {
    w.on_idle(&PATH, (w.window() / 2).max(4 * MTU));
}

#[test]
fn starts_with_4404_bytes_and_doubles_each_round_trip() {
    let mut w = sctp();
    assert_eq!(w.window(), 4404);
    let packets = w.window() / MTU;
    (0..packets).for_each(|_| w.on_acked(&PATH, &full(MTU)));
    assert_eq!(w.window(), 4404 + packets * MTU);
    w.on_acked(&PATH, &full(10 * MTU));
    assert_eq!(w.window(), 4404 + (packets + 1) * MTU, "one MTU at most for one acknowledgement");
}

#[test]
fn avoidance_adds_one_packet_for_each_window() {
    let mut w = sctp();
    (0..100).for_each(|_| w.on_acked(&PATH, &full(MTU)));
    w.on_lost(&PATH, &LOSS);
    let start = w.window();
    assert_eq!(w.ssthresh(), start);
    w.on_acked(&PATH, &full(1)); // At the threshold RFC 9260 still counts as slow start.
    let start = start + 1;
    assert_eq!(w.window(), start);
    let mut acked = 0;
    while w.window() == start {
        w.on_acked(&PATH, &full(MTU));
        acked += MTU;
    }
    assert!(acked >= start && acked < start + MTU);
    assert_eq!(w.window(), start + MTU);
}

#[test]
fn a_window_that_is_not_filled_does_not_grow() {
    let part = Acked { was_full: false, ..full(MTU) };
    let mut w = sctp();
    w.on_acked(&PATH, &part);
    assert_eq!(w.window(), 4404);
    w.on_lost(&PATH, &LOSS);
    (0..50).for_each(|_| w.on_acked(&PATH, &part));
    assert_eq!(w.window(), 4 * MTU);
}

#[test]
fn what_a_window_that_is_not_full_earns_is_a_step_or_by_rfc_2960_kept() {
    let after = |keeps_credit| {
        let mut w = reno(Standard { keeps_credit, ..Standard::RFC_9260 }, 8 * MTU);
        w.on_lost(&PATH, &LOSS);
        w.on_acked(&PATH, &full(1)); // Beyond the threshold.
        (0..20).for_each(|_| w.on_acked(&PATH, &Acked { was_full: false, ..full(MTU) }));
        let before = w.window();
        (0..2).for_each(|_| w.on_acked(&PATH, &Acked { uncredited: MTU, ..full(MTU) }));
        w.window() - before
    };
    assert_eq!([after(false), after(true)], [MTU, 2 * MTU]);
}

#[test]
fn credit_lapses_when_nothing_is_in_flight() {
    let mut w = sctp();
    w.on_lost(&PATH, &LOSS);
    w.on_acked(&PATH, &full(1));
    w.on_acked(&PATH, &full(4 * MTU));
    w.on_acked(&Conditions { in_flight: 0, ..PATH }, &full(0));
    let before = w.window();
    w.on_acked(&PATH, &full(MTU));
    assert_eq!(w.window(), before);
}

#[test]
fn a_standing_queue_shrinks_the_window_to_what_the_limit_allows() {
    let mut w = sctp();
    (0..40).for_each(|_| w.on_acked(&PATH, &full(MTU)));
    let before = w.window();
    let ms = Duration::from_millis;
    let limited = |w: &Reno, queueing| QueueingDelay::within(ms(60), w.window(), ms(queueing), ms(40)).max(4 * MTU);
    w.settle(&PATH, limited(&w, 160));
    assert_eq!(w.window(), before / 2);
    w.settle(&PATH, limited(&w, 5000));
    assert_eq!((w.window(), w.ssthresh()), (4 * MTU, 4 * MTU), "never below four packets");
}

#[test]
fn silence_leaves_what_a_path_begins_with() {
    let mut w = reno(Standard::RFC_9260, 10 * MTU);
    w.on_idle(&PATH, 10 * MTU);
    assert_eq!((w.window(), w.ssthresh()), (10 * MTU, usize::MAX));
    (0..20).for_each(|_| w.on_acked(&PATH, &full(MTU)));
    w.on_idle(&PATH, 10 * MTU);
    assert_eq!(w.window(), 10 * MTU);
    w.on_timeout(&PATH);
    w.on_idle(&PATH, 10 * MTU);
    assert_eq!(w.window(), MTU, "silence never raises a window");
}

#[test]
fn a_timeout_leaves_one_packet_and_idleness_half() {
    let mut w = sctp();
    (0..20).for_each(|_| w.on_acked(&PATH, &full(MTU)));
    let before = w.window();
    idle(&mut w);
    assert_eq!(w.window(), before / 2);
    w.on_timeout(&PATH);
    assert_eq!((w.window(), w.ssthresh()), (MTU, (before / 4).max(4 * MTU)));
    idle(&mut w);
    assert_eq!(w.window(), MTU, "idleness never raises a window");
    w.on_timeout(&PATH);
    w.on_spurious_timeout();
    assert_eq!((w.window(), w.ssthresh()), (before / 2, usize::MAX), "as before the first of the timeouts");
    w.on_spurious_timeout();
    assert_eq!(w.window(), before / 2, "only once");
}

#[test]
fn a_coupled_rule_scales_growth_and_may_shrink_down_to_a_packet() {
    let coupled = |w: Reno, rule| Coupled::new(rule, Box::new(w));
    let path = |cwnd, between_losses| CoupledPath { cwnd, mtu: MTU, rtt: Duration::from_millis(100), between_losses };
    let quarter = [path(2 * MTU, 0), path(6 * MTU, 0)];
    let beside_quarter = Conditions { siblings: Siblings::new(&quarter, 0), ..PATH };
    let mut w = coupled(reno(Standard::RFC_9260, 2 * MTU), Congestion::RpV2);
    w.on_acked(&beside_quarter, &full(MTU));
    assert_eq!(w.window(), 2 * MTU + MTU / 4);
    let whole = [path(MTU, 0), path(MTU, 0)];
    w.on_lost(&Conditions { siblings: Siblings::new(&whole, 0), ..PATH }, &LOSS);
    assert_eq!((w.window(), w.ssthresh()), (MTU, MTU));
    // A window of one packet beside another that is as fast grows by half, in slow start or not.
    w.on_acked(&Conditions { siblings: Siblings::new(&whole, 0), ..PATH }, &full(2 * MTU));
    assert_eq!(w.window(), MTU + MTU / 2);
    // OLIA moves half a packet to the better path from the largest window, whose share of the rate
    // earns it next to nothing.
    let worse = CoupledPath { rtt: Duration::from_secs(10), ..path(6 * MTU, 10) };
    let beside_better = [worse, path(MTU, 1000)];
    let beside_better = Conditions { siblings: Siblings::new(&beside_better, 0), ..PATH };
    let avoiding = Setup { initial: 3 * MTU, ssthresh: MTU, ..Setup::new(Standard::RFC_9260, MTU) };
    let mut w = coupled(Reno::new(&avoiding), Congestion::Olia);
    w.on_acked(&beside_better, &full(3 * MTU));
    assert!((5 * MTU / 2..3 * MTU).contains(&w.window()), "{}", w.window());
    (0..9).for_each(|_| w.on_acked(&beside_better, &full(3 * MTU)));
    assert_eq!(w.window(), MTU);
}

#[test]
fn what_got_through_between_losses_is_remembered_once() {
    let mut w = Coupled::new(Congestion::Olia, Box::new(sctp()));
    w.on_acked(&PATH, &full(700));
    w.on_lost(&PATH, &LOSS);
    w.on_lost(&PATH, &Signal { new_round: false, ..LOSS });
    w.on_acked(&PATH, &full(300));
    assert_eq!(w.between_losses(), 700);
    w.on_timeout(&PATH);
    assert_eq!(w.between_losses(), 300);
}

#[test]
fn a_mark_counts_as_a_loss_or_less_with_abe() {
    let after = |abe, slow_start: bool| {
        let standard = Standard { abe, ..Standard::RFC_9260 };
        let ssthresh = if slow_start { usize::MAX } else { 10 * MTU };
        let mut w = Reno::<Halve>::new(&Setup { initial: 20 * MTU, ssthresh, ..Setup::new(standard, MTU) });
        w.on_marked(&PATH, &LOSS);
        w.on_marked(&PATH, &Signal { new_round: false, ..LOSS });
        w.window() / MTU
    };
    assert_eq!([after(false, false), after(false, true), after(true, false), after(true, true)], [10, 10, 16, 10]);
}

/// RFC 5681 as ns-2 has it.
#[test]
fn behaviour_of_tcp() {
    let mut w = Reno::<Halve>::new(&Setup { initial: 2000, ..Setup::new(Standard::RFC_5681, 1000) });
    let path = |in_flight| Conditions { mtu: 1000, in_flight, ..PATH };
    (0..8).for_each(|_| w.on_acked(&path(1000), &full(2000)));
    assert_eq!(w.window(), 10_000, "a segment for an acknowledgement, however much it covers");
    w.on_lost(&path(10_000), &LOSS);
    assert_eq!((w.window(), w.ssthresh()), (5000, 5000));
    (0..5).for_each(|_| w.on_acked(&path(1000), &full(1000)));
    assert_eq!(w.window(), 5000 + 200 + 192 + 185 + 179 + 173, "about a segment for a window");
    w.on_timeout(&path(5000));
    w.on_timeout(&path(1000));
    assert_eq!((w.window(), w.ssthresh()), (1000, 2500), "the second time for the same data");
    w.on_lost(&path(1000), &LOSS);
    assert_eq!(w.window(), 2000, "never below two segments");
}

/// RFC 4341 §5.
#[test]
fn behaviour_of_ccid_2() {
    let mut w = reno(Standard::RFC_4341, 3 * MTU);
    let packets = |w: &Reno| (w.window() / MTU, w.ssthresh() / MTU);
    w.on_acked(&PATH, &full(3 * MTU));
    assert_eq!(packets(&w).0, 4, "half of three packets");
    w.on_acked(&PATH, &full(MTU));
    assert_eq!(packets(&w).0, 4);
    w.on_acked(&PATH, &full(9 * MTU));
    assert_eq!(packets(&w).0, 5, "half of the Ack Ratio at most");
    w.on_lost(&PATH, &LOSS);
    assert_eq!(packets(&w), (2, 2));
    w.on_acked(&PATH, &full(2 * MTU));
    assert_eq!(packets(&w), (3, 2), "a packet for a window");
    w.on_lost(&PATH, &LOSS);
    assert_eq!(packets(&w), (1, 2), "down to one");
    w.on_timeout(&PATH);
    assert_eq!(packets(&w), (1, 2));
}
