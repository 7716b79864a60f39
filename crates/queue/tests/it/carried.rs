//! What a queue says of paths: do they carry what waits, with ease, and what is expected next?

use braidcast_core::Instant;
use braidcast_queue::{Frame, Limits, Method, NeededBy, Outlook, Priority, SendQueue, Tag};
use core::time::Duration;

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

#[test]
fn the_next_first_frame_is_to_be_in_time_where_groups_are_even() {
    // Groups of a second that begin with 40 kB; before the fourth one 10 kB of the third wait.
    let waits = |lengths: [u64; 3]| {
        let mut queue = Method::ByWorth.queue(Limits::NONE);
        let (mut at, mut id) = (0, 0);
        for length in [0].into_iter().chain(lengths) {
            at += length;
            let outlook = Outlook { now: Instant::from_millis(at), rate: Some(1e6), ..Outlook::default() };
            push(&mut *queue, &outlook, frame(outlook.now, id, id, 40_000), id);
            assert!(queue.pop(&outlook, &mut Vec::new()).is_some());
            id += 1;
        }
        let now = Instant::from_millis(at + 990);
        let outlook = Outlook { now, rate: Some(1e6), ..Outlook::default() };
        push(&mut *queue, &outlook, frame(now, id, id - 1, 10_000), id);
        carries(&*queue, now, 0.0, 0)
    };
    assert!(!waits([1000; 3]), "50 kB in 0.435 s");
    assert!(waits([700, 1400, 1000]), "nobody knows when it begins");
}

#[test]
fn queues_that_know_no_frames_cannot_tell() {
    for (name, method) in Method::ALL {
        let queue = method.queue::<u64>(Limits::NONE);
        assert_eq!(carries(&*queue, Instant::ZERO, 0.0, 0), method.tells_needs(), "{name}");
    }
}

/// What of an I frame of 10 kB, a B frame of 5 kB and a P frame of 11 kB goes over a way of this `delay` that takes
/// only what 100 kB a second do not carry with ease behind `ahead` bytes, by their bytes.
fn excess(delay: u64, ahead: usize) -> Vec<usize> {
    let mut queue = Method::ByWorth.queue(Limits::NONE);
    let delay = Duration::from_millis(delay);
    let now = Instant::from_millis(1000);
    let outlook = Outlook { now, one_way_delay: delay, only_excess: true, ..Outlook::default() };
    let [intra, mut b, p] = [(0, 10_000), (1, 5000), (2, 11_000)].map(|(id, bytes)| frame(now, id, 0, bytes));
    b.priority = Priority::new(4).unwrap();
    b.frame = b.frame.map(|frame| Frame { needs: Some(0), needed_by: NeededBy::Nothing, ..frame });
    for tag in [intra, b, p] {
        push(&mut *queue, &outlook, tag, 0);
    }
    queue.find_excess(now, ahead, delay, &|within| 100_000.0 * within);
    core::iter::from_fn(|| queue.pop_on_time(&outlook)).map(|(tag, _)| tag.len).collect()
}

#[test]
fn what_is_too_much_for_near_ways_is_what_matters_least() {
    // 0.85 of half a second: 42.5 kB, and half of that for what does not begin a group.
    assert_eq!(excess(100, 0), [5000], "the B frame, though the P frame came last");
    assert_eq!(excess(100, 5000), [11_000, 5000]);
    assert_eq!(excess(100, 30_000), [11_000, 5000], "the I frame has the whole rate");
    assert_eq!(excess(100, 35_000), [10_000, 11_000, 5000]);
    assert_eq!(excess(500, 35_000), [0; 0], "it would be late there");
}
