use super::{Books, Chunk, ChunkState, Ledger};
use crate::api::Abandonment;
use crate::number::Tsn;
use crate::tx::{MessageKey, Piece};

impl Ledger {
    /// Abandons a message. Delayed: chunks of it that are in flight stay so until they are
    /// acknowledged, and then count, or are lost, and then are abandoned (PRCMT §4.2); immediate:
    /// they too are abandoned now.
    pub(crate) fn abandon(&mut self, mut books: Books<'_>, key: MessageKey) {
        self.give_up(&mut books, key);
        self.check(books.queue);
    }

    /// Counts what the queue before the streams discarded when it was asked for the next message, and informs the
    /// application. Parts of it may be out.
    pub(crate) fn account_for_discarded(&mut self, mut books: Books<'_>) {
        while let Some((key, why)) = books.queue.next_discarded() {
            if books.queue.is_untouched(key) {
                books.forget_discarded(key, why);
            } else {
                self.abandon(Books { queue: &mut *books.queue, journal: &mut *books.journal }, key);
            }
        }
    }

    pub(super) fn give_up(&mut self, books: &mut Books<'_>, key: MessageKey) {
        let queue = &mut *books.queue;
        if queue.is_untouched(key) {
            return books.give_up_unsent(key);
        }
        let cut = queue.get(key).is_cut();
        let message = queue.get_mut(key);
        let told = core::mem::replace(&mut message.abandoned, true);
        let (priority, range) = (message.priority, message.tsns());
        for tsn in range.into_iter().flat_map(|(first, last)| first.until(last.next())) {
            let Some(chunk) = self.get(tsn).copied().filter(|chunk| chunk.piece.message == key) else { continue };
            match chunk.state {
                ChunkState::Lost => {
                    self.repeats.remove(chunk.origin(), priority, tsn);
                    self.set_abandoned(tsn, ChunkState::Abandoned);
                }
                ChunkState::InFlight if self.abandonment.is_immediate() => {
                    let rule = self.window_waits_for;
                    if let Some(path) = chunk.path {
                        self.lane_mut(path).cumack.on_lost(rule, tsn);
                    }
                    self.set_abandoned(tsn, ChunkState::AbandonedInFlight);
                    if self.abandonment == Abandonment::Immediate {
                        self.stop_counting(tsn);
                    }
                }
                _ => {}
            }
        }
        queue.drop_rest(key);
        if !cut {
            // A part went out: a TSN that is never sent stands for the rest, so that FORWARD-TSN can speak of it.
            let piece = Piece { message: key, offset: 0, len: 0, fsn: 0, first: false, last: true };
            self.give_tsn(queue, Chunk::new(piece, ChunkState::Abandoned));
        }
        if !told {
            books.journal.abandoned(queue.get(key), None, false);
        }
        if queue.get(key).tsns().is_none() {
            queue.release(key);
        }
        self.advance_forward();
    }

    /// The chunk `tsn`, abandoned in flight, is no longer outstanding (RFC 3758 §3.5 A2).
    fn stop_counting(&mut self, tsn: Tsn) {
        self.set_abandoned(tsn, ChunkState::Abandoned);
        let Some(chunk) = self.get(tsn).copied() else { return };
        self.in_flight -= chunk.len();
        self.peer_room += chunk.len();
        if let Some(path) = chunk.path {
            self.lane_mut(path).in_flight -= chunk.len();
            self.oldest_is_gone(path);
        }
    }

    fn set_abandoned(&mut self, tsn: Tsn, state: ChunkState) {
        if let Some(chunk) = self.get_mut(tsn) {
            chunk.state = state;
        }
    }

    /// After a restart of the peer: what was out is out of reach. Nothing is out any more.
    pub(crate) fn abandon_all(&mut self, books: Books<'_>) {
        let mut told = None;
        self.repeats = super::Repeats::default();
        while let Some(chunk) = self.chunks.front().copied() {
            let key = chunk.piece.message;
            if chunk.has_message() && told != Some(key) {
                let message = books.queue.get_mut(key);
                if message.is_cut() && !message.abandoned {
                    message.abandoned = true;
                    books.journal.abandoned(message, None, false);
                    told = Some(key);
                }
            }
            self.pop(books.queue);
        }
        self.lanes.clear();
        self.copies.clear();
        self.everywhere = super::Everywhere::default();
        self.in_flight = 0;
        self.check(books.queue);
    }
}
