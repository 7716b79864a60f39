use crate::layout::{Curve, Job, Layout};
use crate::knobs::knob;
use crate::{Discard, Limits, Outlook, Refused, SendQueue, Tag, Why};
use braidcast_core::Instant;
use core::fmt;
use core::time::Duration;
use std::collections::VecDeque;

const INTRA: usize = 1;
const CHAIN: usize = 2;
const REFERENCE: usize = 3;

const RATE: f64 = 1e9;

#[derive(Debug)]
struct Entry<M> {
    tag: Tag,
    message: M,
    left: usize,
    hopeless: bool,
    /// It was decided whether there is room for it.
    judged: bool,
}

impl<M> Entry<M> {
    fn level(&self) -> usize {
        self.tag.priority.index()
    }
}

#[derive(Debug)]
pub(crate) struct ByFrame<M> {
    waiting: VecDeque<Entry<M>>,
    bytes: usize,
    layout: Layout,
    jobs: Vec<Job>,
    broken: [bool; 2],
    /// Frames of the group that comes in, and of the one before.
    group: [usize; 2],
    /// Bytes a second of late that went over each path, but of first frames.
    inflow: [(f64, Instant); 8],
    prices: [f64; 8],
    /// Bytes of the group that comes in, and of the one before.
    group_bytes: [usize; 2],
    life: f64,
    began: Option<Instant>,
    length: Option<Duration>,
    is_even: bool,
    intra: usize,
    limits: Limits,
    stale: bool,
    laid: Instant,
}

