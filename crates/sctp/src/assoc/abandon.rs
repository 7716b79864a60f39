use super::Association;
use crate::api::{Abandonment, Event};
use crate::tx::{Chunk, ChunkState, Piece, Repeats};
use braidcast_core::Instant;

/// How far FORWARD-TSN moves the peer on (RFC 3758 §3.5).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Forward {
    /// Advanced.Peer.Ack.Point: up to here all is acknowledged or given up. 0 before anything was given up.
    pub(super) point: u64,
}

impl Association {
    /// Gives up messages whose lifetime ended while they waited (RFC 3758 §3.5 A5, RFC 7496 §3).
    pub(super) fn expire(&mut self, now: Instant) {
        let mut any = false;
        while let Some(key) = self.queue.next_expired(now) {
            self.abandon(key);
            any = true;
        }
        if any {
            self.advance_forward_point();
        }
    }

    /// Gives a message up. Delayed: chunks of it that are in flight stay so until they are acknowledged, and then count, or are
    /// lost, and then are given up (PRCMT §4.2); immediate: they too are given up now. Follow it by
    /// [`advance_forward_point`](Self::advance_forward_point).
    pub(super) fn abandon(&mut self, key: u32) {
        let untouched = self.queue.is_untouched(key);
        let cut = self.queue.get(key).is_cut();
        let message = self.queue.get_mut(key);
        let told = core::mem::replace(&mut message.abandoned, true);
        let (stream, ppid, context, priority) = (message.stream, message.ppid, message.context, message.priority);
        let range = (message.chunks > 0).then_some(message.first_tsn..=message.last_tsn);
        for tsn in range.into_iter().flatten() {
            let Some(chunk) = self.out.get(tsn).copied().filter(|chunk| chunk.piece.message == key) else { continue };
            let state = match chunk.state {
                ChunkState::Lost => {
                    self.retransmit.remove(chunk.origin(), priority, tsn);
                    ChunkState::Abandoned
                }
                ChunkState::InFlight if self.options.papers.abandonment == Abandonment::Immediate => {
                    if let Some(path) = self.paths.get_mut(usize::from(chunk.slot)) {
                        path.cumack.on_lost(self.options.papers.cwnd_update, tsn);
                    }
                    ChunkState::AbandonedInFlight
                }
                state => state,
            };
            if let Some(chunk) = self.out.get_mut(tsn) {
                chunk.state = state;
            }
        }
        self.queue.drop_rest(key);
        if !untouched && !cut {
            // A part went out: a TSN that is never sent stands for the rest, so that FORWARD-TSN can speak of it.
            let piece = Piece { message: key, offset: 0, len: 0, fsn: 0, first: false, last: true };
            let tsn = self.out.push(Chunk::new(piece, ChunkState::Abandoned, 0, Instant::ZERO));
            let message = self.queue.get_mut(key);
            if message.chunks == 0 {
                message.first_tsn = tsn;
            }
            message.last_tsn = tsn;
            message.chunks += 1;
        }
        if !told {
            self.events.push_back(Event::Abandoned { stream, ppid, context, sent: !untouched, why: None });
            *(if untouched { &mut self.stats.abandoned_unsent } else { &mut self.stats.abandoned_sent }) += 1;
        }
        if self.queue.get(key).chunks == 0 {
            self.queue.release(key);
        }
    }

    /// After a restart: what was out is out of reach.
    pub(super) fn abandon_outstanding(&mut self) {
        self.retransmit = Repeats::default();
        let last = self.out.next_tsn() - 1;
        let mut told = None;
        while let Some((_, chunk)) = self.out.pop_acked(last) {
            let key = chunk.piece.message;
            if chunk.state == ChunkState::Kept {
                self.chunk_gone(&chunk);
                continue;
            }
            let message = self.queue.get(key);
            if message.is_cut() && !message.abandoned && told != Some(key) {
                let (stream, ppid, context) = (message.stream, message.ppid, message.context);
                self.events.push_back(Event::Abandoned { stream, ppid, context, sent: true, why: None });
                self.stats.abandoned_sent += 1;
                self.queue.get_mut(key).abandoned = true;
                told = Some(key);
            }
            self.chunk_gone(&chunk);
        }
    }

    /// Moves Advanced.Peer.Ack.Point on and asks every path to carry the news (RFC 3758 §3.5 C; PRCMT §4.3).
    pub(super) fn advance_forward_point(&mut self) {
        let mut point = None;
        for (tsn, chunk) in self.out.iter() {
            match chunk.state {
                ChunkState::Abandoned | ChunkState::AbandonedInFlight => point = Some(tsn),
                ChunkState::Acked | ChunkState::Kept => {}
                ChunkState::InFlight | ChunkState::Lost => break,
            }
        }
        let Some(point) = point else {
            for path in self.paths.iter_mut() {
                path.timers.forward = None;
                path.pending.forward = false;
            }
            return;
        };
        if point > self.forward.point {
            self.forward.point = point;
            self.request_forward();
        }
    }

    /// Whether the peer has yet to acknowledge a FORWARD-TSN: the F-timer runs, and the cumulative acknowledgement may
    /// stand still though all else has arrived.
    pub(super) fn is_forwarding(&self) -> bool {
        self.forward.point >= self.out.base()
    }

    /// FORWARD-TSN goes over every path that answers: whichever is fastest unblocks the peer (PRCMT §4.3). With one path in
    /// use it goes over that one, behind the data.
    pub(super) fn request_forward(&mut self) {
        let best = self.paths.best_rank(None);
        let used = |slot| self.options.paths.concurrent || self.paths.data_path() == Some(slot);
        let good = self.paths.enumerate().filter(|&(slot, path)| self.paths.is_best(path, best) && used(slot));
        let slots: Vec<usize> = good.map(|(slot, _)| slot).collect();
        for slot in slots {
            if let Some(path) = self.paths.get_mut(slot) {
                path.pending.forward = true;
            }
        }
    }
}
