//! What a queue that heeds frames does about those that need a lost one: of several elementary
//! streams, at any frame rate.

use braidcast_core::Instant;
use braidcast_queue::{Discard, Frame, Limits, Method, NeededBy, Outlook, Priority, SendQueue, Tag};
use core::time::Duration;

/// How long after it is shown a frame that others need may come, ms, as in a session.
const GRACE: u64 = 50;
const LATENCY: u64 = 500;
const VIDEO: u16 = 256;

/// Makes frames as a session does, of several elementary streams, in the order of decoding.
#[derive(Default)]
struct Multiplex {
    frames: Vec<(Tag, Part)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    I,
    P,
    /// A B frame that others need.
    Reference,
    B,
    Other,
}

impl Multiplex {
    /// Adds a frame that was captured at `captured`, ms. Returns its number.
    fn add(&mut self, stream: u16, part: Part, captured: u64) -> u64 {
        let id = self.frames.len() as u64;
        let latest = |parts: &[Part]| {
            let mut before = self.frames.iter().rev().filter(|(tag, _)| tag.frame.unwrap().stream == stream);
            before.find(|(_, part)| parts.contains(part)).and_then(|(tag, _)| tag.frame)
        };
        let (priority, needs, needed_by) = match part {
            Part::I => (1, None, NeededBy::Rest),
            Part::P => (2, latest(&[Part::I, Part::P]), NeededBy::Rest),
            Part::Reference => (3, latest(&[Part::I, Part::P]), NeededBy::Some),
            Part::B => (4, latest(&[Part::I, Part::P, Part::Reference]), NeededBy::Nothing),
            Part::Other => (2, None, NeededBy::Nothing),
        };
        let group = needs.map_or(id, |frame| frame.group);
        let due = captured + LATENCY;
        let expiry = due + if part == Part::B { 0 } else { GRACE };
        let frame = Frame {
            id,
            stream,
            group,
            needs: needs.map(|frame| frame.id),
            needed_by,
            bytes: 1000,
            due: Some(Instant::from_millis(due)),
        };
        let priority = Priority::new(priority).unwrap();
        let tag = Tag { priority, expiry: Some(Instant::from_millis(expiry)), len: 1000, frame: Some(frame) };
        self.frames.push((tag, part));
        id
    }

    /// Returns two groups, each an I frame and then P, reference, B, B, with `rate` frames a
    /// second.
    fn video(rate: u64) -> Self {
        let mut it = Self::default();
        // The place in the order of display, in which frames are captured.
        for place in 0..48 {
            let part = match place {
                0 | 24 => Part::I,
                _ => [Part::B, Part::P, Part::Reference, Part::B][place % 4],
            };
            it.add(VIDEO, part, place as u64 * 1000 / rate);
        }
        it
    }

    fn frame(&self, id: u64) -> Frame {
        self.frames[id as usize].0.frame.unwrap()
    }

    /// Returns `true` if `id` cannot be shown without `lost`.
    fn needs(&self, id: u64, lost: u64) -> bool {
        self.frame(id).needs.is_some_and(|needs| needs == lost || self.needs(needs, lost))
    }

    /// Returns what waits when it is known that `lost` is, as `sent` frames had left: in the order
    /// in which it goes, and behind that what is discarded.
    fn order(&self, sent: usize, lost: &[u64], pushed: usize) -> Vec<u64> {
        let mut queue = Method::ByWorth.queue::<u64>(Limits::NONE);
        let outlook = Outlook { rate: Some(1e9), ..Outlook::default() };
        let mut gone = Vec::new();
        let push = |queue: &mut dyn SendQueue<u64>, gone: &mut Vec<Discard<u64>>, of: core::ops::Range<usize>| {
            for (id, (tag, _)) in self.frames.iter().enumerate().take(of.end).skip(of.start) {
                queue.push(&outlook, *tag, id as u64, gone).unwrap();
            }
        };
        push(&mut *queue, &mut gone, 0..pushed);
        for _ in 0..sent {
            queue.pop(&outlook, &mut gone).unwrap();
        }
        for id in lost {
            queue.on_lost(&self.frames[*id as usize].0);
        }
        push(&mut *queue, &mut gone, pushed..self.frames.len());
        let mut order = Vec::new();
        while let Some((_, id)) = queue.pop(&outlook, &mut gone) {
            order.push(id);
        }
        // What cannot be shown of a group that is over.
        order.extend(gone.iter().map(|it| it.message));
        order
    }

    /// Checks that what needs a lost frame goes last, and nothing else does.
    fn check(&self, name: &str, sent: usize, lost: u64, pushed: usize) {
        let order = self.order(sent, &[lost], pushed);
        let hopeless = |id: &u64| self.needs(*id, lost);
        let begins = order.iter().position(hopeless).unwrap_or(order.len());
        let (first, last) = order.split_at(begins);
        assert!(last.iter().all(hopeless), "{name}: {lost} is lost, {first:?} go, then {last:?}");
        let in_order = |ids: &[u64]| ids.is_sorted();
        assert!(in_order(first), "{name}: {first:?} have room enough to go in their order");
    }
}

#[test]
fn what_needs_a_lost_frame_is_found_at_any_frame_rate_and_nothing_else_is() {
    for rate in [24, 25, 30, 50, 60] {
        let video = Multiplex::video(rate);
        for sent in 1..video.frames.len() {
            for lost in sent.saturating_sub(6)..sent {
                for pushed in [sent, sent + 3, video.frames.len()] {
                    let pushed = pushed.min(video.frames.len());
                    video.check(&format!("{rate} fps, {sent} sent, {pushed} there"), sent, lost as u64, pushed);
                }
            }
        }
    }
}

