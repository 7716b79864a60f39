//! Lays what waits over paths: which frame goes over which path, how much of it, and which frames do not go. A pure function of the moment.

use crate::knobs::knob;

/// What a path still delivers: the n-th byte that is handed to it now arrives after `first + n / rate` seconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Curve {
    /// Seconds until the first byte arrives that is handed to it now: its delay, and what is before it.
    pub first: f64,
    /// Bytes in a second.
    pub rate: f64,
    /// What a kilobyte costs over it, in frames: others will want it.
    pub price: f64,
    /// The share of packets that are lost.
    pub risk: f64,
    /// The share of packets that come later than forecast.
    pub doubt: [f64; 4],
    /// Seconds from when a packet leaves to when its repeat arrives.
    pub again: f64,
}

/// A frame that waits.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Job {
    /// Bytes that are left of it.
    pub(crate) bytes: f64,
    /// Seconds until its last byte must be there.
    pub(crate) due: f64,
    /// What it is worth, with all that needs it.
    pub(crate) worth: f64,
    /// The place of the last job that needs it, or its own.
    pub(crate) last: usize,
    /// It goes first, and is never left out for another.
    pub(crate) first: bool,
    /// Seconds before `due` by which it should be through, to leave room for what is to come: bytes of that.
    pub(crate) reserve: f64,
    /// Nothing is gained by it.
    pub(crate) hopeless: bool,
    pub(crate) level: usize,
    /// It begins a group: nothing else of the group is worth it.
    pub(crate) intra: bool,
}

/// Which jobs go over which paths.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    paths: usize,
    /// Bytes by job and path.
    quotas: Vec<f64>,
    /// When each job is through, seconds from now; `None`: it does not go.
    through: Vec<Option<f64>>,
    left_out: Vec<bool>,
    free: Vec<f64>,
    order: Vec<usize>,
}

