use crate::seq::Seq;
use std::collections::VecDeque;

/// Which loss intervals lasted two round trips at most, as the sender knows it from its window counter: in those every
/// loss counts (RFC 5622 §5, RFC 4828 §4.4). Needed where the receiver leaves the loss event rate to us.
#[derive(Debug, Default)]
pub(in crate::ccid) struct ShortIntervals {
    /// The first number of each window counter, which is counted on without wrapping; oldest first.
    steps: VecDeque<(Seq, u64)>,
    ccval: u8,
    /// Closed intervals that were reported before, by first number: their answer stands, as `steps` forgets.
    known: Vec<(Seq, bool)>,
}

impl ShortIntervals {
    /// Quarters of a round trip that are remembered: a closed interval is reported long before that.
    const STEPS: usize = 64;
    /// Two round trips.
    const QUARTERS: u64 = 8;

    /// Data packet `seq` leaves with this window counter.
    pub(in crate::ccid) fn sent(&mut self, seq: Seq, ccval: u8) {
        let quarters = u64::from(ccval.wrapping_sub(self.ccval) & 15);
        let total = self.steps.back().map_or(0, |&(_, total)| total);
        if quarters > 0 || self.steps.is_empty() {
            if self.steps.len() == Self::STEPS {
                self.steps.pop_front();
            }
            self.steps.push_back((seq, total + quarters));
            self.ccval = ccval;
        }
    }

    /// The window counter of `seq`, if it is remembered.
    fn counter(&self, seq: Seq) -> Option<u64> {
        let later = self.steps.partition_point(|&(first, _)| first <= seq);
        self.steps.get(later.checked_sub(1)?).map(|&(_, total)| total)
    }

    /// Returns `true` if the interval from `start` up to before `next` is short. One that is too
    /// old to tell counts as short, which makes the rate lower.
    fn measure(&self, start: Seq, next: Seq) -> bool {
        match (self.counter(start), self.counter(next)) {
            (Some(from), Some(to)) => to.saturating_sub(from) <= Self::QUARTERS,
            _ => true,
        }
    }

    /// Turns reported intervals, as first numbers with data lengths and drop counts, newest first,
    /// into the lengths that count; `end` is the number after the newest. Also whether the current
    /// one is short, and so left out.
    pub(in crate::ccid) fn lengths(&mut self, end: Seq, intervals: &[(Seq, u32, u32)], out: &mut [f64]) -> bool {
        let mut next = end;
        for (n, (&(start, data, drops), out)) in intervals.iter().zip(out).enumerate() {
            let old = self.known.iter().find(|&&(known, _)| known == start).map(|&(_, short)| short);
            let short = old.unwrap_or_else(|| self.measure(start, next));
            if n > 0 && old.is_none() {
                self.known.push((start, short));
            }
            next = start;
            *out = if short && n > 0 && drops > 0 { f64::from(data) / f64::from(drops) } else { f64::from(data) };
        }
        self.known.retain(|(known, _)| intervals.iter().any(|(start, ..)| start == known));
        intervals.first().is_some_and(|&(start, ..)| self.measure(start, end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_of_short_intervals_all_count_and_the_answer_is_kept() {
        let mut short = ShortIntervals::default();
        // Ten packets to a quarter of a round trip.
        (0..1000).for_each(|n| short.sent(Seq::new(n), (n / 10 % 16) as u8));
        let lengths = |short: &mut ShortIntervals, end, list: &[(u64, u32, u32)]| {
            let list: Vec<_> = list.iter().map(|&(start, data, drops)| (Seq::new(start), data, drops)).collect();
            let mut out = [0.0; 3];
            let left_out = short.lengths(Seq::new(end), &list, &mut out);
            (out, left_out)
        };
        let report = [(950, 50, 2), (870, 80, 4), (600, 270, 3)];
        assert_eq!(lengths(&mut short, 1000, &report), ([50.0, 20.0, 270.0], true));
        (1000..3000).for_each(|n| short.sent(Seq::new(n), (n / 10 % 16) as u8));
        let report = [(950, 2050, 2), (870, 80, 4), (600, 270, 3)];
        assert_eq!(lengths(&mut short, 3000, &report).0, [2050.0, 20.0, 270.0]);
    }
}
