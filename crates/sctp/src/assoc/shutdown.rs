use super::state::Closing;
use super::{Open, State};
use crate::api::CloseReason;
use crate::path::PathIndex;
use crate::wire::Chunk;
use crate::wire::chunk::{Shutdown, ShutdownAck, ShutdownComplete};
use braidcast_core::Instant;

/// T5-shutdown-guard lasts so many RTO.Max (RFC 9260 §9.2).
const GUARD_RTO_MAX: u32 = 5;

/// SHUTDOWN ACKs that are sent again without an answer, before the peer counts as gone. Both ends
/// have all by then: what is waited for is SHUTDOWN COMPLETE, which may have been lost with the
/// peer's last word. RFC 9260 §9.2 would go on until the peer counts as unreachable, which may be
/// never here, and call it a failure.
const MOST_SHUTDOWN_ACKS: u32 = 5;

impl Open {
    pub(super) fn begin_shutdown(&mut self, now: Instant) {
        if self.is_established() {
            self.end_stream_changes();
            self.state = State::ShutdownPending;
            self.advance_shutdown(now);
        }
    }

    /// Goes on with a shutdown once nothing is out any more.
    pub(super) fn advance_shutdown(&mut self, now: Instant) {
        if !matches!(self.state, State::ShutdownPending | State::ShutdownReceived) {
            return;
        }
        if self.protection.as_ref().is_some_and(|it| !it.told) {
            return; // Keys first: the peer takes no SHUTDOWN in clear.
        }
        if !self.ledger.is_empty() || self.queue.waiting_bytes() + self.queue.paused_bytes() > 0 {
            return;
        }
        match self.state {
            State::ShutdownPending => {
                self.state = State::ShutdownSent(self.closing(now));
                self.send_shutdown();
            }
            State::ShutdownReceived => {
                self.state = State::ShutdownAckSent(self.closing(now));
                self.send_shutdown();
            }
            _ => {}
        }
    }

    fn closing(&self, now: Instant) -> Closing {
        let rto = self.paths.iter().filter(|path| path.is_usable()).map(|path| path.rtt().rto()).min();
        let repeat = now + rto.unwrap_or(self.options.timers.rto.initial);
        Closing { repeat, guard: now + self.options.timers.rto.max * GUARD_RTO_MAX, repeats: 0 }
    }

    /// SHUTDOWN or SHUTDOWN ACK, as the state has it; over all paths if none answers.
    pub(super) fn send_shutdown(&mut self) {
        let Some(best) = self.paths.for_control(None) else { return };
        let over_all = self.paths[best].has_failed();
        let paths: Vec<PathIndex> =
            self.paths.indices().filter(|&it| it == best || (over_all && self.paths[it].is_usable())).collect();
        let cumulative_tsn = self.tracker.cumulative().wire();
        let first = matches!(self.state, State::ShutdownSent(_));
        let chunk = if first { Chunk::Shutdown(Shutdown { cumulative_tsn }) } else { Chunk::ShutdownAck(ShutdownAck) };
        paths.into_iter().for_each(|index| self.control_chunk(index, &chunk));
    }

    /// The peer was heard of; `data`: it had more to send. In SHUTDOWN-SENT it gets its time, and
    /// data is answered at once, by SHUTDOWN too (RFC 9260 §9.2).
    pub(super) fn hear_in_shutdown(&mut self, now: Instant, data: bool) {
        if !matches!(self.state, State::ShutdownSent(_)) {
            return;
        }
        let patient = self.closing(now);
        if let State::ShutdownSent(closing) = &mut self.state {
            (closing.repeat, closing.repeats) = (patient.repeat, 0);
        }
        self.errors = 0;
        if data {
            self.ack.demand(now);
            self.control.drop_where(|chunk| chunk.first() == Some(&Shutdown::KIND));
            self.send_shutdown();
        }
    }

    /// T2-shutdown or T5-shutdown-guard.
    pub(super) fn handle_shutdown_timeout(&mut self, now: Instant) {
        let rto_max = self.options.timers.rto.max;
        let (State::ShutdownSent(closing) | State::ShutdownAckSent(closing)) = &mut self.state else { return };
        if now >= closing.guard {
            self.send_abort(&crate::wire::Cause::UserInitiatedAbort(b"shutdown took too long"));
            return self.close(CloseReason::PathsFailed);
        }
        if now < closing.repeat {
            return;
        }
        closing.repeats += 1;
        let repeats = closing.repeats;
        let index = self.paths.for_control(None);
        closing.repeat = now + index.map_or(rto_max, |index| self.paths[index].rtt().rto());
        if matches!(self.state, State::ShutdownAckSent(_)) && repeats > MOST_SHUTDOWN_ACKS {
            return self.close(CloseReason::Shutdown);
        }
        if let Some(index) = index {
            self.path_failed(index);
        }
        if !self.state.is_closed() {
            self.send_shutdown();
        }
    }

    /// SHUTDOWN (RFC 9260 §9.2): acknowledges, and asks us to finish.
    pub(super) fn handle_shutdown(&mut self, now: Instant, index: PathIndex, cumulative_tsn: u32) {
        if !self.state.is_up() {
            return;
        }
        let ack = crate::wire::chunk::Sack {
            cumulative_tsn,
            a_rwnd: u32::try_from(self.ledger.peer_room() + self.ledger.in_flight()).unwrap_or(u32::MAX),
            flags: 0,
            gaps: crate::wire::Entries::EMPTY,
            duplicates: crate::wire::Entries::EMPTY,
        };
        // RFC 9260 §12.4 asks for an end by a SACK chunk only, and the crate sctp-proto names one
        // TSN too many here.
        if !self.names_unsent(&ack, crate::wire::Entries::EMPTY) {
            self.handle_sack(now, index, &ack, crate::wire::Entries::EMPTY);
        }
        self.advance_shutdown(now);
        match self.state {
            State::Established | State::ShutdownPending => {
                self.end_stream_changes();
                self.state = State::ShutdownReceived;
                self.advance_shutdown(now);
            }
            // Both ends shut down at once.
            State::ShutdownSent(_) => {
                self.state = State::ShutdownAckSent(self.closing(now));
                self.send_shutdown();
            }
            _ => {}
        }
    }

    /// SHUTDOWN ACK: the peer is done too.
    pub(super) fn handle_shutdown_ack(&mut self, index: PathIndex) {
        if matches!(self.state, State::ShutdownSent(_) | State::ShutdownAckSent(_)) {
            self.control.clear();
            // Where it came from may not be a return path.
            let other = self.paths.for_control(Some(index)).filter(|&best| best != index);
            for index in [Some(index), other].into_iter().flatten() {
                self.control_chunk(index, &Chunk::ShutdownComplete(ShutdownComplete { reflected: false }));
            }
            self.close(CloseReason::Shutdown);
        }
    }

    /// After SHUTDOWN ACK was sent, somebody said in clear that the peer is gone. All data has come,
    /// so it is over. But the SHUTDOWN ACK may have been lost: if the peer is there still, it learns
    /// by another one how this ended.
    pub(super) fn end_by_word_in_clear(&mut self) {
        if matches!(self.state, State::ShutdownAckSent(_)) {
            if self.is_protected() {
                self.send_shutdown();
            }
            self.close(CloseReason::Shutdown);
        }
    }

    pub(super) fn handle_shutdown_complete(&mut self) {
        if matches!(self.state, State::ShutdownAckSent(_)) {
            self.close(CloseReason::Shutdown);
        }
    }
}
