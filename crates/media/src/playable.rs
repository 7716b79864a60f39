//! Which frames a viewer sees when some did not come in time.
//!
//! PRCMT and the thesis behind it count frames as playable by these dependencies: an I frame needs itself, a P
//! frame the reference before it, a B frame the references on both sides. B frames that are references
//! themselves (a B pyramid) are taken in by the same rule.

use crate::unit::Kind;
use braidcast_core::Unwrapper;
use core::time::Duration;

/// Maximum number of reference frames that a decoder keeps (H.264 §A.3.1, H.265 §A.4.2: DPB size).
const MAX_REFERENCES: usize = 16;

/// A video frame in decoding order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    /// [`Kind::I`], [`Kind::P`] or [`Kind::B`]; any other kind is treated like P.
    pub kind: Kind,
    /// `true` if other frames are predicted from it.
    pub reference: bool,
    /// Presentation time, 90 kHz, 33 bits.
    pub pts: u64,
    /// `true` if all of it came on time.
    pub on_time: bool,
}

/// What was seen of a video.
#[derive(Clone, PartialEq, Debug)]
pub struct Playback {
    /// For each frame, in decoding order, whether it could be decoded and shown.
    pub shown: Vec<bool>,
    /// The share of frames shown, from 0 to 1; 1 for no frames.
    pub share: f64,
    /// The longest time that one frame was shown beyond its own duration; to the end of the video
    /// if no other followed.
    pub longest_freeze: Duration,
}

/// A reference that was decoded: when it is presented and whether it is intact.
#[derive(Clone, Copy)]
struct Reference {
    pts: u64,
    intact: bool,
}

/// Plays `frames`, given in decoding order, and says what was seen.
pub fn playable(frames: &[Frame]) -> Playback {
    let mut times = Unwrapper::<33>::new(frames.first().map_or(0, |frame| frame.pts));
    let pts: Vec<u64> = frames.iter().map(|frame| times.unwrap(frame.pts)).collect();
    // The last few references: the GOP's last I or P, the one before it, and a pyramid's B frames between.
    let mut references: Vec<Reference> = Vec::new();
    let mut last_anchor: Option<Reference> = None;
    let mut shown = Vec::with_capacity(frames.len());
    for (frame, pts) in frames.iter().zip(&pts) {
        let sources = match frame.kind {
            Kind::I => true,
            Kind::B => neighbours_intact(&references, *pts),
            _ => last_anchor.is_some_and(|anchor| anchor.intact),
        };
        let intact = frame.on_time && sources;
        shown.push(intact);
        let reference = Reference { pts: *pts, intact };
        if frame.kind != Kind::B {
            // Nothing that is decoded from here on reaches back beyond the anchor before this one.
            let oldest = last_anchor.map_or(*pts, |anchor| anchor.pts);
            references.retain(|reference| reference.pts >= oldest);
            last_anchor = Some(reference);
        }
        if frame.reference || frame.kind != Kind::B {
            if references.len() == MAX_REFERENCES {
                references.remove(0);
            }
            references.push(reference);
        }
    }
    let count = shown.iter().filter(|shown| **shown).count();
    let share = if frames.is_empty() { 1.0 } else { count as f64 / frames.len() as f64 };
    Playback { longest_freeze: longest_freeze(&pts, &shown), share, shown }
}

/// Returns `true` if the references next to `pts` on both sides are intact. At an open end, one side is enough.
fn neighbours_intact(references: &[Reference], pts: u64) -> bool {
    let before = references.iter().filter(|reference| reference.pts < pts).max_by_key(|reference| reference.pts);
    let after = references.iter().filter(|reference| reference.pts > pts).min_by_key(|reference| reference.pts);
    (before.is_some() || after.is_some()) && [before, after].iter().flatten().all(|reference| reference.intact)
}

/// The longest gap between shown frames, less one frame time, from the first frame's time to the last frame's end.
fn longest_freeze(pts: &[u64], shown: &[bool]) -> Duration {
    let mut all = pts.to_vec();
    all.sort_unstable();
    let mut steps: Vec<u64> = all.windows(2).map(|pair| pair[1] - pair[0]).filter(|step| *step > 0).collect();
    steps.sort_unstable();
    let (Some(first), Some(last), Some(frame)) = (all.first(), all.last(), steps.get(steps.len() / 2)) else {
        return Duration::ZERO;
    };
    let mut seen: Vec<u64> = pts.iter().zip(shown).filter(|(_, shown)| **shown).map(|(pts, _)| *pts).collect();
    seen.sort_unstable();
    // Nothing is shown before the first frame, so that gap begins one frame early, as if a frame
    // stood there.
    let starts = core::iter::once(first.saturating_sub(*frame)).chain(seen.iter().copied());
    let ends = seen.iter().copied().chain(core::iter::once(last + frame));
    let gap = starts.zip(ends).map(|(start, end)| (end - start).saturating_sub(*frame)).max().unwrap_or(0);
    Duration::from_nanos(gap.saturating_mul(100_000) / 9)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays 25 frames a second; `gop` in decoding order, for example "I0 P3 b1 b2", a capital B
    /// for one that is a reference, and `!` before those that were late.
    fn play(gop: &str) -> (String, f64, u128) {
        let frames: Vec<Frame> = gop
            .split_whitespace()
            .map(|word| {
                let late = word.starts_with('!');
                let word = word.trim_start_matches('!');
                let kind = match &word[..1] {
                    "I" => Kind::I,
                    "P" => Kind::P,
                    _ => Kind::B,
                };
                let pts = word[1..].parse::<u64>().unwrap() * 3600;
                Frame { kind, reference: !word.starts_with('b'), pts, on_time: !late }
            })
            .collect();
        let playback = playable(&frames);
        let shown = playback.shown.iter().map(|shown| if *shown { '#' } else { '.' }).collect();
        (shown, playback.share, playback.longest_freeze.as_millis())
    }

    #[test]
    fn with_everything_on_time_everything_is_shown() {
        assert_eq!(play("I0 P3 b1 b2 P6 b4 b5 I9 b7 b8"), ("##########".into(), 1.0, 0));
        assert_eq!(play(""), (String::new(), 1.0, 0));
    }

    #[test]
    fn a_lost_b_costs_itself_only() {
        assert_eq!(play("I0 P3 !b1 b2 P6 b4 b5"), ("##.####".into(), 6.0 / 7.0, 40));
    }

    #[test]
    fn a_lost_p_costs_all_that_lean_on_it_until_the_next_i() {
        assert_eq!(play("I0 P3 b1 b2 !P6 b4 b5 P9 b7 b8 I10 P11").0, "####......##");
    }

    #[test]
    fn a_lost_i_kills_its_gop_and_the_b_frames_before_it() {
        // Frames 0 to 3 are seen, then nothing before 10: 3 stands for 4 to 9, six frame times too long.
        assert_eq!(play("I0 P3 b1 b2 !I6 b4 b5 P9 b7 b8 I10"), ("####......#".into(), 5.0 / 11.0, 240));
    }

    #[test]
    fn a_lost_reference_b_costs_those_beside_it() {
        assert_eq!(play("I0 P4 !B2 b1 b3 P8 B6 b5 b7").0, "##...####");
    }

    #[test]
    fn a_freeze_at_either_end_counts() {
        assert_eq!(play("!I0 P1 P2 I3").2, 120);
        assert_eq!(play("I0 !P1 P2 P3").2, 120);
        assert_eq!(play("!I0 P1").2, 80);
    }
}
