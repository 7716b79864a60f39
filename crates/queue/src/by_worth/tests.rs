use crate::testing::{Bench, Message, audio, frame_of};
use crate::{Limits, Method, Planned, Tag, Way, Ways};
use braidcast_core::Instant;
use core::time::Duration;

fn frame(number: u32, priority: u8, expiry: u64) -> Message {
    frame_of(256, number, priority, expiry)
}

/// A queue whose path delivers 1000 bytes in `millis`.
fn bench(millis: u32) -> Bench {
    let mut bench = Bench::new(Method::ByWorth, Limits::NONE);
    bench.outlook.rate = Some(1e6 / f64::from(millis));
    bench
}

#[test]
fn with_enough_room_all_goes_in_the_order_in_which_it_came_and_audio_first() {
    let mut bench = bench(10);
    assert!(
        bench.push([frame(1, 1, 500), frame(2, 2, 540), frame(3, 3, 580), frame(4, 4, 620), audio(5, 640)]).is_empty()
    );
    assert_eq!(bench.pop_all(), ["5", "1", "2", "3", "4"]);
}

#[test]
fn what_nothing_leans_on_goes_missing_first() {
    let mut bench = bench(100);
    // Of five frames with 40 ms between them four are through in time.
    let frames = [frame(1, 2, 310), frame(2, 4, 330), frame(3, 3, 410), frame(4, 2, 450), frame(5, 4, 520)];
    assert!(bench.push(frames).is_empty());
    assert_eq!(bench.pop(), ["1"]);
    bench.pass(100);
    assert_eq!(bench.pop(), ["4"]);
    bench.pass(100);
    assert_eq!(bench.pop(), ["5"], "it needs 4, and 3 and 2 are late at a third of the rate");
    bench.pass(100);
    assert_eq!(bench.pop(), ["2 expired", "3"]);
}

#[test]
fn frames_go_in_their_order_while_those_that_matter_more_have_time() {
    let next = |expiry| {
        let mut bench = bench(10);
        // A B frame of 10 ms, or 20 at half of the rate, with two P frames and audio behind it.
        assert!(bench.push([frame(1, 4, 300), frame(2, 2, expiry), frame(3, 2, 340)]).is_empty());
        let first = bench.pop();
        assert!(bench.push([frame(4, 4, 360), frame(5, 2, 380), audio(6, 380)]).is_empty());
        (first, bench.pop())
    };
    assert_eq!(next(41), (vec!["1".into()], vec!["6".into()]), "audio waits for nothing");
    assert_eq!(next(39), (vec!["2".into()], vec!["6".into()]), "2 would be late behind 1 at half of the rate");
}

#[test]
fn what_leans_on_a_lost_frame_goes_when_nothing_else_waits() {
    let mut bench = bench(10);
    assert!(bench.push([frame(1, 1, 500), frame(2, 2, 540), frame(3, 4, 580)]).is_empty());
    assert_eq!([bench.pop(), bench.pop()], [["1"], ["2"]]);
    bench.lose(2);
    assert!(bench.push([frame(4, 2, 600), frame_of(257, 5, 1, 640), frame_of(257, 6, 2, 680)]).is_empty());
    // 3 and 4 need 2, which was lost; 5 and 6 are of another elementary stream.
    bench.outlook.rate = Some(1000.0 / 0.15);
    for expected in ["5", "6", "4", "3"] {
        assert_eq!(bench.pop(), [expected], "3 and 4 had less time left");
        bench.pass(150);
    }
}

#[test]
fn what_leans_on_a_lost_frame_goes_no_more_once_the_next_group_begins() {
    let mut bench = bench(10);
    assert!(bench.push([frame(1, 1, 500), frame(2, 2, 540), frame(3, 4, 580)]).is_empty());
    assert_eq!([bench.pop(), bench.pop()], [["1"], ["2"]]);
    bench.lose(2);
    assert!(bench.push([frame(4, 2, 600), frame(5, 1, 640), frame(6, 2, 680)]).is_empty());
    assert_eq!(bench.pop(), ["3 expired", "4 expired", "5"]);
    assert_eq!(bench.pop(), ["6"]);
}

#[test]
fn much_is_risked_for_a_frame_that_all_lean_on_and_little_for_others() {
    let mut bench = bench(100);
    assert!(bench.push([frame(1, 1, 40), frame(2, 4, 60)]).is_empty());
    assert_eq!(bench.pop(), ["2 expired", "1"]);
}

