use super::Association;
use crate::api::PathState;
use braidcast_cc::{Congestion, CoupledPath, Decrease, Growth};

impl Association {
    /// Paths that a coupled rule looks at; further ones are as if on their own.
    const MAX_COUPLED: usize = 32;

    /// How the window of the path in `slot` grows beside the others.
    pub(super) fn growth(&self, slot: usize) -> Growth {
        match self.options.congestion.coupling {
            Congestion::PerPath => Growth::default(),
            rule => self.coupled(slot).map_or_else(Growth::default, |it| rule.growth(&it.paths[..it.len], it.this)),
        }
    }

    /// What a loss leaves of the window of the path in `slot`, where one on its own would keep the share `kept`.
    pub(super) fn decrease(&self, slot: usize, kept: f64) -> Decrease {
        let alone = Decrease { kept, floor: self.options.papers.min_ssthresh };
        match self.options.congestion.coupling {
            Congestion::PerPath => alone,
            rule => self.coupled(slot).map_or(alone, |it| rule.decrease(&it.paths[..it.len], it.this, kept)),
        }
    }

    /// Packets were lost on the path in `slot`, the first in this round.
    pub(super) fn shrink(&mut self, slot: usize) {
        let Some(kept) = self.paths.get(slot).map(|path| path.kept(self.options.congestion.loss_response)) else {
            return;
        };
        self.shrink_to(slot, kept);
    }

    /// Leaves the share `kept` of the window of the path in `slot`, or what the coupled rule makes of it.
    pub(super) fn shrink_to(&mut self, slot: usize, kept: f64) {
        let decrease = self.decrease(slot, kept);
        if let Some(path) = self.paths.get_mut(slot) {
            let unit = path.unit();
            path.window.on_loss(unit, decrease);
            path.marks.reduced_at = path.next_order();
        }
    }

    /// The active paths that have been measured, if the one in `slot` is among them.
    fn coupled(&self, slot: usize) -> Option<Coupled> {
        let mut paths = [CoupledPath::default(); Self::MAX_COUPLED];
        let (mut len, mut this) = (0, None);
        for (at, path) in self.paths.enumerate() {
            let Some(rtt) = path.rtt.srtt().filter(|_| path.state == PathState::Active && len < paths.len()) else {
                continue;
            };
            if at == slot {
                this = Some(len);
            }
            let between_losses = path.window.between_losses();
            paths[len] = CoupledPath { cwnd: path.window.cwnd(), mtu: path.unit(), rtt, between_losses };
            len += 1;
        }
        this.map(|this| Coupled { paths, len, this })
    }
}

/// What a coupled rule looks at, and which of it is the path in question.
struct Coupled {
    paths: [CoupledPath; Association::MAX_COUPLED],
    len: usize,
    this: usize,
}
