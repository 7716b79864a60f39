use crate::api::{Artx, ArtxFrom};
use crate::assoc::Open;
use crate::number::Tsn;
use crate::path::{Path, PathIndex};
use braidcast_core::Instant;
use braidcast_fec::Family;
use core::time::Duration;

impl Open {
    /// Returns when the chunk `tsn`, last sent over the path `index` at `sent`, may be declared
    /// lost, given that it would be at `due` without a code.
    pub(in crate::assoc) fn lost_after_waiting(
        &self,
        index: PathIndex,
        tsn: Tsn,
        sent: Instant,
        due: Instant,
    ) -> Instant {
        let delay = self.artx_delay(index, tsn);
        match self.options.papers.artx_from {
            ArtxFrom::Sent => due.max(sent + delay),
            ArtxFrom::Due => due + delay,
        }
    }

    /// Returns δ for the chunk `tsn`, last sent over the path `index`: zero without a code, without
    /// [`RedundancyOptions::artx`](crate::RedundancyOptions::artx), and if each path owes its own
    /// redundancy and this one owes none. Then it is near enough to repeat a loss in time, and two
    /// round trips of a far path would be too late.
    fn artx_delay(&self, index: PathIndex, tsn: Tsn) -> Duration {
        let Some(sender) = self.fec.as_ref().and_then(|fec| fec.sender.as_ref()) else { return Duration::ZERO };
        let Some(reading) = self.options.redundancy.artx else { return Duration::ZERO };
        if sender.credit.is_some() && self.paths[index].redundancy_owed() == 0.0 {
            return Duration::ZERO;
        }
        match sender.code.family() {
            // THESIS eq. 8.1: what is left of the block, at the rate of all paths together, then
            // one round trip and a half.
            Family::Block { n, k } => {
                let place = tsn.index_from(sender.first).unwrap_or_default() as u64 % u64::from(k);
                let left = (u64::from(n) - place) as f64 * self.paths.common_mtu() as f64;
                let rate: f64 = self.paths.iter().filter_map(Path::rate).sum();
                let block = Duration::try_from_secs_f64(left / rate).unwrap_or_default();
                block + self.paths[index].rtt().srtt().unwrap_or_default() * 3 / 2
            }
            // THESIS eq. 8.2.
            Family::SlidingWindow => {
                let round_trips = self.paths.best().filter_map(|(_, path)| path.rtt().srtt());
                let chosen = match reading {
                    Artx::Min => round_trips.min(),
                    Artx::Slowest => round_trips.max(),
                };
                chosen.unwrap_or_default() * 2
            }
        }
    }

    /// Returns `true` if `tsn`, of which one report too many says that it is missing, waits for the code all
    /// the same: until δ is over and one more report comes.
    pub(in crate::assoc) fn waits_for_code(&mut self, now: Instant, index: PathIndex, tsn: Tsn) -> bool {
        if !self.sends_redundancy() || self.options.redundancy.artx.is_none() {
            return false;
        }
        let Some(chunk) = self.ledger.get(tsn) else { return false };
        if let Some(until) = chunk.held_until() {
            return now < until;
        }
        let until = self.lost_after_waiting(index, tsn, chunk.sent(), now);
        if until <= now {
            return false;
        }
        self.ledger.hold(tsn, until);
        self.journal.stats.held_retransmissions += 1;
        true
    }

    /// Until when the code has its time to make up for the oldest chunk that is out on the path
    /// `index`: δ, and what a timeout allows a round trip to take longer (RFC 9260 §6.3.1 C3).
    /// T3-rtx is held off so long; else, where the least RTO is short, it would come before any
    /// retransmission that δ holds back, and shut the window.
    pub(in crate::assoc) fn code_has_until(&self, index: PathIndex) -> Option<Instant> {
        if !self.sends_redundancy() || self.options.redundancy.artx.is_none() {
            return None;
        }
        let (tsn, _, chunk) = self.ledger.sent_over(index).next()?;
        let rtt = self.paths[index].rtt();
        let sent = chunk.sent();
        Some(self.lost_after_waiting(index, tsn, sent, sent + rtt.srtt()?) + rtt.rttvar() * 4)
    }
}
