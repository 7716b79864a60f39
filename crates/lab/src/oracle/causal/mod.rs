//! What a sender could have delivered in time that knows links as they are, and not as they will be:
//! a yardstick without foresight.
//!
//! Time goes in steps of 1 ms. Each link takes, as it has room, the oldest frame of those that the
//! [plan](plan) has chosen and that still come in time over it. If there is none, it takes what can
//! still be shown, rather than nothing. The [`STEPS`] take away one advantage after the other.

mod line;
mod plan;
#[cfg(test)]
mod tests;

pub(crate) use line::Line;

use super::Wanted;
use crate::clip::FrameKind;
use braidcast_core::Rng;
use core::time::Duration;
use plan::plan;

/// Bytes of a packet, and those of them that are of the clip: 60 are headers.
const PACKET: f64 = 1500.0;
const PAYLOAD: f64 = 1440.0 * 188.0 / 192.0;
/// From when a loss shows at the receiver until that leaves.
const NOTICE: u64 = 10;
/// What a queue that a sender keeps in a link holds, ms.
const QUEUE: u64 = 60;
/// A new plan is made after this, ms, and at once if a frame comes or is lost.
const PLAN_EACH: u64 = 20;
/// No bytes.
const NOTHING: f64 = 1e-6;

/// What becomes of losses.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Losses {
    /// A code makes up for all of them. It takes their mean, and `extra` of what a lossy link carries.
    Coded { extra: f64 },
    /// Packets are lost, and go again once the sender knows. It is told over the quickest link, or
    /// over the link that lost them.
    Repeated { told_quickly: bool },
}

/// What the sender knows, and how it sends.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Rules {
    /// Packets have headers.
    pub headers: bool,
    /// Rates are known a round trip late, as the mean of 200 ms, and what leaves a link was handed
    /// to it 60 ms before.
    pub late: bool,
    pub losses: Losses,
    /// A plan says which frames go. Otherwise all go in their order until they are too late.
    pub plans: bool,
}

const IDEAL: Rules = Rules { headers: false, late: false, losses: Losses::Coded { extra: 0.0 }, plans: true };
const REAL: Rules = Rules { headers: true, late: true, ..IDEAL };

/// From what a sender without foresight could do at best to what is plain, each by the name of its measure.
pub(crate) const STEPS: [(&str, Rules); 7] = [
    ("causal, ideal", IDEAL),
    ("causal, headers", Rules { headers: true, ..IDEAL }),
    ("causal, late rates", REAL),
    ("causal, 5 % more code", Rules { losses: Losses::Coded { extra: 0.05 }, ..REAL }),
    ("causal, repeats", Rules { losses: Losses::Repeated { told_quickly: true }, ..REAL }),
    ("causal, repeats told late", Rules { losses: Losses::Repeated { told_quickly: false }, ..REAL }),
    ("causal, repeats, no plan", Rules { losses: Losses::Repeated { told_quickly: true }, plans: false, ..REAL }),
];

/// A frame, and what became of it so far.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Frame {
    kind: FrameKind,
    /// When it can first be sent, and when it must be there, ms.
    at: u64,
    due: u64,
    bytes: f64,
    /// Bytes that are to be sent, for the first time or again.
    left: f64,
    /// Bytes that are lost, which nobody knows yet.
    lost: f64,
    /// It is too late for it.
    dead: bool,
    chosen: bool,
}

impl Frame {
    fn is_whole(&self) -> bool {
        self.left + self.lost <= NOTHING
    }

    fn waits(&self) -> bool {
        self.left > NOTHING && !self.dead
    }
}

/// What can be shown, frame by frame in decoding order: I, then P in a row, then B behind both.
#[derive(Clone, Copy, Debug)]
struct Chain {
    holds: bool,
    reference: bool,
}

impl Chain {
    const NEW: Self = Self { holds: false, reference: false };

    /// Returns `true` if the next frame can be shown, which is `there` or not.
    fn shows(&mut self, kind: FrameKind, there: bool) -> bool {
        match kind {
            FrameKind::I => (self.holds, self.reference) = (there, there),
            FrameKind::P => (self.holds, self.reference) = (self.holds && there, self.holds && there),
            FrameKind::R => self.reference = self.holds && there,
            FrameKind::B => return self.holds && self.reference && there,
            FrameKind::Tables | FrameKind::Audio => return there,
        }
        if kind == FrameKind::R { self.reference } else { self.holds }
    }
}

