use super::Association;
use crate::api::{CwndUpdate, LossDetection, RttSamples};
use crate::path::Path;
use crate::tx::{Chunk, ChunkState, LossCause};
use crate::wire::Header;
use crate::wire::chunk::{GapBlocks, IData, Sack};
use braidcast_core::Instant;
use core::time::Duration;

/// A busy path that acknowledgements do not measure for so long is asked by a heartbeat, which is answered at once and over
/// the same path.
const MEASURED_EACH: Duration = Duration::from_secs(1);

/// What one SACK said, gathered before it is acted on; kept between calls so that nothing is allocated.
#[derive(Debug, Default)]
pub(super) struct AckScratch {
    newly: Vec<u64>,
    paths: Vec<PathNews>,
}

/// What one SACK said about one path.
#[derive(Clone, Copy, Debug, Default)]
struct PathNews {
    /// Bytes newly acknowledged that count for the window.
    acked: usize,
    /// Of the window.
    occupied_before: usize,
    /// The most recently sent chunk that is newly acknowledged and was sent once: its place and send time.
    newest: Option<(u64, Instant)>,
    /// Highest place in the send order that is newly acknowledged.
    highest_order: Option<u64>,
    /// The same among chunks of which a copy went over another path; those are not in the above.
    highest_copied: Option<u64>,
    /// The SACK came back over this path.
    returned_here: bool,
    /// It newly acknowledges what was sent over this path only.
    alone: bool,
    /// Something that was given up in flight was acknowledged.
    without_credit: bool,
    /// What the window waits for was acknowledged ([`CwndUpdate`]).
    advanced: bool,
}

impl PathNews {
    /// Whether `rtt`, what the newest chunk took until this SACK came, measures `path`.
    ///
    /// A SACK that came back over another path says nothing about this path's round trip (THESIS §6.2.4). One that
    /// acknowledges what came over several may have waited for another path's packet, at most `ack_delay`: it serves only if
    /// that does not explain what it says.
    fn measures(&self, rtt: Duration, path: &Path, rule: RttSamples, ack_delay: Duration) -> bool {
        let explained = path.rtt.srtt().is_some_and(|srtt| rtt >= srtt && rtt <= srtt + ack_delay);
        rule == RttSamples::AnyReturn || (self.returned_here && (self.alone || !explained))
    }
}

