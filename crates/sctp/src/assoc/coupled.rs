use super::Association;
use crate::api::PathState;
use crate::path::PathIndex;
use braidcast_cc::{Congestion, CoupledPath, Decrease, Growth};

impl Association {
    /// Paths that a coupled rule looks at; further ones are as if on their own.
    const MAX_COUPLED: usize = 32;

    /// How the window of the path `index` grows beside the others.
    pub(super) fn growth(&self, index: PathIndex) -> Growth {
        match self.options.congestion.coupling {
            Congestion::PerPath => Growth::default(),
            rule => self.coupled(index).map_or_else(Growth::default, |it| rule.growth(&it.paths[..it.len], it.this)),
        }
    }

    /// What a loss leaves of the window of the path `index`, where one on its own would keep the share `kept`.
    pub(super) fn decrease(&self, index: PathIndex, kept: f64) -> Decrease {
        let alone = Decrease { kept, floor: self.options.papers.min_ssthresh };
        match self.options.congestion.coupling {
            Congestion::PerPath => alone,
            rule => self.coupled(index).map_or(alone, |it| rule.decrease(&it.paths[..it.len], it.this, kept)),
        }
    }

    /// Packets were lost on the path `index`, the first in this round.
    pub(super) fn shrink(&mut self, index: PathIndex) {
        let kept = self.paths[index].kept(self.options.congestion.loss_response);
        self.shrink_to(index, kept);
    }

    /// Leaves the share `kept` of the window of the path `index`, or what the coupled rule makes of it.
    pub(super) fn shrink_to(&mut self, index: PathIndex, kept: f64) {
        let decrease = self.decrease(index, kept);
        self.paths[index].shrink(decrease, self.ledger.next_order(index));
    }

    /// The active paths that have been measured, if `index` is among them.
    fn coupled(&self, index: PathIndex) -> Option<Coupled> {
        let mut paths = [CoupledPath::default(); Self::MAX_COUPLED];
        let (mut len, mut this) = (0, None);
        for (at, path) in self.paths.enumerate() {
            let Some(rtt) = path.rtt().srtt().filter(|_| path.state() == PathState::Active && len < paths.len()) else {
                continue;
            };
            if at == index {
                this = Some(len);
            }
            let between_losses = path.window().between_losses();
            paths[len] = CoupledPath { cwnd: path.window().cwnd(), mtu: path.unit(), rtt, between_losses };
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
