//! Chunks that go over every path, as the scheduler `redundant` has it. What goes over a second
//! path is outside of its window, so it goes no faster than that window lets through in a round
//! trip.

use super::Open;
use crate::number::Tsn;
use crate::path::PathIndex;
use crate::tx::Chunk;
use crate::wire::{Header, padded};
use braidcast_core::Instant;

impl Open {
    /// The next chunk that is owed to a path that can carry it now, and the path.
    pub(super) fn next_everywhere(&mut self, now: Instant) -> Option<(Tsn, PathIndex)> {
        if !self.ledger.owes_everywhere() {
            return None;
        }
        let mut open = [None; u32::BITS as usize];
        for (place, open) in open.iter_mut().enumerate().take(self.paths.places()) {
            let index = self.paths.at(place).filter(|&index| self.paths.is_best(index));
            *open = index.filter(|&index| self.paths[index].may_copy(now));
        }
        let (tsn, index) = self.ledger.next_everywhere(open.into_iter().flatten())?;
        let fits = |len: usize| Header::LEN + padded(self.data_header() + len) <= self.paths[index].mtu();
        if self.ledger.get(tsn).is_some_and(|chunk| fits(chunk.len())) {
            return Some((tsn, index));
        }
        // It was cut for larger packets than this path carries.
        self.ledger.send_everywhere(tsn, index, None, u32::MAX);
        None
    }

    /// Appends the chunks that are owed to the path `index`, as far as they fit.
    pub(super) fn put_everywhere(&mut self, now: Instant, index: PathIndex, end: usize, buf: &mut Vec<u8>) {
        while let Some((tsn, _)) = self.next_everywhere(now).filter(|&(_, owed)| owed == index) {
            let Some(len) = self.ledger.get(tsn).map(Chunk::len) else { return };
            let size = padded(self.data_header() + len);
            if buf.len() + size > end {
                return;
            }
            let answers = Some(now + self.paths[index].rtt().min().unwrap_or_default());
            let paths = self.paths.best().count() as u32;
            let Some(chunk) = self.ledger.send_everywhere(tsn, index, answers, paths) else { return };
            self.put_chunk(tsn, &chunk, self.ends_burst(&chunk), buf);
            self.journal.chunk_copied(index, tsn, &chunk, self.queue.get(chunk.piece().message));
            self.paths[index].on_paced_copy_sent(size);
        }
    }
}
