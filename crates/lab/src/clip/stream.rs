//! Clips of transport streams.

use super::{Clip, ClipFrame, FrameKind};
use braidcast_core::Instant;
use braidcast_media::ts::Demux;
use braidcast_media::{Kind, Unit};
use core::time::Duration;
use std::io::{self, Read};

/// Bytes read at once.
const READ: usize = 1 << 20;
/// MPEG timestamps wrap after this number of bits.
const BITS: u32 = 33;

/// Why no clip can be made of a file.
#[derive(Debug, thiserror::Error)]
pub enum NotTs {
    /// It cannot be read.
    #[error("reading failed: {0}")]
    Io(#[from] io::Error),
    /// There is nothing in it that could be shown.
    #[error("there is no video with times in it")]
    NoVideo,
}

impl Clip {
    /// The frames of an MPEG transport stream, cut and told apart as `braidcast send` does. A frame
    /// leaves the encoder at its decoding time, but none before those in front of it.
    ///
    /// # Errors
    /// [`NotTs`]: it cannot be read, or has no video.
    pub fn of_ts(mut stream: impl Read) -> Result<Self, NotTs> {
        let (mut demux, mut units, mut buf) = (Demux::new(), Vec::new(), vec![0; READ]);
        loop {
            let len = stream.read(&mut buf)?;
            // Units are closed by what follows them, never by time.
            if len == 0 {
                demux.finish(Instant::ZERO)
            } else {
                demux.push(Instant::ZERO, &buf[..len])
            }
            units.extend(core::iter::from_fn(|| demux.poll()).map(|unit| Light::of(&unit)));
            if len == 0 {
                break;
            }
        }
        units.sort_by_key(|unit| unit.first);
        let start = units.iter().find_map(|unit| unit.dts).ok_or(NotTs::NoVideo)?;
        let since = |time: u64| Duration::from_micros((time.wrapping_sub(start) & ((1 << BITS) - 1)) * 100 / 9);
        // What lies before the start by a little would seem to be a day after it.
        let sane = |time: Duration| time < Duration::from_secs(1 << 16);
        let mut now = Duration::ZERO;
        let frames = units.iter().map(|unit| {
            now = now.max(unit.dts.map(since).filter(|at| sane(*at)).unwrap_or_default());
            let pts = unit.pts.map(since).filter(|at| sane(*at)).filter(|_| unit.kind.is_video()).unwrap_or(now);
            ClipFrame { at: now, bytes: unit.bytes, kind: unit.kind, pts: unit.kind.is_video().then_some(pts) }
        });
        Self::new(frames.collect()).ok_or(NotTs::NoVideo)
    }
}

/// A unit without its bytes.
struct Light {
    first: u64,
    kind: FrameKind,
    bytes: u32,
    pts: Option<u64>,
    dts: Option<u64>,
}

impl Light {
    fn of(unit: &Unit) -> Self {
        let kind = match (unit.kind, unit.reference) {
            (Kind::Tables, _) => FrameKind::Tables,
            (Kind::I, _) => FrameKind::I,
            (Kind::P, _) => FrameKind::P,
            (Kind::B, true) => FrameKind::R,
            (Kind::B, false) => FrameKind::B,
            // Subtitles and the like are as small and as dear as audio.
            _ => FrameKind::Audio,
        };
        let bytes = u32::try_from(unit.bytes.len()).unwrap_or(u32::MAX);
        Self { first: unit.first_index(), kind, bytes, pts: unit.pts, dts: unit.dts.or(unit.pts) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_video_is_refused() {
        assert!(matches!(Clip::of_ts(&b"no transport stream"[..]), Err(NotTs::NoVideo)));
    }
}
