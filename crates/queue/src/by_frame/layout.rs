//! Lays what waits over paths: which frame goes over which path, how much of it, and which frames do
//! not go. A pure function of the moment.

use crate::knobs::knob;

/// What a path still delivers: the n-th byte that is handed to it now arrives after
/// `first + n / rate` seconds.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Curve {
    /// Seconds until a byte arrives that is handed to it now: its delay, and what is before it.
    pub first: f64,
    /// Bytes in a second; 0: nothing is to go over it.
    pub rate: f64,
    /// The share of packets that are lost, 0 to 1.
    pub loss: f64,
    /// The share of packets that come later than forecast by [`Self::LATE`], 0 to 1.
    pub late: [f64; 4],
    /// Seconds from when a packet leaves until its loss is known.
    pub again: f64,
}

impl Curve {
    /// Seconds, of which `late` has the shares.
    pub const LATE: [f64; 4] = [0.08, 0.16, 0.32, 0.64];
}

/// A message that waits.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Job {
    /// Bytes that are left of it.
    pub(super) bytes: f64,
    /// Seconds until its last byte must be there.
    pub(super) due: f64,
    /// Frames that are shown with it, and not without.
    pub(super) worth: f64,
    /// The place of the last job that needs it, or its own.
    pub(super) last: usize,
    /// It goes before all others, and never makes room for them.
    pub(super) first: bool,
    /// Nothing is gained by it.
    pub(super) hopeless: bool,
    /// What goes first where not all fits: a higher one.
    pub(super) level: u8,
    /// Paths that it may go over, by bits.
    pub(super) mask: u32,
    /// It begins a group: nothing else of the group is worth its place.
    pub(super) intra: bool,
}

/// Which jobs go over which paths.
#[derive(Debug, Default)]
pub(super) struct Layout {
    paths: usize,
    /// Bytes by job and path.
    quotas: Vec<f64>,
    /// When each job is through, seconds from now; `None`: it does not go.
    through: Vec<Option<f64>>,
    left_out: Vec<bool>,
    /// When each path is through with what lies on it.
    free: Vec<f64>,
    /// The same before each place of `order`.
    before: Vec<f64>,
    kept: Vec<f64>,
    prices: Vec<f64>,
    order: Vec<usize>,
}

/// Bytes of a packet.
const PACKET: f64 = 1300.0;

impl Layout {
    /// Lays `jobs`, which are in the order of decoding, over paths with these `curves`; `prices`:
    /// what a kilobyte costs over each, in frames. `needs(k, m)`: job k cannot be shown without m.
    pub(super) fn lay(&mut self, curves: &[Curve], prices: &[f64], jobs: &[Job], near: bool, needs: impl Fn(usize, usize) -> bool) {
        self.paths = curves.len();
        self.prices.clear();
        self.prices.extend_from_slice(prices);
        self.left_out.clear();
        self.left_out.extend(jobs.iter().map(|job| job.hopeless));
        self.order.clear();
        self.order.extend((0..jobs.len()).filter(|&n| jobs[n].first));
        self.order.extend((0..jobs.len()).filter(|&n| !jobs[n].first));
        self.free.clear();
        self.free.extend(curves.iter().map(|curve| curve.first));
        self.quotas.clear();
        self.quotas.resize(jobs.len() * self.paths, 0.0);
        self.through.clear();
        self.through.resize(jobs.len(), None);
        self.before.clear();
        self.before.resize(jobs.len() * self.paths, 0.0);
        if self.paths == 0 {
            return;
        }
        let mut at = 0;
        while at < self.order.len() {
            let n = self.order[at];
            self.before[at * self.paths..(at + 1) * self.paths].copy_from_slice(&self.free);
            if self.left_out[n] {
                at += 1;
                continue;
            }
            let through = self.place(curves, n, &jobs[n]);
            let is_head = || self.order[..at].iter().all(|&m| jobs[m].first || self.left_out[m]);
            if through <= jobs[n].due || (jobs[n].intra && jobs[n].due > 0.0 && is_head()) {
                self.through[n] = Some(through);
                at += 1;
                continue;
            }
            let victim_at = self.victim(at, jobs);
            if victim_at == at && jobs[n].level == 2 {
                // It is risked as long as it may come in time.
                let soon = curves.iter().filter(|it| it.rate > 0.0).map(|it| it.first).fold(f64::INFINITY, f64::min);
                if soon + (through - soon) * knob("K_E") <= jobs[n].due {
                    self.through[n] = Some(through);
                    at += 1;
                    continue;
                }
            }
            let victim = self.order[victim_at];
            self.left_out[victim] = true;
            for k in victim + 1..jobs.len().min(jobs[victim].last + 1) {
                self.left_out[k] |= needs(k, victim);
            }
            // Anew from there.
            let from = victim_at;
            for it in from..=at {
                self.clear(self.order[it]);
            }
            self.free.copy_from_slice(&self.before[from * self.paths..(from + 1) * self.paths]);
            at = from;
        }
        self.fill_up(curves, jobs, near);
    }

