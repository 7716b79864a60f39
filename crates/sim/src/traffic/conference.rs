use super::gop::{Gop, GopSource};
use super::{Emission, Kind, Source, normal_bytes};
use braidcast_core::Rng;
use core::time::Duration;

/// Audio: 214 bytes each 20 ms, silence not suppressed (SBPN §4.4.5).
const AUDIO: (Duration, usize) = (Duration::from_millis(20), 214);

/// Video: a frame each 100 ms.
const FRAME: Duration = Duration::from_millis(100);

/// Mean and standard deviation of a frame in bytes while there is motion, and while there is none (SBPN §4.4.5).
const ACTIVE: (f64, f64) = (4451.0, 1014.0);
const QUIET: (f64, f64) = (1072.0, 482.0);

/// The smallest and largest frame in the recording behind the model (SBPN §4.4.2).
const EXTREMES: (usize, usize) = (155, 6677);

/// Bytes in the packets of a frame but the last (SBPN §4.4.2, their mean).
const PACKET: usize = 1026;

/// 10 s of motion, 5 s of none, 5 s of motion (SBPN §4.4.1), three times (§4.5.2).
const SCENE: u64 = 20;
/// How long a call of SBPN's takes.
pub(super) const LENGTH: Duration = Duration::from_secs(3 * SCENE);

/// Returns `true` if nothing moves before the camera.
pub(super) const fn is_quiet(at: Duration) -> bool {
    matches!(at.as_secs() % SCENE, 10..15)
}

/// A video conference of 60 s (SBPN §4.4.5): 374 kbit/s with [`Default`], the source's own.
#[derive(Clone, PartialEq, Debug)]
pub struct Conference {
    /// Bytes of a packet of audio: 214, or fewer for another codec.
    pub sound: usize,
    /// Video with frames of several types in place of the source's, which have none.
    pub pictures: Option<Gop>,
}

impl Default for Conference {
    fn default() -> Self {
        Self { sound: AUDIO.1, pictures: None }
    }
}

/// Frames of the source's model, whole.
#[derive(Debug)]
struct Frames {
    rng: Rng,
    count: u64,
}

impl Iterator for Frames {
    type Item = Emission;

    fn next(&mut self) -> Option<Emission> {
        let (frame, at) = (self.count, times(FRAME, self.count));
        self.count += 1;
        let (mean, sd) = if is_quiet(at) { QUIET } else { ACTIVE };
        let bytes = normal_bytes(&mut self.rng, mean, sd, EXTREMES.0, EXTREMES.1);
        Some(Emission { at, bytes, kind: Kind::Video, flow: 0, frame })
    }
}

/// The packets of a frame come at once. If audio and video are due at the same time, chance says
/// which goes first (§4.5.2).
#[derive(Debug)]
pub(super) struct ConferenceSource {
    rng: Rng,
    sound: usize,
    audio: u64,
    frames: Box<dyn Source>,
    /// The present frame, with the bytes that are not handed over yet.
    picture: Option<Emission>,
    begun: bool,
}

impl ConferenceSource {
    pub(super) fn new(conference: &Conference, rng: Rng) -> Self {
        let pictures = rng.stream("pictures");
        let mut frames: Box<dyn Source> = match &conference.pictures {
            Some(gop) => Box::new(GopSource::new(gop.clone(), pictures)),
            None => Box::new(Frames { rng: pictures, count: 0 }),
        };
        let picture = frames.next();
        Self { rng, sound: conference.sound, audio: 0, frames, picture, begun: false }
    }

    fn next_audio(&mut self) -> Emission {
        let frame = self.audio;
        self.audio += 1;
        Emission { at: times(AUDIO.0, frame), bytes: self.sound, kind: Kind::Audio, flow: 0, frame }
    }

    fn next_video(&mut self, picture: Emission) -> Emission {
        let bytes = picture.bytes.min(PACKET);
        self.begun = bytes < picture.bytes;
        self.picture =
            if self.begun { Some(Emission { bytes: picture.bytes - bytes, ..picture }) } else { self.frames.next() };
        Emission { bytes, ..picture }
    }
}

