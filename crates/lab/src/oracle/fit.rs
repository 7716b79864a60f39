//! `true` if a set of frames fits.

use super::{Route, Wanted};
use core::time::Duration;

/// Bytes that are no bytes any more.
const NOTHING: f64 = 1e-6;

/// How far a route is used up: the next chance, and bytes that are left of it.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Used {
    next: usize,
    left: f64,
}

/// Frames of which some are chosen, so that all chosen ones are through in time.
pub(super) struct Fit<'a> {
    frames: &'a [Wanted],
    routes: &'a [Route],
    latency: Duration,
    chosen: Vec<bool>,
    /// For each frame, how far each route is used up when its turn comes: a row of `routes.len()`.
    before: Vec<Used>,
    /// A row while it is reckoned.
    row: Vec<Used>,
    /// New rows until it is known whether they hold.
    trial: Vec<Used>,
}

impl<'a> Fit<'a> {
    /// None of `frames`, whose times rise, is chosen yet.
    pub(super) fn new(frames: &'a [Wanted], routes: &'a [Route], latency: Duration) -> Self {
        let fresh: Vec<Used> = routes.iter().map(|route| used(route, 0)).collect();
        let mut fit = Self {
            frames,
            routes,
            latency,
            chosen: vec![false; frames.len()],
            before: Vec::with_capacity(routes.len() * frames.len()),
            row: fresh,
            trial: Vec::new(),
        };
        for frame in frames {
            fit.skip(frame.at);
            fit.before.extend_from_slice(&fit.row);
        }
        fit
    }

    /// Returns `true` if frame `n` is chosen.
    pub(super) fn has(&self, n: usize) -> bool {
        self.chosen[n]
    }

    /// Chooses frame `n` if all that are chosen then fit. Returns `true` if it is chosen.
    pub(super) fn add(&mut self, n: usize) -> bool {
        self.change(n, n, true)
    }

    /// Chooses frame `n` in place of `other`, an earlier one, if that fits. Returns `true` if it
    /// does.
    pub(super) fn swap(&mut self, n: usize, other: usize) -> bool {
        self.chosen[other] = false;
        let done = self.change(other, n, true);
        if !done {
            self.chosen[other] = true;
        }
        done
    }

    /// Reckons anew from frame `from` on, with frame `n` chosen or not, and keeps that if it fits.
    fn change(&mut self, from: usize, n: usize, chosen: bool) -> bool {
        let old = core::mem::replace(&mut self.chosen[n], chosen);
        let width = self.routes.len();
        self.row.copy_from_slice(&self.before[from * width..(from + 1) * width]);
        self.trial.clear();
        let mut fits = true;
        for place in from..self.frames.len() {
            self.skip(self.frames[place].at);
            if place > n && self.row == self.before[place * width..(place + 1) * width] {
                // From here on everything is as it was.
                break;
            }
            self.trial.extend_from_slice(&self.row);
            if self.chosen[place] && !self.send(&self.frames[place]) {
                fits = false;
                break;
            }
        }
        if fits {
            let start = from * width;
            self.before[start..start + self.trial.len()].copy_from_slice(&self.trial);
        } else {
            self.chosen[n] = old;
        }
        fits
    }

    /// Chances before `at` are gone.
    fn skip(&mut self, at: Duration) {
        for (used_up, route) in self.row.iter_mut().zip(self.routes) {
            let mut next = used_up.next;
            while route.get(next).is_some_and(|chance| chance.at < at) {
                next += 1;
            }
            if next != used_up.next {
                *used_up = used(route, next);
            }
        }
    }

    /// Takes the earliest chances for `frame`. Returns `true` if they were enough.
    fn send(&mut self, frame: &Wanted) -> bool {
        let mut need = frame.bytes as f64;
        let due = frame.at + self.latency;
        while need > NOTHING {
            let mut first: Option<(usize, Duration)> = None;
            for (n, (used_up, route)) in self.row.iter().zip(self.routes).enumerate() {
                if let Some(chance) = route.get(used_up.next)
                    && chance.at + chance.delay <= due
                    && first.is_none_or(|(_, at)| chance.at < at)
                {
                    first = Some((n, chance.at));
                }
            }
            let Some((n, _)) = first else { return false };
            let used_up = &mut self.row[n];
            let taken = used_up.left.min(need);
            need -= taken;
            used_up.left -= taken;
            if used_up.left <= NOTHING {
                *used_up = used(&self.routes[n], used_up.next + 1);
            }
        }
        true
    }
}

/// Everything before chance `next` is used up.
fn used(route: &Route, next: usize) -> Used {
    Used { next, left: route.get(next).map_or(0.0, |chance| chance.bytes) }
}
