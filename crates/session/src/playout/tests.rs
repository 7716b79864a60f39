use super::*;
use proptest::prelude::*;

fn header(captured_ms: u64, span_ms: u32) -> UnitHeader {
    UnitHeader {
        kind: Kind::P,
        reference: true,
        reliable: false,
        again: false,
        sequence: 0,
        part: 0,
        parts: 1,
        more: false,
        captured: captured_ms * 1000,
        span: span_ms * 1000,
        latency: 100_000,
        pts: None,
    }
}

/// A packet that begins with its index, all of the same PID.
fn packet(index: u8) -> [u8; PACKET] {
    let mut packet = [index; PACKET];
    packet[1..3].copy_from_slice(&[1, 0]);
    packet
}

/// A unit of `count` packets from index `first` on, each filled with its index.
fn insert(playout: &mut Playout, now_ms: u64, header: &UnitHeader, first: u64, count: u32) -> Arrival {
    let bytes: Vec<u8> = (0..count).flat_map(|n| packet((first + u64::from(n)) as u8)).collect();
    let runs = [Run { first, count, null: false }];
    playout.insert(Instant::from_millis(now_ms), 0, header, runs.into_iter(), Bytes::Plain(&bytes))
}

/// The indexes of the packets that leave at `now_ms`.
fn leave(playout: &mut Playout, now_ms: u64) -> Vec<u8> {
    let (mut out, mut all) = (Vec::new(), Vec::new());
    while playout.poll(Instant::from_millis(now_ms), 0, 7 * PACKET, &mut out) {
        all.extend(out.chunks(PACKET).map(|packet| packet[0]));
    }
    all
}

#[test]
fn packets_leave_evenly_spread_over_the_time_of_their_capture() {
    let mut playout = Playout::new(Release::OnTime);
    assert_eq!(insert(&mut playout, 60, &header(0, 40), 0, 5), Arrival::OnTime);
    assert_eq!(playout.next_due(0), Some(Instant::from_millis(100)));
    assert_eq!(leave(&mut playout, 90), []);
    assert_eq!(leave(&mut playout, 100), [0]);
    assert_eq!(playout.next_due(0), Some(Instant::from_millis(110)));
    assert_eq!(leave(&mut playout, 121), [1, 2]);
    assert_eq!(leave(&mut playout, 200), [3, 4]);
    assert_eq!((playout.next_due(0), playout.held()), (None, 0));
}

#[test]
fn what_is_due_in_the_same_slice_leaves_together_early_and_never_late() {
    let mut playout = Playout::new(Release::OnTime).in_slices(Duration::from_millis(4));
    // Due at 502 to 512 ms, one each millisecond, with nothing before them that may still come.
    let unit = UnitHeader { latency: 500_000, ..header(2, 10) };
    insert(&mut playout, 60, &unit, 0, 11);
    let mut left = Vec::new();
    for expected in [500, 504, 508, 512] {
        let at = playout.next_due(0).unwrap();
        assert_eq!(at, Instant::from_millis(expected));
        assert_eq!(leave(&mut playout, expected - 1), [], "{expected}");
        left.push(leave(&mut playout, expected));
    }
    assert_eq!(left, [vec![0, 1], vec![2, 3, 4, 5], vec![6, 7, 8, 9], vec![10]]);
}

#[test]
fn a_slice_that_a_players_socket_would_not_hold_leaves_in_two() {
    let mut playout = Playout::new(Release::OnTime).in_slices(Duration::from_millis(10));
    let unit = |captured| UnitHeader { latency: 500_000, ..header(captured, 20) };
    // 376 kB in 20 ms, and later 18.8 kB in 20 ms.
    insert(&mut playout, 0, &unit(0), 0, 2001);
    insert(&mut playout, 0, &unit(100), 2001, 101);
    let mut left = Vec::new();
    while let Some(at) = playout.next_due(0) {
        let millis = at.as_nanos() / 1_000_000;
        left.push((millis, leave(&mut playout, millis).len()));
    }
    let halves = [(500, 500), (505, 500), (510, 500), (515, 500), (520, 1)];
    assert_eq!(left, [&halves[..], &[(600, 50), (610, 50), (620, 1)]].concat());
}

#[test]
fn what_is_behind_a_gap_leaves_no_earlier_than_it_is_due() {
    let mut playout = Playout::new(Release::OnTime).in_slices(Duration::from_millis(4));
    let unit = |captured| UnitHeader { latency: 500_000, ..header(captured, 0) };
    insert(&mut playout, 0, &unit(0), 0, 1);
    insert(&mut playout, 0, &unit(3), 2, 1);
    assert_eq!(leave(&mut playout, 500), [0]);
    assert_eq!(playout.next_due(0), Some(Instant::from_millis(503)));
    assert_eq!(insert(&mut playout, 501, &unit(2), 1, 1), Arrival::OnTime, "due at 502");
    assert_eq!(leave(&mut playout, 501), [1, 2]);
}

