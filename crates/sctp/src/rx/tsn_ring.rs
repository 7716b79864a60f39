use core::iter;

/// A set of sequence numbers in a window that slides up: one bit each, in a ring of words.
///
/// Numbers below [`base`](Self::base) count as set: for a receiver they are received, for a sender acknowledged.
/// Memory: none until a number is set, then a power of two of words that covers the numbers held, at most 16 KiB.
#[derive(Debug)]
pub(crate) struct TsnRing {
    base: u64,
    /// One past the highest number set; `base` if none is. All bits outside `base..end` are zero.
    end: u64,
    /// Empty, or a power of two long. Number `n` is bit `n % 64` of word `n / 64 % len`.
    words: Vec<u64>,
}

impl TsnRing {
    /// How many numbers from `base` up can be set: as many as a SACK can report, whose gap offsets have 16
    /// bits and count from `base - 1` (RFC 9260 §3.3.4).
    pub(crate) const SPAN: u64 = 65_535;
    const FIRST_WORDS: usize = 4;

    /// An empty set whose window starts at `base`.
    pub(crate) const fn new(base: u64) -> Self {
        Self { base, end: base, words: Vec::new() }
    }

    /// The lowest number of the window.
    pub(crate) const fn base(&self) -> u64 {
        self.base
    }

    /// One past the highest number set; `base` if none is.
    pub(crate) const fn end(&self) -> u64 {
        self.end
    }

    /// Returns `true` if `n` is set or below the window.
    pub(crate) fn is_set(&self, n: u64) -> bool {
        n < self.base || (n < self.end && self.words[self.index(n >> 6)] >> (n & 63) & 1 == 1)
    }

    /// Sets `n`. Returns `true` if it was not set before. Outside the window nothing happens and the
    /// answer is `false`.
    pub(crate) fn set(&mut self, n: u64) -> bool {
        let mut newly = false;
        self.set_range(n, n, |_| newly = true);
        newly
    }

    /// Sets `from..=to` as far as it lies in the window and calls `newly` for each number that was not set
    /// before, going up. Words that are full already cost one comparison for 64 numbers.
    pub(crate) fn set_range(&mut self, from: u64, to: u64, mut newly: impl FnMut(u64)) {
        let from = from.max(self.base);
        let to = to.min(self.base.saturating_add(Self::SPAN - 1));
        if from > to {
            return;
        }
        self.reserve(to);
        for word in from >> 6..=to >> 6 {
            let mut mask = u64::MAX;
            if word == from >> 6 {
                mask &= u64::MAX << (from & 63);
            }
            if word == to >> 6 {
                mask &= u64::MAX >> (63 - (to & 63));
            }
            let index = self.index(word);
            let mut fresh = mask & !self.words[index];
            self.words[index] |= fresh;
            while fresh != 0 {
                newly((word << 6) + u64::from(fresh.trailing_zeros()));
                fresh &= fresh - 1;
            }
        }
        self.end = self.end.max(to.saturating_add(1));
    }

    /// Moves the window up so that it starts at `n`, and forgets what is below. Never moves down.
    pub(crate) fn clear_below(&mut self, n: u64) {
        if n <= self.base {
            return;
        }
        let cleared = n.min(self.end);
        if cleared > self.base {
            for word in self.base >> 6..cleared >> 6 {
                let index = self.index(word);
                self.words[index] = 0;
            }
            if cleared & 63 != 0 {
                let index = self.index(cleared >> 6);
                self.words[index] &= u64::MAX << (cleared & 63);
            }
        }
        self.base = n;
        self.end = self.end.max(n);
    }

    /// Moves the window up to the first number that is not set, and returns it.
    pub(crate) fn advance(&mut self) -> u64 {
        let first_missing = self.next_clear(self.base);
        self.clear_below(first_missing);
        first_missing
    }

    /// The runs of set numbers in the window, going up, each as its first and last number.
    pub(crate) fn runs(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let mut at = self.base;
        iter::from_fn(move || {
            let first = self.next_set(at)?;
            at = self.next_clear(first);
            Some((first, at - 1))
        })
    }

    /// The lowest number set at or above `at`, which must not be below the window.
    fn next_set(&self, at: u64) -> Option<u64> {
        self.scan(at, |word| word)
    }

    /// The lowest number not set at or above `at`, which must not be below the window.
    fn next_clear(&self, at: u64) -> u64 {
        self.scan(at, |word| !word).unwrap_or(self.end.max(at))
    }