#[test]
fn a_frame_of_a_group_before_breaks_nothing_of_the_next_one() {
    let video = Multiplex::video(25);
    // The last P frame of the first group is lost when the second group is there.
    let order = video.order(24, &[21], 30);
    assert_eq!(order, (24..48).collect::<Vec<_>>());
}

#[test]
fn what_is_no_frame_of_the_video_breaks_nothing_of_it() {
    let video = || {
        let mut it = Multiplex::default();
        let first = it.add(VIDEO, Part::I, 0);
        let mut others = Vec::new();
        for n in 1..20 {
            // Subtitles, KLV, a clock reference on its own PID, null packets.
            others.push(it.add([300, 301, 302, 0x1fff][n % 4], Part::Other, 40 * n as u64));
            it.add(VIDEO, Part::P, 40 * n as u64);
        }
        (it, first, others)
    };
    let (it, first, others) = video();
    for lost in others {
        let sent = lost as usize + 1;
        assert_eq!(it.order(sent, &[lost], sent), (sent as u64..39).collect::<Vec<_>>(), "{lost} is lost");
    }
    it.check("the I frame", 1, first, 1);
}

#[test]
fn two_videos_break_and_begin_apart() {
    let mut it = Multiplex::default();
    let mut of = [Vec::new(), Vec::new()];
    for n in 0..20 {
        // The second one begins a group in the middle of the first one's.
        of[0].push(it.add(VIDEO, if n % 10 == 0 { Part::I } else { Part::P }, 40 * n));
        of[1].push(it.add(VIDEO + 1, if n % 10 == 5 || n == 0 { Part::I } else { Part::P }, 40 * n));
    }
    for lost in 0..20 {
        for pushed in [lost + 1, 20, 40] {
            it.check("two videos", lost + 1, lost as u64, pushed.max(lost + 1));
        }
    }
    // A frame of each is lost.
    let order = it.order(6, &[of[0][1], of[1][2]], 6);
    let hopeless = |id: &u64| it.needs(*id, of[0][1]) || it.needs(*id, of[1][2]);
    assert_eq!(order.iter().position(hopeless), Some(order.iter().filter(|id| !hopeless(id)).count()));
}

#[test]
fn the_rest_of_a_frame_that_lost_a_part_goes_last() {
    let mut it = Multiplex::default();
    for n in 0..6 {
        it.add(VIDEO, if n == 0 { Part::I } else { Part::B }, 40 * n);
    }
    // The last one comes in three parts.
    let mut part = it.frames[5].0;
    part.frame.as_mut().unwrap().bytes = 3000;
    it.frames[5].0 = part;
    it.frames.extend([(part, Part::B); 2]);
    it.add(VIDEO, Part::B, 240);
    it.frames[8].0.frame.as_mut().unwrap().needs = Some(0);
    it.frames[8].0.frame.as_mut().unwrap().group = 0;
    assert_eq!(it.order(6, &[5], 7), [8, 6, 7]);
}

#[test]
fn the_loss_of_a_frame_is_known_to_those_that_come_long_after_it() {
    let mut queue = Method::ByWorth.queue::<u64>(Limits::NONE);
    let mut it = Multiplex::default();
    (0..400).for_each(|n| _ = it.add(VIDEO, if n == 0 { Part::I } else { Part::P }, 20 * n));
    let (mut gone, mut outlook) = (Vec::new(), Outlook { rate: Some(1e9), ..Outlook::default() });
    for (id, (tag, _)) in it.frames.iter().enumerate() {
        queue.push(&outlook, *tag, id as u64, &mut gone).unwrap();
        queue.pop(&outlook, &mut gone).unwrap();
        outlook.now += Duration::from_millis(20);
    }
    queue.on_lost(&it.frames[380].0);
    let now = outlook.now.since(Instant::ZERO).as_millis() as u64;
    let late = it.add(VIDEO, Part::P, now);
    let other = it.add(300, Part::Other, now);
    queue.push(&outlook, it.frames[late as usize].0, late, &mut gone).unwrap();
    queue.push(&outlook, it.frames[other as usize].0, other, &mut gone).unwrap();
    assert_eq!(queue.pop(&outlook, &mut gone).map(|(_, id)| id), Some(other));
}

#[test]
fn what_never_expires_is_refused_and_not_discarded() {
    let mut queue = Method::ByWorth.queue::<u32>(Limits::messages(3).bytes(3000));
    let (outlook, mut gone) = (Outlook { rate: Some(1e3), ..Outlook::default() }, Vec::new());
    let priority = Priority::LAST;
    let lasting = Tag { priority, expiry: None, len: 1000, frame: None };
    let frame = Frame { needed_by: NeededBy::Rest, ..Frame::alone(1, VIDEO, 1000, None) };
    let fleeting = Tag {
        priority: Priority::new(1).unwrap(),
        expiry: Some(Instant::from_millis(9000)),
        len: 1000,
        frame: Some(frame),
    };
    queue.push(&outlook, fleeting, 1, &mut gone).unwrap();
    (2..5).for_each(|n| queue.push(&outlook, lasting, n, &mut gone).unwrap());
    assert_eq!(gone.drain(..).map(|it| it.message).collect::<Vec<_>>(), [1], "it makes room, though it goes first");
    assert!(queue.push(&outlook, lasting, 5, &mut gone).is_err());
    queue.push(&outlook, fleeting, 6, &mut gone).unwrap();
    assert_eq!(gone.drain(..).map(|it| it.message).collect::<Vec<_>>(), [6]);
    let mut order = Vec::new();
    while let Some((_, n)) = queue.pop(&Outlook { now: Instant::from_millis(100_000), ..outlook }, &mut gone) {
        order.push(n);
    }
    assert_eq!((order, gone.len()), (vec![2, 3, 4], 0));
}