impl<M: fmt::Debug + Send> ByFrame<M> {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            waiting: VecDeque::new(),
            bytes: 0,
            layout: Layout::default(),
            jobs: Vec::new(),
            broken: [false; 2],
            group: [0; 2],
            inflow: [(0.0, Instant::ZERO); 8],
            prices: [0.0; 8],
            group_bytes: [0; 2],
            life: 0.5,
            began: None,
            length: None,
            is_even: false,
            intra: 0,
            limits: Limits { messages: limits.messages.max(1), ..limits },
            stale: true,
            laid: Instant::ZERO,
        }
    }

    /// Whether what is at `k` needs what is before it at `m`.
    fn needs(levels: &[usize], k: usize, m: usize) -> bool {
        if k <= m || levels[k] == 0 {
            return false;
        }
        let ends = |level: usize| match levels[m] {
            INTRA | CHAIN => level == INTRA,
            _ => (INTRA..=REFERENCE).contains(&level),
        };
        (INTRA..=REFERENCE).contains(&levels[m]) && !levels[m + 1..=k].iter().any(|&level| ends(level))
    }

    /// Whether more is to come than the paths carry until the next group begins.
    fn is_over(&self, now: Instant, curves: &[Curve]) -> bool {
        let Some((at, length)) = self.began.zip(self.length).filter(|_| self.is_even) else { return false };
        let rate: f64 = curves.iter().map(|c| c.rate).sum();
        let room: f64 = curves.iter().map(|c| c.rate * (self.life - knob(12) - c.first).max(0.0)).sum();
        let backlog: f64 = self.waiting.iter().filter(|entry| !entry.hopeless).map(|entry| entry.left as f64).sum();
        let inflow = self.group_bytes[1] as f64 / length.as_secs_f64().max(0.1);
        let to_next = (at + length).since(now).as_secs_f64();
        backlog + (inflow - rate) * to_next + self.intra as f64 > room
    }

    /// Leaves out what would take the room of the next group's first frame.
    fn judge(&mut self, now: Instant, curves: &[Curve]) {
        let fits = self.began.zip(self.length).filter(|_| self.is_even && knob(11) > 0.0).map(|(at, length)| {
            let rate: f64 = curves.iter().map(|c| c.rate).sum();
            let room: f64 = curves.iter().map(|c| c.rate * (self.life - knob(12) - c.first).max(0.0)).sum();
            rate * (at + length).since(now).as_secs_f64() + room - knob(11) * self.intra as f64
        });
        let mut backlog = 0.0;
        for n in 0..self.waiting.len() {
            let entry = &mut self.waiting[n];
            let level = entry.level();
            if !entry.judged {
                entry.judged = true;
                let too_much = level > INTRA && fits.is_some_and(|fits| backlog + entry.left as f64 > fits);
                if too_much && !entry.hopeless {
                    entry.hopeless = true;
                    self.lose_after(n + 1, level);
                }
            }
            let entry = &self.waiting[n];
            backlog += if entry.hopeless { 0.0 } else { entry.left as f64 };
        }
    }

    fn plan(&mut self, now: Instant, curves: &[Curve]) {
        self.judge(now, curves);
        let over = self.is_over(now, curves);
        let levels: Vec<usize> = self.waiting.iter().map(Entry::level).collect();
        let last_group = levels.iter().rposition(|&level| level == INTRA).unwrap_or(0);
        let to_come = self.group[1].saturating_sub(self.group[0]).max(1) as f64;
        self.jobs.clear();
        for (n, entry) in self.waiting.iter().enumerate() {
            let due = entry.tag.expiry.map_or(f64::from(u32::MAX), |at| {
                at.since(now).as_secs_f64() - knob(2) / 1000.0 - if (INTRA..=REFERENCE).contains(&levels[n]) && entry.left == entry.tag.len { 0.05 } else { 0.0 }
            });
            let due = match levels[n] {
                _ if !over || n < last_group => due,
                0 | INTRA => due,
                CHAIN => due * knob(15).sqrt().sqrt(),
                _ => due * knob(15),
            };
            let count = (n + 1..levels.len()).filter(|&k| Self::needs(&levels, k, n)).count();
            let last = (n + 1..levels.len()).filter(|&k| Self::needs(&levels, k, n)).last().unwrap_or(n);
            let reserve = if levels[n] > INTRA { self.reserve(now, n >= last_group) } else { 0.0 };
            let more = match levels[n] {
                INTRA | CHAIN if n >= last_group => to_come,
                _ => 0.0,
            };
            self.jobs.push(Job {
                bytes: entry.left as f64,
                due,
                worth: (1.0 + count as f64 + more),
                last,
                first: levels[n] == 0,
                intra: levels[n] == INTRA,
                level: levels[n],
                reserve,
                hopeless: entry.hopeless,
            });
        }
        let mut curves = curves.to_vec();
        let to_next = self.began.zip(self.length).map_or(1.0, |(at, length)| (at + length).since(now).as_secs_f64());
        let to_next = if self.is_even { to_next } else { 1.0 };
        let life = self.life;
        let room: f64 = curves.iter().map(|c| c.rate * (life - knob(12) - c.first).max(0.0)).sum();
        for (path, curve) in curves.iter_mut().enumerate().filter(|(path, _)| *path < 8) {
            let (flow, at) = self.inflow[path];
            let flow = flow * libm::exp(-now.since(at).as_secs_f64());
            let mine = curve.rate * (life - knob(12) - curve.first).max(0.0);
            let laid = (self.layout.free(path).unwrap_or(curve.first) - curve.first).max(0.0) * curve.rate;
            let then = (laid + (flow - curve.rate) * to_next).max(0.0) + self.intra as f64 * mine / room.max(1.0);
            self.prices[path] = 0.0;
            curve.price = knob(1) * (then / mine.max(1.0) - knob(5)).max(0.0);
        }
        for (path, curve) in curves.iter().enumerate().take(8) {
            self.prices[path] = curve.price;
        }
        let curves = &curves[..];
        self.layout.lay(curves, &self.jobs, |k, m| Self::needs(&levels, k, m));
        self.stale = false;
        self.laid = now;
    }

    /// Bytes of the next group's first frame if it may come while what waits now is on its way.
    fn reserve(&self, now: Instant, is_last: bool) -> f64 {
        let Some((at, length)) = self.began.zip(self.length) else { return 0.0 };
        let next = at + length;
        let horizon = Duration::from_secs_f64(self.life);
        if !is_last || (now + horizon < next && self.is_even) { 0.0 } else { self.intra as f64 }
    }

    fn remove(&mut self, place: usize) -> Option<Entry<M>> {
        let entry = self.waiting.remove(place)?;
        self.layout.remove(place);
        self.bytes -= entry.tag.len;
        self.stale = true;
        Some(entry)
    }

    fn lose_after(&mut self, place: usize, level: usize) {
        let mut levels: Vec<usize> = self.waiting.iter().map(Entry::level).collect();
        if !(INTRA..=REFERENCE).contains(&level) {
            return;
        }
        levels.insert(place, level);
        for k in place..self.waiting.len() {
            if Self::needs(&levels, k + 1, place) {
                self.waiting[k].hopeless = true;
            }
        }
        let ends = |other: usize| match level {
            INTRA | CHAIN => other == INTRA,
            _ => (INTRA..=REFERENCE).contains(&other),
        };
        if !levels[place + 1..].iter().any(|&other| ends(other)) {
            self.broken[usize::from(level == REFERENCE)] = true;
        }
    }

    fn give_up(&mut self, place: usize, why: Why, gone: &mut Vec<Discard<M>>) {
        let Some(entry) = self.remove(place) else { return };
        let level = entry.level();
        gone.push(Discard { why, tag: entry.tag, message: entry.message });
        self.lose_after(place, level);
    }

    /// Whether it would be late though it went first at `times` the rate.
    fn is_late(entry: &Entry<M>, now: Instant, curves: &[Curve]) -> bool {
        let times = match entry.level() {
            0 | INTRA => 6.0,
            CHAIN => 2.0,
            _ => 1.2,
        };
        let Some(expiry) = entry.tag.expiry else { return false };
        let rate: f64 = curves.iter().map(|curve| curve.rate).sum();
        let first = curves.iter().map(|curve| curve.first).fold(f64::INFINITY, f64::min);
        let first = if first.is_finite() { first } else { 0.0 };
        now + Duration::from_secs_f64((first + entry.left as f64 / (times * rate).max(1.0)).min(60.0)) >= expiry
    }

    fn curve(outlook: &Outlook) -> Curve {
        let rate = outlook.rate.unwrap_or(RATE);
        Curve {
            first: outlook.one_way_delay.as_secs_f64() + outlook.ahead as f64 / rate,
            rate,
            price: 0.0,
            risk: 0.0,
            doubt: [0.0; 4],
            again: 0.0,
        }
    }
}

