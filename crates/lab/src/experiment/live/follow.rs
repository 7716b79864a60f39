//! An encoder that follows: frames on time, freezes, and the rate beside what foresight could have had.

use crate::experiment::Measures;
use crate::host::{LiveReceiver, LiveSender};
use crate::oracle::{Frames, Route, sizes};
use crate::scenario::Encoding;
use braidcast_core::Instant;
use core::time::Duration;

/// Metrics of a flow whose camera ran over `routes`.
pub(super) fn add(
    prefix: &str,
    encoding: &Encoding,
    latency: Duration,
    (sender, receiver): (&LiveSender, &LiveReceiver),
    routes: &[Route],
    measures: &mut Measures,
) {
    let Some(taken) = sender.camera().map(|it| it.taken()).filter(|it| !it.is_empty()) else { return };
    // Units are counted by the sender as they come in: frames that were made, in their order.
    let made: Vec<usize> = (0..taken.len()).filter(|&n| taken[n].bytes > 0).collect();
    let mut on_time = vec![false; taken.len()];
    for entry in receiver.log.iter().flatten() {
        if let Some(&n) = made.get(entry.sequence as usize) {
            on_time[n] = entry.on_time;
        }
    }
    let interval = Duration::from_secs(1) / encoding.fps;
    let seconds = taken.len() as f64 * interval.as_secs_f64();
    let frames = Frames {
        count: taken.len(),
        first: taken[0].at.since(Instant::ZERO),
        interval,
        latency,
        most: encoding.limits.greatest as f64 / 8.0 / f64::from(encoding.fps),
    };
    let possible = sizes(&frames, routes);
    let least = encoding.limits.least as f64 / 8.0 / f64::from(encoding.fps);
    let could: Vec<bool> = possible.iter().map(|bytes| *bytes >= least).collect();
    let rate = |bytes: f64| bytes * 8.0 / seconds / 1e3;
    let good: usize = taken.iter().zip(&on_time).filter(|(_, on_time)| **on_time).map(|(it, _)| it.bytes).sum();
    let (ours, oracle) = (rate(good as f64), rate(possible.iter().sum()));
    let share = |of: &[bool]| 100.0 * of.iter().filter(|it| **it).count() as f64 / of.len() as f64;
    let mut add = |name: &str, unit, value| measures.metric(format!("{prefix}{name}"), unit, value);
    add("on time", "%", share(&on_time));
    add("longest freeze", "s", longest_freeze(&on_time, interval));
    add("left out", "frames", (taken.len() - made.len()) as f64);
    add("rate", "kbit/s", ours);
    add("oracle rate", "kbit/s", oracle);
    add("share of the oracle rate", "%", if oracle > 0.0 { 100.0 * ours / oracle } else { 100.0 });
    add("oracle on time", "%", share(&could));
    add("oracle longest freeze", "s", longest_freeze(&could, interval));
}

/// The longest run of frames that were not on time, and the frame that stood meanwhile, s.
fn longest_freeze(on_time: &[bool], interval: Duration) -> f64 {
    let longest = on_time.split(|it| *it).map(<[bool]>::len).max().unwrap_or(0);
    if longest == 0 { 0.0 } else { (longest + 1) as f64 * interval.as_secs_f64() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_freeze_lasts_from_the_last_frame_on_time_to_the_next() {
        let interval = Duration::from_millis(40);
        let freeze = |text: &str| longest_freeze(&text.bytes().map(|it| it == b'1').collect::<Vec<_>>(), interval);
        assert_eq!([freeze("111"), freeze("101"), freeze("1001011")].map(|it| (it * 1e3).round()), [0.0, 80.0, 120.0]);
    }
}
