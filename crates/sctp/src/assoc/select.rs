//! Which of the paths carries data, where one is used at a time and chosen by what is measured (PATHS §5.2, §5.3).

use super::Open;
use crate::api::Event;
use crate::path::PathIndex;
use braidcast_core::Instant;
use braidcast_mpath::Candidate;

impl Open {
    /// Goes to a better path, if there is one.
    pub(super) fn select_path(&mut self, now: Instant) {
        if self.selector.is_none() || !self.state.is_up() {
            return;
        }
        let mut candidates = core::mem::take(&mut self.scratch.candidates);
        self.fill_candidates(now, &mut candidates);
        let in_use = self.paths.primary();
        let chosen = self.selector.as_mut().and_then(|selector| {
            selector.choose(now, in_use.map(PathIndex::get), &candidates, &mut self.rng).map(PathIndex::new)
        });
        self.scratch.candidates = candidates;
        let Some(chosen) = chosen.filter(|&chosen| Some(chosen) != in_use) else { return };
        match in_use.filter(|&it| !self.paths.is_best(it)) {
            Some(failed) => self.paths[failed].on_left(now),
            None => self.journal.stats.handovers += 1,
        }
        self.paths.set_primary(chosen);
        let path = &self.paths[chosen];
        self.journal.events.push_back(Event::PathSelected(path.id(), path.route()));
    }

    /// Puts into `candidates`, by their indices, what is known of the paths.
    fn fill_candidates(&mut self, now: Instant, candidates: &mut Vec<Candidate>) {
        candidates.clear();
        candidates.resize_with(self.paths.places(), Candidate::default);
        let (best, in_use) = (self.paths.best_rank(None), self.paths.primary());
        for (index, path) in self.paths.enumerate() {
            candidates[index.get()] = Candidate {
                active: path.rank().is_some() && path.rank() == best,
                srtt: path.rtt().srtt(),
                forward_delay: None,
                bottleneck: path.bottleneck(),
                opinion: path.opinion(),
            };
        }
        if self.heeds_forward_delay() {
            let mut views = core::mem::take(&mut self.scratch.views);
            self.fill_views(now, &mut views);
            for (candidate, view) in candidates.iter_mut().zip(&views) {
                candidate.forward_delay = view.forward_delay.map(|delay| delay.mean);
            }
            self.scratch.views = views;
        }
        // A path that is not measured is not gone to while another one is.
        for (index, _) in self.paths.enumerate().filter(|&(it, path)| Some(it) != in_use && path.is_mistrusted(now)) {
            candidates[index.get()] = Candidate { active: candidates[index.get()].active, ..Candidate::default() };
        }
    }

    /// Returns `true` if the way to the peer alone counts, so that measuring it is worth its bytes.
    pub(super) fn heeds_forward_delay(&self) -> bool {
        self.selector.as_ref().is_some_and(|selector| selector.by().heeds_forward_delay())
    }

    /// When to choose again even if nothing was measured.
    pub(super) fn selection_timeout(&self) -> Option<Instant> {
        self.selector.as_ref()?.due()
    }
}
