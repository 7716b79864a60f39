//! What of the source was on time, by the receiver's own log.

use crate::failure::{Failure, Outcome};
use braidcast_core::Instant;
use braidcast_media::{Format, Frame, Framing, Input, Kind, Unit, playable};
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::Path;

/// The source's units of one kind that a viewer misses when they are not there, each known by its time.
type Times = BTreeSet<u64>;

/// What the source consists of.
pub(super) struct Source {
    /// Presentation times of the audio packets.
    audio: Times,
    /// The frames in decoding order; `on_time` is not set yet.
    frames: Vec<Frame>,
}

/// Shares from 0 to 1 of what the source holds.
#[derive(Clone, Copy, Serialize)]
pub(super) struct OnTime {
    pub(super) audio: f64,
    /// Number of all video frames.
    pub(super) frames: f64,
    #[serde(rename = "I")]
    pub(super) i: f64,
    #[serde(rename = "P")]
    pub(super) p: f64,
    #[serde(rename = "B")]
    pub(super) b: f64,
}

/// What a viewer had of the source.
pub(super) struct Score {
    pub(super) on_time: OnTime,
    /// Share of the frames that could be shown: they and all frames that they reference arrived on
    /// time.
    pub(super) playable_share: f64,
    pub(super) longest_freeze_s: f64,
}

impl Source {
    /// Takes the file apart as `send` does.
    pub(super) fn read(path: &Path) -> Outcome<Self> {
        let bytes = std::fs::read(path).map_err(|e| {
            Failure::new(format!("cannot read {}: {e}", path.display()), "check the folder given by --out")
        })?;
        let mut input = Input::new(Format::Ts, Framing::Stream(1));
        input.push(Instant::ZERO, &bytes);
        input.finish(Instant::ZERO);
        let mut source = Self { audio: Times::new(), frames: Vec::new() };
        while let Some(unit) = input.poll() {
            source.add(&unit);
        }
        Ok(source)
    }

    fn add(&mut self, unit: &Unit) {
        let Some(pts) = unit.pts else { return };
        if unit.kind == Kind::Audio {
            self.audio.insert(pts);
        } else if unit.kind.is_video() {
            self.frames.push(Frame { kind: unit.kind, reference: unit.reference, pts, on_time: false });
        }
    }

    /// Compares with the log of `receive --log`.
    pub(super) fn score(&self, log: &Path) -> Outcome<Score> {
        let fail = |what: &str| {
            Failure::new(format!("{what} in {}", log.display()), "please report this as a bug of `receive --log`")
        };
        let text = std::fs::read_to_string(log).map_err(|e| fail(&format!("cannot read: {e}")))?;
        let mut lines = text.lines();
        let head: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
        let column =
            |name: &str| head.iter().position(|h| *h == name).ok_or_else(|| fail(&format!("no column {name}")));
        let (kind, pts, on_time) = (column("kind")?, column("pts")?, column("on_time")?);
        let (mut audio, mut video) = (Times::new(), Times::new());
        for line in lines {
            let cells: Vec<&str> = line.split(',').collect();
            let cell = |i: usize| cells.get(i).copied().unwrap_or_default();
            if cell(on_time) == "1"
                && let Ok(pts) = cell(pts).parse()
            {
                if cell(kind) == Kind::Audio.name() { &mut audio } else { &mut video }.insert(pts);
            }
        }
        Ok(self.compare(&audio, &video))
    }

    fn compare(&self, audio: &Times, video: &Times) -> Score {
        let frames: Vec<Frame> =
            self.frames.iter().map(|frame| Frame { on_time: video.contains(&frame.pts), ..*frame }).collect();
        let of = |kind: Option<Kind>| {
            let all = frames.iter().filter(|frame| kind.is_none_or(|kind| frame.kind == kind));
            share(all.clone().filter(|frame| frame.on_time).count(), all.count())
        };
        let playback = playable(&frames);
        Score {
            on_time: OnTime {
                audio: share(self.audio.intersection(audio).count(), self.audio.len()),
                frames: of(None),
                i: of(Some(Kind::I)),
                p: of(Some(Kind::P)),
                b: of(Some(Kind::B)),
            },
            playable_share: playback.share,
            longest_freeze_s: playback.longest_freeze.as_secs_f64(),
        }
    }
}

/// `part` of `all`; everything of nothing.
fn share(part: usize, all: usize) -> f64 {
    if all == 0 { 1.0 } else { part as f64 / all as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_that_leans_on_a_late_one_is_on_time_and_not_playable() {
        let frame = |kind, pts| Frame { kind, reference: kind != Kind::B, pts, on_time: false };
        let frames = [frame(Kind::I, 0), frame(Kind::P, 3600), frame(Kind::P, 7200), frame(Kind::P, 10800)];
        let source = Source { audio: [0, 1920].into(), frames: frames.into() };
        let score = source.compare(&[0].into(), &[0, 7200, 10800].into());
        assert_eq!((score.on_time.audio, score.on_time.frames), (0.5, 0.75));
        assert_eq!((score.on_time.i, score.on_time.b), (1.0, 1.0));
        assert!((score.on_time.p - 2.0 / 3.0).abs() < 1e-9);
        assert_eq!((score.playable_share, score.longest_freeze_s), (0.25, 0.12));
    }
}
