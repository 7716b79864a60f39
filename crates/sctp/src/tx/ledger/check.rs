use super::{ChunkState, Ledger};
use crate::tx::{MessageKey, SendQueue};
use core::cell::RefCell;

/// What recounting keeps from one time to the next, so that it does not allocate.
#[derive(Debug, Default)]
pub(super) struct Recount(RefCell<Scratch>);

#[derive(Debug, Default)]
struct Scratch {
    /// Verbs since the last time.
    verbs: usize,
    /// Of each path: bytes in flight, not acknowledged, and kept by the peer.
    lanes: Vec<[usize; 3]>,
    /// The message of each chunk.
    messages: Vec<MessageKey>,
}

impl Ledger {
    /// Chunks up to which every verb recounts; beyond, one verb in so many that the cost for each stays the same.
    const EACH_TIME: usize = 512;

    /// Recounts all sums from the chunks.
    ///
    /// # Panics
    /// If one of them is not what the verbs made of it.
    pub(super) fn check(&self, queue: &SendQueue) {
        let Scratch { verbs, lanes, messages } = &mut *self.recount.0.borrow_mut();
        *verbs += 1;
        if *verbs * Self::EACH_TIME < self.chunks.len() {
            return;
        }
        *verbs = 0;
        lanes.clear();
        lanes.resize(self.lanes.len(), [0; 3]);
        messages.clear();
        let (mut in_flight, mut lost) = (0, 0);
        for (tsn, chunk) in self.iter() {
            let counted = matches!(chunk.state, ChunkState::InFlight | ChunkState::AbandonedInFlight);
            let flying = if counted { chunk.len() } else { 0 };
            in_flight += flying;
            if let Some(path) = chunk.path {
                let kept = if chunk.is_kept() { chunk.len() } else { 0 };
                let sums = [flying, chunk.len(), kept];
                lanes[path.get()].iter_mut().zip(sums).for_each(|(sum, bytes)| *sum += bytes);
            }
            assert!(!chunk.is_in_flight() || chunk.path.is_some(), "{tsn:?} is in flight over no path");
            if chunk.state == ChunkState::Lost {
                lost += 1;
                let priority = queue.get(chunk.piece.message).priority;
                assert!(self.repeats.has(chunk.origin(), priority, tsn), "{tsn:?} waits to be sent again");
            }
            if chunk.has_message() {
                messages.push(chunk.piece.message);
            }
        }
        assert_eq!(self.in_flight, in_flight, "bytes in flight");
        for (lane, counted) in self.lanes.iter().zip(lanes) {
            assert_eq!([lane.in_flight, lane.unacked, lane.non_renegable], *counted, "bytes of a path");
        }
        messages.sort_unstable();
        for chunks in messages.chunk_by(|a, b| a == b) {
            assert_eq!(queue.get(chunks[0]).chunks() as usize, chunks.len(), "chunks of a message");
        }
        assert_eq!(self.repeats.len(), lost, "chunks to be sent again");
        self.recount_forward();
    }

    fn recount_forward(&self) {
        let (mut end, mut given_up) = (self.base(), 0);
        for (tsn, chunk) in self.iter().take_while(|(_, chunk)| !chunk.holds_up_forward()) {
            end = tsn.next();
            if chunk.is_abandoned() {
                given_up += 1;
                assert!(self.forward.point >= Some(tsn), "how far FORWARD-TSN goes");
            }
        }
        assert_eq!(self.forward.end, end, "what FORWARD-TSN may pass");
        assert_eq!(self.forward.given_up, given_up, "what it passes that was abandoned");
    }
}
