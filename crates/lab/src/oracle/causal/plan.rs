//! Which frames go: the choice of the [oracle](super::super::choice), with a forecast in place of
//! foresight. Rates stay as they are, and frames to come are as those of the group before.

use super::super::choice::chosen_playable;
use super::super::{Chance, Route, Wanted};
use super::{Frame, Line, Losses, PACKET, PAYLOAD, QUEUE, Rules};
use crate::clip::FrameKind;
use core::time::Duration;

/// Steps of the forecast, ms.
const GRAIN: u64 = 5;
/// Over so long a rate is measured, ms.
const SPAN: u64 = 200;

/// Chooses of the frames `from..known`, at `now`.
pub(super) fn plan(frames: &mut [Frame], (from, known): (usize, usize), lines: &[Line], rules: &Rules, now: u64) {
    let Some(first) = (from..known).find(|&n| frames[n].waits()) else { return };
    let start = (0..=first).rev().find(|&n| frames[n].kind == FrameKind::I).unwrap_or(0);
    let latency = frames[first].due - frames[first].at;
    let factor = if rules.headers { PACKET / PAYLOAD } else { 1.0 };
    let wanted = |it: &Frame, bytes: f64| Wanted {
        at: Duration::from_millis(it.at),
        bytes: (bytes * factor).ceil() as u64,
        kind: it.kind,
    };
    let open: Vec<bool> = frames[start..known].iter().map(|it| !it.dead).collect();
    let mut all: Vec<Wanted> =
        frames[start..known].iter().map(|it| wanted(it, if it.dead { 0.0 } else { it.left })).collect();
    all.extend(to_come(&frames[..known]).iter().map(|it| wanted(it, it.bytes)));
    let until = all.last().map_or(now, |it| it.at.as_millis() as u64) + latency;
    let routes: Vec<Route> = lines.iter().map(|line| forecast(line, rules, now, until)).collect();
    let chosen = chosen_playable(&all, &routes, Duration::from_millis(latency), &|n| open.get(n).is_none_or(|it| *it));
    for (frame, chosen) in frames[start..known].iter_mut().zip(chosen) {
        frame.chosen = chosen;
    }
}

/// The rest of the group that comes, and the one behind it.
fn to_come(known: &[Frame]) -> Vec<Frame> {
    let mut groups = (0..known.len()).rev().filter(|&n| known[n].kind == FrameKind::I);
    let (Some(latest), Some(before)) = (groups.next(), groups.next()) else { return Vec::new() };
    let (length, period) = (latest - before, known[latest].at - known[before].at);
    let mut all: Vec<Frame> = known[before..].to_vec();
    let count = all.len();
    for n in count..3 * length {
        let like = all[n - length];
        all.push(Frame { at: like.at + period, due: like.due + period, ..like });
    }
    all.split_off(count)
}

/// What a link is held to carry from `now` on.
fn forecast(line: &Line, rules: &Rules, now: u64, until: u64) -> Route {
    let delay = line.delay(now);
    let (rate, ahead) =
        if rules.late { (line.mean(now.saturating_sub(2 * delay), SPAN), QUEUE) } else { (line.bytes(now), 0) };
    let extra = if let Losses::Coded { extra } = rules.losses { extra } else { 0.0 };
    let bytes = rate * GRAIN as f64 * (1.0 - line.loss) / if line.loss > 0.0 { 1.0 + extra } else { 1.0 };
    let ms = Duration::from_millis;
    let chance = |at| Chance { at: ms(at), bytes, delay: ms(delay + ahead) };
    if bytes > 0.0 { (now..until).step_by(GRAIN as usize).map(chance).collect() } else { Route::new() }
}
