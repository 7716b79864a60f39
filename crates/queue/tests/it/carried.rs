//! What a queue says of paths: do they carry what waits, with ease, and what is expected next?

use braidcast_core::Instant;
use braidcast_queue::{Frame, Limits, Method, NeededBy, Outlook, Priority, SendQueue, Tag};

/// A frame of `bytes` that is captured now and to be shown after half a second.
fn frame(now: Instant, id: u64, group: u64, bytes: usize) -> Tag {
    let due = Instant::from_millis(now.since(Instant::ZERO).as_millis() as u64 + 500);
    let needs = (id > group).then(|| id - 1);
    let frame = Frame { group, needs, needed_by: NeededBy::Rest, ..Frame::alone(id, 256, bytes as u32, Some(due)) };
    let priority = Priority::new(if id == group { 1 } else { 2 }).unwrap();
    Tag { priority, expiry: Some(due), len: bytes, frame: Some(frame) }
}

fn push(queue: &mut dyn SendQueue<u64>, outlook: &Outlook, tag: Tag, gone: u64) {
    queue.push(outlook, tag, gone, &mut Vec::new()).unwrap();
}

/// Returns `true` if 100 kB a second, after `delay` s, carry what waits behind `ahead` bytes.
fn carries(queue: &dyn SendQueue<u64>, now: Instant, delay: f64, ahead: usize) -> bool {
    queue.is_carried(now, ahead, &|within| 100_000.0 * (within - delay).max(0.0))
}

#[test]
fn what_waits_is_to_be_in_time_with_ease() {
    let mut queue = Method::ByWorth.queue(Limits::NONE);
    let outlook = Outlook { now: Instant::from_millis(1000), ..Outlook::default() };
    push(&mut *queue, &outlook, frame(outlook.now, 0, 0, 20_000), 0);
    // 0.85 of half a second: 42.5 kB.
    assert!(carries(&*queue, outlook.now, 0.0, 22_000));
    assert!(!carries(&*queue, outlook.now, 0.0, 23_000));
    assert!(carries(&*queue, outlook.now, 0.2, 0));
    assert!(!carries(&*queue, outlook.now, 0.3, 0));
    push(&mut *queue, &outlook, frame(outlook.now, 1, 0, 23_000), 1);
    assert!(!carries(&*queue, outlook.now, 0.0, 0), "all of it, not each alone");
}

/// Returns `true` if 10 kB are carried that come `after` ms of a group. Each group begins with 40 kB; those before it
/// took `lengths`, ms.
fn carries_after(lengths: &[u64], after: u64) -> bool {
    let mut queue = Method::ByWorth.queue(Limits::NONE);
    let (mut at, mut id) = (0, 0);
    for length in [0].iter().chain(lengths) {
        at += length;
        let outlook = Outlook { now: Instant::from_millis(at), rate: Some(1e6), ..Outlook::default() };
        push(&mut *queue, &outlook, frame(outlook.now, id, id, 40_000), id);
        assert!(queue.pop(&outlook, &mut Vec::new()).is_some());
        id += 1;
    }
    let now = Instant::from_millis(at + after);
    let outlook = Outlook { now, rate: Some(1e6), ..Outlook::default() };
    push(&mut *queue, &outlook, frame(now, id, id - 1, 10_000), id);
    carries(&*queue, now, 0.0, 0)
}

#[test]
fn the_next_first_frame_is_to_be_in_time_where_groups_are_even() {
    assert!(!carries_after(&[1000; 3], 990), "50 kB in 0.435 s");
    assert!(carries_after(&[700, 1400, 1000], 990), "nobody knows when it begins");
}

#[test]
fn in_the_first_group_the_next_one_may_begin_any_time_after_half_a_second() {
    assert!(carries_after(&[], 390), "10 kB are through by then");
    assert!(!carries_after(&[], 490), "50 kB in 0.435 s");
    assert!(!carries_after(&[], 900));
}

#[test]
fn the_second_group_is_expected_to_last_as_long_as_the_first() {
    assert!(carries_after(&[1000], 890));
    assert!(!carries_after(&[1000], 990));
}

#[test]
fn queues_that_know_no_frames_cannot_tell() {
    for (name, method) in Method::ALL {
        let queue = method.queue::<u64>(Limits::NONE);
        assert_eq!(carries(&*queue, Instant::ZERO, 0.0, 0), method.tells_needs(), "{name}");
    }
}
