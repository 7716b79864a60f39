use crate::{Frame, Outlook, Tag};
use braidcast_core::Instant;
use core::time::Duration;

/// A group that has not begun so long after its time is not waited for.
const OVERDUE: Duration = Duration::from_millis(50);
/// Share of its lifetime above which the first frame of a group needs the whole path.
const TIGHT: f64 = 0.6;
/// The next group is near in this last share of a group's length.
const CLEARED: f64 = 0.25;

/// What is cut off the end of a group, in shares of it, for each share that is left out of its
/// middle; and how long that is at most.
const CUT: f64 = 2.0;
const LONGEST_CUT: Duration = Duration::from_millis(200);
/// Groups whose lengths differ by more than this share begin with changes of the scene, and nobody
/// knows when the next one does.
const UNEVEN: f64 = 0.05;

/// Before it is known how long groups are, the next one may begin at any moment after this. Live encoders make few that
/// are shorter, and their length is known once the first is over.
const SHORTEST: Duration = Duration::from_millis(500);

/// When groups of an elementary stream begin, which encoders do at even distances as a rule, and
/// with what.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Groups {
    /// The first frame of the latest one.
    first: Option<First>,
    /// From the one before it to the latest one.
    length: Option<Duration>,
    /// That is about as long as the one before took, or there was none before it: the next will be, too.
    is_even: bool,
    /// Bytes of the latest one, and those of them that were left out for want of time though
    /// nothing that they need was lost.
    bytes: usize,
    left_out: usize,
    /// Bytes of the one before it.
    bytes_before: usize,
    /// Which share was left out of the one before it and of the one before that.
    shares: [f64; 2],
}

#[derive(Clone, Copy, Debug)]
struct First {
    frame: u64,
    at: Instant,
    bytes: usize,
    /// It was of use within this time.
    lifetime: Option<Duration>,
    /// It had to be there within this time to be shown.
    time: Option<Duration>,
}

impl Groups {
    /// A message of `frame` comes.
    fn on_push(&mut self, now: Instant, tag: &Tag, frame: &Frame) {
        match &mut self.first {
            // It may come in parts.
            Some(first) if first.frame == frame.id => first.bytes += tag.len,
            first if frame.begins_group() => {
                let length = first.map(|first| now.since(first.at));
                let both = self.length.zip(length);
                self.is_even = both.is_none_or(|(before, length)| length.abs_diff(before) <= before.mul_f64(UNEVEN));
                self.length = length;
                self.shares = [self.left_out as f64 / self.bytes.max(1) as f64, self.shares[0]];
                (self.bytes, self.bytes_before, self.left_out) = (0, self.bytes, 0);
                let lifetime = tag.expiry.map(|expiry| expiry.since(now));
                let time = tag.due().map(|due| due.since(now));
                *first = Some(First { frame: frame.id, at: now, bytes: tag.len, lifetime, time });
            }
            _ => {}
        }
        self.bytes += tag.len;
    }

    /// `bytes` were left out for want of time though nothing that they need was lost.
    const fn on_left_out(&mut self, bytes: usize) {
        self.left_out += bytes;
    }

    /// Returns `true` if what comes now is of the end that is cut off, as of each of the last two
    /// groups some was left out: the frames that others need are the large ones, and the last of
    /// them leave room for more others than they show.
    pub(crate) fn is_cut(&self, now: Instant) -> bool {
        let Some((first, length)) = self.first.zip(self.length) else { return false };
        let next = first.at + length;
        let share = self.shares[0].min(self.shares[1]).min(1.0);
        let cut = length.mul_f64(CUT * share).min(LONGEST_CUT);
        self.is_even && !cut.is_zero() && now + cut > next && now < next + OVERDUE
    }

    /// Returns `true` if the first frame of the next one would be in time with ease behind what is
    /// left then of `bytes` that wait and of what is still to come of this one, where `delivered(t)`
    /// bytes arrive within t seconds; and if groups have no even length. In the first group a first
    /// frame as large as this one's may come any time.
    fn is_next_carried(&self, now: Instant, bytes: usize, delivered: &dyn Fn(f64) -> f64) -> bool {
        let Some((first, time)) = self.first.and_then(|first| Some((first, first.time?))) else { return true };
        let (next, to_come) = match self.length {
            Some(length) if self.is_even => (first.at + length, self.bytes_before.saturating_sub(self.bytes)),
            Some(_) => return true,
            None => ((first.at + SHORTEST).max(now), 0),
        };
        let left = ((bytes + to_come) as f64 - delivered(next.since(now).as_secs_f64())).max(0.0);
        delivered(Tag::EASE * time.as_secs_f64()) >= left + first.bytes as f64
    }