impl<M: fmt::Debug + Send> SendQueue<M> for ByFrame<M> {
    fn push(&mut self, outlook: &Outlook, tag: Tag, message: M, gone: &mut Vec<Discard<M>>) -> Result<(), Refused<M>> {
        if tag.len > self.limits.bytes {
            return Err(Refused::TooLarge(message));
        }
        let level = tag.priority.index();
        if level == INTRA {
            self.life = tag.expiry.map_or(0.5, |at| (at.since(outlook.now).as_secs_f64() - 0.05).max(0.05));
            self.group = [0, self.group[0]];
            self.group_bytes = [0, self.group_bytes[0]];
            let length = self.began.map(|began| outlook.now.since(began));
            self.is_even = self.length.zip(length).is_some_and(|(a, b)| a.abs_diff(b) < a.mul_f64(0.05));
            (self.began, self.length, self.intra) = (Some(outlook.now), length, tag.len);
            self.broken = [false; 2];
        } else if level <= REFERENCE && level > 0 {
            self.broken[1] = false;
        }
        self.group[0] += usize::from(level > 0);
        self.group_bytes[0] += if level > INTRA { tag.len } else { 0 };
        let hopeless = level > INTRA && (self.broken[0] || (level > REFERENCE && self.broken[1]));
        self.waiting.push_back(Entry { tag, message, left: tag.len, hopeless, judged: false });
        self.bytes += tag.len;
        self.stale = true;
        while self.waiting.len() > self.limits.messages || self.bytes > self.limits.bytes {
            let worst = (0..self.waiting.len()).max_by_key(|&n| {
                let entry = &self.waiting[n];
                (entry.left == entry.tag.len, entry.hopeless, entry.level(), core::cmp::Reverse(n))
            });
            let Some(worst) = worst else { break };
            let why = if worst + 1 == self.waiting.len() { Why::NoRoom } else { Why::Replaced };
            self.give_up(worst, why, gone);
        }
        Ok(())
    }

