use crate::{Outlook, Tag};
use braidcast_core::Instant;
use core::time::Duration;

/// The priority of frames that need none and begin a group.
pub(crate) const INTRA: usize = 1;
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

/// When groups begin, which encoders do at even distances as a rule, and with what.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Groups {
    /// The first frame of the latest one.
    first: Option<First>,
    /// From the one before it to the latest one.
    length: Option<Duration>,
    /// That is about as long as the one before took: the next will be, too.
    is_even: bool,
    /// All that came of it is its first frame, which may come in parts.
    is_first: bool,
    /// Bytes of the latest one, and those of them that were left out for want of time though
    /// nothing that they need was lost.
    bytes: usize,
    left_out: usize,
    /// Which share was left out of the one before it and of the one before that.
    shares: [f64; 2],
}

#[derive(Clone, Copy, Debug)]
struct First {
    at: Instant,
    bytes: usize,
    /// It had to be there within this time.
    lifetime: Option<Duration>,
}

impl Groups {
    /// A message with this tag comes.
    pub(crate) fn on_push(&mut self, now: Instant, tag: &Tag) {
        let level = tag.priority.index();
        match &mut self.first {
            Some(first) if level == INTRA && self.is_first => first.bytes += tag.len,
            first if level == INTRA => {
                let length = first.map(|first| now.since(first.at));
                let both = self.length.zip(length);
                self.is_even = both.is_some_and(|(before, length)| length.abs_diff(before) <= before.mul_f64(UNEVEN));
                self.length = length;
                self.shares = [self.left_out as f64 / self.bytes.max(1) as f64, self.shares[0]];
                (self.bytes, self.left_out) = (0, 0);
                let lifetime = tag.expiry.map(|expiry| expiry.since(now));
                *first = Some(First { at: now, bytes: tag.len, lifetime });
            }
            _ => {}
        }
        self.bytes += if level < INTRA { 0 } else { tag.len };
        self.is_first = level == INTRA || (level < INTRA && self.is_first);
    }

    /// `bytes` were left out for want of time though nothing that they need was lost.
    pub(crate) fn on_left_out(&mut self, bytes: usize) {
        self.left_out += bytes;
    }

    /// Returns `true` if what comes now is of the end that is cut off, as of each of the last two groups some
    /// was left out: the frames that others need are the large ones, and the last of them leave
    /// room for more others than they show.
    pub(crate) fn is_cut(&self, now: Instant) -> bool {
        let Some((first, length)) = self.first.zip(self.length) else { return false };
        let next = first.at + length;
        let share = self.shares[0].min(self.shares[1]).min(1.0);
        let cut = length.mul_f64(CUT * share).min(LONGEST_CUT);
        self.is_even && !cut.is_zero() && now + cut > next && now < next + OVERDUE
    }

    /// Returns `true` if the next one is to begin so soon that what is sent now may delay it.
    pub(crate) fn is_next_near(&self, now: Instant) -> bool {
        let near = |first: First, length: Duration| {
            let since = now.since(first.at);
            since >= length.mul_f64(1.0 - CLEARED) && since < length + OVERDUE
        };
        self.first.zip(self.length).is_some_and(|(first, length)| near(first, length))
    }

    /// Returns `true` if what is sent now would still be in flight when the next one is to begin, whose
    /// first frame needs all the path has to be in time.
    pub(crate) fn needs_room(&self, outlook: &Outlook) -> bool {
        let Some((first, length)) = self.first.zip(self.length) else { return false };
        let Some(takes) = outlook.takes(first.bytes, 1.0) else { return false };
        let next = first.at + length;
        let tight = |lifetime: Duration| takes > lifetime.saturating_sub(outlook.one_way_delay).mul_f64(TIGHT);
        outlook.now + outlook.one_way_delay > next && outlook.now < next + OVERDUE && first.lifetime.is_some_and(tight)
    }
}