    /// The first number in `at..end` whose bit is one after `view`.
    fn scan(&self, at: u64, view: impl Fn(u64) -> u64) -> Option<u64> {
        if at >= self.end {
            return None;
        }
        let mut mask = u64::MAX << (at & 63);
        for word in at >> 6..=(self.end - 1) >> 6 {
            let bits = view(self.words[self.index(word)]) & mask;
            if bits != 0 {
                return Some((word << 6) + u64::from(bits.trailing_zeros())).filter(|n| *n < self.end);
            }
            mask = u64::MAX;
        }
        None
    }

    /// Where the ring keeps the word of numbers `word * 64..`.
    fn index(&self, word: u64) -> usize {
        (word as usize) & (self.words.len() - 1)
    }

    /// Makes the ring long enough for `n`, which lies in the window.
    fn reserve(&mut self, n: u64) {
        let needed = ((n >> 6) - (self.base >> 6) + 1) as usize;
        if needed <= self.words.len() {
            return;
        }
        let mut longer = vec![0; needed.next_power_of_two().max(Self::FIRST_WORDS)];
        if self.end > self.base {
            let mask = longer.len() - 1;
            for word in self.base >> 6..=(self.end - 1) >> 6 {
                longer[word as usize & mask] = self.words[self.index(word)];
            }
        }
        self.words = longer;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[derive(Clone, Debug)]
    enum Step {
        Set(u64),
        SetRange(u64, u64),
        ClearBelow(u64),
        Advance,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => (0_u64..700).prop_map(Step::Set),
            1 => (0_u64..70_000).prop_map(Step::Set),
            2 => (0_u64..700, 0_u64..300).prop_map(|(from, len)| Step::SetRange(from, from + len)),
            1 => (0_u64..400).prop_map(Step::ClearBelow),
            2 => Just(Step::Advance),
        ]
    }

    /// What [`TsnRing::runs`] gives, found number by number.
    fn naive_runs(model: &BTreeSet<u64>) -> Vec<(u64, u64)> {
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for &n in model {
            match runs.last_mut() {
                Some((_, last)) if *last + 1 == n => *last = n,
                _ => runs.push((n, n)),
            }
        }
        runs
    }

    proptest! {
        #[test]
        fn the_ring_is_a_set(start in 0_u64..1 << 40, steps in prop::collection::vec(step(), 1..80)) {
            let mut ring = TsnRing::new(start);
            let mut model = BTreeSet::new();
            let mut base = start;
            for step in steps {
                // Steps are relative to a little below the base, so that numbers below it are tried too.
                let origin = base.saturating_sub(50);
                let inside = |base: u64, n: u64| n >= base && n - base < TsnRing::SPAN;
                match step {
                    Step::Set(n) => {
                        let n = origin + n;
                        prop_assert_eq!(ring.set(n), inside(base, n) && model.insert(n));
                    }
                    Step::SetRange(from, to) => {
                        let mut newly = Vec::new();
                        ring.set_range(origin + from, origin + to, |n| newly.push(n));
                        let expected: Vec<u64> =
                            (origin + from..=origin + to).filter(|n| inside(base, *n) && model.insert(*n)).collect();
                        prop_assert_eq!(newly, expected);
                    }
                    Step::ClearBelow(n) => {
                        ring.clear_below(origin + n);
                        base = base.max(origin + n);
                        model = model.split_off(&base);
                    }
                    Step::Advance => {
                        while model.remove(&base) {
                            base += 1;
                        }
                        prop_assert_eq!(ring.advance(), base);
                    }
                }
                prop_assert_eq!(ring.base(), base);
                prop_assert_eq!(ring.end(), model.last().map_or(base, |n| n + 1));
                prop_assert_eq!(ring.runs().collect::<Vec<_>>(), naive_runs(&model));
                for n in (origin..base + 130).chain(model.iter().copied()) {
                    prop_assert_eq!(ring.is_set(n), n < base || model.contains(&n));
                }
            }
        }
    }

    #[test]
    fn the_whole_span_fits_and_not_one_more() {
        let mut ring = TsnRing::new(63);
        assert!(ring.set(63 + TsnRing::SPAN - 1));
        assert!(!ring.set(63 + TsnRing::SPAN));
        let mut newly = 0;
        ring.set_range(0, u64::MAX, |_| newly += 1);
        assert_eq!(newly, TsnRing::SPAN - 1);
        assert_eq!(ring.runs().collect::<Vec<_>>(), [(63, 63 + TsnRing::SPAN - 1)]);
        assert_eq!(ring.advance(), 63 + TsnRing::SPAN);
        assert_eq!(ring.runs().next(), None);
    }
}
