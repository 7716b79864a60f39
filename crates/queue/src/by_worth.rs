use crate::{Discard, Limits, Outlook, Priority, Refused, SendQueue, Tag, Why};
use core::fmt;
use core::time::Duration;
use std::collections::VecDeque;

/// The priority of frames that others do not need to be shown: they lean on the last reference of their group.
const REFERENCE: usize = 3;
/// Of frames that lean on all before them of their group.
const CHAIN: usize = 2;
/// Of frames that lean on none and begin a group.
const INTRA: usize = 1;
/// A plan counts on this share of the rate for what it has taken already: what is sent again, and a path that carries less than it did,
/// take the rest.
const CAUTIOUS: f64 = 0.7;
/// Longest time that sending is reckoned to take.
const LONGEST: f64 = 60.0;

/// At so many times the rate a frame of this level must be in time to be taken into the plan. The more leans on it, the more is risked
/// for it: the rate may rise, and nothing is won without it.
const fn taken_at(level: usize) -> f64 {
    match level {
        0 | INTRA => 6.0,
        CHAIN => 1.0,
        _ => 0.85,
    }
}

/// At so many times the rate it must be in time not to be given up.
const fn kept_at(level: usize) -> f64 {
    match level {
        0 | INTRA => 6.0,
        CHAIN => 2.0,
        _ => 1.2,
    }
}

/// The same once it was begun; `None`: it is not given up for its length.
pub(crate) const fn finished_at(level: usize) -> Option<f64> {
    match level {
        0 | INTRA => None,
        _ => Some(kept_at(level)),
    }
}

/// Audio first. Of the frames those go that bring most to what can be shown, if their last byte comes in time: frames that lean on
/// none before frames that lean on them, so that in lasting overload those go missing that nothing leans on, then the ends of groups.
/// What leans on a frame that is lost goes when nothing else waits.
///
/// A plan for all that waits says which frames come whole at the rate that the path delivers. They are taken by worth, each if all
/// taken so far and it are in time when the one with the earliest deadline goes first (the test by which earliest-deadline-first
/// schedules: Liu, Layland, "Scheduling algorithms for multiprogramming in a hard-real-time environment", JACM 20(1), 1973).
#[derive(Debug)]
pub(crate) struct ByWorth<M> {
    /// In the order in which they came, which is that of decoding.
    waiting: VecDeque<Entry<M>>,
    bytes: usize,
    /// Something of the group that comes in now is lost: all of it that leans on others, or the frames next to a lost reference.
    broken: Broken,
    /// The place of what goes next, as planned when something last came or went.
    next: Option<usize>,
    /// Places that the plan took, by deadline; kept to save allocations.
    planned: Vec<usize>,
    order: Vec<usize>,
    limits: Limits,
}

#[derive(Debug)]
struct Entry<M> {
    tag: Tag,
    /// What it leans on is lost.
    hopeless: bool,
    message: M,
}

#[derive(Clone, Copy, Debug, Default)]
struct Broken {
    chain: bool,
    reference: bool,
}

impl Broken {
    /// A frame of this level comes: whether what it leans on is lost.
    const fn next(&mut self, level: usize) -> bool {
        match level {
            0 => false,
            INTRA => {
                *self = Self { chain: false, reference: false };
                false
            }
            CHAIN => {
                self.reference = false;
                self.chain
            }
            REFERENCE => {
                self.reference = self.chain;
                self.chain
            }
            _ => self.chain || self.reference,
        }
    }

    /// The frame of this level is lost.
    const fn lose(&mut self, level: usize) {
        match level {
            INTRA | CHAIN => *self = Self { chain: true, reference: true },
            REFERENCE => self.reference = true,
            _ => {}
        }
    }
}

