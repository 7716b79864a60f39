//! What a viewer sees of a clip, as PSNR, if each missing frame is replaced by the last good one
//! (PRCMT fig. 17) or by a white one (THESIS §9.1).
//!
//! ffmpeg makes, encodes and decodes the clip; without it there is no PSNR.

use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// Size of the frames: QCIF.
const SIZE: (usize, usize) = (176, 144);
/// Frames in the clip.
const PICTURES: usize = 905;
/// PSNR of equal frames, which is infinite (PRCMT §6.2: "the peak value of 100 dB is infinity").
const EQUAL: f64 = 100.0;

/// What replaces a frame that could not be shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Missing {
    /// The last one that was shown; grey before the first.
    LastShown,
    /// A white one.
    White,
}

/// Luma of the clip's frames, as a decoder returns them when nothing is missing.
static CLIP: OnceLock<Option<Vec<u8>>> = OnceLock::new();

/// Returns the PSNR in dB of each frame of the clip; `shown` says which could be shown. `None`
/// without ffmpeg.
///
/// The frame after transmission is compared with the one before it, both decoded, so a frame that
/// could be shown is equal.
pub(super) fn psnr(shown: &[bool], missing: Missing) -> Option<Vec<f64>> {
    Some(seen(CLIP.get_or_init(clip).as_ref()?, SIZE.0 * SIZE.1, shown, missing))
}

/// The same of a `clip` whose frames have `size` bytes each.
fn seen(clip: &[u8], size: usize, shown: &[bool], missing: Missing) -> Vec<f64> {
    let (grey, white) = (vec![128; size], vec![255; size]);
    let mut last: &[u8] = &grey;
    let pictures = clip.chunks_exact(size).zip(shown);
    let psnr = pictures.map(|(picture, shown)| {
        if *shown {
            last = picture;
        } else if missing == Missing::White {
            last = &white;
        }
        difference(picture, last)
    });
    psnr.collect()
}

/// Returns the PSNR of two frames in dB.
fn difference(one: &[u8], other: &[u8]) -> f64 {
    let squares: u64 = one.iter().zip(other).map(|(a, b)| u64::from(a.abs_diff(*b)).pow(2)).sum();
    let mean = squares as f64 / one.len().max(1) as f64;
    if squares == 0 { EQUAL } else { (10.0 * (255.0 * 255.0 / mean).log10()).min(EQUAL) }
}

/// Decodes ffmpeg's moving test video, encoded as MPEG-4 with the group of pictures and about the
/// rate of PRCMT fig. 14.
fn clip() -> Option<Vec<u8>> {
    let source = format!("testsrc2=size={}x{}:rate=30", SIZE.0, SIZE.1);
    let pictures = PICTURES.to_string();
    let words = ["-nostdin", "-v", "error", "-f", "lavfi", "-i", &source, "-frames:v", &pictures];
    let coding = ["-c:v", "mpeg4", "-bf", "3", "-g", "32", "-sc_threshold", "1000000000", "-b:v", "978k"];
    let mut encoder = Command::new("ffmpeg")
        .args(words.iter().chain(&coding))
        .args(["-threads", "1", "-flags", "+bitexact", "-f", "nut", "-"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let decoder = Command::new("ffmpeg")
        .args(["-v", "error", "-f", "nut", "-i", "-", "-f", "rawvideo", "-pix_fmt", "gray", "-"])
        .stdin(encoder.stdout.take()?)
        .stderr(Stdio::null())
        .output()
        .ok();
    let encoded = encoder.wait().is_ok_and(|status| status.success());
    let decoded = decoder.filter(|output| encoded && output.status.success())?.stdout;
    (decoded.len() == PICTURES * SIZE.0 * SIZE.1).then_some(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_picture_is_the_one_before_it_or_white() {
        let clip = [100, 100, 110, 110, 120, 120];
        let shown = [true, false, true];
        let round = |missing| seen(&clip, 2, &shown, missing).into_iter().map(f64::round).collect::<Vec<_>>();
        assert_eq!(round(Missing::LastShown), [EQUAL, 28.0, EQUAL]);
        assert_eq!(round(Missing::White), [EQUAL, 5.0, EQUAL]);
    }

    #[test]
    fn equal_pictures_reach_the_peak_and_opposite_ones_have_nothing_in_common() {
        assert_eq!(difference(&[7, 8], &[7, 8]), EQUAL);
        assert_eq!(difference(&[0, 255], &[255, 0]), 0.0);
        assert!((difference(&[100; 4], &[110; 4]) - 28.13).abs() < 0.01);
    }
}