    /// The place in the order of what goes, as what is at `at` does not fit.
    fn victim(&self, at: usize, jobs: &[Job]) -> usize {
        let n = self.order[at];
        if jobs[n].first {
            return at;
        }
        let last_intra = jobs.iter().rposition(|job| job.intra).unwrap_or(0);
        let before = (0..=at).filter(|&it| {
            let m = self.order[it];
            !self.left_out[m] && !jobs[m].first && (it == at || !jobs[m].intra)
        });
        let v = knob("K_VICTIM");
        let key = |it: usize| { let m = self.order[it]; if jobs[n].level == 2 && jobs[m].level == 2 && it < at && knob("K_H") > 0.5 { return (m < last_intra, 0, 0); } if v > 0.5 { (m < last_intra, 0, m) } else { (m < last_intra, jobs[m].level, m) } };
        before.max_by_key(|&it| key(it)).unwrap_or(at)
    }

    /// What is left out goes behind all else, if that is in time.
    fn fill_up(&mut self, curves: &[Curve], jobs: &[Job], near: bool) {
        for n in (0..jobs.len()).filter(|&n| jobs[n].due > 0.0 && !(near && jobs[n].level > 1)) {
            if !self.left_out[n] {
                continue;
            }
            self.kept.clear();
            self.kept.extend_from_slice(&self.free);
            let kept = core::mem::take(&mut self.kept);
            let through = self.place(curves, n, &jobs[n]);
            if through <= jobs[n].due {
                self.through[n] = Some(through);
                self.order.retain(|&m| m != n);
                self.order.push(n);
            } else {
                self.free.copy_from_slice(&kept);
                self.clear(n);
            }
            self.kept = kept;
        }
    }

    fn clear(&mut self, n: usize) {
        self.quotas[n * self.paths..(n + 1) * self.paths].fill(0.0);
        self.through[n] = None;
    }

    /// Gives the job `n` places on the paths that serve it best. Returns when it is through.
    fn place(&mut self, curves: &[Curve], n: usize, job: &Job) -> f64 {
        let open: u32 = (0..self.paths.min(31)).filter(|&p| curves[p].rate > 0.0).map(|p| 1 << p).sum();
        let open = if open & job.mask == 0 { open } else { open & job.mask };
        if job.first || open.count_ones() <= 1 {
            return self.fill(curves, n, job, open);
        }
        let nearest = curves.iter().filter(|it| it.rate > 0.0).min_by(|a, b| a.first.total_cmp(&b.first));
        let Some(&nearest) = nearest else { return f64::INFINITY };
        let mut kept = core::mem::take(&mut self.kept);
        kept.clear();
        kept.extend_from_slice(&self.free);
        let (mut chosen, mut least) = (open, f64::INFINITY);
        for mask in (1..=open).filter(|mask| mask & open == *mask) {
            let (level, through) = self.fill_evenly(curves, n, job, mask);
            let cost = self.cost(curves, &nearest, n, job, level, through);
            if cost < least {
                (chosen, least) = (mask, cost);
            }
            self.free.copy_from_slice(&kept);
            self.clear(n);
        }
        let (level, mut through) = self.fill_evenly(curves, n, job, chosen);
        if level >= 1.0 && chosen != open {
            self.free.copy_from_slice(&kept);
            self.clear(n);
            through = self.fill(curves, n, job, open);
        }
        self.kept = kept;
        through
    }

    /// What it costs to have the job `n` lie as it does, in frames.
    fn cost(&self, curves: &[Curve], nearest: &Curve, n: usize, job: &Job, level: f64, through: f64) -> f64 {
        let (mut lost, mut price, mut late) = (0.0, 0.0, 0.0_f64);
        for (p, curve) in curves.iter().enumerate() {
            let quota = self.quotas[n * self.paths + p];
            if quota <= 0.0 {
                continue;
            }
            // The last of it is sent when it is through, less the way.
            let again = through - curve.first + curve.again + nearest.first;
            let each = if again > job.due {
                curve.loss * knob("K_COVER")
            } else {
                let turns = 2.0 + ((job.due - again) / (nearest.again + nearest.first)).floor();
                libm::pow(curve.loss, turns)
            };
            lost += (quota / PACKET).max(1.0) * each;
            price += quota / 1000.0 * self.prices[p];
            let slack = job.due - through;
            let at = Curve::LATE.iter().position(|&bound| slack < bound).unwrap_or(3);
            late = late.max(knob("K_DOUBT") * curve.late[at]);
        }
        let tight = if through > job.due { 10.0 } else { ((level - 0.8) / 0.2).clamp(0.0, 1.0) * 0.5 };
        job.worth * (1.0 - libm::exp(-lost) * (1.0 - late.min(1.0)) + tight + knob("K_LEVEL") * level) + price
    }

