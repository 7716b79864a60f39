use crate::bag::{Bag, Oldest};
use crate::{Discard, Limits, Outlook, Priority, Refused, SendQueue, Tag, Why};
use braidcast_core::Instant;
use core::fmt;
use core::time::Duration;
use std::collections::VecDeque;

/// What can still be in time, by priority; frames whole or not at all. A method of our own, after
/// what the source's queues lose (scenario `sbpn-best`).
///
/// Messages make a frame if they say so ([`Tag::frame`]), else if they have the same priority and
/// expiry, as those of an application that hands all packets of a frame over at once. Messages of
/// the first priority stand alone, and so do those that never expire.
///
/// - A frame whose last message could not leave in time at the allowed rate, less what audio takes
///   of it meanwhile, is discarded; so is the rest of one that lost a part to a full queue. What it
///   would have taken is left to the others.
/// - An older frame that would be whole beside audio goes before more important messages if all of
///   these will be in time all the same, with [`SPARE`] to spare, at half of the rate, and should
///   all that the way has grown since it was shortest be before the receiver: half of a round trip
///   says too little there. Not in the first [`SETTLING`], while congestion control does not know a
///   rate that holds.
/// - Of the messages of the first priority that are late the newest goes when nothing else waits,
///   so that the allowed rate holds (SBPN §3.5, §8.4.3).
/// - A full queue abandons what is late, then the oldest frames of the least priority. What never
///   expires is never discarded: it is refused while there is no room.
#[derive(Debug)]
pub(crate) struct InTime<M> {
    levels: [Level<M>; Priority::LEVELS],
    /// The newest of the first priority that is late.
    late: Option<(Tag, M)>,
    /// A frame that lost a part, of which more may come.
    given_up: Option<Frame>,
    len: usize,
    bytes: usize,
    /// What came of the first priority.
    sound: Arrivals,
    /// When the first message was taken.
    began: Option<Instant>,
    /// The shortest delay to the receiver so far.
    shortest: Duration,
    limits: Limits,
}

/// What a message must have to spare to let an older frame go first: what is known of the way lags
/// behind by some round trips.
const SPARE: Duration = Duration::from_millis(40);
/// How long slow start and what it overshoots may take.
const SETTLING: Duration = Duration::from_secs(3);

/// What makes messages one frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Frame {
    Numbered { stream: u16, id: u64 },
    Alike(Priority, Instant),
}

fn frame_of(tag: &Tag) -> Option<Frame> {
    let expiry = tag.expiry.filter(|_| tag.priority != Priority::FIRST)?;
    let numbered = tag.frame.map(|frame| Frame::Numbered { stream: frame.stream, id: frame.id });
    Some(numbered.unwrap_or(Frame::Alike(tag.priority, expiry)))
}

/// Some messages, and their bytes.
#[derive(Clone, Copy, Default, Debug)]
struct Amount {
    messages: usize,
    bytes: usize,
}

impl Amount {
    /// Bytes of the allowed rate that they take.
    fn cost(self, outlook: &Outlook) -> f64 {
        outlook.packet_size.map_or(self.bytes as f64, |size| size * self.messages as f64)
    }

    /// The same until the last of them leaves.
    fn cost_before_last(self, outlook: &Outlook) -> f64 {
        self.cost(outlook) * (1.0 - 1.0 / self.messages.max(1) as f64)
    }
}

/// How much came of late.
#[derive(Debug, Default)]
struct Arrivals {
    cost_per_second: f64,
    at: Instant,
}

impl Arrivals {
    /// Seconds after which an arrival counts for 1/e of what it did.
    const MEMORY: f64 = 0.25;

    fn cost_per_second(&self, now: Instant) -> f64 {
        self.cost_per_second * libm::exp(-now.since(self.at).as_secs_f64() / Self::MEMORY)
    }

    fn note(&mut self, now: Instant, cost: f64) {
        self.cost_per_second = self.cost_per_second(now) + cost / Self::MEMORY;
        self.at = now;
    }
}

