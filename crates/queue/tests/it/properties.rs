//! What holds for every queue, whatever is put in and whenever it is asked.

use braidcast_core::Instant;
use braidcast_queue::{Frame, Limits, Method, NeededBy, Outlook, Priority, SendQueue, Tag, Why};
use core::time::Duration;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Push {
        priority: u8,
        life: u64,
        len: usize,
        frame: Option<Frame>,
    },
    /// One that was taken out is lost: this many before the latest.
    Lose(usize),
    Pop,
    /// A path that takes this much longer than the best one has room.
    PopOnTime(u64),
    Pass(u64),
    /// The clock jumps, perhaps back.
    Clock(u64),
}

/// Any frame, be it one that an encoder makes or not.
fn frame() -> impl Strategy<Value = Option<Frame>> {
    let needed_by = prop_oneof![Just(NeededBy::Nothing), Just(NeededBy::Some), Just(NeededBy::Rest)];
    let frame = (0..30u64, 0..3u16, 0..30u64, proptest::option::of(0..30u64), needed_by, 0..3000u32).prop_map(
        |(id, stream, group, needs, needed_by, bytes)| Frame { id, stream, group, needs, needed_by, bytes, due: None },
    );
    proptest::option::of(frame)
}

fn step() -> impl Strategy<Value = Step> {
    let message = (0..8u8, 0..300u64, 1..1500usize, frame());
    prop_oneof![
        4 => message.prop_map(|(priority, life, len, frame)| Step::Push { priority, life, len, frame }),
        1 => (0..20usize).prop_map(Step::Lose),
        3 => Just(Step::Pop),
        1 => (0..200u64).prop_map(Step::PopOnTime),
        2 => (0..60u64).prop_map(Step::Pass),
        1 => (0..5000u64).prop_map(Step::Clock),
    ]
}

fn method() -> impl Strategy<Value = Method> {
    (0..Method::ALL.len()).prop_map(|n| Method::ALL[n].1)
}

/// A queue beside a list of what it should hold.
struct Beside {
    queue: Box<dyn SendQueue<usize>>,
    method: Method,
    limits: Limits,
    outlook: Outlook,
    held: Vec<(usize, Tag)>,
    sent: Vec<Tag>,
    next: usize,
    /// Never before went the clock back, so that what was late is late.
    forward: bool,
}

impl Beside {
    fn remove(&mut self, message: usize) -> Tag {
        let place = self.held.iter().position(|(held, _)| *held == message);
        self.held.swap_remove(place.expect("it was put in, and has not come out before")).1
    }

    fn push(&mut self, priority: u8, life: u64, len: usize, frame: Option<Frame>) {
        let expiry = (life != 0).then(|| Instant::from_millis(life) + self.outlook.now.since(Instant::ZERO));
        let tag = Tag { priority: Priority::new(priority).unwrap(), expiry, len, frame };
        let (message, mut gone) = (self.next, Vec::new());
        self.next += 1;
        let outcome = self.queue.push(&self.outlook, tag, message, &mut gone);
        match outcome {
            Ok(()) => self.held.push((message, tag)),
            Err(refused) => {
                assert_eq!(refused.into_message(), message);
                assert!(gone.iter().all(|it| it.why == Why::Expired), "refused, and others gone for nothing");
            }
        }
        for it in gone {
            assert_eq!(self.remove(it.message), it.tag);
            assert!(it.why != Why::Expired || it.tag.is_expired(&self.outlook));
            assert_eq!(it.why == Why::NoRoom, it.message == message);
        }
    }

    fn pop_on_time(&mut self, longer: u64) {
        let delay = self.outlook.one_way_delay + Duration::from_millis(longer);
        let outlook = Outlook { one_way_delay: delay, ..self.outlook };
        let shown = self.queue.peek_on_time(&outlook).copied();
        let taken = self.queue.pop_on_time(&outlook);
        assert_eq!(taken.map(|(tag, _)| tag), shown);
        if let Some((tag, message)) = taken {
            assert_eq!(self.remove(message), tag);
            assert!(!tag.is_expired(&outlook));
        }
    }