impl<M: fmt::Debug + Send> ByWorth<M> {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            waiting: VecDeque::new(),
            bytes: 0,
            broken: Broken::default(),
            next: None,
            planned: Vec::new(),
            order: Vec::new(),
            limits: Limits { messages: limits.messages.max(1), ..limits },
        }
    }

    fn level(&self, place: usize) -> usize {
        self.waiting[place].tag.priority.index()
    }

    /// What matters first: a lower rank goes before a higher one.
    fn rank(&self, place: usize) -> usize {
        self.level(place) + if self.waiting[place].hopeless { Priority::LEVELS } else { 0 }
    }

    fn time_for(bytes: usize, rate: f64) -> Duration {
        Duration::from_secs_f64((bytes as f64 / rate.max(1.0)).min(LONGEST))
    }

    /// Whether a message would be in time if `before` bytes went before it at `share` of the rate.
    fn in_time(tag: &Tag, before: usize, share: f64, outlook: &Outlook) -> bool {
        let time = outlook.rate.map_or(Duration::ZERO, |rate| Self::time_for(before + tag.len, share * rate));
        !tag.is_expired(&Outlook { now: outlook.now + time, ..*outlook })
    }

    /// Whether all of `places` are in time, one after the other, now that `new` is among them.
    fn fit(&self, places: &[usize], new: usize, outlook: &Outlook) -> bool {
        let (mut before, mut behind) = (outlook.ahead, false);
        places.iter().all(|&place| {
            let tag = &self.waiting[place].tag;
            let share = if place == new { taken_at(self.level(place)) } else { CAUTIOUS };
            let fits =
                self.level(place) == 0 || !(behind || place == new) || Self::in_time(tag, before, share, outlook);
            behind |= place == new;
            before += tag.len;
            fits
        })
    }

    /// Looks at all that waits and says what goes next.
    fn plan(&mut self, outlook: &Outlook) {
        let (mut planned, mut order) = (core::mem::take(&mut self.planned), core::mem::take(&mut self.order));
        planned.clear();
        order.clear();
        order.extend(0..self.waiting.len());
        order.sort_by_key(|&place| (self.rank(place), place));
        for &place in &order {
            let at = planned.partition_point(|&other| {
                let key = |place: usize| (self.level(place) > 0, self.waiting[place].tag.expiry, place);
                key(other) < key(place)
            });
            planned.insert(at, place);
            if !self.leans_on_planned(place, &planned) || !self.fit(&planned, place, outlook) {
                planned.remove(at);
            }
        }
        self.next = planned.first().copied().or_else(|| order.first().copied());
        (self.planned, self.order) = (planned, order);
    }

    /// Whether all that waits and that the frame at `place` leans on is among the `planned`.
    fn leans_on_planned(&self, place: usize, planned: &[usize]) -> bool {
        let level = self.level(place);
        if level <= INTRA || self.waiting[place].hopeless {
            return true;
        }
        let mut reference = false;
        for before in (0..place).rev() {
            let other = self.level(before);
            let leans = match other {
                INTRA | CHAIN => true,
                REFERENCE => level > REFERENCE && !reference,
                _ => false,
            };
            if leans && !planned.contains(&before) {
                return false;
            }
            reference |= matches!(other, INTRA..=REFERENCE);
            if other == INTRA {
                break;
            }
        }
        true
    }

    /// The place of what matters most of all that would be in time.
    fn first_in_time(&self, outlook: &Outlook) -> Option<usize> {
        let in_time = |&place: &usize| {
            let tag = &self.waiting[place].tag;
            Self::in_time(tag, outlook.ahead, taken_at(tag.priority.index()), outlook)
        };
        (0..self.waiting.len()).filter(in_time).min_by_key(|&place| (self.rank(place), place))
    }

    fn remove(&mut self, place: usize) -> Option<(Tag, M)> {
        let Entry { tag, message, .. } = self.waiting.remove(place)?;
        self.bytes -= tag.len;
        Some((tag, message))
    }

    /// Gives up the message at `place`, and hope for what leans on it.
    fn give_up(&mut self, place: usize, why: Why, gone: &mut Vec<Discard<M>>) {
        let Some((tag, message)) = self.remove(place) else { return };
        gone.push(Discard { why, tag, message });
        self.lose_after(place, tag.priority.index());
    }

    /// A frame of this level is lost, and what came after it begins at `place`.
    fn lose_after(&mut self, place: usize, level: usize) {
        let mut broken = Broken::default();
        broken.lose(level);
        let mut ended = false;
        for entry in self.waiting.iter_mut().skip(place) {
            let other = entry.tag.priority.index();
            ended |= other == INTRA || (level == REFERENCE && (INTRA..=REFERENCE).contains(&other));
            if ended {
                return;
            }
            entry.hopeless |= broken.next(other);
        }
        self.broken.lose(level);
    }

    /// Gives up what is late whatever goes before it.
    fn drop_late(&mut self, outlook: &Outlook, gone: &mut Vec<Discard<M>>) {
        let mut place = 0;
        while let Some(entry) = self.waiting.get(place) {
            if Self::in_time(&entry.tag, 0, kept_at(entry.tag.priority.index()), outlook) {
                place += 1;
            } else {
                self.give_up(place, Why::Expired, gone);
            }
        }
    }
}

impl<M: fmt::Debug + Send> SendQueue<M> for ByWorth<M> {
    fn push(&mut self, outlook: &Outlook, tag: Tag, message: M, gone: &mut Vec<Discard<M>>) -> Result<(), Refused<M>> {
        if tag.len > self.limits.bytes {
            return Err(Refused::TooLarge(message));
        }
        let hopeless = self.broken.next(tag.priority.index());
        self.waiting.push_back(Entry { tag, hopeless, message });
        self.bytes += tag.len;
        while self.waiting.len() > self.limits.messages || self.bytes > self.limits.bytes {
            let worst = (0..self.waiting.len()).max_by_key(|&place| (self.rank(place), core::cmp::Reverse(place)));
            let Some(worst) = worst else { break };
            let why = if worst + 1 == self.waiting.len() { Why::NoRoom } else { Why::Replaced };
            self.give_up(worst, why, gone);
        }
        self.plan(outlook);
        Ok(())
    }

