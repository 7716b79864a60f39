//! Clips as text.

use super::{Clip, ClipFrame, FrameKind};
use core::fmt::Write;
use core::time::Duration;

/// Most frames of a clip: 48 MB.
const MAX_FRAMES: usize = 1_000_000;
/// Most bytes of a frame.
const MAX_FRAME: u32 = 64 << 20;
/// Longest clip, ms: a day.
const MAX_MS: f64 = 86_400_000.0;

/// Why a text is no clip: where, and what would be right.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{name}{}: {what}", line.map_or_else(String::new, |line| format!(" line {line}")))]
pub struct ClipError {
    name: String,
    line: Option<usize>,
    what: String,
}

impl Clip {
    /// Reads the clip in `text`, which errors call `name`.
    ///
    /// # Errors
    /// [`ClipError`], with the line.
    pub fn parse(name: &str, text: &str) -> Result<Self, ClipError> {
        let fail = |line, what: String| ClipError { name: name.to_owned(), line, what };
        let mut frames: Vec<ClipFrame> = Vec::new();
        for (number, line) in (1..).zip(text.lines().map(str::trim)) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let frame = frame(line).map_err(|what| fail(Some(number), what))?;
            if let Some(before) = frames.last().filter(|before| before.at > frame.at) {
                let before = before.at.as_secs_f64() * 1e3;
                return Err(fail(
                    Some(number),
                    format!("it leaves the encoder before the one above it, at {before} ms"),
                ));
            }
            if frames.len() == MAX_FRAMES {
                return Err(fail(Some(number), format!("more than {MAX_FRAMES} frames; cut the clip")));
            }
            frames.push(frame);
        }
        Self::new(frames).ok_or_else(|| fail(None, "a clip has at least one video frame".to_owned()))
    }

    /// The clip as text, below the lines of `head`.
    pub fn to_text(&self, head: &str) -> String {
        let mut out = String::new();
        for line in head.lines() {
            let _ = writeln!(out, "# {line}");
        }
        for frame in self.frames() {
            let ms = |time: Duration| time.as_micros() as f64 / 1e3;
            let _ = write!(out, "{} {} {}", ms(frame.at), frame.bytes, frame.kind);
            if let Some(pts) = frame.pts {
                let _ = write!(out, " {}", ms(pts));
            }
            out.push('\n');
        }
        out
    }
}

/// `MS BYTES KIND [PTS]`.
fn frame(line: &str) -> Result<ClipFrame, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (at, bytes, kind, pts) = match words[..] {
        [at, bytes, kind] => (at, bytes, kind, None),
        [at, bytes, kind, pts] => (at, bytes, kind, Some(pts)),
        _ => return Err("a frame is a line `MS BYTES KIND [PTS]`, for example `40 18612 I 120`".to_owned()),
    };
    let kind: FrameKind = kind.parse().map_err(|e| format!("{e}"))?;
    let bytes = bytes.parse().ok().filter(|bytes| (1..=MAX_FRAME).contains(bytes));
    let bytes = bytes.ok_or_else(|| format!("a frame has 1 to {MAX_FRAME} bytes"))?;
    let pts = pts.map(millis).transpose()?;
    if kind.is_video() && pts.is_none() {
        return Err("a video frame has a fourth word, the ms at which it is shown".to_owned());
    }
    Ok(ClipFrame { at: millis(at)?, bytes, kind, pts: pts.filter(|_| kind.is_video()) })
}

fn millis(word: &str) -> Result<Duration, String> {
    let ms = word.parse().ok().filter(|ms| (0.0..=MAX_MS).contains(ms));
    let ms: f64 = ms.ok_or_else(|| format!("`{word}` is not a time in ms from 0 to {MAX_MS}"))?;
    Ok(Duration::from_micros((ms * 1e3).round() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let text = "# made by hand\n0 376 T\n0 18612 I 80\n21.333 500 A\n40 2000 R 160.5\n";
        let clip = Clip::parse("a.clip", text).unwrap();
        assert_eq!(clip.to_text("made by hand"), text);
        assert_eq!(clip.period(), Duration::from_millis(80));
    }

    #[test]
    fn errors_name_the_line_and_what_would_be_right() {
        let wrong = |text: &str| Clip::parse("a.clip", text).unwrap_err().to_string();
        assert_eq!(
            wrong("0 1 I 0\n\n0 1"),
            "a.clip line 3: a frame is a line `MS BYTES KIND [PTS]`, for example `40 18612 I 120`"
        );
        assert_eq!(wrong("0 1 I"), "a.clip line 1: a video frame has a fourth word, the ms at which it is shown");
        assert_eq!(wrong("x 1 A"), "a.clip line 1: `x` is not a time in ms from 0 to 86400000");
        assert_eq!(wrong("0 0 A"), "a.clip line 1: a frame has 1 to 67108864 bytes");
        assert_eq!(wrong("40 1 A\n0 1 I 0"), "a.clip line 2: it leaves the encoder before the one above it, at 40 ms");
        assert_eq!(wrong("0 1 A"), "a.clip: a clip has at least one video frame");
        assert!(wrong("0 1 X 0").contains("T, A, I, P, R, B"), "{}", wrong("0 1 X 0"));
        assert!(wrong("NaN 1 A").contains("not a time"));
    }
}
