use super::{Chunk, Ledger};
use crate::number::Tsn;
use crate::path::PathIndex;
use braidcast_core::Instant;
use std::collections::VecDeque;

/// Chunks that are to go over all paths
/// ([`SchedulerKind::Redundant`](braidcast_mpath::SchedulerKind::Redundant)), oldest first, each
/// with the paths that it went over: bit n stands for the path with index n.
#[derive(Debug, Default)]
pub(super) struct Everywhere(VecDeque<(Tsn, u32)>);

const fn bit(path: PathIndex) -> u32 {
    1 << (path.get() % u32::BITS as usize)
}

impl Ledger {
    /// The chunk `tsn`, just sent, is to go over all other paths too.
    pub(crate) fn owe_everywhere(&mut self, tsn: Tsn) {
        if let Some(path) = self.get(tsn).and_then(|chunk| chunk.path) {
            self.everywhere.0.push_back((tsn, bit(path)));
        }
    }

    /// Returns `true` if a chunk may be owed to some path.
    pub(crate) fn owes_everywhere(&self) -> bool {
        !self.everywhere.0.is_empty()
    }

    /// The next chunk that is owed to one of the paths `open`, and that path. What has arrived or
    /// is to be sent again is not owed.
    pub(crate) fn next_everywhere(&mut self, open: impl Iterator<Item = PathIndex>) -> Option<(Tsn, PathIndex)> {
        let open = open.fold(0, |all, path| all | bit(path));
        let in_flight = |it: &Self, tsn| it.get(tsn).is_some_and(Chunk::is_in_flight);
        while let Some(&(tsn, _)) = self.everywhere.0.front().filter(|(tsn, _)| !in_flight(self, *tsn)) {
            debug_assert!(tsn < self.next_tsn());
            self.everywhere.0.pop_front();
        }
        let owed = self.everywhere.0.iter().find(|&&(tsn, over)| open & !over != 0 && in_flight(self, tsn));
        owed.map(|&(tsn, over)| (tsn, PathIndex::new((open & !over).trailing_zeros() as usize)))
    }

    /// The chunk `tsn` leaves over `path` too, where it cannot be acknowledged before `answers`,
    /// or, with `None`, does not fit. It is owed no more once all of `paths` had it.
    pub(crate) fn send_everywhere(
        &mut self,
        tsn: Tsn,
        path: PathIndex,
        answers: Option<Instant>,
        paths: u32,
    ) -> Option<Chunk> {
        let at = self.everywhere.0.binary_search_by_key(&tsn, |&(tsn, _)| tsn).ok()?;
        let over = &mut self.everywhere.0[at].1;
        *over |= bit(path);
        if over.count_ones() >= paths {
            self.everywhere.0.remove(at);
        }
        let chunk = self.get_mut(tsn)?;
        if let Some(answers) = answers {
            chunk.copy_answers = if chunk.copied { chunk.copy_answers.min(answers) } else { answers };
            chunk.copied = true;
        }
        Some(*chunk)
    }
}