#[test]
fn a_short_latency_has_short_slices() {
    let mut playout = Playout::new(Release::OnTime).in_slices(Duration::from_millis(4));
    let unit = UnitHeader { latency: 20_000, ..header(1, 0) };
    insert(&mut playout, 0, &unit, 0, 1);
    let at = playout.next_due(0).unwrap();
    assert_eq!(at, Instant::from_nanos(20_800_000), "21 ms, in slices of 400 µs");
}

#[test]
fn dues_are_exact_however_long_a_unit_is() {
    for (distance, span_us) in [(0, 7), (1, 3), (10, 40_000), (1 << 40, u32::MAX), (u64::MAX, u32::MAX)] {
        let slot = Slot { distance, span: i64::from(span_us) * 1000, due: 5, ..Slot::default() };
        for into in [0, 1, distance / 3, distance.saturating_sub(1), distance] {
            let into = into.min(distance);
            let part = i128::from(span_us) * 1000 * i128::from(into) / i128::from(distance.max(1));
            let due = Instant::from_nanos(u64::try_from(5 + part).unwrap());
            assert_eq!(slot.due(into, 0), due, "{into} of {distance} in {span_us} us");
        }
    }
}

#[test]
fn units_that_were_interleaved_are_interleaved_again() {
    let mut playout = Playout::new(Release::OnTime);
    insert(&mut playout, 0, &header(10, 0), 2, 1);
    let runs = [
        Run { first: 0, count: 2, null: false },
        Run { first: 3, count: 2, null: true },
        Run { first: 5, count: 1, null: false },
    ];
    let bytes: Vec<u8> = [0, 1, 5].iter().flat_map(|index| [*index; PACKET]).collect();
    playout.insert(Instant::ZERO, 0, &header(0, 20), runs.into_iter(), Bytes::Plain(&bytes));
    assert_eq!(leave(&mut playout, 500), [0, 1, 2, 0x47, 0x47, 5]);
    assert_eq!(playout.held(), 0);
}

#[test]
fn null_packets_that_travel_with_a_later_unit_hold_up_nothing() {
    let mut playout = Playout::new(Release::OnTime);
    let runs = [Run { first: 0, count: 2, null: true }, Run::one(9, false)];
    playout.insert(Instant::ZERO, 0, &header(40, 0), runs.into_iter(), Bytes::Plain(&[9; PACKET]));
    insert(&mut playout, 0, &header(10, 0), 2, 1);
    assert_eq!(playout.next_due(0), Some(Instant::from_millis(110)));
    assert_eq!(leave(&mut playout, 110), [0x47, 0x47, 2]);
    assert_eq!(leave(&mut playout, 140), [9]);
}

#[test]
fn a_late_unit_is_not_taken_and_a_missing_one_is_not_waited_for() {
    let mut playout = Playout::new(Release::OnTime);
    let alone = UnitHeader { reference: false, ..header(0, 0) };
    insert(&mut playout, 0, &header(40, 0), 4, 1);
    assert_eq!(insert(&mut playout, 100, &alone, 0, 1), Arrival::Late, "due at this very moment");
    assert_eq!(leave(&mut playout, 140), [4]);
    assert_eq!(insert(&mut playout, 140, &header(45, 0), 3, 1), Arrival::Late, "packet 4 has left");
    assert_eq!(
        insert(&mut playout, 140, &header(5000, 0), 9, 1),
        Arrival::Late,
        "due in five seconds, though the latency is 100 ms"
    );
}

#[test]
fn what_others_lean_on_leaves_a_little_late_unless_something_behind_it_has_left() {
    let mut playout = Playout::new(Release::OnTime);
    assert_eq!(insert(&mut playout, 150, &header(0, 0), 0, 2), Arrival::LateOfUse, "50 ms late");
    assert_eq!(playout.next_due(0), Some(Instant::from_millis(100)));
    assert_eq!(leave(&mut playout, 150), [0, 1]);
    assert_eq!(insert(&mut playout, 191, &header(40, 0), 2, 1), Arrival::Late, "51 ms late");
    insert(&mut playout, 191, &header(120, 0), 6, 1);
    assert_eq!(insert(&mut playout, 200, &header(80, 0), 4, 1), Arrival::LateOfUse, "6 waits");
    assert_eq!(leave(&mut playout, 220), [4, 6]);
    assert_eq!(insert(&mut playout, 221, &header(110, 0), 5, 1), Arrival::Late, "6 has left");
    let again = UnitHeader { again: true, ..header(120, 0) };
    assert_eq!(insert(&mut playout, 222, &again, 6, 1), Arrival::Again, "it was there");
}

