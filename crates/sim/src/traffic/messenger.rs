//! Calls as two messengers of 2006 made them (SBPN §4.4.3, §4.4.4). Silence suppression is left out, as SBPN leaves it
//! out of its own model (§4.4.5): how long the silences were is not said.

use super::{Emission, Kind, normal_bytes};
use braidcast_core::Rng;
use core::time::Duration;

/// How long a call takes: three scenes of 10 s of motion, 5 s of none, and 5 s of motion (SBPN §4.4.1, §4.5.2).
const LENGTH: Duration = Duration::from_secs(60);
const SCENE: u64 = 20;

/// Whose calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Messenger {
    /// MSN Messenger: a packet of audio each 20 ms, four farther apart and one close, and 25 frames a second of one or
    /// more packets.
    Msn,
    /// Skype: packets of three sizes, each at intervals of its own (table 4.1), of which the small ones are taken for
    /// audio.
    Skype,
}

/// MSN's intervals between packets of audio, and its frames.
const MSN_GAPS: [Duration; 5] = [
    Duration::from_micros(23_600),
    Duration::from_micros(23_600),
    Duration::from_micros(23_600),
    Duration::from_micros(23_600),
    Duration::from_micros(3_500),
];
const MSN_FRAME: Duration = Duration::from_millis(40);
/// Bytes of audio at least and at most. Most packets are of the minimum; all have 133 on the average.
const MSN_SOUND: (usize, usize) = (125, 160);
/// Share of those of the minimum. The others are spread evenly up to the maximum: 143 on the average.
const MSN_LEAST: f64 = 0.56;
/// Mean and standard deviation of a frame while there is motion, and while there is none.
const MSN_ACTIVE: (f64, f64) = (1400.0, 275.0);
const MSN_QUIET: (f64, f64) = (650.0, 135.0);
/// The first packet of a frame that does not go in one.
const MSN_FIRST: [usize; 2] = [896, 1066];
/// The source says that there was a gap between the packets of a frame, and not how long. Chosen: a quarter of a frame.
const MSN_PAUSE: Duration = Duration::from_millis(10);

/// A row of SBPN table 4.1.
struct Row {
    kind: Kind,
    /// Least and most bytes.
    range: [usize; 2],
    /// Mean and standard deviation of the bytes.
    size: [f64; 2],
    /// The same of the time to the next packet, ms.
    gap: [f64; 2],
}

/// Skype's packets.
const SKYPE: [Row; 3] = [
    Row { kind: Kind::Audio, range: [100, 339], size: [235.0, 57.0], gap: [30.1, 2.5] },
    Row { kind: Kind::Video, range: [459, 799], size: [644.0, 80.0], gap: [27.9, 12.1] },
    Row { kind: Kind::Video, range: [890, 1294], size: [1061.0, 74.0], gap: [16.7, 7.6] },
];
/// The medium packets, which complete a frame, as the source supposes.
const COMPLETES: usize = 1;
/// Normal intervals are cut here, ms: packets do not leave before the one ahead of them.
const LEAST_GAP: f64 = 0.5;

/// A call of 60 s.
#[derive(Debug)]
pub(super) struct Call {
    messenger: Messenger,
    rng: Rng,
    /// What comes next of each of its streams; the latest frame goes last.
    next: Vec<Emission>,
}

impl Call {
    pub(super) fn new(messenger: Messenger, rng: Rng) -> Self {
        let mut call = Self { messenger, rng, next: Vec::new() };
        let (at, flow) = (Duration::ZERO, 0);
        match messenger {
            Messenger::Msn => {
                let (sound, picture) = (call.msn_sound(), call.msn_frame(at));
                call.next.push(Emission { at, bytes: sound, kind: Kind::Audio, flow, frame: 0 });
                call.next.push(Emission { at, bytes: picture, kind: Kind::Video, flow, frame: 0 });
            }
            Messenger::Skype => {
                for Row { kind, range, size, .. } in SKYPE {
                    let bytes = call.normal(size, range);
                    call.next.push(Emission { at, bytes, kind, flow, frame: 0 });
                }
            }
        }
        call
    }

    fn normal(&mut self, [mean, deviation]: [f64; 2], [least, most]: [usize; 2]) -> usize {
        normal_bytes(&mut self.rng, mean, deviation, least, most)
    }

    fn msn_sound(&mut self) -> usize {
        let (least, most) = MSN_SOUND;
        if self.rng.chance(MSN_LEAST) { least } else { least + 1 + self.rng.below((most - least) as u64) as usize }
    }

    fn msn_frame(&mut self, at: Duration) -> usize {
        let (mean, deviation) = if (10..15).contains(&(at.as_secs() % SCENE)) { MSN_QUIET } else { MSN_ACTIVE };
        // Three deviations are as far as the source's recordings go.
        normal_bytes(
            &mut self.rng,
            mean,
            deviation,
            (mean - 3.0 * deviation) as usize,
            (mean + 3.0 * deviation) as usize,
        )
    }