impl Association {
    /// A SACK that came over the path in `slot` (RFC 9260 §6.2.1; for several paths: Iyengar et al. 2006 §III, PRCMT fig. 6).
    ///
    /// `kept`: the gap blocks of an NR-SACK that the peer cannot withdraw, which are not among those of `sack`.
    pub(super) fn handle_sack(&mut self, now: Instant, slot: usize, sack: &Sack<'_>, kept: GapBlocks<'_>) {
        let cumulative = self.acked.peek(u64::from(sack.cumulative_tsn));
        if cumulative >= self.out.next_tsn() || !self.state.is_up() {
            return; // Beyond what was ever sent: nonsense.
        }
        self.note_duplicates(sack);
        if cumulative + 1 < self.out.base() {
            self.stats.overtaken_sacks += 1;
            return; // Older than what is known: overtaken on another return path (RFC 9260 §6.2.1 D i).
        }
        self.acked.unwrap(u64::from(sack.cumulative_tsn));
        let moved = cumulative >= self.out.base();
        self.find_cumacks();
        let mut scratch = core::mem::take(&mut self.scratch.ack);
        scratch.newly.clear();
        scratch.paths.clear();
        scratch.paths.extend((0..self.paths.slots()).map(|slot| PathNews {
            occupied_before: self.paths.get(slot).map_or(0, Path::occupied),
            ..PathNews::default()
        }));
        self.out.ack_range(self.out.base(), cumulative, &mut scratch.newly);
        for gap in sack.gaps.iter().chain(kept.iter()).filter(|gap| gap.start <= gap.end) {
            let (from, to) = (cumulative + u64::from(gap.start), cumulative + u64::from(gap.end));
            self.out.ack_range(from, to, &mut scratch.newly);
        }
        for &tsn in &scratch.newly {
            self.chunk_acked(now, tsn, tsn <= cumulative, slot, &mut scratch.paths);
        }
        let highest_tsn = scratch.newly.iter().copied().max();
        while let Some((_, chunk)) = self.out.pop_acked(cumulative) {
            self.chunk_gone(&chunk);
        }
        scratch.newly.clear();
        for gap in kept.iter().filter(|gap| gap.start <= gap.end) {
            let (from, to) = (cumulative + u64::from(gap.start), cumulative + u64::from(gap.end));
            self.out.keep_range(from, to, &mut scratch.newly);
        }
        for &tsn in &scratch.newly {
            self.chunk_kept(tsn);
        }
        self.peer_a_rwnd = sack.a_rwnd as usize;
        self.peer_rwnd = self.peer_a_rwnd.saturating_sub(self.out.in_flight);
        if sack.a_rwnd == 0 {
            self.errors = 0; // RFC 9260 §6.1 A: a peer without room is not dead.
        }
        let paths_acked = scratch.paths.iter().filter(|news| news.highest_order.is_some()).count();
        for (at, news) in scratch.paths.iter().enumerate() {
            if news.highest_order.is_some() || news.acked > 0 || news.without_credit {
                let news = PathNews { returned_here: at == slot, alone: paths_acked == 1, ..*news };
                self.path_acked(now, at, &news, moved);
            }
        }
        for path in self.paths.iter_mut() {
            path.burst = 0;
        }
        if self.options.papers.loss_detection == LossDetection::PlainCount {
            self.count_missing_plainly(now, sack, cumulative, highest_tsn, moved);
        }
        if self.options.papers.loss_detection == LossDetection::Count {
            // DAC: one SACK may stand for several packets, if all it newly acknowledges took one path (Iyengar et al. §III-D).
            let reports = if paths_acked == 1 { (sack.flags >> 6).max(1) } else { 1 };
            for (at, news) in scratch.paths.iter().enumerate() {
                if let Some(highest) = news.highest_order {
                    self.count_missing(now, at, highest, reports);
                }
            }
        }
        self.scratch.ack = scratch;
        self.detect_losses(now);
        self.after_ack(now);
    }

    /// What follows whenever the cumulative acknowledgement may have moved.
    pub(super) fn after_ack(&mut self, now: Instant) {
        self.advance_forward_point();
        if self.out.is_empty() {
            for path in self.paths.iter_mut() {
                path.sent.clear();
                path.cumack.clear();
                path.timers.retransmission = None;
                path.timers.probe = None;
                path.timers.reordering = None;
            }
        } else if self.out.in_flight == 0 && self.retransmit.is_empty() && !self.is_forwarding() {
            // All that is out has been gap-acknowledged: should the peer withdraw that, a timer must be there.
            if let Some(path) = self.paths.for_control(None).and_then(|slot| self.paths.get_mut(slot)) {
                let deadline = now + path.rtt.rto();
                path.timers.retransmission.get_or_insert(deadline);
            }
        }
        self.advance_shutdown(now);
    }

    /// Has each path look for what it waits to see acknowledged, among its chunks in flight.
    fn find_cumacks(&mut self) {
        let (rule, out) = (self.options.papers.cwnd_update, &self.out);
        for slot in 0..self.paths.slots() {
            let Some(path) = self.paths.get_mut(slot) else { continue };
            // Chunks sent once leave in the order of their TSNs.
            let lowest_new = || {
                let sent_once = |&&(tsn, order): &&(u64, u64)| {
                    out.get(tsn).is_some_and(|chunk| chunk.is_at(slot, order) && chunk.repeats == 0)
                };
                path.sent.iter().find(sent_once).map(|&(tsn, _)| tsn)
            };
            path.cumack.find(rule, lowest_new);
        }
    }

