use super::{Emission, Kind, normal_bytes};
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
const SCENES: u64 = 3;

/// A video conference of 60 s (SBPN §4.4.5), 374 kbit/s.
///
/// The packets of a frame come at once. Where audio and video are due at the same time, chance says which goes first
/// (§4.5.2).
#[derive(Debug)]
pub(super) struct Conference {
    rng: Rng,
    audio: u64,
    video: u64,
    /// Bytes of the present video frame that are not handed over yet.
    left: usize,
}

impl Conference {
    pub(super) const fn new(rng: Rng) -> Self {
        Self { rng, audio: 0, video: 0, left: 0 }
    }

    fn next_audio(&mut self) -> Emission {
        let frame = self.audio;
        self.audio += 1;
        Emission { at: times(AUDIO.0, frame), bytes: AUDIO.1, kind: Kind::Audio, flow: 0, frame }
    }

    fn next_video(&mut self) -> Emission {
        let frame = self.video;
        let at = times(FRAME, frame);
        if self.left == 0 {
            let (mean, sd) = if (10..15).contains(&(at.as_secs() % SCENE)) { QUIET } else { ACTIVE };
            self.left = normal_bytes(&mut self.rng, mean, sd, EXTREMES.0, EXTREMES.1);
        }
        let bytes = self.left.min(PACKET);
        self.left -= bytes;
        if self.left == 0 {
            self.video += 1;
        }
        Emission { at, bytes, kind: Kind::Video, flow: 0, frame }
    }
}

/// The end of `count` intervals.
fn times(interval: Duration, count: u64) -> Duration {
    Duration::from_nanos(interval.as_nanos() as u64 * count)
}

impl Iterator for Conference {
    type Item = Emission;

    fn next(&mut self) -> Option<Emission> {
        let (audio, video) = (times(AUDIO.0, self.audio), times(FRAME, self.video));
        if self.left == 0 && audio.min(video) >= Duration::from_secs(SCENE * SCENES) {
            return None;
        }
        let video_first = self.left > 0 || video < audio || (video == audio && self.rng.chance(0.5));
        Some(if video_first { self.next_video() } else { self.next_audio() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(packets: &[Emission], kind: Kind, seconds: f64) -> f64 {
        packets.iter().filter(|e| e.kind == kind).map(|e| e.bytes as f64 * 8.0).sum::<f64>() / seconds / 1000.0
    }

    #[test]
    fn rates_and_packets_are_those_of_the_source() {
        let (mut video, mut packets, runs) = (0.0, 0, 20);
        for seed in 0..runs {
            let run: Vec<_> = Conference::new(Rng::from_seed(seed)).collect();
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
        let run: Vec<_> = Conference::new(Rng::from_seed(1)).collect();
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
}
