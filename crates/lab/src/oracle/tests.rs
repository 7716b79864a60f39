use super::*;
use FrameKind::{Audio, B, I, P, R};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Frames 40 ms apart.
fn frames(list: &[(FrameKind, u64)]) -> Vec<Wanted> {
    list.iter().enumerate().map(|(n, &(kind, bytes))| Wanted { at: ms(40 * n as u64), bytes, kind }).collect()
}

/// A route of `bytes` each ms in `from..until`, with this delay.
fn route(bytes: f64, from: u64, until: u64, delay: u64) -> Route {
    (from..until).map(|at| Chance { at: ms(at), bytes, delay: ms(delay) }).collect()
}

#[test]
fn what_fits_exactly_is_chosen_and_a_byte_more_is_not() {
    // Within 100 ms, 10 of which are delay, 91 chances of 10 bytes.
    let link = [route(10.0, 0, 1000, 10)];
    let one = |bytes| possible(&frames(&[(I, bytes)]), &link, ms(100)).video;
    assert_eq!((one(910), one(911)), (1.0, 0.0));
    // The second has 40 ms more.
    let two = |bytes| possible(&frames(&[(I, 900), (P, bytes)]), &link, ms(100)).video;
    assert_eq!((two(410), two(411)), (1.0, 0.5));
}

#[test]
fn two_links_carry_together_what_neither_does_alone() {
    let (quick, slow) = (route(10.0, 0, 1000, 10), route(10.0, 0, 1000, 90));
    let all = frames(&[(I, 1020)]);
    assert_eq!(possible(&all, std::slice::from_ref(&quick), ms(100)).video, 0.0);
    assert_eq!(possible(&all, &[quick, slow], ms(100)).video, 1.0);
}

#[test]
fn the_largest_goes_where_only_the_number_counts_and_the_first_stays_where_others_lean_on_it() {
    // 141 chances of 10 bytes for all three: the I alone, or the two P without it.
    let link = [route(10.0, 0, 141, 0)];
    let all = frames(&[(I, 900), (P, 300), (P, 300)]);
    let found = possible(&all, &link, ms(100));
    // The I goes, and both P stay; but P without an I cannot be shown, so there the I stays and the last P goes.
    assert_eq!((found.video, found.playable), (2.0 / 3.0, 2.0 / 3.0));
    let narrow = [route(7.0, 0, 141, 0)];
    let found = possible(&all, &narrow, ms(100));
    assert_eq!((found.video, found.playable), (2.0 / 3.0, 0.0));
}

#[test]
fn an_outage_that_is_known_beforehand_costs_what_lies_in_it_and_nothing_else() {
    let mut link = route(10.0, 0, 200, 0);
    link.extend(route(10.0, 400, 1000, 0));
    let all = frames(&[(I, 300); 20]);
    // Those from 200 to 280 ms have nothing within 100 ms; the one at 320 has 210 bytes, that at
    // 360 shares them with later ones.
    let found = possible(&all, &[link], ms(100));
    assert_eq!(found.video, 16.0 / 20.0);
}

#[test]
fn b_frames_go_before_what_leans_on_nothing_they_need() {
    let link = [route(10.0, 0, 1000, 0)];
    // 10 bytes a ms make 400 in the time of a frame, and 1000 within the latency.
    let all = frames(&[(I, 1000), (P, 400), (R, 900), (B, 100), (P, 400), (R, 300), (B, 100)]);
    let found = possible(&all, &link, ms(100));
    // The first R does not fit behind I and P, so its B is useless; all others can be shown.
    assert_eq!(found.playable, 5.0 / 7.0);
}

#[test]
fn audio_takes_the_place_of_a_picture() {
    let link = [route(10.0, 0, 100, 0)];
    let all = frames(&[(I, 950), (Audio, 100)]);
    let found = possible(&all, &link, ms(100));
    assert_eq!((found.video, found.audio, found.playable), (0.0, 1.0, 0.0));
}