    /// Hands out what comes next of stream `place`, and draws what follows it.
    fn take(&mut self, place: usize) -> Emission {
        let it = self.next[place];
        self.next[place] = match (self.messenger, it.kind) {
            (Messenger::Msn, Kind::Audio) => {
                let at = it.at + MSN_GAPS[(it.frame % 5) as usize];
                Emission { at, bytes: self.msn_sound(), frame: it.frame + 1, ..it }
            }
            (Messenger::Msn, _) => return self.take_msn_picture(place),
            (Messenger::Skype, _) => {
                let Row { range, size, gap: [gap, deviation], .. } = SKYPE[place];
                let gap = (gap + deviation * self.rng.normal()).max(LEAST_GAP);
                let bytes = self.normal(size, range);
                let frame = if it.kind == Kind::Audio || place == COMPLETES { it.frame + 1 } else { it.frame };
                Emission { at: it.at + Duration::from_secs_f64(gap / 1e3), bytes, frame, ..it }
            }
        };
        if self.messenger == Messenger::Skype && place == COMPLETES {
            // What is large belongs to the frame that is completed next.
            self.next[COMPLETES + 1].frame = it.frame + 1;
        }
        it
    }

    /// A packet of a frame of MSN's; what is left of the frame comes a little later.
    fn take_msn_picture(&mut self, place: usize) -> Emission {
        let it = self.next[place];
        let begins = it.at == MSN_FRAME * it.frame as u32;
        let first = MSN_FIRST[self.rng.below(2) as usize];
        if begins && it.bytes > first {
            self.next[place] = Emission { at: it.at + MSN_PAUSE, bytes: it.bytes - first, ..it };
            return Emission { bytes: first, ..it };
        }
        let at = MSN_FRAME * (it.frame as u32 + 1);
        self.next[place] = Emission { at, bytes: self.msn_frame(at), frame: it.frame + 1, ..it };
        it
    }
}

impl Iterator for Call {
    type Item = Emission;

    fn next(&mut self) -> Option<Emission> {
        let place = (0..self.next.len()).min_by_key(|&place| self.next[place].at)?;
        (self.next[place].at < LENGTH).then(|| self.take(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(messenger: Messenger) -> Vec<Emission> {
        let all: Vec<_> = (0..20).flat_map(|seed| Call::new(messenger, Rng::from_seed(seed))).collect();
        assert_eq!(
            all.iter().filter(|it| it.at.is_zero()).count(),
            20 * if messenger == Messenger::Msn { 2 } else { 3 }
        );
        all
    }

    /// Packets a second, and mean and deviation of their bytes.
    fn figures(packets: &[Emission], which: impl Fn(&Emission) -> bool) -> [f64; 3] {
        let sizes: Vec<f64> = packets.iter().filter(|it| which(it)).map(|it| it.bytes as f64).collect();
        let count = sizes.len() as f64;
        let mean = sizes.iter().sum::<f64>() / count;
        let deviation = (sizes.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / count).sqrt();
        [count / (20.0 * LENGTH.as_secs_f64()), mean, deviation]
    }

    fn near(figures: [f64; 3], published: [f64; 3]) {
        for (ours, theirs) in figures.into_iter().zip(published) {
            assert!((ours / theirs - 1.0).abs() < 0.05, "{figures:.1?}, published {published:?}");
        }
    }

    #[test]
    fn msn_sends_what_the_source_recorded() {
        let packets = call(Messenger::Msn);
        let [rate, mean, _] = figures(&packets, |it| it.kind == Kind::Audio);
        assert!((rate - 51.0).abs() < 0.2 && (mean - 133.0).abs() < 1.0, "{rate} packets of {mean} bytes a second");
        // Frames, put together again: their bytes in motion.
        let moves = |it: &Emission| it.kind == Kind::Video && !(10..15).contains(&(it.at.as_secs() % SCENE));
        let bytes: usize = packets.iter().filter(|it| moves(it)).map(|it| it.bytes).sum();
        let frames = packets.iter().filter(|it| moves(it) && it.at == MSN_FRAME * it.frame as u32).count();
        assert!((bytes as f64 / frames as f64 - 1400.0).abs() < 20.0, "{} bytes a frame", bytes / frames);
        assert_eq!(frames, 20 * 25 * 45);
        assert!(packets.iter().all(|it| it.bytes <= 1330), "no packet is longer than a network takes");
    }

    #[test]
    fn skype_sends_packets_of_the_sizes_and_intervals_of_table_4_1() {
        let packets = call(Messenger::Skype);
        near(figures(&packets, |it| it.bytes < 400), [1e3 / 30.1, 235.0, 54.0]);
        near(figures(&packets, |it| (400..850).contains(&it.bytes)), [1e3 / 27.9, 644.0, 77.0]);
        near(figures(&packets, |it| it.bytes > 850), [1e3 / 16.7, 1061.0, 74.0]);
        // A frame ends with a medium packet, and the times are in order.
        for run in packets.chunk_by(|a, b| a.at <= b.at) {
            let video: Vec<_> = run.iter().filter(|it| it.kind == Kind::Video).collect();
            let ends = video.windows(2).filter(|pair| pair[0].frame != pair[1].frame);
            assert!(ends.clone().count() > 2000 && ends.clone().all(|pair| pair[0].bytes < 850));
        }
    }
}
