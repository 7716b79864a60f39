mod laid;

use crate::broken::{AllBroken, Broken};
use crate::groups::AllGroups;
use crate::load::Load;
use crate::thinning::Thinning;
use crate::{Discard, Frame, Limits, NeededBy, Outlook, Place, Planned, Priority, Refused, SendQueue, Tag, Ways, Why};
use braidcast_core::Instant;
use core::fmt;
use core::time::Duration;
use std::collections::VecDeque;

/// The level of frames that begin a group: all of it needs them.
const INTRA: usize = 1;
/// Of frames that all that follow them in their group need.
const CHAIN: usize = 2;
/// Of frames that some others need.
const REFERENCE: usize = 3;
/// Of frames that need others, and that none needs.
const LEAF: usize = 4;

/// Returns what a message is worth: 0 is worth more than 1. The first priority is worth more than
/// any frame of a group. Otherwise frames of groups go by what needs them. What stands alone, with
/// or without a frame, is worth what its priority says on the same scale.
const fn level(tag: &Tag) -> usize {
    let priority = tag.priority.index();
    if priority == 0 {
        return 0;
    }
    match &tag.frame {
        Some(frame) if !frame.is_alone() => match frame.needed_by {
            NeededBy::Rest if frame.begins_group() => INTRA,
            NeededBy::Rest => CHAIN,
            NeededBy::Some => REFERENCE,
            NeededBy::Nothing => LEAF,
        },
        _ => priority,
    }
}

/// Returns the frame of a message of a group of pictures.
fn of_group(tag: &Tag) -> Option<&Frame> {
    tag.frame.as_ref().filter(|frame| !frame.is_alone())
}

/// An older frame goes first only if all more important ones would still be in time at this share
/// of the rate.
const SPARE: f64 = 0.5;

/// Multiple of the rate at which a frame must be in time to go before others. It is higher for
/// frames that many others need: the rate may rise, and without them nothing is gained.
const fn taken_at(level: usize) -> f64 {
    match level {
        0 | INTRA => 6.0,
        // The rate is the highest of late. Over recorded cellular links the next 200 ms bring 0.7
        // of it, in the median.
        CHAIN => 0.65,
        // In overload these wait for those that matter more, and more of such will come: what has
        // hardly time enough is late then.
        _ => 0.33,
    }
}

/// A frame is discarded once it would be late even at this multiple of the rate.
const fn kept_at(level: usize) -> f64 {
    match level {
        0 | INTRA => 6.0,
        CHAIN => 2.0,
        _ => 1.2,
    }
}

/// The same for the first priority if it is [too much](Thinning) by itself: what is late takes the time of what
/// follows.
const LEAN: f64 = 1.0;

/// The same for a message that was begun; `None`: it is not abandoned for its length.
pub(crate) const fn finished_at(tag: &Tag) -> Option<f64> {
    match level(tag) {
        0 | INTRA => None,
        level => Some(kept_at(level)),
    }
}

/// Returns the rank of a message among those that were taken out. A frame that was begun is
/// finished: only the first priority and frames that begin a group go before the rest of it.
pub(crate) const fn sending_rank(tag: &Tag) -> u8 {
    match level(tag) {
        level @ (0 | INTRA) => level as u8,
        _ => CHAIN as u8,
    }
}

/// Audio first. Then the frames by what they bring to what can be shown: those that need none
/// before those that need them, so that in lasting overload those go missing that no other needs,
/// then the ends of groups, and what others need has the most time to be sent again. A frame
/// that would come too late at the rate that the path delivers lets others go first, and so does
/// what needs a frame that waits. What needs a frame that is lost goes when nothing else
/// waits.
///
/// What never expires is never discarded: it is refused while there is no room.
///
/// While all frames that matter more would be in time at half of the rate, they go in the order in
/// which they came: what is too much for less than the latency is only late then, and nothing goes
/// missing.
///
/// If the frames that others need are by themselves [more than the path carries](Load), leaving out
/// the small ones that none needs would save little and show less: all of a group goes in its
/// order, and its end is lost. What needs a lost frame is sent all the same, since nothing else
/// shows that the path carries more again, but not when the next group [is near](Groups), which is
/// to find the path empty, nor when it has begun: then receivers that hand on what they can at once
/// learn what will not come. If its first frame needs all that the path has, a group ends early
/// even if it is not too much, and a little if small frames are left out of one group after the
/// other.
#[derive(Debug)]
pub(crate) struct ByWorth<M> {
    /// In the order in which they came, which is that of decoding.
    waiting: VecDeque<Entry<M>>,
    bytes: usize,
    /// What is lost of the groups that come in now.
    broken: AllBroken,
    /// What waits, while `choose` looks.
    waits: AllBroken,
    /// The place of what goes next, as chosen when something last came or went.
    next: Option<usize>,
    load: Load,
    /// What goes of the first priority, which may be too much by itself.
    first: Thinning,
    groups: AllGroups,
    limits: Limits,
}