    /// Returns the time from when `frame` is due until its group ends. Before it is known how long groups are, one
    /// counts as a second.
    pub(crate) fn rest(&self, frame: &Frame) -> Duration {
        let length = self.length.unwrap_or(Duration::from_secs(1));
        let due = |first: First| Some((frame.due?, first.at + first.time?));
        let Some((due, begins)) = self.first.and_then(due) else { return Duration::ZERO };
        // Of the group before the latest, unless it is of that.
        let ends = if self.is_over(frame) { begins } else { begins + length };
        ends.since(due).min(length)
    }

    /// Returns `true` if a later group than that of `frame` has begun.
    pub(crate) fn is_over(&self, frame: &Frame) -> bool {
        self.first.is_some_and(|first| frame.group < first.frame)
    }

    /// Returns `true` if the next one is to begin so soon that what is sent now may delay it.
    pub(crate) fn is_next_near(&self, now: Instant) -> bool {
        let near = |first: First, length: Duration| {
            let since = now.since(first.at);
            since >= length.mul_f64(1.0 - CLEARED) && since < length + OVERDUE
        };
        self.first.zip(self.length).is_some_and(|(first, length)| near(first, length))
    }

    /// Returns `true` if what is sent now would still be in flight when the next one is to begin,
    /// whose first frame needs all the path has to be in time.
    pub(crate) fn needs_room(&self, outlook: &Outlook) -> bool {
        let Some((first, length)) = self.first.zip(self.length) else { return false };
        let Some(takes) = outlook.takes(first.bytes, 1.0) else { return false };
        let next = first.at + length;
        let tight = |lifetime: Duration| takes > lifetime.saturating_sub(outlook.one_way_delay).mul_f64(TIGHT);
        outlook.now + outlook.one_way_delay > next && outlook.now < next + OVERDUE && first.lifetime.is_some_and(tight)
    }
}

/// The groups of each elementary stream.
#[derive(Debug, Default)]
pub(crate) struct AllGroups(Vec<(u16, Groups)>);

impl AllGroups {
    /// Elementary streams at most; more than a multiplexer carries.
    const STREAMS: usize = 64;

    /// A message of `frame` comes. Returns the groups of its elementary stream.
    pub(crate) fn on_push(&mut self, now: Instant, tag: &Tag, frame: &Frame) -> &Groups {
        let at = self.0.iter().position(|(stream, _)| *stream == frame.stream).unwrap_or_else(|| {
            if self.0.len() == Self::STREAMS {
                self.0.remove(0);
            }
            self.0.push((frame.stream, Groups::default()));
            self.0.len() - 1
        });
        let groups = &mut self.0[at].1;
        groups.on_push(now, tag, frame);
        groups
    }

    /// Returns the groups of the elementary stream that `frame` is of.
    pub(crate) fn of(&self, frame: &Frame) -> Option<&Groups> {
        self.0.iter().find(|(stream, _)| *stream == frame.stream).map(|(_, groups)| groups)
    }

    /// The shortest time that the first frame of the latest group has.
    pub(crate) fn time(&self) -> Option<Duration> {
        self.0.iter().filter_map(|(_, groups)| groups.first?.time).min()
    }

    /// Returns `true` if the next group of each would begin in time with ease.
    pub(crate) fn are_carried(&self, now: Instant, bytes: usize, delivered: &dyn Fn(f64) -> f64) -> bool {
        self.0.iter().all(|(_, groups)| groups.is_next_carried(now, bytes, delivered))
    }

    /// `bytes` of `frame` were left out for want of time though nothing that it needs was lost.
    pub(crate) fn on_left_out(&mut self, frame: &Frame, bytes: usize) {
        if let Some((_, groups)) = self.0.iter_mut().find(|(stream, _)| *stream == frame.stream) {
            groups.on_left_out(bytes);
        }
    }
}
