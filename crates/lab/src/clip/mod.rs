//! Clips: the frames of a coded video with its audio as sizes, kinds and times, without their
//! content.
//!
//! A clip is a text file of one line for each frame, in the order in which they are sent (decoding
//! order): `MS BYTES KIND [PTS]`, the ms at which it leaves the encoder, its bytes, one of
//! [`FrameKind`]'s letters, and for video the ms at which it is shown. What it references follows
//! from these ([`braidcast_media::playable`]). Lines that begin with `#` say where it comes from.

mod stream;
mod text;
mod timeline;

pub use stream::NotTs;
pub use text::ClipError;
pub use timeline::{Shot, Timeline};

use braidcast_core::named;
use braidcast_media::Kind;
use braidcast_media::ts::PACKET;
use core::time::Duration;

/// What a frame is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameKind {
    /// Tables of a transport stream.
    Tables,
    /// Audio.
    Audio,
    /// A video frame that references no other.
    I,
    /// One that references the I and P before it.
    P,
    /// A B frame that others reference.
    R,
    /// A B frame that no other references.
    B,
}

named! {
    /// Every one, by its letter.
    FrameKind, "kind of frame" {
        "T" => Tables,
        "A" => Audio,
        "I" => I,
        "P" => P,
        "R" => R,
        "B" => B,
    }
}

impl FrameKind {
    /// What a unit with it holds.
    pub const fn kind(self) -> Kind {
        match self {
            Self::Tables => Kind::Tables,
            Self::Audio => Kind::Audio,
            Self::I => Kind::I,
            Self::P => Kind::P,
            Self::R | Self::B => Kind::B,
        }
    }

    /// Returns `true` if others may reference it; true for all but video.
    pub const fn is_reference(self) -> bool {
        !matches!(self, Self::B)
    }

    /// Returns `true` if it is a video frame.
    pub const fn is_video(self) -> bool {
        !matches!(self, Self::Tables | Self::Audio)
    }
}

/// A frame of a clip.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ClipFrame {
    /// When it leaves the encoder, from the clip's start.
    pub at: Duration,
    /// Its size in bytes; it goes in whole packets of a transport stream.
    pub bytes: u32,
    /// What it is.
    pub kind: FrameKind,
    /// When it is shown, on the same clock; `None` for all but video.
    pub pts: Option<Duration>,
}

impl ClipFrame {
    /// Packets of a transport stream that hold it, at least 1.
    pub const fn packets(&self) -> u32 {
        let packets = self.bytes.div_ceil(PACKET as u32);
        if packets == 0 { 1 } else { packets }
    }
}

/// A recording of the frames of a video with its audio. It has a video frame, and its times do not
/// fall.
#[derive(Clone, PartialEq, Debug)]
pub struct Clip {
    frames: Vec<ClipFrame>,
    /// When it begins again.
    period: Duration,
}

