//! Which frames are chosen.

use super::fit::Fit;
use super::{Route, Wanted};
use crate::clip::FrameKind;
use core::time::Duration;

/// A frame that does not fit may replace one that is older by at most this: two groups of pictures.
const REACH: Duration = Duration::from_secs(3);

/// What could have been in time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Possible {
    /// Share of all video frames, 0 to 1, if only their number counts.
    pub video: f64,
    /// Share of all audio, with these video frames.
    pub audio: f64,
    /// Share of all video frames that can be shown, if those are chosen that others reference.
    pub playable: f64,
}

/// What could be through within `latency` of its capture over `routes`. `frames` are in decoding
/// order and their times do not fall.
pub(crate) fn possible(frames: &[Wanted], routes: &[Route], latency: Duration) -> Possible {
    let most = most_frames(frames, routes, latency);
    let playable = most_playable(frames, routes, latency, &|_| true);
    let share = |fit: &Fit<'_>, of: &dyn Fn(FrameKind) -> bool| {
        let (mut all, mut chosen) = (0_u32, 0_u32);
        for (n, _) in frames.iter().enumerate().filter(|(_, frame)| of(frame.kind)) {
            all += 1;
            chosen += u32::from(fit.has(n));
        }
        if all == 0 { 1.0 } else { f64::from(chosen) / f64::from(all) }
    };
    Possible {
        video: share(&most, &|kind| kind.is_video()),
        audio: share(&most, &|kind| kind == FrameKind::Audio),
        playable: share(&playable, &|kind| kind.is_video()),
    }
}

/// Chooses the largest number of frames. Each is taken in its turn; if it does not fit, the largest
/// video frame shortly before it is left out, or itself.
fn most_frames<'a>(frames: &'a [Wanted], routes: &'a [Route], latency: Duration) -> Fit<'a> {
    let mut fit = Fit::new(frames, routes, latency);
    for (n, frame) in frames.iter().enumerate() {
        if fit.add(n) {
            continue;
        }
        // Audio and tables are worth more than any video.
        let least = if frame.kind.is_video() { frame.bytes } else { 0 };
        let near = frames[..n].iter().rposition(|it| it.at + REACH <= frame.at).map_or(0, |place| place + 1);
        let larger = |&place: &usize| fit.has(place) && frames[place].kind.is_video() && frames[place].bytes > least;
        let mut others: Vec<usize> = (near..n).filter(larger).collect();
        others.sort_by_key(|&place| core::cmp::Reverse((frames[place].bytes, place)));
        let _swapped = others.into_iter().any(|other| fit.swap(n, other));
    }
    fit
}

/// Chooses the largest number of frames that can be shown: audio and tables first, then I, then P
/// by their distance from the I, so that each group loses its tail, then B behind their references.
/// Frames that are not `open` are none to choose from.
fn most_playable<'a>(
    frames: &'a [Wanted],
    routes: &'a [Route],
    latency: Duration,
    open: &dyn Fn(usize) -> bool,
) -> Fit<'a> {
    let mut fit = Fit::new(frames, routes, latency);
    let add = |fit: &mut Fit<'a>, n: usize| open(n) && fit.add(n);
    let of = |kind: FrameKind| frames.iter().enumerate().filter(move |(_, it)| it.kind == kind).map(|(n, _)| n);
    for kind in [FrameKind::Tables, FrameKind::Audio, FrameKind::I] {
        for n in of(kind) {
            add(&mut fit, n);
        }
    }
    // For each P its distance from the I of its group, and whose chain it belongs to.
    let (mut chains, mut links) = (Vec::new(), Vec::new());
    for (n, frame) in frames.iter().enumerate() {
        match frame.kind {
            FrameKind::I => {
                chains.push(fit.has(n));
                links.push((0_usize, 0, n));
            }
            FrameKind::P => {
                let depth = links.last().map_or(1, |(depth, ..)| depth + 1);
                links.push((depth, chains.len(), n));
            }
            _ => {}
        }
    }
    let mut by_depth: Vec<_> = links.into_iter().filter(|(depth, ..)| *depth > 0).collect();
    by_depth.sort();
    for (_, group, n) in by_depth {
        // A frame before the first I references nothing that was sent.
        if let Some(whole) = group.checked_sub(1).and_then(|group| chains.get_mut(group))
            && *whole
        {
            *whole = add(&mut fit, n);
        }
    }
    let (mut chain, mut reference) = (false, true);
    for (n, frame) in frames.iter().enumerate() {
        match frame.kind {
            FrameKind::I | FrameKind::P => (chain, reference) = (fit.has(n), true),
            FrameKind::R => reference = chain && add(&mut fit, n),
            FrameKind::B if chain && reference => {
                add(&mut fit, n);
            }
            _ => {}
        }
    }
    fit
}

/// Returns for each of the frames if it is chosen, so that most can be shown. Those that are not
/// `open` are not.
pub(super) fn chosen_playable(
    frames: &[Wanted],
    routes: &[Route],
    latency: Duration,
    open: &dyn Fn(usize) -> bool,
) -> Vec<bool> {
    let fit = most_playable(frames, routes, latency, open);
    (0..frames.len()).map(|n| fit.has(n)).collect()
}