    fn pop(&mut self) {
        let (waiting, mut gone) = (self.held.len(), Vec::new());
        let head = self.queue.peek().copied();
        let certain = self.queue.certain(&self.outlook).copied();
        let next = self.queue.pop(&self.outlook, &mut gone);
        assert_eq!(head.is_some(), waiting > 0);
        if let Some((tag, message)) = next {
            assert_eq!(self.remove(message), tag);
            self.sent.push(tag);
        }
        assert!(certain.is_none() || certain == next.map(|(tag, _)| tag), "{certain:?} was certain");
        assert_eq!(next.is_some() || !gone.is_empty(), waiting > 0, "something comes of asking");
        for it in &gone {
            assert_eq!(self.remove(it.message), it.tag);
            assert_eq!(it.why, Why::Expired);
            // These two look at the last byte, of a frame or of a message.
            let by_length = matches!(self.method, Method::InTime | Method::ByWorth);
            assert!(it.tag.is_expired(&self.outlook) || by_length);
        }
        let keeps_all = matches!(self.method, Method::Fifo | Method::Ring | Method::NeverDiscard);
        assert!(!keeps_all || gone.is_empty());
        let late_only_at_the_end = matches!(self.method, Method::Sbpn2 | Method::RingSbpn2 | Method::Weighted);
        if let Some((tag, _)) = next.filter(|(tag, _)| tag.is_expired(&self.outlook)) {
            match self.method {
                Method::NeverDiscard | Method::InTime => {
                    let all_late = self.held.iter().all(|(_, held)| held.is_expired(&self.outlook));
                    assert!(all_late || !self.forward, "{tag:?} could wait");
                }
                _ if keeps_all => {}
                _ => assert!(late_only_at_the_end && self.held.is_empty(), "{tag:?} is late"),
            }
        }
    }
}

proptest! {
    /// Every message comes out once: sent, discarded with a reason that is true, or refused; and the limits are kept.
    #[test]
    fn no_message_vanishes_or_comes_twice(
        method in method(),
        messages in prop_oneof![1..6usize, Just(usize::MAX)],
        bytes in prop_oneof![200..4000usize, Just(usize::MAX)],
        delay in 0..100u64,
        steps in proptest::collection::vec(step(), 1..200),
    ) {
        let limits = Limits::messages(messages).bytes(bytes);
        // `fifo-timed` goes by the time that messages waited.
        let delay = if method == Method::FifoTimed { 0 } else { delay };
        let outlook = Outlook { one_way_delay: Duration::from_millis(delay), rate: Some(1e5), ..Outlook::default() };
        let mut it = Beside { queue: method.queue(limits), method, limits, outlook, held: Vec::new(), sent: Vec::new(), next: 0, forward: true };
        for step in steps {
            match step {
                Step::Push { priority, life, len, frame } => it.push(priority, life, len, frame),
                Step::Lose(before) => {
                    let at = it.sent.len().checked_sub(before + 1);
                    at.into_iter().for_each(|at| it.queue.on_lost(&it.sent[at]));
                }
                Step::Pop => it.pop(),
                Step::PopOnTime(longer) => it.pop_on_time(longer),
                Step::Pass(millis) => it.outlook.now += Duration::from_millis(millis),
                Step::Clock(millis) => {
                    let now = Instant::from_millis(millis);
                    it.forward &= now >= it.outlook.now;
                    it.outlook.now = now;
                }
            }
            assert_eq!(it.queue.len(), it.held.len());
            assert_eq!(it.queue.bytes(), it.held.iter().map(|(_, tag)| tag.len).sum::<usize>());
            assert!(it.queue.len() <= it.limits.messages && it.queue.bytes() <= it.limits.bytes);
        }
        while !it.held.is_empty() {
            it.pop();
        }
    }

    /// Audio is never behind frames if the method goes by priority, and frames never push audio out.
    #[test]
    fn priority_is_kept(steps in proptest::collection::vec(step(), 1..200), messages in 1..8usize) {
        for method in [Method::Sbpn1, Method::Sbpn2, Method::LifoPriority, Method::Ring, Method::RingSbpn2] {
            let mut queue = method.queue(Limits::messages(messages));
            let (mut outlook, mut gone, mut held) = (Outlook::default(), Vec::new(), Vec::<Tag>::new());
            for step in &steps {
                match *step {
                    Step::Push { priority, life, len, frame } => {
                        let priority = Priority::new(priority).unwrap();
                        let tag = Tag { priority, expiry: Some(outlook.now + Duration::from_millis(life)), len, frame };
                        if queue.push(&outlook, tag, tag, &mut gone).is_ok() {
                            held.push(tag);
                        }
                        for it in gone.drain(..) {
                            held.swap_remove(held.iter().position(|tag| *tag == it.message).unwrap());
                            let rest = held.iter().map(|tag| tag.priority).max();
                            prop_assert!(rest.is_none_or(|rest| it.tag.priority >= rest));
                        }
                    }
                    Step::Pop => {
                        let next = queue.pop(&outlook, &mut gone);
                        for message in gone.drain(..).map(|it| it.message).chain(next.map(|(_, message)| message)) {
                            held.swap_remove(held.iter().position(|tag| *tag == message).unwrap());
                        }
                        if let Some((tag, _)) = next {
                            prop_assert!(held.iter().all(|held| held.priority >= tag.priority));
                        }
                    }
                    Step::Pass(millis) => outlook.now += Duration::from_millis(millis),
                    Step::PopOnTime(_) | Step::Clock(_) | Step::Lose(_) => {}
                }
            }
        }
    }
}
