//! A path earns its place (decision 38). It costs the time of the stream that is not shown, as frames that first left
//! over it were late or lost. It brings what could not be shown without its rate. One that costs more than it brings
//! carries nothing but copies, redundancy and heartbeats until its costs are forgotten.

use super::Open;
use super::choose::Avoided;
use crate::path::PathIndex;
use braidcast_core::{Instant, PathId};
use braidcast_mpath::PathView;
use core::time::Duration;

/// The load is what came within this time, s: some groups.
const LOAD: f64 = 4.0;
/// Share of the stream that is not shown for each share of its rate that lacks, as what is left out takes with it what
/// needs it: 0.6 to 1.9 over single links that carry 0.93 to 0.5 of a stream.
const SHOWN_FOR_RATE: f64 = 2.0;
/// A path that costs less of the stream than this is let be: single frames get lost everywhere.
const LEAST: f64 = 0.02;
/// A path whose answer is overdue by this much brings nothing.
const SILENT: Duration = Duration::from_millis(100);

/// Of one path, forgotten by and by.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    of: Option<PathId>,
    /// Seconds of the stream that were not shown.
    cost: f64,
    /// Bytes that first left over it.
    carried: f64,
}

/// What is known of each path's costs, and of the load.
#[derive(Clone, Debug, Default)]
pub(super) struct Earnings {
    looked: Option<Instant>,
    /// When the first message was there.
    began: Option<Instant>,
    /// By [`PathIndex`].
    paths: Vec<Account>,
    /// Bytes that came before `looked`, and those of them that are not forgotten.
    taken_in: u64,
    load: f64,
    dear: Avoided,
}

impl Earnings {
    /// Paths that cost more than they bring, as found the last time.
    pub(super) const fn dear(&self) -> Avoided {
        self.dear
    }

    fn account(&self, place: usize) -> Account {
        self.paths.get(place).copied().unwrap_or_default()
    }

    /// Bytes in a second.
    fn rate_of_load(&self, now: Instant) -> f64 {
        let age = self.began.map_or(0.0, |began| now.since(began).as_secs_f64());
        self.load / (LOAD * (1.0 - (-age / LOAD).exp())).max(0.5)
    }
}

impl Open {
    /// Looks for the paths that cost more than they bring: the dearest first, and each beside those that are left.
    pub(super) fn find_dear_paths(&mut self, now: Instant, views: &[PathView]) {
        let Some(memory) = self.options.paths.earning else { return };
        let memory = memory.as_secs_f64();
        self.note_costs(now, memory);
        let mut dear = Avoided::default();
        let demand = self.earnings.rate_of_load(now);
        if demand > 0.0 {
            let mut order = [0; Avoided::BITS];
            let mut count = 0;
            for (place, _) in views.iter().enumerate().filter(|(_, view)| view.active).take(Avoided::BITS) {
                (order[count], count) = (place, count + 1);
            }
            let order = &mut order[..count];
            order.sort_by(|&a, &b| self.earnings.account(b).cost.total_cmp(&self.earnings.account(a).cost));
            for &place in &*order {
                let Account { cost, carried, .. } = self.earnings.account(place);
                let (mut others, mut theirs) = (0.0, Account::default());
                for &other in order.iter().filter(|&&other| other != place && !dear.has(PathIndex::new(other))) {
                    let account = self.earnings.account(other);
                    others += self.still_brings(other, &views[other]);
                    theirs.cost += account.cost;
                    theirs.carried += account.carried;
                }
                // What it carries would cost over them what the rest does.
                let moved = if theirs.carried > 0.0 { theirs.cost * carried / theirs.carried } else { 0.0 };
                let lacks = (SHOWN_FOR_RATE * (1.0 - others / demand)).clamp(0.0, 1.0);
                if others > 0.0 && !self.is_near(PathIndex::new(place)) && (cost - moved) / memory > lacks.max(LEAST) {
                    dear.add(PathIndex::new(place));
                }
            }
        }
        self.earnings.dear = dear;
    }

    /// What was found out since it was last asked joins what is not forgotten.
    fn note_costs(&mut self, now: Instant, memory: f64) {
        let Self { earnings, ledger, paths, queue, .. } = self;
        let elapsed = earnings.looked.replace(now).map_or(0.0, |looked| now.since(looked).as_secs_f64());
        let kept = (-elapsed / memory).exp();
        earnings.paths.resize(paths.places(), Account::default());
        for (index, path) in paths.enumerate() {
            let account = &mut earnings.paths[index.get()];
            if account.of != Some(path.id()) {
                *account = Account { of: Some(path.id()), ..Account::default() };
            }
            let (bytes, missed) = ledger.take_missed(index);
            account.cost = kept * account.cost + missed.as_secs_f64();
            account.carried = kept * account.carried + bytes as f64;
        }
        let came = queue.taken_in() - core::mem::replace(&mut earnings.taken_in, queue.taken_in());
        earnings.load = earnings.load * (-elapsed / LOAD).exp() + came as f64;
        if came > 0 {
            earnings.began.get_or_insert(now);
        }
    }

    /// Bytes per second that the path at `place` brings if it goes on as it does.
    fn still_brings(&self, place: usize, view: &PathView) -> f64 {
        let rate = self.paths[PathIndex::new(place)].measured_rate();
        rate.filter(|_| view.silent <= SILENT).unwrap_or_default()
    }
}