    /// `tsn` was acknowledged for the first time, by a SACK over the path in `returned`; `cumulative`: not by a gap block.
    fn chunk_acked(&mut self, now: Instant, tsn: u64, cumulative: bool, returned: usize, news: &mut [PathNews]) {
        let Some(chunk) = self.out.get_mut(tsn) else { return };
        let state = core::mem::replace(&mut chunk.state, ChunkState::Acked);
        let chunk = *chunk;
        let slot = usize::from(chunk.slot);
        let len = usize::from(chunk.piece.len);
        let sends_redundancy = self.sends_redundancy();
        match state {
            ChunkState::InFlight => {
                self.out.in_flight -= len;
                let (Some(path), Some(news)) = (self.paths.get_mut(slot), news.get_mut(slot)) else { return };
                path.in_flight -= len;
                let made_up_for = sends_redundancy && !chunk.copied && path.was_overtaken(chunk.order);
                path.note_fate(Some(made_up_for));
                news.acked += len;
                news.advanced |= path.cumack.on_acked(tsn, cumulative);
                self.stats.acked_bytes += len as u64;
                if chunk.copied {
                    // Perhaps the copy alone arrived: that says next to nothing about this path.
                    news.highest_copied = news.highest_copied.max(Some(chunk.order));
                    return;
                }
                if made_up_for {
                    // Perhaps it never arrived: that says nothing about the path's delay and MTU.
                    news.highest_order = news.highest_order.max(Some(chunk.order));
                    return self.note_repaired(slot, chunk.order);
                }
                path.pmtu.on_delivered(len + Header::LEN + IData::HEADER);
                let next = path.next_order();
                path.ect.on_acked(chunk.order, next);
                news.highest_order = news.highest_order.max(Some(chunk.order));
                path.rack.on_delivered(now, chunk.sent, chunk.order, chunk.repeats > 0, path.rtt.min());
                if chunk.repeats == 0 && news.newest.is_none_or(|(order, _)| order < chunk.order) {
                    news.newest = Some((chunk.order, chunk.sent));
                }
            }
            ChunkState::Lost => {
                // It was on its way after all.
                let priority = self.queue.get(chunk.piece.message).priority;
                self.retransmit.remove(chunk.origin(), priority, tsn);
                self.stats.acked_bytes += len as u64;
                // Told over another path, it may as well have arrived before its own path failed, and the SACK for it have been
                // lost with that path: this does not bring back a path that fell silent or timed out, contrary to RFC 9260 §8.2
                // ("SHOULD clear"), or else a failover of bulk data takes twice as long.
                let proves = returned == slot || chunk.lost_by == LossCause::Reported;
                if let (Some(path), Some(news)) = (self.paths.get_mut(slot), news.get_mut(slot)) {
                    path.rack.on_spurious();
                    if proves {
                        path.window.undo_timeout();
                        news.highest_order = news.highest_order.max(Some(chunk.order));
                    }
                }
            }
            // PRCMT fig. 6, RFC 3758 §3.5 A2: what was given up earns no credit.
            ChunkState::AbandonedInFlight => {
                self.out.in_flight -= len;
                if let (Some(path), Some(news)) = (self.paths.get_mut(slot), news.get_mut(slot)) {
                    path.in_flight -= len;
                    news.without_credit = true;
                }
            }
            ChunkState::Abandoned | ChunkState::Acked | ChunkState::Kept => {}
        }
    }

    /// The peer has `tsn`, above a gap, and promised not to drop it: nothing of it need be held here.
    fn chunk_kept(&mut self, tsn: u64) {
        let Some(chunk) = self.out.get_mut(tsn).filter(|chunk| chunk.state == ChunkState::Acked) else { return };
        chunk.state = ChunkState::Kept;
        let chunk = *chunk;
        if let Some(path) = self.paths.get_mut(usize::from(chunk.slot)) {
            path.non_renegable += usize::from(chunk.piece.len);
        }
        self.release_piece(chunk.piece.message);
    }

    /// `chunk` was taken out of the outstanding ones.
    pub(super) fn chunk_gone(&mut self, chunk: &Chunk) {
        let kept = chunk.state == ChunkState::Kept;
        if let Some(path) = self.paths.get_mut(usize::from(chunk.slot)) {
            let len = usize::from(chunk.piece.len);
            path.unacked -= len;
            path.non_renegable -= if kept { len } else { 0 };
        }
        if !kept {
            self.release_piece(chunk.piece.message);
        }
    }

    /// A chunk of the message `key` need not be held any more.
    fn release_piece(&mut self, key: u32) {
        let message = self.queue.get_mut(key);
        message.chunks -= 1;
        if message.chunks == 0 && message.is_cut() {
            self.queue.release(key);
        }
    }

