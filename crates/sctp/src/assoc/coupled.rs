use super::Open;
use crate::api::{PathOptions, PathState};
use crate::path::{Congested, PathIndex};
use braidcast_cc::{Congestion, CoupledPath, Siblings};
use braidcast_core::Instant;
use braidcast_core::events::SctpEvent;

/// The paths that carry data, as the controllers of their siblings see them, and which of them is the one in question.
pub(super) struct Coupled {
    paths: [CoupledPath; Coupled::MOST],
    len: usize,
    this: usize,
}

impl Coupled {
    const MOST: usize = PathOptions::MAX_PATHS;

    pub(super) fn siblings(&self) -> Siblings<'_> {
        Siblings::new(&self.paths[..self.len], self.this)
    }
}

impl Open {
    /// The active paths that have been measured, for the path `index`, if their windows are coupled
    /// and it is among them.
    pub(super) fn coupled(&self, index: PathIndex) -> Option<Coupled> {
        if self.options.congestion.coupling == Congestion::PerPath {
            return None;
        }
        let mut paths = [CoupledPath::default(); Coupled::MOST];
        let (mut len, mut this) = (0, None);
        for (at, path) in self.paths.enumerate() {
            let Some(rtt) = path.rtt().srtt().filter(|_| path.state() == PathState::Active && len < paths.len()) else {
                continue;
            };
            if at == index {
                this = Some(len);
            }
            let between_losses = path.between_losses();
            paths[len] = CoupledPath { cwnd: path.cwnd(), mtu: path.unit(), rtt, between_losses };
            len += 1;
        }
        Some(Coupled { paths, len, this: this? })
    }

    /// Packets were lost or marked on the path `index`, the first in this round.
    pub(super) fn reduce(&mut self, now: Instant, index: PathIndex, congestion: Congested) {
        let coupled = self.coupled(index);
        let siblings = coupled.as_ref().map(Coupled::siblings).unwrap_or_default();
        let (in_flight, next) = (self.ledger.in_flight_over(index), self.ledger.next_order(index));
        self.paths[index].reduce(now, congestion, in_flight, siblings, next);
        let (path, cause) = (self.paths[index].id(), congestion.into());
        self.journal.tell(|| SctpEvent::WindowReduced { path, cause });
    }
}
