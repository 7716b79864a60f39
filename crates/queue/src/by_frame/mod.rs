mod layout;

pub use layout::Curve;

use crate::knobs::knob;
use crate::{Discard, Frame, Limits, NeededBy, Outlook, Priority, Refused, SendQueue, Tag, Why};
use braidcast_core::Instant;
use core::fmt;
use core::time::Duration;
use layout::{Job, Layout};
use std::collections::VecDeque;
use crate::broken::{AllBroken, Broken};

const INTRA: u8 = 1;
const CHAIN: u8 = 2;
const REFERENCE: u8 = 3;
const LEAF: u8 = 4;

const fn level(tag: &Tag) -> u8 {
    let priority = tag.priority.get();
    if priority == 0 {
        return 0;
    }
    match &tag.frame {
        Some(frame) if !frame.is_alone() => match frame.needed_by {
            NeededBy::Rest if frame.begins_group() => INTRA,
            NeededBy::Rest => CHAIN,
            NeededBy::Some => REFERENCE,
            NeededBy::Nothing => LEAF,
        },
        _ => priority,
    }
}

fn of_group(tag: &Tag) -> Option<&Frame> {
    tag.frame.as_ref().filter(|frame| !frame.is_alone())
}

/// Whether `frame` needs `other`.
fn needs(frame: Option<&Frame>, other: Option<&Frame>) -> bool {
    let Some((frame, other)) = frame.zip(other) else { return false };
    frame.is_beside(other)
        && match other.needed_by {
            NeededBy::Rest => other.id < frame.id,
            _ => frame.needs == Some(other.id),
        }
}

/// Rate of a way that nothing is known of, bytes a second.
const UNKNOWN: f64 = 1e9;

#[derive(Debug)]
struct Entry<M> {
    tag: Tag,
    message: M,
    left: usize,
    hopeless: bool,
    judged: bool,
}

const MAX: usize = 8;