/// Two seconds of P frames, each with a B frame, at 25 KB a second, over a path of `rate` bytes
/// in a second that takes nothing yet.
fn loaded(rate: f64) -> Bench {
    let mut bench = Bench::new(Method::ByWorth, Limits::NONE);
    bench.outlook.rate = Some(rate);
    for n in 0..60 {
        let expiry = 40 * u64::from(n) + 500;
        bench.push([frame(2 * n, 2, expiry), frame(2 * n + 1, 4, expiry)]);
        bench.pop();
        bench.pop();
        bench.pass(40);
    }
    bench
}

#[test]
fn where_leaving_out_what_none_leans_on_is_not_enough_a_group_goes_in_its_order() {
    let next = |rate| {
        let mut bench = loaded(rate);
        bench.push([frame(200, 4, 2900)]);
        // At half of the rate these are not in time behind it.
        bench.push(core::array::from_fn::<_, 15, _>(|n| frame(201 + n as u32, 2, 2900)));
        bench.pop()
    };
    assert_eq!(next(50_000.0), ["201"], "the P frames are 25 KB a second");
    assert_eq!(next(20_000.0), ["200"]);
}

#[test]
fn what_leans_on_a_lost_frame_is_sent_in_overload_where_no_next_group_is_known() {
    let mut bench = loaded(20_000.0);
    bench.push([frame(200, 2, 2900)]);
    bench.lose(118);
    assert_eq!(bench.pop(), ["200"]);
}

#[test]
fn what_leans_on_a_lost_frame_shows_that_the_path_carries_more_until_the_next_group_is_near() {
    // Groups of 2 s, whose first frames come in parts. After so many frames one of the second
    // group is lost.
    let said = |rate, frames| {
        let mut bench = Bench::new(Method::ByWorth, Limits::NONE);
        bench.outlook.rate = Some(rate);
        for n in 0..frames {
            let (priority, expiry) = (if n % 50 == 0 { 1 } else { 2 }, 40 * u64::from(n) + 500);
            bench.push([frame(2 * n, priority, expiry), frame(2 * n + 1, priority, expiry)]);
            bench.pop();
            bench.pop();
            bench.pass(40);
        }
        let expiry = 40 * u64::from(frames) + 500;
        bench.lose(2 * frames - 2);
        bench.push([frame(1000, 2, expiry)]);
        bench.pop()
    };
    assert_eq!(said(20_000.0, 70), ["1000"]);
    assert_eq!(said(20_000.0, 90), ["1000 expired"]);
    assert_eq!(said(100_000.0, 90), ["1000"], "it is not too much");
}

/// A group in each second, of one I frame of `intra` bytes and P frames, over a path that
/// delivers 100 KB in a second: whether a P frame goes that comes 20 ms before the third group,
/// and one 200 ms before.
fn ends_of_groups(intra: usize) -> [bool; 2] {
    [20, 200].map(|before| {
        let mut bench = bench(10);
        bench.outlook.one_way_delay = Duration::from_millis(50);
        for at in [0, 1000] {
            bench.outlook.now = Instant::from_millis(at);
            let part = |number| {
                let (number, tag) = frame(number, 1, at + 500);
                (number, Tag { len: intra / 2, ..tag })
            };
            bench.push([part(1), part(2), frame(3, 2, at + 500)]);
            bench.pop_all();
        }
        bench.outlook.now = Instant::from_millis(2000 - before);
        bench.push([frame(9, 2, 2500 - before)]);
        bench.pop() == ["9"]
    })
}

/// Returns when the last P frame of the last group goes, in ms from its begin. The path
/// delivers
/// `rate` bytes in a second; each group of P and B frames lasts its number times 40 ms.
fn last_p_frame(rate: u32, groups: &[u64]) -> u32 {
    let mut bench = Bench::new(Method::ByWorth, Limits::NONE);
    bench.outlook.rate = Some(f64::from(rate));
    let (mut n, mut first, mut last) = (0, 0, 0);
    for length in groups {
        first = n;
        for place in 0..*length {
            let expiry = 40 * u64::from(n) + 200;
            bench.push([frame(2 * n, if place == 0 { 1 } else { 2 }, expiry), frame(2 * n + 1, 4, expiry)]);
            for _ in 0..40 * rate / 1000 / 1000 {
                let went = bench.pop().last().and_then(|it| it.parse().ok());
                last = went.filter(|it: &u32| it.is_multiple_of(2)).map_or(last, |it| it / 2);
            }
            bench.pass(40);
            n += 1;
        }
    }
    let rest = bench.pop_all().into_iter().filter_map(|it| it.parse().ok()).filter(|it: &u32| it.is_multiple_of(2));
    40 * (rest.map(|it| it / 2).fold(last, u32::max) - first)
}