/// Messages of one priority as they came, and how much of it is of each frame.
#[derive(Debug)]
struct Level<M> {
    messages: Oldest<M>,
    frames: VecDeque<Amount>,
    bytes: usize,
}

impl<M> Default for Level<M> {
    fn default() -> Self {
        Self { messages: Oldest::new(), frames: VecDeque::new(), bytes: 0 }
    }
}

impl<M: fmt::Debug + Send> Level<M> {
    fn put(&mut self, tag: Tag, message: M) {
        let frame = frame_of(&tag);
        let joins = frame.is_some() && self.messages.back().is_some_and(|(last, _)| frame_of(last) == frame);
        if !joins {
            self.frames.push_back(Amount::default());
        }
        if let Some(frame) = self.frames.back_mut() {
            frame.messages += 1;
            frame.bytes += tag.len;
        }
        self.bytes += tag.len;
        self.messages.put(tag, message);
    }

    fn take(&mut self) -> Option<(Tag, M)> {
        let (tag, message) = self.messages.take()?;
        self.bytes -= tag.len;
        if let Some(frame) = self.frames.front_mut() {
            frame.messages -= 1;
            frame.bytes -= tag.len;
        }
        if self.frames.front().is_some_and(|frame| frame.messages == 0) {
            self.frames.pop_front();
        }
        Some((tag, message))
    }

    fn first_frame(&self) -> Amount {
        self.frames.front().copied().unwrap_or_default()
    }

    fn amount(&self) -> Amount {
        Amount { messages: self.messages.len(), bytes: self.bytes }
    }
}

impl<M: fmt::Debug + Send> InTime<M> {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            levels: Default::default(),
            late: None,
            given_up: None,
            len: 0,
            bytes: 0,
            sound: Arrivals::default(),
            began: None,
            shortest: Duration::MAX,
            limits: Limits { messages: limits.messages.max(1), ..limits },
        }
    }

    fn has_room(&self, len: usize) -> bool {
        self.len < self.limits.messages && self.bytes.saturating_add(len) <= self.limits.bytes
    }

    /// The levels that have something, the most important first.
    fn filled(&self) -> impl DoubleEndedIterator<Item = usize> + '_ {
        (0..Priority::LEVELS).filter(|&level| self.levels[level].messages.head().is_some())
    }

    fn count_out(&mut self, taken: Option<(Tag, M)>) -> Option<(Tag, M)> {
        let (tag, message) = taken?;
        self.len -= 1;
        self.bytes -= tag.len;
        Some((tag, message))
    }

    fn take(&mut self, level: usize) -> Option<(Tag, M)> {
        let taken = self.levels[level].take();
        self.count_out(taken)
    }

    fn take_late(&mut self) -> Option<(Tag, M)> {
        let taken = self.late.take();
        self.count_out(taken)
    }

    /// Discards the first frame of a level.
    fn give_up(&mut self, level: usize, why: Why, gone: &mut Vec<Discard<M>>) {
        if self.levels[level].frames.len() == 1 {
            self.given_up = self.levels[level].messages.head().and_then(frame_of);
        }
        for _ in 0..self.levels[level].first_frame().messages {
            let Some((tag, message)) = self.take(level) else { break };
            gone.push(Discard { why, tag, message });
        }
    }

    /// Returns the time until `cost` has left, beside what takes `less` in a second.
    fn time_for(cost: f64, less: f64, outlook: &Outlook) -> Duration {
        let seconds = outlook.rate.map_or(0.0, |rate| cost / (rate - less).max(1.0));
        Duration::from_secs_f64(seconds.min(60.0))
    }

    /// Returns `true` if the first frame of a level cannot come whole.
    fn is_late(&self, level: usize, outlook: &Outlook) -> bool {
        let cost = self.levels[level].first_frame().cost_before_last(outlook);
        !self.has_time_for(level, cost, outlook)
    }

    /// Returns `true` if the first message of a level comes in time if so much leaves before it,
    /// beside audio.
    fn has_time_for(&self, level: usize, cost: f64, outlook: &Outlook) -> bool {
        let sound = if level == Priority::FIRST.index() { 0.0 } else { self.sound.cost_per_second(outlook.now) };
        let now = outlook.now + Self::time_for(cost, sound, outlook);
        self.levels[level].messages.head().is_some_and(|tag| !tag.is_expired(&Outlook { now, ..*outlook }))
    }

    /// The first level whose first frame can come whole.
    fn first_in_time(&self, outlook: &Outlook) -> Option<usize> {
        self.filled().find(|&level| !self.is_late(level, outlook))
    }

    /// The level of an older frame that goes before what is more important.
    fn goes_before(&self, outlook: &Outlook) -> Option<usize> {
        self.began.filter(|began| outlook.now.since(*began) >= SETTLING)?;
        let mut filled = self.filled();
        let (first, level) = (filled.next()?, filled.next()?);
        let expiry = self.levels[level].messages.head()?.expiry?;
        let (waiting, frame) = (&self.levels[first].messages, self.levels[level].first_frame().cost(outlook));
        if waiting.head()?.expiry.is_none_or(|it| it < expiry) || !self.has_time_for(level, frame, outlook) {
            return None;
        }
        let delay = outlook.one_way_delay;
        let (one_way_delay, rate) = (delay + delay.saturating_sub(self.shortest), outlook.rate.map(|rate| rate / 2.0));
        let worst = Outlook { one_way_delay, rate, ..*outlook };
        let in_time = |tag: Option<&Tag>, before| {
            let now = outlook.now + Self::time_for(before, 0.0, &worst) + SPARE;
            tag.is_some_and(|tag| !tag.is_expired(&Outlook { now, ..worst }))
        };
        // Of what waits the first has least time, or else the last, as it waits for all others.
        let last = waiting.back().map(|(tag, _)| tag);
        let all = frame + self.levels[first].amount().cost_before_last(outlook);
        (in_time(waiting.head(), frame) && in_time(last, all)).then_some(level)
    }
}