#[derive(Debug)]
pub(crate) struct ByFrame<M> {
    waiting: VecDeque<Entry<M>>,
    bytes: usize,
    layout: Layout,
    jobs: Vec<Job>,
    broken: AllBroken,
    /// Frames of the group that comes in, and of the one before.
    group: [usize; 2],
    group_bytes: [usize; 2],
    /// Bytes a second of late that went over each path, but of first frames.
    inflow: [(f64, Instant); MAX],
    prices: Vec<f64>,
    life: f64,
    began: Option<Instant>,
    length: Option<Duration>,
    is_even: bool,
    intra: usize,
    intra_id: u64,
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
            broken: AllBroken::default(),
            group: [0; 2],
            group_bytes: [0; 2],
            inflow: [(0.0, Instant::ZERO); MAX],
            prices: Vec::new(),
            life: 0.5,
            began: None,
            length: None,
            is_even: false,
            intra: 0,
            intra_id: 0,
            limits: Limits { messages: limits.messages.max(1), ..limits },
            stale: true,
            laid: Instant::ZERO,
        }
    }

    fn room(&self, curves: &[Curve]) -> f64 {
        curves.iter().map(|c| c.rate * (self.life - knob("K_SPARE") - c.first).max(0.0)).sum()
    }

    /// Leaves out what would take the room of the next group's first frame.
    fn judge(&mut self, now: Instant, curves: &[Curve]) {
        let fits = self.began.zip(self.length).filter(|_| self.is_even && knob("K_JUDGE") > 0.0).map(|(at, length)| {
            let rate: f64 = curves.iter().map(|c| c.rate).sum();
            knob("K_G") * (rate * (at + length).since(now).as_secs_f64() + self.room(curves)) - knob("K_JUDGE") * self.intra as f64
        });
        let mut backlog = 0.0;
        for n in 0..self.waiting.len() {
            let entry = &mut self.waiting[n];
            if !entry.judged {
                entry.judged = true;
                let too_much = level(&entry.tag) > INTRA && fits.is_some_and(|fits| backlog + entry.left as f64 > fits);
                if too_much && !entry.hopeless {
                    entry.hopeless = true;
                    let tag = entry.tag;
                    self.lose(&tag);
                }
            }
            let entry = &self.waiting[n];
            backlog += if entry.hopeless { 0.0 } else { entry.left as f64 };
        }
    }

    /// The least set of paths, the quickest first, over which all that waits and the next group's
    /// first frame are in time with ease.
    fn least(&mut self, now: Instant, curves: &[Curve]) -> u32 {
        let ease = knob("K_A");
        let mut order: Vec<usize> = (0..curves.len().min(31)).filter(|&p| curves[p].rate > 0.0).collect();
        let far = |p: usize| curves[p].first + curves[p].again + knob("K_B") * curves[p].late[0];
        order.sort_by(|&a, &b| far(a).total_cmp(&far(b)));
        let all: u32 = order.iter().map(|p| 1 << p).sum();
        if ease == 0.0 { return all; }
        let to_next = self.began.zip(self.length).filter(|_| self.is_even).map(|(at, length)| ((at + length).since(now).as_secs_f64(), length.as_secs_f64()));
        let inflow = to_next.map_or(0.0, |(_, length)| self.group_bytes[1] as f64 / length.max(0.1));
        let mut mask = 0;
        for (n, &p) in order.iter().enumerate() {
            mask |= 1 << p;
            let set = &order[..=n];
            let k = knob("K_C");
            let mut sum = 0.0;
            let holds = |sum: f64, due: f64| sum <= set.iter().map(|&p| k * curves[p].rate * (ease * due - curves[p].first).max(0.0)).sum::<f64>();
            let mut fits = true;
            for (entry, job) in self.waiting.iter().zip(&self.jobs) {
                if entry.hopeless { continue; }
                sum += job.bytes;
                fits &= job.level == 0 || holds(sum, job.due);
            }
            if let Some((to_next, _)) = to_next {
                let rate: f64 = set.iter().map(|&p| k * curves[p].rate).sum();
                let then = (sum + (inflow - rate) * to_next).max(0.0) + self.intra as f64;
                fits &= holds(then, self.life);
            }
            if fits { return mask; }
        }
        all
    }

    fn plan(&mut self, now: Instant, curves: &[Curve]) {
        self.judge(now, curves);
        let count = self.waiting.len();
        let last_intra = self.waiting.iter().rposition(|it| level(&it.tag) == INTRA).unwrap_or(0);
        let to_come = self.group[1].saturating_sub(self.group[0]).max(1) as f64;
        self.jobs.clear();
        for n in 0..count {
            let entry = &self.waiting[n];
            let level = level(&entry.tag);
            let frame = of_group(&entry.tag);
            let until = |at: Instant| at.since(now).as_secs_f64() - now.since(at).as_secs_f64();
            let expiry = entry.tag.expiry.map_or(1e6, until);
            let due = frame.and_then(|it| it.due).filter(|_| entry.left == entry.tag.len).map_or(expiry, |due| expiry.min(until(due)));
            let due = due - knob("K_MARGIN") / 1000.0;
            let (mut needing, mut last) = (0, n);
            if matches!(level, INTRA | CHAIN | REFERENCE) {
                for k in n + 1..count {
                    if needs(of_group(&self.waiting[k].tag), frame) {
                        (needing, last) = (needing + 1, k);
                    }
                }
            }
            let more = if matches!(level, INTRA | CHAIN) && n >= last_intra { to_come } else { 0.0 };
            self.jobs.push(Job {
                bytes: entry.left as f64,
                due,
                worth: 1.0 + needing as f64 + more,
                last,
                first: level == 0,
                hopeless: entry.hopeless,
                level,
                mask: u32::MAX,
                intra: level == INTRA,
            });
        }
        let least = self.least(now, curves);
        let all_of_it = knob("K_D") > 0.5;
        for job in &mut self.jobs {
            if job.level <= REFERENCE || all_of_it {
                job.mask = least;
            }
        }
        let to_next = self.began.zip(self.length).filter(|_| self.is_even).map_or(1.0, |(at, length)| (at + length).since(now).as_secs_f64());
        let room = self.room(curves);
        self.prices.clear();
        for (path, curve) in curves.iter().enumerate() {
            let (flow, at) = self.inflow.get(path).copied().unwrap_or((0.0, now));
            let flow = flow * libm::exp(-now.since(at).as_secs_f64());
            let mine = curve.rate * (self.life - knob("K_SPARE") - curve.first).max(0.0);
            let laid = (self.layout.free(path).unwrap_or(curve.first) - curve.first).max(0.0) * curve.rate;
            let then = (laid + (flow - curve.rate) * to_next).max(0.0) + self.intra as f64 * mine / room.max(1.0);
            self.prices.push(knob("K_PRICE") * (then / mine.max(1.0) - knob("K_FULL")).max(0.0));
        }
        let waiting = &self.waiting;
        let near = self.began.zip(self.length).filter(|_| self.is_even).is_some_and(|(at, length)| {
            let since = now.since(at);
            since >= length.mul_f64(1.0 - knob("K_F")) && since < length + Duration::from_millis(50)
        });
        self.layout.lay(curves, &self.prices, &self.jobs, near, |k, m| needs(of_group(&waiting[k].tag), of_group(&waiting[m].tag)));
        self.stale = false;
        self.laid = now;
    }

    fn remove(&mut self, place: usize) -> Option<Entry<M>> {
        let entry = self.waiting.remove(place)?;
        self.layout.remove(place);
        self.bytes -= entry.tag.len;
        self.stale = true;
        Some(entry)
    }

    /// A message is lost, and with it its frame and what needs that.
    fn lose(&mut self, tag: &Tag) {
        let Some(frame) = tag.frame else { return };
        let in_part = tag.len < frame.bytes as usize;
        if frame.needed_by == NeededBy::Nothing && !in_part {
            return;
        }
        let mut broken = Broken::of(&frame);
        broken.add(&frame, in_part);
        for entry in &mut self.waiting {
            entry.hopeless |= entry.tag.frame.is_some_and(|frame| broken.breaks(&frame));
        }
        if !frame.is_alone() {
            self.broken.merge(&broken);
        }
        self.stale = true;
    }

    fn give_up(&mut self, place: usize, why: Why, gone: &mut Vec<Discard<M>>) {
        let Some(entry) = self.remove(place) else { return };
        let tag = entry.tag;
        gone.push(Discard { why, tag, message: entry.message });
        self.lose(&tag);
    }

    /// Whether it would be late though it went first at a multiple of the rate.
    fn is_late(entry: &Entry<M>, now: Instant, curves: &[Curve]) -> bool {
        let times = match level(&entry.tag) {
            0 | INTRA => 6.0,
            CHAIN => 2.0,
            _ => 1.2,
        };
        let Some(expiry) = entry.tag.expiry else { return false };
        let rate: f64 = curves.iter().map(|curve| curve.rate).sum();
        let first = curves.iter().filter(|it| it.rate > 0.0).map(|curve| curve.first).fold(f64::INFINITY, f64::min);
        let first = if first.is_finite() { first } else { 0.0 };
        now + Duration::from_secs_f64((first + entry.left as f64 / (times * rate).max(1.0)).min(60.0)) >= expiry
    }

    fn curve(outlook: &Outlook) -> Curve {
        let rate = outlook.rate.unwrap_or(UNKNOWN);
        let first = outlook.one_way_delay.as_secs_f64() + outlook.ahead as f64 / rate;
        Curve { first, rate, ..Curve::default() }
    }
}