#[test]
fn a_group_ends_a_little_early_where_small_frames_of_groups_are_left_out() {
    assert_eq!(last_p_frame(50_000, &[25; 4]), 960);
    assert_eq!(last_p_frame(25_000, &[25; 4]), 800, "what comes in the last 200 ms is cut off");
}

#[test]
fn nothing_is_cut_off_where_groups_begin_when_they_like() {
    assert_eq!(last_p_frame(25_000, &[25, 20, 25, 30]), 29 * 40);
    assert_eq!(
        last_p_frame(50_000, &[25, 25, 25, 30]),
        29 * 40,
        "enough room: a group may be longer than those before it"
    );
}

#[test]
fn a_group_ends_early_where_the_next_one_needs_all_the_path_has() {
    assert_eq!(ends_of_groups(40_000), [false, true], "0.4 s of the path for the I frame, which has 0.45");
    assert_eq!(ends_of_groups(20_000), [true, true]);
}

/// A near path and a far one, each of 100 KB in a second, behind `queued` seconds of what stands in the near one.
fn near_and_far(queued: f64) -> Ways {
    let mut ways = Ways::default();
    ways.push(Way::new(0.02 + queued, 0.02, 100_000.0));
    ways.push(Way::new(0.25, 0.25, 100_000.0));
    ways
}

/// The number of what the far path of `ways` takes next.
fn taken_far(bench: &mut Bench, ways: &mut Ways) -> Option<u32> {
    match bench.queue.planned(bench.outlook.now, ways, 1, None, &|_| true)? {
        Planned::UnderWay => None,
        Planned::Waiting(place) => bench.queue.at(place).map(|(_, number)| *number),
    }
}

#[test]
fn a_far_path_takes_what_is_young_and_leaves_what_is_urgent() {
    let mut bench = bench(10);
    bench.push([frame(1, 2, 200), frame(2, 2, 240), frame(3, 2, 500), frame(4, 2, 540)]);
    assert_eq!(taken_far(&mut bench, &mut near_and_far(0.0)), None, "the near one has all of it there in 60 ms");
    let mut late = near_and_far(0.15);
    assert_eq!(taken_far(&mut bench, &mut late), Some(3));
    let under_way = |due: u64| Some((4000, Some(Instant::from_millis(due))));
    let far = |bench: &mut Bench, due| {
        bench.queue.planned(Instant::ZERO, &mut near_and_far(0.2), 1, under_way(due), &|_| true)
    };
    assert_eq!(far(&mut bench, 500), Some(Planned::UnderWay));
    assert!(matches!(far(&mut bench, 220), Some(Planned::Waiting(_))), "what is under way would be late over it");
}

#[test]
fn what_is_too_much_for_the_near_path_keeps_the_far_one_from_nothing() {
    let mut bench = bench(10);
    // 60 ms of the near path are left for 120 of frames, less what forecasts differ by. Leaves go first.
    bench.push(core::array::from_fn::<_, 12, _>(|n| frame(n as u32, if n % 2 == 0 { 2 } else { 4 }, 200)));
    let (number, tag) = frame(12, 2, 500);
    bench.push([(number, Tag { len: 4000, ..tag })]);
    assert_eq!(taken_far(&mut bench, &mut near_and_far(0.1)), Some(12));
}

#[test]
fn of_a_message_that_was_begun_the_rest_waits() {
    let mut bench = bench(10);
    bench.push([frame(1, 1, 500), frame(2, 2, 540)]);
    let mut ways = near_and_far(0.3);
    let Some(Planned::Waiting(place)) = bench.queue.planned(Instant::ZERO, &mut ways, 1, None, &|_| true) else {
        panic!()
    };
    bench.queue.take_part(&bench.outlook, place, 600);
    assert_eq!((bench.queue.len(), bench.queue.bytes()), (2, 1400));
    assert_eq!(bench.queue.withdraw(&|number| *number == 2), None, "nothing was taken of it");
    assert_eq!(bench.queue.withdraw(&|number| *number == 1).map(|tag| tag.len), Some(400));
    assert_eq!(bench.pop_all(), ["2"]);
}

#[test]
fn what_may_not_be_begun_is_left_to_others() {
    let mut bench = bench(10);
    bench.push([frame(1, 2, 500), frame(2, 2, 500)]);
    let place = bench.queue.planned(Instant::ZERO, &mut near_and_far(0.3), 1, None, &|number| *number != 1);
    let Some(Planned::Waiting(place)) = place else { panic!("{place:?}") };
    assert_eq!(bench.queue.at(place).unwrap().1, &2);
}