/// The share of video frames that could have been shown, 0 to 1. `frames` are in decoding order and
/// their times do not fall; `lines` begin with the first of them.
pub(crate) fn causal(frames: &[Wanted], lines: &[Line], latency: Duration, rules: &Rules, rng: &mut Rng) -> f64 {
    let begin = frames.first().map_or(Duration::ZERO, |it| it.at);
    let mut frames: Vec<Frame> = frames.iter().map(|it| frame(it, begin, latency)).collect();
    let mut sending =
        Sending { lines, rules, oldest: 0, known: 0, credits: vec![0.0; lines.len()], lost: Vec::new(), rng };
    let end = frames.last().map_or(0, |it| it.due);
    let mut planned = 0;
    for now in 0..=end {
        let news = sending.learn(&mut frames, now);
        if rules.plans && (news || now >= planned + PLAN_EACH) {
            plan(&mut frames, (sending.oldest, sending.known), lines, rules, now);
            planned = now;
        }
        sending.send(&mut frames, now);
    }
    let mut chain = Chain::NEW;
    let shown = frames.iter().map(|it| (it.kind, chain.shows(it.kind, it.is_whole() && !it.dead)));
    let video: Vec<bool> = shown.filter(|(kind, _)| kind.is_video()).map(|(_, shown)| shown).collect();
    video.iter().filter(|shown| **shown).count() as f64 / video.len().max(1) as f64
}

fn frame(it: &Wanted, begin: Duration, latency: Duration) -> Frame {
    let at = it.at.saturating_sub(begin).as_millis() as u64;
    let bytes = it.bytes as f64;
    let due = at + latency.as_millis() as u64;
    Frame { kind: it.kind, at, due, bytes, left: bytes, lost: 0.0, dead: false, chosen: true }
}

/// The sender and its links.
struct Sending<'a> {
    lines: &'a [Line],
    rules: &'a Rules,
    /// Frames from the oldest one that matters to those that are not captured yet.
    oldest: usize,
    known: usize,
    /// Bytes that each link has room for at this moment; below zero if it took a whole packet.
    credits: Vec<f64>,
    /// When the sender knows of losses, of which frame, and how many bytes.
    lost: Vec<(u64, usize, f64)>,
    rng: &'a mut Rng,
}

impl Sending<'_> {
    /// Notes what the sender learns at `now`. Returns `true` if that is something.
    fn learn(&mut self, frames: &mut [Frame], now: u64) -> bool {
        let before = self.known;
        while frames.get(self.known).is_some_and(|it| it.at <= now) {
            self.known += 1;
        }
        let mut news = self.known > before;
        self.lost.retain(|&(when, n, bytes)| {
            if when <= now {
                (frames[n].lost, frames[n].left) = (frames[n].lost - bytes, frames[n].left + bytes);
                news = true;
            }
            when > now
        });
        for frame in frames[self.oldest..self.known].iter_mut().filter(|it| it.waits() && it.due < now) {
            (frame.dead, news) = (true, true);
        }
        // A group and its latency are over by then.
        while self.oldest < self.known && frames[self.oldest].due + 2000 < now {
            self.oldest += 1;
        }
        news
    }

    /// Sends over each link as much as it takes at `now`.
    fn send(&mut self, frames: &mut [Frame], now: u64) {
        let Self { lines, rules, .. } = *self;
        let leaves = now + if rules.late { QUEUE } else { 0 };
        let factor = if rules.headers { PACKET / PAYLOAD } else { 1.0 };
        let quickest = lines.iter().map(|it| it.delay(leaves)).min().unwrap_or(0);
        for (n, line) in lines.iter().enumerate() {
            let through = match rules.losses {
                Losses::Coded { extra } if line.loss > 0.0 => (1.0 - line.loss) / (1.0 + extra),
                _ => 1.0,
            };
            self.credits[n] += line.bytes(leaves) * through;
            let comes = leaves + line.delay(leaves);
            while self.credits[n] > 0.0 {
                let Some(place) = next(&frames[self.oldest..self.known], comes).map(|it| self.oldest + it) else {
                    self.credits[n] = 0.0;
                    break;
                };
                let frame = &mut frames[place];
                let size = frame.left.min(PAYLOAD);
                self.credits[n] -= size * factor;
                frame.left -= size;
                if let Losses::Repeated { told_quickly } = rules.losses
                    && self.rng.chance(line.loss)
                {
                    frame.lost += size;
                    let back = if told_quickly { quickest } else { line.delay(leaves) };
                    self.lost.push((comes + NOTICE + back, place, size));
                }
            }
        }
    }
}

/// The place of the frame that goes next over a link where it comes at `comes`.
fn next(frames: &[Frame], comes: u64) -> Option<usize> {
    let open = |it: &Frame| it.waits() && comes <= it.due;
    frames.iter().position(|it| it.chosen && open(it)).or_else(|| {
        // What came before `frames` is not known to be missing.
        let mut chain = Chain { holds: true, reference: true };
        frames.iter().position(|it| {
            let useful = chain.shows(it.kind, !it.dead);
            useful && open(it)
        })
    })
}