impl<M: fmt::Debug + Send> SendQueue<M> for InTime<M> {
    fn push(&mut self, outlook: &Outlook, tag: Tag, message: M, gone: &mut Vec<Discard<M>>) -> Result<(), Refused<M>> {
        if tag.len > self.limits.bytes {
            return Err(Refused::TooLarge(message));
        }
        if tag.expiry.is_none() && !self.has_room(tag.len) {
            return Err(Refused::Full(message));
        }
        let (level, frame) = (tag.priority.index(), frame_of(&tag));
        if tag.priority == Priority::FIRST {
            self.sound.note(outlook.now, Amount { messages: 1, bytes: tag.len }.cost(outlook));
        }
        let more_important = self.levels[..level]
            .iter()
            .fold((0, tag.len), |(messages, bytes), it| (messages + it.messages.len(), bytes.saturating_add(it.bytes)));
        let no_room = more_important.0 >= self.limits.messages || more_important.1 > self.limits.bytes;
        let mut fits = !no_room && (frame.is_none() || frame != self.given_up);
        while fits && !self.has_room(tag.len) {
            if let Some((tag, message)) = self.take_late() {
                gone.push(Discard { why: Why::Replaced, tag, message });
                continue;
            }
            let expires = |level: &usize| self.levels[*level].messages.head().is_some_and(|tag| tag.expiry.is_some());
            let Some(last) = self.filled().rev().find(expires) else {
                fits = false;
                break;
            };
            fits = frame.is_none() || self.levels[last].messages.head().and_then(frame_of) != frame;
            self.give_up(last, Why::Replaced, gone);
        }
        if fits {
            self.len += 1;
            self.bytes += tag.len;
            self.levels[level].put(tag, message);
        } else {
            // Without this message the frame is not whole.
            while frame.is_some() && self.levels[level].messages.back().is_some_and(|(last, _)| frame_of(last) == frame)
            {
                self.give_up(level, Why::Replaced, gone);
            }
            self.given_up = frame.or(self.given_up);
            gone.push(Discard { why: Why::NoRoom, tag, message });
        }
        Ok(())
    }

