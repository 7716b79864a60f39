use crate::load::Load;
use crate::{Outlook, Priority, Tag};
use std::collections::BTreeMap;

/// Bytes that headers add to a message, about: those of IP, UDP, SCTP and its chunk, and of encryption.
const HEADERS: usize = 80;
/// Of what the path carries, so much is to be used: what is late takes the time of what follows.
const USED: f64 = 0.9;

/// What of the first priority goes if that alone is more than the path carries: of each elementary stream evenly
/// spaced messages, so that of the audio every second or third frame is heard.
///
/// Memory: some 50 bytes for each elementary stream.
#[derive(Debug)]
pub(crate) struct Thinning {
    load: Load,
    /// By elementary stream: messages that may go, with the fraction of the next one. Empty while all may.
    allowed: BTreeMap<u16, f64>,
}

impl Thinning {
    pub(crate) const fn new() -> Self {
        Self { load: Load::new(), allowed: BTreeMap::new() }
    }

    /// Returns `true` if the first priority is too much by itself.
    pub(crate) const fn is_needed(&self) -> bool {
        self.load.is_excessive()
    }

    /// A message comes, of the first priority or another one.
    pub(crate) fn on_push(&mut self, outlook: &Outlook, tag: &Tag) {
        let bytes = if tag.priority == Priority::FIRST { tag.len + HEADERS } else { 0 };
        self.load.on_push(outlook.now, bytes, outlook.rate);
    }

    /// Returns `true` if a message of the first priority may go, which counts as gone then.
    pub(crate) fn passes(&mut self, tag: &Tag) -> bool {
        let share = USED * self.load.carried();
        if !self.is_needed() || share >= 1.0 {
            self.allowed.clear();
            return true;
        }
        let stream = tag.frame.map_or(0, |frame| frame.stream);
        let allowed = self.allowed.entry(stream).or_default();
        *allowed += share;
        let passes = *allowed >= 1.0;
        if passes {
            *allowed -= 1.0;
        }
        passes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::audio;
    use braidcast_core::Instant;

    /// Which of 400 messages of audio pass, one every 10 ms, over a path that carries `rate` bytes in a second.
    fn passing(thinning: &mut Thinning, from: u64, rate: f64) -> Vec<bool> {
        let next = |n| {
            let tag = Tag { len: 920, ..audio(1, 10_000_000).1 };
            let outlook = Outlook { now: Instant::from_millis(10 * n), rate: Some(rate), ..Outlook::default() };
            thinning.on_push(&outlook, &tag);
            thinning.passes(&tag)
        };
        (from..from + 400).map(next).collect()
    }

    #[test]
    fn what_is_too_much_goes_evenly_spaced_and_all_of_it_once_it_fits() {
        let mut thinning = Thinning::new();
        let half = passing(&mut thinning, 0, 50_000.0);
        let gaps: Vec<usize> = half[300..].split(|passes| *passes).map(<[bool]>::len).collect();
        // Of 100 kB in a second 45 go.
        assert!(gaps[1..gaps.len() - 1].iter().all(|gap| (1..=2).contains(gap)), "{gaps:?}");
        assert!((44..=46).contains(&half[300..].iter().filter(|passes| **passes).count()));
        assert!(passing(&mut thinning, 400, 300_000.0)[300..].iter().all(|passes| *passes));
    }
}