    /// The path in `slot` had chunks acknowledged.
    fn path_acked(&mut self, now: Instant, slot: usize, news: &PathNews, moved: bool) {
        let proven = news.highest_order.is_some();
        if let (Some(order), Some(path)) = (news.highest_order, self.paths.get_mut(slot)) {
            path.on_order_acked(order);
        }
        if proven {
            self.path_answers(now, slot);
        }
        let growth = self.growth(slot);
        let (probe, interval) = (self.options.paths.probe, self.options.paths.heartbeat_interval);
        let (ack_delay, queueing_limit) = (self.options.sack.delay, self.options.congestion.queueing_limit);
        let (rtt_samples, growth_in_recovery) =
            (self.options.papers.rtt_samples, self.options.papers.growth_in_recovery);
        let grows = news.advanced || (moved && self.options.papers.cwnd_update == CwndUpdate::Plain);
        let Some(path) = self.paths.get_mut(slot) else { return };
        if let Some((order, sent)) = news.newest {
            let rtt = now - sent;
            if news.returned_here || rtt_samples == RttSamples::AnyReturn {
                path.queueing.observe(now, rtt);
                path.rtt.observe(rtt);
            } else {
                path.detour.observe(now, rtt);
            }
            let round = order >= path.next_rtt_order;
            if round && news.measures(rtt, path, rtt_samples, ack_delay) {
                path.next_rtt_order = path.next_order();
                path.rtt.sample(rtt);
                path.measured = now;
                path.heartbeats.postpone(now, interval);
                path.shorten_queue(queueing_limit, false);
            } else if rtt_samples == RttSamples::SameReturn {
                if !news.returned_here && order >= path.next_detour_order {
                    path.next_detour_order = path.next_order();
                    path.shorten_queue(queueing_limit, true);
                }
                if now - path.measured >= MEASURED_EACH {
                    path.measured = now;
                    path.pending.heartbeat = !path.heartbeats.awaits_answer(now);
                }
            }
        }
        // A window that has room for copied chunks alone would never grow, nor its recovery end: as far as the first window, with which
        // any path may begin, those count too.
        let copied = news.highest_copied.filter(|_| path.window.is_below_initial());
        let reached = news.highest_order.max(copied);
        if path.recovery.is_some_and(|until| reached >= Some(until)) {
            path.recovery = None;
            path.rack.on_recovered();
        }
        // The timer starts anew when the oldest chunk out on this path was acknowledged (RFC 9260 §6.3.2 R3).
        let mut oldest_acked = false;
        while let Some(&(tsn, order)) = path.sent.front() {
            if self.out.get(tsn).is_some_and(|chunk| chunk.is_at(slot, order)) {
                break;
            }
            path.sent.pop_front();
            oldest_acked = true;
        }
        path.window.on_delivered(news.acked);
        let unit = path.unit();
        let queued = queueing_limit.is_some_and(|limit| path.queued() > limit);
        if (path.recovery.is_none() || growth_in_recovery) && grows && reached.is_some() && !queued {
            path.window.on_ack(news.acked, path.was_full(news.occupied_before), unit, growth);
        }
        if path.in_flight == 0 {
            path.window.on_all_acked();
            path.timers.retransmission = None;
            path.timers.probe = None;
        } else {
            if oldest_acked {
                path.timers.retransmission = Some(now + path.rtt.rto());
            }
            if !proven {
                return;
            }
            path.timers.probe = path.probe_timeout(ack_delay).filter(|_| probe).map(|timeout| now + timeout);
        }
    }

    /// Duplicates mean repeats that were not needed; they widen the reordering window of the path they took.
    fn note_duplicates(&mut self, sack: &Sack<'_>) {
        self.stats.duplicates_reported += sack.duplicates.len() as u64;
        for tsn in sack.duplicates.iter() {
            let tsn = self.acked.peek(u64::from(tsn));
            let again = self.sent_again.has(tsn);
            self.stats.spurious_retransmissions += u64::from(again);
            if self.fec.is_some() && !again {
                continue; // Redundancy overtook it.
            }
            let chunk = self.out.get(tsn).filter(|chunk| chunk.state != ChunkState::Kept);
            let chunk = chunk.filter(|chunk| !self.queue.get(chunk.piece.message).copied);
            if let Some(path) = chunk.and_then(|chunk| self.paths.get_mut(usize::from(chunk.slot))) {
                path.rack.on_spurious();
            }
        }
    }
}