    fn peek(&self) -> Option<&Tag> {
        self.next.and_then(|place| self.waiting.get(place)).map(|entry| &entry.tag)
    }

    /// None: what goes is planned anew by the time at which it goes.
    fn certain(&self, _: &Outlook) -> Option<&Tag> {
        None
    }

    fn pop(&mut self, outlook: &Outlook, gone: &mut Vec<Discard<M>>) -> Option<(Tag, M)> {
        self.drop_late(outlook, gone);
        self.plan(outlook);
        let taken = self.next.and_then(|place| self.remove(place));
        self.plan(outlook);
        taken
    }

    fn peek_on_time(&self, outlook: &Outlook) -> Option<&Tag> {
        self.first_in_time(outlook).map(|place| &self.waiting[place].tag)
    }

    fn pop_on_time(&mut self, outlook: &Outlook) -> Option<(Tag, M)> {
        let place = self.first_in_time(outlook)?;
        let taken = self.remove(place);
        self.plan(outlook);
        taken
    }

    fn on_lost(&mut self, tag: &Tag) {
        let place = self.waiting.partition_point(|entry| entry.tag.expiry <= tag.expiry);
        self.lose_after(place, tag.priority.index());
    }

    fn len(&self) -> usize {
        self.waiting.len()
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Bench, Message, audio};
    use crate::{Limits, Method, Priority, Tag};
    use braidcast_core::Instant;

    /// 1000 bytes of a frame: I 1, P 2, a B that others lean on 3, other B 4.
    fn frame(number: u32, priority: u8, expiry: u64) -> Message {
        let priority = Priority::new(priority).unwrap();
        (number, Tag { priority, expiry: Some(Instant::from_millis(expiry)), len: 1000 })
    }

    /// A queue whose path delivers 1000 bytes in so many ms.
    fn bench(millis: u32) -> Bench {
        let mut bench = Bench::new(Method::ByWorth, Limits::NONE);
        bench.outlook.rate = Some(1e6 / f64::from(millis));
        bench
    }

    #[test]
    fn with_enough_room_all_goes_in_the_order_in_which_it_came_and_audio_first() {
        let mut bench = bench(10);
        assert!(
            bench
                .push([frame(1, 1, 500), frame(2, 2, 540), frame(3, 3, 580), frame(4, 4, 620), audio(5, 640)])
                .is_empty()
        );
        assert_eq!(bench.pop_all(), ["5", "1", "2", "3", "4"]);
    }

    #[test]
    fn what_nothing_leans_on_goes_missing_first() {
        let mut bench = bench(100);
        // Of five frames with 40 ms between them three are through in time.
        let frames = [frame(1, 2, 310), frame(2, 4, 330), frame(3, 3, 350), frame(4, 2, 450), frame(5, 4, 520)];
        assert!(bench.push(frames).is_empty());
        assert_eq!(bench.pop(), ["1"]);
        bench.pass(100);
        assert_eq!(bench.pop(), ["3"]);
        bench.pass(100);
        assert_eq!(bench.pop(), ["4"]);
        bench.pass(100);
        assert_eq!(bench.pop(), ["2 expired", "5"]);
    }

    #[test]
    fn what_leans_on_a_lost_frame_goes_when_nothing_else_waits() {
        let mut bench = bench(10);
        assert!(bench.push([frame(1, 1, 500), frame(2, 2, 540), frame(3, 4, 580)]).is_empty());
        bench.queue.on_lost(&frame(2, 2, 540).1);
        assert!(bench.push([frame(4, 2, 600), frame(5, 1, 640), frame(6, 2, 680)]).is_empty());
        // 3 and 4 lean on 2, which was lost; 6 does not.
        bench.outlook.rate = Some(1000.0 / 0.15);
        assert_eq!(bench.pop(), ["1"]);
        bench.pass(150);
        assert_eq!(bench.pop(), ["2"]);
        bench.pass(150);
        assert_eq!(bench.pop(), ["5"], "3 and 4 had less time left");
        bench.pass(150);
        let said = bench.pop();
        assert_eq!(said.last().map(String::as_str), Some("6"), "{said:?}");
    }

    #[test]
    fn much_is_risked_for_a_frame_that_all_lean_on_and_little_for_others() {
        let mut bench = bench(100);
        assert!(bench.push([frame(1, 1, 40), frame(2, 4, 60)]).is_empty());
        assert_eq!(bench.pop(), ["2 expired", "1"]);
    }
}