#[test]
fn what_leaves_of_another_stream_makes_nothing_useless() {
    let mut playout = Playout::new(Release::OnTime);
    let runs = |first| [Run::one(first, false)].into_iter();
    let at = Instant::from_millis;
    assert_eq!(playout.insert(at(0), 0, &header(20, 0), runs(1), Bytes::Plain(&[9; PACKET])), Arrival::OnTime);
    assert_eq!(leave(&mut playout, 120), [9]);
    assert_eq!(insert(&mut playout, 130, &header(0, 0), 0, 1), Arrival::LateOfUse);
    let data = UnitHeader { kind: Kind::Data, ..header(20, 0) };
    assert_eq!(
        playout.insert(at(130), 0, &data, runs(2), Bytes::Plain(&packet(2))),
        Arrival::Late,
        "nothing is known of plain messages"
    );
    assert_eq!(leave(&mut playout, 130), [0]);
}

#[test]
fn early_release_waits_for_gaps_only_and_for_them_only_until_due() {
    let mut playout = Playout::new(Release::Early);
    insert(&mut playout, 10, &header(0, 0), 0, 2);
    assert_eq!(leave(&mut playout, 10), [0, 1]);
    insert(&mut playout, 20, &header(10, 0), 4, 2);
    assert_eq!(leave(&mut playout, 50), []);
    insert(&mut playout, 60, &header(5, 0), 2, 1);
    assert_eq!(leave(&mut playout, 60), [2]);
    assert_eq!(playout.next_due(0), Some(Instant::from_millis(110)));
    assert_eq!(leave(&mut playout, 110), [4, 5]);
}

#[test]
fn early_release_does_not_wait_for_what_will_not_come() {
    let mut playout = Playout::new(Release::Early);
    insert(&mut playout, 10, &header(0, 0), 0, 1);
    insert(&mut playout, 20, &header(10, 0), 3, 1);
    insert(&mut playout, 20, &header(10, 0), 5, 1);
    assert_eq!(leave(&mut playout, 20), [0]);
    let run = |first, count| Run { first, count, null: false };
    playout.give_up([run(4, 1), run(8, 2), run(10, 1)].into_iter());
    assert_eq!(leave(&mut playout, 20), [], "1 and 2 may come");
    playout.give_up([run(1, 2)].into_iter());
    assert_eq!(leave(&mut playout, 20), [3, 5]);
    insert(&mut playout, 21, &header(10, 0), 6, 2);
    insert(&mut playout, 21, &header(10, 0), 11, 1);
    assert_eq!(leave(&mut playout, 21), [6, 7, 11]);
    // Nobody can make it remember without bound.
    playout.give_up((0..100_000).map(|n| run(100 + 2 * n, 1)));
    assert_eq!(playout.given_up.len(), MAX_GIVEN_UP);
    let mut steady = Playout::new(Release::OnTime);
    steady.give_up([run(0, 9)].into_iter());
    insert(&mut steady, 10, &header(0, 0), 0, 1);
    assert_eq!(leave(&mut steady, 100), [0], "where each leaves when it is due it changes nothing");
}

#[test]
fn in_order_release_knows_no_time() {
    let mut playout = Playout::new(Release::InOrder);
    let reliable = UnitHeader { reliable: true, latency: 0, ..header(0, 0) };
    insert(&mut playout, 90_000, &reliable, 1, 1);
    assert_eq!((leave(&mut playout, 99_000), playout.next_due(0)), (vec![], None));
    insert(&mut playout, 99_000, &reliable, 0, 1);
    assert_eq!(leave(&mut playout, 99_000), [0, 1]);
}

#[test]
fn after_a_jump_of_the_clock_what_waits_stays_due_when_it_was() {
    let mut playout = Playout::new(Release::OnTime);
    insert(&mut playout, 0, &header(50, 0), 0, 1);
    playout.shift(5_000_000_000);
    assert_eq!(playout.next_due(5_000_000_000), Some(Instant::from_millis(150)));
}

proptest! {
    #[test]
    fn whatever_comes_in_all_memory_is_given_back(
        units in prop::collection::vec((0_u64..40, 1_u32..6, any::<bool>(), 0_u64..200), 1..60),
    ) {
        let mut playout = Playout::new(Release::OnTime);
        for (first, count, null, at) in units {
            let runs = [Run { first, count, null }, Run { first: first + 10, count: 1, null: !null }];
            let carried = if null { 1 } else { count as usize };
            let bytes = vec![0; carried * PACKET];
            playout.insert(Instant::from_millis(at), 0, &header(at, 10), runs.into_iter(), Bytes::Plain(&bytes));
            leave(&mut playout, at);
        }
        leave(&mut playout, 100_000);
        prop_assert_eq!(playout.held(), 0);
        prop_assert!(playout.is_empty());
    }
}
