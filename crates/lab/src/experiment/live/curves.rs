//! One run looked at closely.

use super::Seen;
use crate::experiment::{Curve, Measures};
use crate::host::{LiveSample, LiveSender};
use braidcast_sctp::PathReport;

/// Frames over time, and if the scenario asks for samples, the paths.
pub(super) fn add(prefix: &str, seen: &[Seen], sender: Option<&LiveSender>, measures: &mut Measures) {
    let pictures: Vec<&Seen> = seen.iter().filter(|it| it.shot.kind.is_video()).collect();
    let rate = |good: &dyn Fn(&Seen) -> bool| {
        let mut points: Vec<[f64; 2]> = Vec::new();
        for it in &pictures {
            let second = it.shot.at.as_secs();
            while points.len() as u64 <= second {
                points.push([points.len() as f64, 0.0]);
            }
            points[second as usize][1] += f64::from(u8::from(good(it)));
        }
        points
    };
    let x = "time in the clip (s)";
    let mut curve =
        |name: &str, y, points| measures.curves.push(Curve { name: format!("{prefix}{name}"), x, y, points });
    curve("on time in each second", "frames", rate(&|it| it.on_time));
    curve("playable in each second", "frames", rate(&|it| it.playable));
    let took = |it: &&&Seen| it.took.is_some();
    let point = |it: &&Seen| [it.shot.at.as_secs_f64(), it.took.unwrap_or_default().as_secs_f64() * 1e3];
    curve("from capture to screen", "time (ms)", pictures.iter().filter(took).map(point).collect());
    let late = |it: &&Seen| Some([it.shot.at.as_secs_f64(), it.late?.0.as_secs_f64() * 1e3]);
    curve("too late", "time (ms)", pictures.iter().filter_map(late).collect());
    let (Some(sender), Some(begin)) = (sender, sender.and_then(|it| it.window().first())) else { return };
    let paths = sender.samples.iter().map(|sample| sample.paths.len()).max().unwrap_or(0);
    for path in 0..paths {
        let of = |value: &dyn Fn(&PathReport) -> Option<f64>| {
            let point = |it: &LiveSample| Some([it.at.since(begin).as_secs_f64(), value(it.paths.get(path)?)?]);
            sender.samples.iter().filter_map(point).collect::<Vec<_>>()
        };
        let grown = |value: &dyn Fn(&PathReport) -> u64, factor: f64| {
            let points = of(&|it| Some(value(it) as f64));
            let step =
                |it: &[[f64; 2]]| [it[1][0], (it[1][1] - it[0][1]).max(0.0) * factor / (it[1][0] - it[0][0]).max(1e-3)];
            points.windows(2).map(step).collect::<Vec<_>>()
        };
        let mut curve = |name: &str, y, points| {
            measures.curves.push(Curve { name: format!("{prefix}{name} of path {}", path + 1), x, y, points });
        };
        curve("window", "window (kB)", of(&|it| Some(it.cwnd as f64 / 1e3)));
        curve("in flight", "bytes (kB)", of(&|it| Some(it.in_flight as f64 / 1e3)));
        curve("SRTT", "SRTT (ms)", of(&|it| Some(it.srtt?.as_secs_f64() * 1e3)));
        curve("rate", "rate (kbit/s)", grown(&|it| it.sent_bytes, 8e-3));
        curve("losses", "chunks in a second", grown(&|it| it.lost_chunks, 1.0));
    }
}
