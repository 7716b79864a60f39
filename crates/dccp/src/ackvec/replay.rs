use crate::seq::Seq;

/// Knows which of the last packets have come, so that none is processed twice.
///
/// The number of packets it looks back follows the sequence window; anything older counts as come.
#[derive(Debug)]
pub(crate) struct ReplayWindow {
    /// A bit for each number, at `number % bits`.
    words: Vec<u64>,
    newest: Option<Seq>,
}

impl ReplayWindow {
    /// Longest memory, packets.
    const MAX: u64 = 1 << 16;

    /// A window that looks back over at least `span` packets, 65,536 at most.
    pub(crate) fn new(span: u64) -> Self {
        Self { words: vec![0; Self::size(span)], newest: None }
    }

    fn size(span: u64) -> usize {
        (span.clamp(1, Self::MAX) as usize).div_ceil(64).next_power_of_two()
    }

    /// Looks back over `span` packets from now on, if that is more than before.
    pub(crate) fn widen(&mut self, span: u64) {
        let size = Self::size(span);
        if size <= self.words.len() {
            return;
        }
        let mut wider = Self { words: vec![0; size], newest: self.newest };
        if let Some(newest) = self.newest {
            for age in 0..wider.bits() {
                let seq = crate::seq::back(newest, age);
                // What is too old to tell now still counts as come.
                if age >= self.bits() || self.get(seq) {
                    wider.set(seq);
                }
            }
        }
        *self = wider;
    }

    const fn bits(&self) -> u64 {
        self.words.len() as u64 * 64
    }

    /// Word and bit of a number. The number of bits divides 2^48, so the ring closes.
    const fn place(&self, seq: Seq) -> (usize, u64) {
        let at = seq.get() % self.bits();
        ((at / 64) as usize, 1 << (at % 64))
    }

    fn get(&self, seq: Seq) -> bool {
        let (word, bit) = self.place(seq);
        self.words[word] & bit != 0
    }

    fn set(&mut self, seq: Seq) {
        let (word, bit) = self.place(seq);
        self.words[word] |= bit;
    }

    /// Notes that `seq` came; `false` if it had come before, or is too old to tell.
    pub(crate) fn insert(&mut self, seq: Seq) -> bool {
        let Some(newest) = self.newest else {
            self.newest = Some(seq);
            self.set(seq);
            return true;
        };
        if seq > newest {
            let ahead = newest.distance_to(seq);
            if ahead >= self.bits() {
                self.words.fill(0);
            } else {
                for n in 1..=ahead {
                    let (word, bit) = self.place(newest.plus(n));
                    self.words[word] &= !bit;
                }
            }
            self.newest = Some(seq);
        } else if seq.distance_to(newest) >= self.bits() || self.get(seq) {
            return false;
        }
        self.set(seq);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seq::back;
    use proptest::prelude::*;
    use std::collections::HashSet;

    #[test]
    fn a_wider_window_does_not_take_again_what_the_narrow_one_forgot() {
        let mut window = ReplayWindow::new(25);
        for step in [0, 23, 69] {
            assert!(window.insert(Seq::new(step)));
        }
        window.widen(100);
        assert!(!window.insert(Seq::new(0)));
    }

    proptest! {
        #[test]
        fn no_number_passes_twice_and_a_new_recent_one_always_does(
            start in 0_u64..1 << 48,
            steps in prop::collection::vec((-70_i64..90, any::<bool>()), 1..200),
        ) {
            let mut window = ReplayWindow::new(25);
            let (mut seen, mut newest) = (HashSet::new(), Seq::new(start));
            for (step, widen) in steps {
                if widen {
                    window.widen(100);
                }
                let seq = if step < 0 { back(newest, step.unsigned_abs()) } else { newest.plus(step as u64) };
                let fresh = seen.insert(seq.get());
                let recent = seq >= newest || seq.distance_to(newest) < 25;
                let passed = window.insert(seq);
                prop_assert!(!passed || fresh);
                prop_assert!(passed || !fresh || !recent);
                newest = crate::seq::later(newest, seq);
            }
        }
    }
}