/// The end of `count` intervals.
fn times(interval: Duration, count: u64) -> Duration {
    Duration::from_nanos(interval.as_nanos() as u64 * count)
}

impl Iterator for ConferenceSource {
    type Item = Emission;

    fn next(&mut self) -> Option<Emission> {
        let (audio, end) = (times(AUDIO.0, self.audio), LENGTH);
        if let Some(picture) = self.picture.filter(|it| it.at < end || self.begun) {
            let first = self.begun || picture.at < audio || (picture.at == audio && self.rng.chance(0.5));
            if first {
                return Some(self.next_video(picture));
            }
        }
        (audio < end).then(|| self.next_audio())
    }
}

#[cfg(test)]
mod tests {
    use super::super::FrameSize;
    use super::*;

    fn rate(packets: &[Emission], kind: Kind, seconds: f64) -> f64 {
        packets.iter().filter(|e| e.kind == kind).map(|e| e.bytes as f64 * 8.0).sum::<f64>() / seconds / 1000.0
    }

    #[test]
    fn rates_and_packets_are_those_of_the_source() {
        let (mut video, mut packets, runs) = (0.0, 0, 20);
        for seed in 0..runs {
            let run: Vec<_> = ConferenceSource::new(&Conference::default(), Rng::from_seed(seed)).collect();
            assert_eq!(rate(&run, Kind::Audio, 60.0), 85.6, "86 kbit/s in SBPN §4.4.5");
            assert_eq!(run.iter().filter(|e| e.kind == Kind::Audio).count(), 3000);
            assert_eq!(run.iter().filter(|e| e.kind == Kind::Video).map(|e| e.frame).max(), Some(599));
            assert!(run.windows(2).all(|w| w[0].at <= w[1].at));
            video += rate(&run, Kind::Video, 60.0) / runs as f64;
            packets += run.iter().filter(|e| e.kind == Kind::Video).count();
        }
        assert!((video - 289.0).abs() < 3.0, "{video} kbit/s; 289 in SBPN §4.4.5");
        // 799 packets for 200 frames in SBPN §4.4.2.
        let per_frame = packets as f64 / (600 * runs) as f64;
        assert!((per_frame - 799.0 / 200.0).abs() < 0.15, "{per_frame} packets a frame");
    }

    #[test]
    fn the_packets_of_a_frame_stay_together_and_neither_kind_is_always_first() {
        let run: Vec<_> = ConferenceSource::new(&Conference::default(), Rng::from_seed(1)).collect();
        let firsts: Vec<_> = (0..600)
            .filter_map(|frame| run.iter().find(|e| e.at == times(FRAME, frame)))
            .map(|e| e.kind == Kind::Audio)
            .collect();
        let audio = firsts.iter().filter(|audio| **audio).count();
        assert!((250..350).contains(&audio), "{audio} of {}", firsts.len());
        let mut frames: Vec<_> = run.iter().map(|e| (e.kind, e.frame)).collect();
        frames.dedup();
        assert_eq!(frames.len(), 3600);
    }

    #[test]
    fn other_codecs_and_pictures_with_types() {
        let size = |mean| FrameSize { mean, spread: 0.0 };
        let gop = Gop {
            pattern: vec![Kind::I, Kind::B],
            fps: 10.0,
            i: size(3000.0),
            p: size(1.0),
            b: size(500.0),
            frames: None,
        };
        let call = Conference { sound: 74, pictures: Some(gop) };
        let run: Vec<_> = ConferenceSource::new(&call, Rng::from_seed(1)).collect();
        let of = |kind: Kind| run.iter().filter(|e| e.kind == kind).map(|e| e.bytes).collect::<Vec<_>>();
        assert_eq!(of(Kind::Audio), [74; 3000]);
        assert_eq!((of(Kind::I).len(), of(Kind::B)), (900, vec![500; 300]), "three packets each");
        assert!(run.windows(2).all(|w| w[0].at <= w[1].at));
    }
}