    fn peek(&self) -> Option<&Tag> {
        self.filled()
            .next()
            .map_or_else(|| self.late.as_ref().map(|(tag, _)| tag), |level| self.levels[level].messages.head())
    }

    fn certain(&self, outlook: &Outlook) -> Option<&Tag> {
        let Some(first) = self.filled().next() else { return self.late.as_ref().map(|(tag, _)| tag) };
        let level = self.goes_before(outlook).or_else(|| (!self.is_late(first, outlook)).then_some(first))?;
        self.levels[level].messages.head()
    }

    fn pop(&mut self, outlook: &Outlook, gone: &mut Vec<Discard<M>>) -> Option<(Tag, M)> {
        if !outlook.one_way_delay.is_zero() {
            self.shortest = self.shortest.min(outlook.one_way_delay);
        }
        self.began.get_or_insert(outlook.now);
        let mut next = self.goes_before(outlook);
        while let Some(level) = next.or_else(|| self.filled().next()) {
            if next.is_some() || !self.is_late(level, outlook) {
                return self.take(level);
            }
            if level == Priority::FIRST.index() {
                let newest = self.levels[level].take();
                let older = core::mem::replace(&mut self.late, newest);
                let older = self.count_out(older);
                gone.extend(older.map(|(tag, message)| Discard { why: Why::Expired, tag, message }));
            } else {
                self.give_up(level, Why::Expired, gone);
            }
            next = None;
        }
        self.take_late()
    }

    /// Looks at the oldest frame of each priority only: the next one of a priority does not
    /// overtake it.
    fn peek_on_time(&self, outlook: &Outlook) -> Option<&Tag> {
        self.levels[self.first_in_time(outlook)?].messages.head()
    }

    fn pop_on_time(&mut self, outlook: &Outlook) -> Option<(Tag, M)> {
        self.take(self.first_in_time(outlook)?)
    }

    fn len(&self) -> usize {
        self.len
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Bench, audio, b_frame, video};
    use crate::{Frame, Limits, Method, Priority, Tag};
    use core::time::Duration;

    #[test]
    fn the_newest_late_sound_goes_last_and_late_pictures_never() {
        let mut bench = Bench::new(Method::InTime, Limits::NONE);
        assert!(bench.push([audio(1, 20), audio(2, 30), video(3, 20), audio(4, 90), video(5, 70)]).is_empty());
        bench.pass(40);
        assert_eq!(bench.pop_all(), ["1 expired", "4", "3 expired", "5", "2"]);
    }

    /// A bench whose queue has been in use for three seconds.
    fn settled() -> Bench {
        let mut bench = Bench::new(Method::InTime, Limits::NONE);
        bench.outlook.one_way_delay = Duration::from_millis(40);
        assert!(bench.push([video(0, 200)]).is_empty());
        assert_eq!(bench.pop(), ["0"]);
        bench.pass(3000);
        bench
    }

    #[test]
    fn an_older_frame_goes_first_while_sound_has_time() {
        let mut bench = settled();
        assert!(bench.push([video(1, 3200), video(2, 3200), audio(3, 3220), video(4, 3300)]).is_empty());
        assert_eq!(bench.pop_all(), ["1", "2", "3", "4"]);
        // The way has grown by 40 ms, by 80 perhaps: 65 + 120 + 40 is past 220.
        assert!(bench.push([video(5, 3200), audio(6, 3220)]).is_empty());
        bench.outlook.one_way_delay = Duration::from_millis(80);
        bench.pass(65);
        assert_eq!(bench.pop_all(), ["6", "5"]);
    }

    #[test]
    fn a_frame_that_cannot_be_whole_makes_way_for_the_next() {
        let mut bench = Bench::new(Method::InTime, Limits::NONE);
        // 1000 bytes in 50 ms: the third would go at 100.
        bench.outlook.rate = Some(20_000.0);
        assert!(bench.push([video(2, 100), video(3, 100), video(4, 100), b_frame(5, 110)]).is_empty());
        assert_eq!(bench.pop(), ["2 expired", "3 expired", "4 expired", "5"]);
    }