/// A clip that the program has inside.
macro_rules! embedded {
    ($name:literal) => {
        ($name, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/clips/", $name, ".clip")))
    };
}

/// The clips that the program has inside, by name.
const EMBEDDED: &[(&str, &str)] =
    &[embedded!("test-1.7"), embedded!("test-3.6"), embedded!("bunny-1.7"), embedded!("bunny-3.6")];

impl Clip {
    /// The names of the clips that the program has inside.
    pub fn names() -> impl Iterator<Item = &'static str> {
        EMBEDDED.iter().map(|(name, _)| *name)
    }

    /// The clip of this name that the program has inside.
    pub fn embedded(name: &str) -> Option<Self> {
        let (name, text) = EMBEDDED.iter().find(|(known, _)| *known == name)?;
        Self::parse(name, text).ok()
    }

    /// A clip of `frames`; `None` if there is no video frame among them, or times fall.
    fn new(frames: Vec<ClipFrame>) -> Option<Self> {
        let video: Vec<_> = frames.iter().filter(|frame| frame.kind.is_video()).collect();
        let mut steps: Vec<Duration> = video.windows(2).map(|pair| pair[1].at.saturating_sub(pair[0].at)).collect();
        steps.sort_unstable();
        // A clip of one video frame repeats it 25 times a second.
        let step = steps.get(steps.len() / 2).copied().filter(|it| !it.is_zero()).unwrap_or(Duration::from_millis(40));
        let last = video.last()?.at;
        let period = frames.last()?.at.max(last + step);
        frames.is_sorted_by_key(|frame| frame.at).then_some(Self { frames, period })
    }

    /// Its frames in the order in which they are sent.
    pub fn frames(&self) -> &[ClipFrame] {
        &self.frames
    }

    /// After how long it begins again.
    pub const fn period(&self) -> Duration {
        self.period
    }

    /// Its mean rate in bit/s, in whole packets of a transport stream.
    pub fn bits_per_second(&self) -> f64 {
        self.bits(|_| true) / self.period.as_secs_f64()
    }

    fn bits(&self, of: impl Fn(&ClipFrame) -> bool) -> f64 {
        self.frames.iter().filter(|frame| of(frame)).map(|frame| f64::from(frame.packets())).sum::<f64>()
            * (PACKET * 8) as f64
    }

    /// Returns the same with video frames larger or smaller, so that it has `rate` bit/s; audio and
    /// tables stay as they are, and a video frame has at least one packet. An error says the lowest
    /// rate.
    pub fn at_rate(&self, rate: u64) -> Result<Self, String> {
        let video = self.bits(|frame| frame.kind.is_video());
        let other = self.bits(|frame| !frame.kind.is_video());
        let wanted = rate as f64 * self.period.as_secs_f64() - other;
        let pictures = self.frames.iter().filter(|frame| frame.kind.is_video()).count();
        let least = (pictures * PACKET * 8) as f64;
        if wanted < least {
            let rate = (least + other) / self.period.as_secs_f64();
            return Err(format!("with its audio and a packet for each video frame the clip has at least {rate:.0}bit"));
        }
        let factor = wanted / video;
        let scaled = |frame: &ClipFrame| {
            let bytes = f64::from(frame.packets()) * PACKET as f64 * factor;
            let bytes = if frame.kind.is_video() { bytes.round().min(f64::from(u32::MAX)) as u32 } else { frame.bytes };
            ClipFrame { bytes, ..*frame }
        };
        Ok(Self { frames: self.frames.iter().map(scaled).collect(), period: self.period })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clips_inside_have_the_rates_that_their_names_say_and_groups_of_two_seconds() {
        for (name, mbit) in [("test-1.7", 1.7), ("test-3.6", 3.6), ("bunny-1.7", 1.7), ("bunny-3.6", 3.6)] {
            let clip = Clip::embedded(name).unwrap();
            let rate = clip.bits_per_second() / 1e6;
            assert!((rate - mbit).abs() < 0.15, "{name}: {rate}");
            let at = |kind| clip.frames().iter().filter(move |frame| frame.kind == kind).map(|frame| frame.at);
            let groups: Vec<_> = at(FrameKind::I).collect();
            assert!(groups.windows(2).all(|it| it[1] - it[0] == Duration::from_secs(2)), "{groups:?}");
            assert!(at(FrameKind::R).count() > 100 && at(FrameKind::B).count() > 100);
            assert_eq!(clip.period().as_secs(), 60);
        }
        assert_eq!(Clip::names().count(), EMBEDDED.len());
    }

    #[test]
    fn scaled_to_another_rate_only_pictures_change() {
        let clip = Clip::embedded("test-1.7").unwrap();
        for rate in [1_000_000, 20_000_000] {
            let other = clip.at_rate(rate).unwrap();
            assert!((other.bits_per_second() / rate as f64 - 1.0).abs() < 0.02, "{}", other.bits_per_second());
            let same = core::iter::zip(clip.frames(), other.frames()).all(|(a, b)| a.kind.is_video() || a == b);
            assert!(same && other.period() == clip.period());
        }
        assert!(clip.at_rate(1000).unwrap_err().contains("at least"));
    }
}