    /// Gives the job `n` places so that of the time that it has over each path of `mask` an even
    /// share is used. Returns that share, and when the job is through.
    fn fill_evenly(&mut self, curves: &[Curve], n: usize, job: &Job, mask: u32) -> (f64, f64) {
        let due = job.due - knob("K_SPARE");
        let usable = |p: usize| mask >> p & 1 == 1 && curves[p].rate > 0.0 && due > curves[p].first;
        let used = |free: &[f64], p: usize| (free[p] - curves[p].first) / (due - curves[p].first);
        // The least L with the sum over paths of rate * (L - used) * (due - first) = bytes.
        let mut level = f64::INFINITY;
        for p in (0..self.paths).filter(|&p| usable(p)) {
            let (mut gain, mut sum) = (0.0, 0.0);
            for q in (0..self.paths).filter(|&q| usable(q) && used(&self.free, q) <= used(&self.free, p)) {
                let span = curves[q].rate * (due - curves[q].first);
                gain += span;
                sum += span * used(&self.free, q);
            }
            level = level.min((job.bytes + sum) / gain);
        }
        if !level.is_finite() || level > 1.0 {
            let through = self.fill(curves, n, job, mask);
            return (if level.is_finite() { level } else { 2.0 }, through);
        }
        let mut through = 0.0_f64;
        for p in (0..self.paths).filter(|&p| usable(p)) {
            let until = curves[p].first + level * (due - curves[p].first);
            let quota = (until - self.free[p]) * curves[p].rate;
            if quota > 0.0 {
                self.quotas[n * self.paths + p] = quota;
                self.free[p] = until;
                through = through.max(until);
            }
        }
        (level, through)
    }

    /// Gives the job `n` the earliest places that are free on the paths of `mask`. Returns when it
    /// is through.
    fn fill(&mut self, curves: &[Curve], n: usize, job: &Job, mask: u32) -> f64 {
        let Self { free, quotas, paths, .. } = self;
        let may = |p: usize| mask >> p & 1 == 1 && curves[p].rate > 0.0;
        // The least T with the sum of (T - free) * rate = bytes, over the paths that are free by then.
        let mut through = f64::INFINITY;
        for p in (0..*paths).filter(|&p| may(p)) {
            let (mut rate, mut sum) = (0.0, 0.0);
            for q in (0..*paths).filter(|&q| may(q) && free[q] <= free[p]) {
                rate += curves[q].rate;
                sum += curves[q].rate * free[q];
            }
            through = through.min((job.bytes + sum) / rate);
        }
        if !through.is_finite() {
            return through;
        }
        for p in (0..*paths).filter(|&p| may(p)) {
            let quota = (through - free[p]) * curves[p].rate;
            if quota > 0.0 {
                quotas[n * *paths + p] = quota;
                free[p] = through;
            }
        }
        through
    }

    /// Seconds until the path is through with what lies on it.
    pub(super) fn free(&self, path: usize) -> Option<f64> {
        self.free.get(path).copied()
    }

    /// The first job that has something for the path.
    pub(super) fn head(&self, path: usize) -> Option<usize> {
        if path >= self.paths {
            return None;
        }
        self.order.iter().copied().find(|&n| self.quotas[n * self.paths + path] > 0.0)
    }

    /// The first job that goes.
    pub(super) fn first(&self) -> Option<usize> {
        self.order.iter().copied().find(|&n| self.through.get(n).is_some_and(Option::is_some))
    }

    pub(super) fn told(&self, n: usize) -> String {
        let quotas: Vec<String> = (0..self.paths).map(|p| format!("{:.0}", self.quotas[n * self.paths + p])).collect();
        format!("-> {:?} {}", self.through[n].map(|it| (it * 1e3) as u32), quotas.join("+"))
    }

    /// `bytes` of the job left over the path, and `left` are left of it.
    pub(super) fn on_cut(&mut self, n: usize, path: usize, bytes: f64, left: f64) {
        if n >= self.through.len() {
            return;
        }
        let quotas = &mut self.quotas[n * self.paths..(n + 1) * self.paths];
        if path < quotas.len() {
            quotas[path] = (quotas[path] - bytes).max(0.0);
        }
        // What was too much for this path, or too little to be worth a packet, the others have less of.
        let mut excess = quotas.iter().sum::<f64>() - left;
        while excess > 0.5 {
            let Some(most) = (0..quotas.len()).max_by(|&a, &b| quotas[a].total_cmp(&quotas[b])) else { return };
            let take = excess.min(quotas[most]);
            if take <= 0.0 {
                return;
            }
            quotas[most] -= take;
            excess -= take;
        }
        if excess < -0.5 && path < quotas.len() && left > 0.0 {
            quotas[path] -= excess;
        }
    }

    /// The job `n` is gone.
    pub(super) fn remove(&mut self, n: usize) {
        if n >= self.through.len() {
            return;
        }
        self.through.remove(n);
        self.quotas.drain(n * self.paths..(n + 1) * self.paths);
        self.order.retain(|&m| m != n);
        self.order.iter_mut().for_each(|m| *m -= usize::from(*m > n));
    }
}