    fn peek(&self) -> Option<&Tag> {
        self.layout.first().or((!self.waiting.is_empty()).then_some(0)).and_then(|n| Some(&self.waiting.get(n)?.tag))
    }

    fn certain(&self, _: &Outlook) -> Option<&Tag> {
        None
    }

    fn pop(&mut self, outlook: &Outlook, gone: &mut Vec<Discard<M>>) -> Option<(Tag, M)> {
        let curve = [Self::curve(outlook)];
        self.lay_out(outlook.now, &curve, gone);
        self.plan(outlook.now, &curve);
        let n = self.layout.first().or((!self.waiting.is_empty()).then_some(0))?;
        let entry = self.remove(n)?;
        Some((entry.tag, entry.message))
    }

    fn peek_on_time(&self, outlook: &Outlook) -> Option<&Tag> {
        self.waiting.iter().map(|entry| &entry.tag).find(|tag| !tag.is_expired(outlook))
    }

    fn pop_on_time(&mut self, outlook: &Outlook) -> Option<(Tag, M)> {
        let n = self.waiting.iter().position(|entry| !entry.tag.is_expired(outlook))?;
        let entry = self.remove(n)?;
        Some((entry.tag, entry.message))
    }

    fn on_lost(&mut self, tag: &Tag) {
        let place = self.waiting.iter().position(|entry| entry.tag.expiry > tag.expiry).unwrap_or(self.waiting.len());
        self.lose_after(place, tag.priority.index());
        self.stale = true;
    }

    fn len(&self) -> usize {
        self.waiting.len()
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn lays_out(&self) -> bool {
        true
    }

    fn lay_out(&mut self, now: Instant, curves: &[Curve], gone: &mut Vec<Discard<M>>) {
        let each = Duration::from_micros((knob(4) * 1000.0) as u64);
        if !self.stale && now.since(self.laid) < each {
            return;
        }
        let mut n = 0;
        while n < self.waiting.len() {
            if Self::is_late(&self.waiting[n], now, curves) {
                self.give_up(n, Why::Expired, gone);
            } else {
                n += 1;
            }
        }
        self.plan(now, curves);
        if crate::knobs::debug() && self.waiting.len() > 0 {
            let c: Vec<String> = curves.iter().enumerate().map(|(i, c)| format!("[{:.0}ms {:.0}kB/s r{:.3} d{:.3?} p{:.3}]", c.first * 1e3, c.rate / 1e3, c.risk, c.doubt, self.prices[i])).collect();
            let j: Vec<String> = self.waiting.iter().enumerate().map(|(n, e)| format!("{}:{}/{} due {:.0} {} {:?}", e.level(), e.left, e.tag.len, self.jobs[n].due * 1e3, if e.hopeless {"hopeless"} else {""}, self.layout.told(n))).collect();
            eprintln!("{:.3} {} | {}", now.since(Instant::ZERO).as_secs_f64(), c.join(" "), j.join("; "));
        }
    }

    fn next_over(&self, path: usize) -> Option<(&Tag, &M)> {
        let entry = self.waiting.get(self.layout.head(path)?)?;
        Some((&entry.tag, &entry.message))
    }

    fn on_cut(&mut self, path: usize, bytes: usize, left: usize, is_it: &dyn Fn(&M) -> bool) {
        let Some(n) = self.waiting.iter().position(|entry| is_it(&entry.message)) else { return };
        self.waiting[n].left = left;
        if self.waiting[n].level() > INTRA && path < 8 {
            let (flow, at) = self.inflow[path];
            let gone = libm::exp(-self.laid.since(at).as_secs_f64());
            self.inflow[path] = (flow * gone + bytes as f64, self.laid.max(at));
        }
        if left == 0 {
            let stale = self.stale;
            self.remove(n);
            self.stale = stale;
        } else {
            self.layout.on_cut(n, path, bytes as f64, left as f64);
        }
    }

    fn free(&self, path: usize) -> Option<f64> {
        self.layout.free(path)
    }

    fn forget(&mut self, is_it: &dyn Fn(&M) -> bool) -> bool {
        let place = self.waiting.iter().position(|entry| is_it(&entry.message));
        place.and_then(|n| self.remove(n)).is_some()
    }
}