    #[test]
    fn frames_that_say_so_are_two_though_they_expire_together() {
        let mut bench = Bench::new(Method::InTime, Limits::NONE);
        bench.outlook.rate = Some(20_000.0);
        // As above, but the third is a frame of its own.
        for (number, id) in [(2, 1), (3, 1), (4, 2)] {
            let (number, tag) = video(number, 100);
            let tag = Tag { frame: Some(Frame::alone(id, 256, 2000, tag.expiry)), ..tag };
            bench.queue.push(&bench.outlook, tag, number, &mut Vec::new()).unwrap();
        }
        assert_eq!(bench.pop_all(), ["2", "3", "4"]);
    }

    #[test]
    fn what_sound_takes_is_not_there_for_frames() {
        let mut bench = Bench::new(Method::InTime, Limits::NONE);
        let sound = |number| (number, Tag { priority: Priority::FIRST, ..video(number, 9000).1 });
        // 1000 bytes in 20 ms: three go until 90.
        bench.outlook.rate = Some(50_000.0);
        assert!(bench.push([video(1, 90), video(2, 90), video(3, 90)]).is_empty());
        assert_eq!(bench.pop_all(), ["1", "2", "3"]);
        for n in 4..40 {
            assert!(bench.push([sound(n)]).is_empty());
            assert_eq!(bench.pop(), [n.to_string()]);
            bench.pass(40);
        }
        // Half of all that goes is audio now. The last of three would go in 80 ms.
        let at = 36 * 40 + 70;
        assert!(bench.push([video(40, at), video(41, at), video(42, at), video(43, at + 5)]).is_empty());
        assert_eq!(bench.pop(), ["40 expired", "41 expired", "42 expired", "43"]);
        bench.pass(5000);
        let at = at + 5000;
        assert!(bench.push([video(44, at), video(45, at), video(46, at)]).is_empty());
        assert_eq!(bench.pop_all(), ["44", "45", "46"], "nobody speaks any more");
    }

    #[test]
    fn a_frame_waits_for_sound_that_would_be_late_behind_other_sound() {
        let mut bench = settled();
        bench.outlook.one_way_delay = Duration::ZERO;
        // 20 ms for each, and 40 at half of the rate.
        (bench.outlook.rate, bench.outlook.packet_size) = (Some(50_000.0), Some(1000.0));
        assert!(bench.push([video(1, 3150), audio(2, 3170)]).is_empty());
        assert_eq!(bench.pop(), ["1"], "2 has 90 to spare then");
        assert!(bench.push([video(3, 3150), audio(4, 3170), audio(5, 3170), audio(6, 3170)]).is_empty());
        assert_eq!(bench.pop(), ["2"], "6 would have 10 to spare behind 3 and the others");
        assert_eq!(bench.pop(), ["3"]);
    }

    #[test]
    fn a_full_queue_gives_up_frames_and_not_parts_of_them() {
        let mut bench = Bench::new(Method::InTime, Limits::messages(4));
        assert!(bench.push([video(1, 90), video(2, 90), b_frame(3, 190), video(4, 190)]).is_empty());
        assert_eq!(bench.push([video(5, 190)]), ["3 replaced"]);
        assert_eq!(bench.push([audio(6, 90), b_frame(7, 180)]), ["1 replaced", "2 replaced"]);
        assert_eq!(bench.push([video(8, 190)]), ["7 replaced"], "it is of the frame of 4 and 5");
        assert_eq!(bench.push([video(9, 190)]), ["4 replaced", "5 replaced", "8 replaced", "9 no room"]);
        assert_eq!(bench.push([video(10, 190), video(11, 290)]), ["10 no room"], "nor does the rest of it go");
        assert_eq!(
            bench.push([audio(12, 90), audio(13, 90), audio(14, 90), audio(15, 90)]),
            ["11 replaced", "6 replaced"]
        );
        assert_eq!(bench.push([video(16, 290), b_frame(17, 300)]), ["16 no room", "17 no room"]);
        assert_eq!(bench.pop_all(), ["12", "13", "14", "15"]);
    }
}