#[derive(Debug)]
struct Entry<M> {
    tag: Tag,
    /// What it needs is lost.
    hopeless: bool,
    /// It is of the end of its group that is cut off.
    cut: bool,
    /// Bytes of it that were taken before, which its tag has no more.
    taken: usize,
    /// A plan does without it.
    left_out: bool,
    message: M,
}

impl<M> Entry<M> {
    /// What was known of it when it came.
    const fn whole(&self) -> Tag {
        Tag { len: self.tag.len + self.taken, ..self.tag }
    }
}

impl<M: fmt::Debug + Send> ByWorth<M> {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            waiting: VecDeque::new(),
            bytes: 0,
            broken: AllBroken::default(),
            waits: AllBroken::default(),
            next: None,
            load: Load::new(),
            first: Thinning::new(),
            groups: AllGroups::default(),
            limits: Limits { messages: limits.messages.max(1), ..limits },
        }
    }

    /// What matters first: a lower rank goes before a higher one.
    fn rank(&self, place: usize) -> usize {
        let Entry { tag, hopeless, .. } = &self.waiting[place];
        let in_order = self.load.is_excessive() && of_group(tag).is_some();
        let level = if in_order { level(tag).min(CHAIN) } else { level(tag) };
        level + if *hopeless { Priority::LEVELS } else { 0 }
    }

    /// Returns `true` if a message would be in time if `before` bytes went before it at `share` of
    /// the rate.
    fn in_time(tag: &Tag, before: usize, share: f64, outlook: &Outlook) -> bool {
        let time = outlook.takes(before + tag.len, share).unwrap_or_default();
        !tag.is_expired(&Outlook { now: outlook.now + time, ..*outlook })
    }

    /// The place of what matters most of those that `fit`, which is asked in the order in which
    /// they came.
    fn first(&self, mut fit: impl FnMut(&Entry<M>) -> bool) -> Option<usize> {
        let places = self.waiting.iter().enumerate().filter(|(_, entry)| fit(entry)).map(|(place, _)| place);
        places.min_by_key(|&place| (self.rank(place), place))
    }

    /// Returns `true` if it would be in time if it went next.
    fn is_in_time(entry: &Entry<M>, outlook: &Outlook) -> bool {
        Self::in_time(&entry.tag, outlook.ahead, taken_at(level(&entry.tag)), outlook)
    }

    /// Chooses what goes next of what is in time and needs nothing that waits: what came first
    /// if all that matters more can wait for it, else what matters most. If there is none, it
    /// chooses what matters most of all.
    fn choose(&mut self, outlook: &Outlook) {
        self.waits.clear();
        let (mut oldest, mut most) = (None, None);
        for (place, entry) in self.waiting.iter().enumerate() {
            let leans = of_group(&entry.tag).is_some_and(|frame| {
                let leans = self.waits.is_needed_by(frame);
                self.waits.add(frame);
                leans
            });
            if (leans && !entry.hopeless) || !Self::is_in_time(entry, outlook) {
                continue;
            }
            if !entry.hopeless {
                oldest.get_or_insert(place);
            }
            let worth = (self.rank(place), place);
            most = Some(most.map_or(worth, |other| worth.min(other)));
        }
        let oldest = oldest.filter(|&place| self.can_wait_for(place, outlook));
        self.next = oldest.or(most.map(|(_, place)| place)).or_else(|| self.first(|_| true));
    }

    /// Returns `true` if all that matters more than what is at `place` would be in time behind it,
    /// with time to spare. Audio waits for nothing.
    fn can_wait_for(&self, place: usize, outlook: &Outlook) -> bool {
        let rank = self.rank(place);
        let mut before = outlook.ahead + self.waiting[place].tag.len;
        let mut more = (0..self.waiting.len()).filter(|&other| self.rank(other) < rank);
        more.all(|other| {
            let tag = &self.waiting[other].tag;
            let can_wait = tag.priority != Priority::FIRST && Self::in_time(tag, before, SPARE, outlook);
            before += tag.len;
            can_wait
        })
    }

    /// Returns `true` if another message of `len` bytes that never expires fits beside those that
    /// wait: none of them is ever discarded.
    fn has_lasting_room(&self, len: usize) -> bool {
        let lasting = self.waiting.iter().filter(|entry| entry.tag.expiry.is_none());
        let (messages, bytes) = lasting.fold((1, len), |(messages, bytes), it| (messages + 1, bytes + it.tag.len));
        messages <= self.limits.messages && bytes <= self.limits.bytes
    }

    fn remove(&mut self, place: usize) -> Option<(Tag, M)> {
        let Entry { tag, message, .. } = self.waiting.remove(place)?;
        self.bytes -= tag.len;
        Some((tag, message))
    }

    /// Abandons the message at `place`, and hope for what needs it.
    fn give_up(&mut self, place: usize, why: Why, gone: &mut Vec<Discard<M>>) {
        let hopeless = self.waiting.get(place).is_some_and(|entry| entry.hopeless);
        let Some(whole) = self.waiting.get(place).map(Entry::whole) else { return };
        let Some((tag, message)) = self.remove(place) else { return };
        if let Some(frame) = of_group(&tag).filter(|frame| frame.needed_by != NeededBy::Rest && !hopeless) {
            self.groups.on_left_out(frame, tag.len);
        }
        gone.push(Discard { why, tag, message });
        self.lose(&whole);
    }

    /// A message is lost, and with it its frame and what needs that.
    fn lose(&mut self, tag: &Tag) {
        let Some(frame) = tag.frame else { return };
        let in_part = tag.len < frame.bytes as usize;
        if frame.needed_by == NeededBy::Nothing && !in_part {
            return;
        }
        let mut broken = Broken::of(&frame);
        broken.add(&frame, in_part);
        for entry in &mut self.waiting {
            entry.hopeless |= entry.tag.frame.is_some_and(|frame| broken.breaks(&frame));
        }
        if !frame.is_alone() {
            self.broken.merge(&broken);
        }
    }

    /// Abandons what is late whatever goes before it, and what is not worth its room on the path.
    fn drop_late(&mut self, outlook: &Outlook, gone: &mut Vec<Discard<M>>) {
        let mut place = 0;
        while let Some(entry) = self.waiting.get(place) {
            let (level, group) = (level(&entry.tag), of_group(&entry.tag).and_then(|frame| self.groups.of(frame)));
            let is_over = || group.zip(of_group(&entry.tag)).is_some_and(|(group, frame)| group.is_over(frame));
            let is_near = || self.load.is_excessive() && group.is_some_and(|group| group.is_next_near(outlook.now));
            let in_the_way = || level > INTRA && group.is_some_and(|group| group.needs_room(outlook));
            let lean = self.first.is_needed();
            let left_out = lean && level > 0;
            let of_use = !(left_out || entry.cut || entry.hopeless && (is_over() || is_near()) || in_the_way());
            let share = if lean { LEAN } else { kept_at(level) };
            let lasts = entry.tag.expiry.is_none();
            if lasts || of_use && Self::in_time(&entry.tag, 0, share, outlook) {
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
            self.lose(&tag);
            return Err(Refused::TooLarge(message));
        }
        if tag.expiry.is_none() && !self.has_lasting_room(tag.len) {
            return Err(Refused::Full(message));
        }
        let frame = of_group(&tag);
        let is_needed = tag.priority == Priority::FIRST || frame.is_some_and(|frame| frame.needed_by == NeededBy::Rest);
        self.load.on_push(outlook.now, if is_needed { tag.len } else { 0 }, outlook.rate);
        self.first.on_push(outlook, &tag);
        if tag.priority == Priority::FIRST && tag.expiry.is_some() && !self.first.passes(&tag) {
            self.lose(&tag);
            gone.push(Discard { why: Why::NoRoom, tag, message });
            return Ok(());
        }
        let group = frame.map(|frame| self.groups.on_push(outlook.now, &tag, frame));
        let cut = level(&tag) > INTRA && group.is_some_and(|group| group.is_cut(outlook.now));
        let hopeless = frame.is_some_and(|frame| self.broken.breaks(frame));
        self.waiting.push_back(Entry { tag, hopeless, cut, taken: 0, left_out: false, message });
        self.bytes += tag.len;
        while self.waiting.len() > self.limits.messages || self.bytes > self.limits.bytes {
            let expires = |entry: &Entry<M>| entry.tag.expiry.is_some() && entry.taken == 0;
            let expires = (0..self.waiting.len()).filter(|&place| expires(&self.waiting[place]));
            let worst = expires.max_by_key(|&place| (self.rank(place), core::cmp::Reverse(place)));
            let Some(worst) = worst else { break };
            let why = if worst + 1 == self.waiting.len() { Why::NoRoom } else { Why::Replaced };
            self.give_up(worst, why, gone);
        }
        self.choose(outlook);
        Ok(())
    }

    fn peek(&self) -> Option<&Tag> {
        self.next.and_then(|place| self.waiting.get(place)).map(|entry| &entry.tag)
    }

    /// None: what goes is chosen anew by the time at which it goes.
    fn certain(&self, _: &Outlook) -> Option<&Tag> {
        None
    }

    fn pop(&mut self, outlook: &Outlook, gone: &mut Vec<Discard<M>>) -> Option<(Tag, M)> {
        self.drop_late(outlook, gone);
        self.choose(outlook);
        let taken = self.next.and_then(|place| self.remove(place));
        self.choose(outlook);
        taken
    }

    fn peek_on_time(&self, outlook: &Outlook) -> Option<&Tag> {
        self.first(|entry| Self::is_in_time(entry, outlook)).map(|place| &self.waiting[place].tag)
    }

    fn pop_on_time(&mut self, outlook: &Outlook) -> Option<(Tag, M)> {
        let place = self.first(|entry| Self::is_in_time(entry, outlook))?;
        let taken = self.remove(place);
        self.choose(outlook);
        taken
    }

    fn planned(
        &mut self,
        now: Instant,
        ways: &mut Ways,
        mine: usize,
        under_way: Option<(usize, Option<Instant>)>,
        may: &dyn Fn(&M) -> bool,
    ) -> Option<Planned> {
        self.take_next(now, ways, mine, under_way, may)
    }

    fn at(&self, place: Place) -> Option<(&Tag, &M)> {
        self.waiting.get(place.0).map(|entry| (&entry.tag, &entry.message))
    }

    fn take_part(&mut self, outlook: &Outlook, place: Place, bytes: usize) {
        let Some(entry) = self.waiting.get_mut(place.0) else { return };
        let bytes = bytes.min(entry.tag.len);
        entry.tag.len -= bytes;
        entry.taken += bytes;
        self.bytes -= bytes;
        if entry.tag.len == 0 {
            self.waiting.remove(place.0);
        }
        self.choose(outlook);
    }

    fn withdraw(&mut self, asked: &dyn Fn(&M) -> bool) -> Option<Tag> {
        let place = self.waiting.iter().position(|entry| entry.taken > 0 && asked(&entry.message))?;
        let (tag, _) = self.remove(place)?;
        self.next = None;
        Some(tag)
    }

    fn on_lost(&mut self, tag: &Tag) {
        self.lose(tag);
    }

    fn time(&self) -> Option<Duration> {
        self.groups.time()
    }

    fn is_carried(&self, now: Instant, ahead: usize, delivered: &dyn Fn(f64) -> f64) -> bool {
        let mut bytes = ahead;
        let hopeful = self.waiting.iter().filter(|entry| !entry.hopeless && !entry.cut);
        hopeful.map(|entry| &entry.tag).all(|tag| {
            bytes += tag.len;
            tag.is_easy(now, bytes, delivered)
        }) && self.groups.are_carried(now, bytes, delivered)
    }

    fn len(&self) -> usize {
        self.waiting.len()
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests;