impl<M: fmt::Debug + Send> SendQueue<M> for ByFrame<M> {
    fn push(&mut self, outlook: &Outlook, tag: Tag, message: M, gone: &mut Vec<Discard<M>>) -> Result<(), Refused<M>> {
        if tag.len > self.limits.bytes {
            self.lose(&tag);
            return Err(Refused::TooLarge(message));
        }
        let level = level(&tag);
        if let Some(frame) = of_group(&tag) {
            if level == INTRA && self.intra_id != frame.id {
                self.intra_id = frame.id;
                self.life = frame.due.or(tag.expiry).map_or(0.5, |at| at.since(outlook.now).as_secs_f64().max(0.05));
                self.group = [0, self.group[0]];
                self.group_bytes = [0, self.group_bytes[0]];
                let length = self.began.map(|began| outlook.now.since(began));
                self.is_even = self.length.zip(length).is_some_and(|(a, b)| a.abs_diff(b) < a.mul_f64(0.05));
                (self.began, self.length, self.intra) = (Some(outlook.now), length, tag.len);
            } else if level == INTRA {
                self.intra += tag.len;
            }
        }
        self.group[0] += usize::from(level > 0);
        self.group_bytes[0] += if level > INTRA { tag.len } else { 0 };
        let hopeless = of_group(&tag).is_some_and(|frame| self.broken.breaks(frame));
        self.waiting.push_back(Entry { tag, message, left: tag.len, hopeless, judged: false });
        self.bytes += tag.len;
        self.stale = true;
        while self.waiting.len() > self.limits.messages || self.bytes > self.limits.bytes {
            let worst = (0..self.waiting.len()).max_by_key(|&n| {
                let entry = &self.waiting[n];
                (entry.left == entry.tag.len, entry.hopeless, crate::by_frame::level(&entry.tag), core::cmp::Reverse(n))
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
        self.lose(tag);
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
        if !self.stale && now.since(self.laid) < Duration::from_millis(5) {
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
        if crate::knobs::debug() && !self.waiting.is_empty() {
            let c: Vec<String> = curves.iter().enumerate().map(|(i, c)| format!("[{:.0}ms {:.0}kB/s r{:.3} d{:.3?} p{:.3}]", c.first * 1e3, c.rate / 1e3, c.loss, c.late, self.prices[i])).collect();
            let j: Vec<String> = self.waiting.iter().enumerate().map(|(n, e)| format!("{}:{}/{} due {:.0} {} {:?}", level(&e.tag), e.left, e.tag.len, self.jobs[n].due * 1e3, if e.hopeless {"hopeless"} else {""}, self.layout.told(n))).collect();
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
        if level(&self.waiting[n].tag) > INTRA && path < MAX {
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

    fn forget(&mut self, is_it: &dyn Fn(&M) -> bool) -> bool {
        let place = self.waiting.iter().position(|entry| is_it(&entry.message));
        place.and_then(|n| self.remove(n)).is_some()
    }
}
