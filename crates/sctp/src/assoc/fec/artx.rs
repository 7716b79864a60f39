use crate::api::{Artx, ArtxFrom, LossDetection};
use crate::assoc::Association;
use crate::tx::LossCause;
use braidcast_core::Instant;
use braidcast_fec::Code;
use core::time::Duration;

impl Association {
    /// When the chunk `tsn`, last sent over the path in `slot` at `sent`, may be taken for lost, if without a code it were so at
    /// `due`.
    pub(in crate::assoc) fn lost_after_waiting(&self, slot: usize, tsn: u64, sent: Instant, due: Instant) -> Instant {
        let delay = self.artx_delay(slot, tsn);
        match self.options.papers.artx_from {
            ArtxFrom::Sent => due.max(sent + delay),
            ArtxFrom::Due => due + delay,
        }
    }

    /// δ for the chunk `tsn`, last sent over the path in `slot`. Zero without a code or without
    /// [`RedundancyOptions::artx`](crate::RedundancyOptions::artx).
    fn artx_delay(&self, slot: usize, tsn: u64) -> Duration {
        let Some(sender) = self.fec.as_ref().and_then(|fec| fec.sender.as_ref()) else { return Duration::ZERO };
        let Some(reading) = self.options.redundancy.artx else { return Duration::ZERO };
        let round_trip = |slot| self.paths.get(slot).and_then(|path| path.rtt.srtt());
        match sender.code {
            // THESIS eq. 8.1: what is left of the block, at the rate of all paths together, then one round trip and a half.
            Code::Block { n, k } => {
                let place = tsn.saturating_sub(sender.first) % u64::from(k);
                let left = (u64::from(n) - place) as f64
                    * self.paths.common_mtu().unwrap_or(self.options.paths.base_mtu) as f64;
                let rates = self
                    .paths
                    .iter()
                    .filter_map(|path| Some(path.window.cwnd() as f64 / path.rtt.srtt()?.as_secs_f64().max(1e-6)));
                let block = Duration::try_from_secs_f64(left / rates.sum::<f64>()).unwrap_or_default();
                block + round_trip(slot).unwrap_or_default() * 3 / 2
            }
            // THESIS eq. 8.2.
            _ => {
                let best = self.paths.best_rank(None);
                let active = self.paths.enumerate().filter(|(_, path)| self.paths.is_best(path, best));
                let round_trips = active.filter_map(|(slot, _)| round_trip(slot));
                let chosen = match reading {
                    Artx::Min => round_trips.min(),
                    Artx::Slowest => round_trips.max(),
                };
                chosen.unwrap_or_default() * 2
            }
        }
    }

    /// Whether `tsn`, of which one report too many says that it is missing, waits for the code all the same: until δ is over
    /// and one more report comes.
    pub(in crate::assoc) fn waits_for_code(&mut self, now: Instant, slot: usize, tsn: u64) -> bool {
        if !self.sends_redundancy() || self.options.redundancy.artx.is_none() {
            return false;
        }
        let Some(&chunk) = self.out.get(tsn) else { return false };
        if let Some(until) = chunk.held_until {
            return now < until;
        }
        let until = self.lost_after_waiting(slot, tsn, chunk.sent, now);
        if let Some(chunk) = self.out.get_mut(tsn) {
            chunk.held_until = Some(until);
        }
        self.stats.held_retransmissions += 1;
        true
    }

    /// Until when the code has its time to make up for the oldest chunk that is out on the path in `slot`: δ, and what a timeout
    /// allows a round trip to take longer (RFC 9260 §6.3.1 C3). T3-rtx is held off so long; else, where the least RTO is short, it
    /// would come before any retransmission that δ holds back, and shut the window.
    pub(in crate::assoc) fn code_has_until(&self, slot: usize) -> Option<Instant> {
        if !self.sends_redundancy() || self.options.redundancy.artx.is_none() {
            return None;
        }
        let path = self.paths.get(slot)?;
        let live = |&(tsn, order): &(u64, u64)| {
            self.out.get(tsn).filter(|chunk| chunk.is_at(slot, order)).map(|chunk| (tsn, chunk.sent))
        };
        let (tsn, sent) = path.sent.iter().find_map(live)?;
        Some(self.lost_after_waiting(slot, tsn, sent, sent + path.rtt.srtt()?) + path.rtt.rttvar() * 4)
    }

    /// T3-rtx expired on the path in `slot` (algorithm 5): fast retransmissions that are held there are done instead of a timeout
    /// recovery. Whether there were any.
    pub(in crate::assoc) fn release_held(&mut self, now: Instant, slot: usize) -> bool {
        if self.fec.is_none() || self.options.redundancy.artx.is_none() {
            return false;
        }
        let Some(path) = self.paths.get(slot) else { return false };
        let by_time = self.options.papers.loss_detection == LossDetection::Time;
        let overdue = |sent, order| {
            let lost_at = path.rack.lost_at(sent, order, path.rtt.min(), path.rtt.srtt());
            by_time && lost_at.is_some_and(|at| at <= now)
        };
        let held: Vec<(u64, u64)> = path
            .sent
            .iter()
            .copied()
            .filter(|&(tsn, order)| {
                let chunk = self.out.get(tsn).filter(|chunk| chunk.is_at(slot, order));
                chunk.is_some_and(|chunk| chunk.held_until.is_some() || overdue(chunk.sent, order))
            })
            .collect();
        for &(tsn, order) in &held {
            if self.out.get(tsn).is_none_or(|chunk| !chunk.is_at(slot, order)) {
                continue; // Its message was given up with one before it.
            }
            self.lose(now, tsn, LossCause::Reported);
            self.enter_recovery(slot, order);
        }
        if let Some(path) = self.paths.get_mut(slot).filter(|_| !held.is_empty()) {
            path.timers.retransmission = Some(now + path.rtt.rto());
        }
        !held.is_empty()
    }
}
