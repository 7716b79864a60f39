//! Re-injection: what is out over a path and would come too late there goes over a second one too, as far as that has room (as XLINK does by what
//! its player holds: Zheng et al., "XLINK: QoE-Driven Multi-Path QUIC Transport in Large-scale Video Services", SIGCOMM 2021, §5).

use super::Open;
use super::choose::one_way_delay;
use crate::path::PathIndex;
use crate::tx::Chunk;
use braidcast_core::Instant;
use core::time::Duration;

/// Paths are looked at so often at most.
const EACH: Duration = Duration::from_millis(5);
/// The second path has to be quicker by this, and what is in time by less counts as late: delays are estimates.
const MARGIN: Duration = Duration::from_millis(10);
/// Packets of copies that may leave in a row.
const BURST: f64 = 8.0;

/// What copies may still take.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reinjection {
    looked: Instant,
    /// Bytes at the rate of the path that carries them.
    credit: f64,
}

impl Open {
    /// Looks for what is about to be late, and puts it among what is to be copied. New data goes before copies.
    pub(super) fn reinject(&mut self, now: Instant) {
        if !self.options.redundancy.reinject || now.since(self.reinjection.looked) < EACH || self.has_new_data() {
            return;
        }
        let elapsed = now.since(self.reinjection.looked).as_secs_f64().min(1.0);
        self.reinjection.looked = now;
        let size = self.paths.common_mtu();
        for place in 0..self.paths.places() {
            let Some(from) = self.paths.at(place) else { continue };
            let Some(delay) = self.delay_at_least(now, from) else { continue };
            let Some(to) = self.paths.best_other(from, size).filter(|&to| self.path_has_room(to)) else { continue };
            let there = one_way_delay(&self.paths[to], self.ledger.in_flight_over(to));
            let Some(rate) = self.paths[to].rate().filter(|_| there + MARGIN < delay) else { continue };
            let credit = (self.reinjection.credit + rate * elapsed).min(BURST * size as f64);
            let late = |chunk: &Chunk, expiry| chunk.sent() + delay + MARGIN > expiry && now + there < expiry;
            self.reinjection.credit = credit - self.ledger.copy_late(&self.queue, from, credit, late) as f64;
            return;
        }
    }

    /// How long what is out over the path `index` takes to the receiver, at least: a path that fades acknowledges ever later, and what it has not
    /// acknowledged yet says so before any sample does.
    fn delay_at_least(&self, now: Instant, index: PathIndex) -> Option<Duration> {
        let (_, _, oldest) = self.ledger.sent_over(index).next()?;
        let path = &self.paths[index];
        let so_far = now.since(oldest.sent()).saturating_sub(path.shortest_round_trip()? / 2);
        Some(so_far.max(one_way_delay(path, self.ledger.in_flight_over(index))))
    }
}
