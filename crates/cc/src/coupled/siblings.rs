use super::{Congestion, CoupledPath, Decrease, Growth};

/// The paths of a connection that carry data, and which of them this is: what a
/// [`Coupled`](super::Coupled) controller looks at.
#[derive(Clone, Copy, Debug, Default)]
pub struct Siblings<'a> {
    rule: Congestion,
    paths: &'a [CoupledPath],
    this: usize,
}

impl<'a> Siblings<'a> {
    /// `paths`: those that carry data and have a measured round trip; `paths[this]` is the one that things happen to.
    pub const fn new(paths: &'a [CoupledPath], this: usize) -> Self {
        Self { rule: Congestion::PerPath, paths, this }
    }

    /// The same paths, coupled by `rule`.
    pub(super) const fn under(self, rule: Congestion) -> Self {
        Self { rule, ..self }
    }

    /// How fast the window of this path is to grow. Unless a [`Coupled`](super::Coupled) controller
    /// asks: as on its own.
    pub fn growth(&self) -> Growth {
        self.rule.growth(self.paths, self.this)
    }

    /// What a loss is to leave of it, if `alone` is what a path on its own would keep.
    pub fn decrease(&self, alone: Decrease) -> Decrease {
        let coupled = self.rule != Congestion::PerPath && self.paths.len() > 1 && self.this < self.paths.len();
        if coupled { self.rule.decrease(self.paths, self.this, alone.kept) } else { alone }
    }
}