impl Layout {
    pub(crate) fn lay(&mut self, curves: &[Curve], jobs: &[Job], needs: impl Fn(usize, usize) -> bool) {
        self.paths = curves.len();
        self.left_out.clear();
        self.left_out.extend(jobs.iter().map(|job| job.hopeless));
        self.order.clear();
        self.order.extend((0..jobs.len()).filter(|&n| jobs[n].first));
        self.order.extend((0..jobs.len()).filter(|&n| !jobs[n].first));
        let last_intra = jobs.iter().rposition(|job| job.intra).unwrap_or(0);
        'again: loop {
            self.begin(curves, jobs.len());
            for at in 0..self.order.len() {
                let n = self.order[at];
                if self.left_out[n] {
                    continue;
                }
                let through = self.place(curves, n, &jobs[n]);
                if through <= jobs[n].due || (jobs[n].intra && knob(14) > 0.5 && jobs[n].due > 0.0 && at == self.order.iter().position(|&m| !jobs[m].first && !self.left_out[m]).unwrap_or(at)) {
                    self.through[n] = Some(through);
                    continue;
                }
                if jobs[n].first {
                    self.left_out[n] = true;
                    continue 'again;
                }
                // Something has to go, of what is before it or itself: what is worth least for its bytes.
                let before = self.order[..=at].iter().copied().filter(|&m| !self.left_out[m] && !jobs[m].first && (m == n || !jobs[m].intra));
                let density = |m: usize| {
                    let bytes: f64 = (m..=jobs[m].last.max(m))
                        .filter(|&k| !self.left_out[k] && (k == m || needs(k, m)))
                        .map(|k| jobs[k].bytes)
                        .sum();
                    jobs[m].worth / bytes.max(1.0)
                };
                let victim = if knob(14) > 2.5 {
                    before.min_by(|&a, &b| density(a).total_cmp(&density(b))).unwrap_or(n)
                } else if knob(14) > 1.5 {
                    before.max_by_key(|&m| (m < last_intra, m)).unwrap_or(n)
                } else {
                    before.max_by_key(|&m| (m < last_intra, jobs[m].level, m)).unwrap_or(n)
                };
                self.left_out[victim] = true;
                for k in victim + 1..jobs.len().min(jobs[victim].last + 1) {
                    self.left_out[k] |= needs(k, victim);
                }
                continue 'again;
            }
            break;
        }
        // What is left out goes behind, if that is in time.
        for n in 0..jobs.len() {
            if self.left_out[n] && curves.len() > 0 {
                let kept = self.free.clone();
                let through = self.place(curves, n, &jobs[n]);
                if through <= jobs[n].due {
                    self.through[n] = Some(through);
                    self.order.retain(|&m| m != n);
                    self.order.push(n);
                } else {
                    self.free.copy_from_slice(&kept);
                    self.quotas[n * self.paths..(n + 1) * self.paths].fill(0.0);
                }
            }
        }
    }

    fn begin(&mut self, curves: &[Curve], jobs: usize) {
        self.free.clear();
        self.free.extend(curves.iter().map(|curve| curve.first));
        self.quotas.clear();
        self.quotas.resize(jobs * self.paths, 0.0);
        self.through.clear();
        self.through.resize(jobs, None);
    }

    /// Gives the job `n` places on the paths that serve it best; when it is through.
    fn place(&mut self, curves: &[Curve], n: usize, job: &Job) -> f64 {
        let all = (1_u32 << self.paths) - 1;
        if knob(0) < 0.5 || job.first || self.paths == 1 {
            return if knob(0) < 0.25 || job.first { self.fill(curves, n, job, all) } else { self.fill_level(curves, n, job, all).1 };
        }
        let open: u32 = (0..self.paths).filter(|&p| curves[p].rate > 0.0).map(|p| 1 << p).sum();
        let best = curves.iter().filter(|it| it.rate > 0.0).min_by(|a, b| a.first.total_cmp(&b.first));
        let Some(&best) = best else { return f64::INFINITY };
        let risk = |p: usize, through: f64| {
            let curve = &curves[p];
            let again = through - curve.first + curve.again + best.first;
            let lost = if again > job.due {
                curve.risk * knob(13)
            } else {
                let turns = 2.0 + ((job.due - again) / (best.again + best.first)).floor();
                libm::pow(curve.risk, turns)
            };
            lost
        };
        let doubt = |p: usize, through: f64| {
            let (slack, doubt) = (job.due - through, curves[p].doubt);
            let at = [0.08, 0.16, 0.32, 0.64].iter().position(|&bound| slack < bound).unwrap_or(3);
            knob(6) * doubt[at]
        };
        let kept = self.free.clone();
        let (mut chosen, mut least, mut soonest) = (all, f64::INFINITY, f64::INFINITY);
        for mask in 1..=all.min(15) {
            if mask & open != mask {
                continue;
            }
            let (level, through) = self.fill_level(curves, n, job, mask);
            soonest = soonest.min(through);
            let (mut lost, mut price, mut doubted) = (0.0, 0.0, 0.0_f64);
            for q in 0..self.paths {
                let quota = self.quotas[n * self.paths + q];
                if quota > 0.0 {
                    lost += (quota / 1300.0).max(1.0) * risk(q, through);
                    price += quota / 1000.0 * curves[q].price;
                    doubted = doubted.max(doubt(q, through));
                }
            }
            let late = if through > job.due { 10.0 } else { ((level - 1.0 + knob(3)) / knob(3)).clamp(0.0, 1.0) * 0.5 };
            let cost = job.worth * (1.0 - libm::exp(-lost) * (1.0 - doubted) + late + 0.02 * level) + price;
            if cost < least {
                (chosen, least) = (mask, cost);
            }
            self.free.copy_from_slice(&kept);
            self.quotas[n * self.paths..(n + 1) * self.paths].fill(0.0);
        }
        let (level, through) = self.fill_level(curves, n, job, chosen);
        if level < 1.0 || chosen == open {
            return through;
        }
        self.free.copy_from_slice(&kept);
        self.quotas[n * self.paths..(n + 1) * self.paths].fill(0.0);
        self.fill(curves, n, job, open)
    }

    /// Gives the job `n` places so that of the time that it has over each path an even share is used; that share, and when it is through.
    fn fill_level(&mut self, curves: &[Curve], n: usize, job: &Job, mask: u32) -> (f64, f64) {
        let due = job.due - knob(12);
        let usable = |p: usize| mask >> p & 1 == 1 && curves[p].rate > 0.0 && due > curves[p].first;
        let used = |p: usize| (self.free[p] - curves[p].first) / (due - curves[p].first);
        // The least L with the sum over paths of rate * (L - used) * (due - first) = bytes.
        let mut level = f64::INFINITY;
        for p in (0..self.paths).filter(|&p| usable(p)) {
            let (mut gain, mut sum) = (0.0, 0.0);
            for q in (0..self.paths).filter(|&q| usable(q) && used(q) <= used(p)) {
                let span = curves[q].rate * (due - curves[q].first);
                gain += span;
                sum += span * used(q);
            }
            level = level.min((job.bytes + sum) / gain);
        }
        if level.is_nan() || level > 1.0 {
            let through = self.fill(curves, n, job, mask);
            return (level.max(1.0), through);
        }
        let mut through = 0.0_f64;
        for p in (0..self.paths).filter(|&p| mask >> p & 1 == 1 && curves[p].rate > 0.0 && due > curves[p].first) {
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

    /// Gives the job `n` the earliest places that are free on the paths of `mask`; when it is through.
    fn fill(&mut self, curves: &[Curve], n: usize, job: &Job, mask: u32) -> f64 {
        let Self { free, quotas, paths, .. } = self;
        let may = |p: usize| mask >> p & 1 == 1;
        // The least T with the sum of (T - free) * rate = bytes.
        let mut through = f64::INFINITY;
        for p in (0..*paths).filter(|&p| may(p)) {
            // All paths that are free before `free[p]` and p itself.
            let (mut rate, mut sum) = (0.0, 0.0);
            for q in (0..*paths).filter(|&q| may(q)) {
                if free[q] <= free[p] && curves[q].rate > 0.0 {
                    rate += curves[q].rate;
                    sum += curves[q].rate * free[q];
                }
            }
            if rate > 0.0 {
                through = through.min((job.bytes + sum) / rate);
            }
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

    /// When each path is through with what was laid on it.
    pub(crate) fn free(&self, path: usize) -> Option<f64> {
        self.free.get(path).copied()
    }

    /// The first job that has something for the path.
    pub(crate) fn head(&self, path: usize) -> Option<usize> {
        if path >= self.paths {
            return None;
        }
        self.order.iter().copied().find(|&n| self.quotas[n * self.paths + path] > 0.0)
    }

    pub(crate) fn is_planned(&self, n: usize) -> bool {
        self.through.get(n).is_some_and(Option::is_some)
    }

    pub(crate) fn told(&self, n: usize) -> String {
        let quotas: Vec<String> = (0..self.paths).map(|p| format!("{:.0}", self.quotas[n * self.paths + p])).collect();
        format!("-> {:?} {}", self.through[n].map(|it| (it * 1e3) as u32), quotas.join("+"))
    }

    /// The first job that goes.
    pub(crate) fn first(&self) -> Option<usize> {
        self.order.iter().copied().find(|&n| self.is_planned(n))
    }

    /// `bytes` of the job left over the path, and `left` are left of it.
    pub(crate) fn on_cut(&mut self, n: usize, path: usize, bytes: f64, left: f64) {
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
    pub(crate) fn remove(&mut self, n: usize) {
        if n >= self.through.len() {
            return;
        }
        self.through.remove(n);
        self.quotas.drain(n * self.paths..(n + 1) * self.paths);
        self.order.retain(|&m| m != n);
        self.order.iter_mut().for_each(|m| *m -= usize::from(*m > n));
    }
}
