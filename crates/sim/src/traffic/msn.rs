use super::conference::{LENGTH, is_quiet};
use super::{Emission, Kind, normal_bytes};
use braidcast_core::Rng;
use core::time::Duration;

/// From one packet of audio to the next: four farther apart, and one close.
const GAPS: [Duration; 5] = {
    let (far, close) = (Duration::from_micros(23_600), Duration::from_micros(3_500));
    [far, far, far, far, close]
};
const FRAME: Duration = Duration::from_millis(40);
/// Bytes of audio at least and at most. Most packets are of the minimum; all have 133 on the average.
const SOUND: (usize, usize) = (125, 160);
/// Share of those of the minimum. The others are spread evenly up to the maximum: 143 on the average.
const LEAST: f64 = 0.56;
/// Mean and standard deviation of a frame while there is motion, and while there is none.
const ACTIVE: (f64, f64) = (1400.0, 275.0);
const QUIET: (f64, f64) = (650.0, 135.0);
/// Frames are cut at this many deviations, so that no packet is longer than a network takes. Chosen.
const DEVIATIONS: f64 = 3.0;
/// The first packet of a frame that does not go in one.
const FIRST: [usize; 2] = [896, 1066];
/// The source says that there was a gap between the packets of a frame, and not how long. Chosen: a
/// quarter of a frame.
const PAUSE: Duration = Duration::from_millis(10);

/// A call of 60 s as MSN Messenger made it in 2006 (SBPN §4.4.3). Silence suppression is left out, as
/// SBPN leaves it out of its own model (§4.4.5): how long the silences were is not said.
#[derive(Debug)]
pub(super) struct Msn {
    rng: Rng,
    /// What comes next of each.
    sound: Emission,
    picture: Emission,
}

impl Msn {
    pub(super) fn new(mut rng: Rng) -> Self {
        let first = |bytes, kind| Emission { at: Duration::ZERO, bytes, kind, flow: 0, frame: 0 };
        let sound = first(sound(&mut rng), Kind::Audio);
        let picture = first(picture(&mut rng, Duration::ZERO), Kind::Video);
        Self { rng, sound, picture }
    }

    fn next_sound(&mut self) -> Emission {
        let it = self.sound;
        let at = it.at + GAPS[(it.frame % GAPS.len() as u64) as usize];
        self.sound = Emission { at, bytes: sound(&mut self.rng), frame: it.frame + 1, ..it };
        it
    }

    /// A packet of a frame; what is left of the frame comes a little later.
    fn next_picture(&mut self) -> Emission {
        let it = self.picture;
        let begins = it.at == FRAME * it.frame as u32;
        let first = FIRST[self.rng.below(FIRST.len() as u64) as usize];
        if begins && it.bytes > first {
            self.picture = Emission { at: it.at + PAUSE, bytes: it.bytes - first, ..it };
            return Emission { bytes: first, ..it };
        }
        let at = FRAME * (it.frame as u32 + 1);
        self.picture = Emission { at, bytes: picture(&mut self.rng, at), frame: it.frame + 1, ..it };
        it
    }
}

/// Bytes of a packet of audio.
fn sound(rng: &mut Rng) -> usize {
    let (least, most) = SOUND;
    if rng.chance(LEAST) { least } else { least + 1 + rng.below((most - least) as u64) as usize }
}

/// Bytes of a frame that is made `at` this time.
fn picture(rng: &mut Rng, at: Duration) -> usize {
    let (mean, deviation) = if is_quiet(at) { QUIET } else { ACTIVE };
    let [least, most] = [-DEVIATIONS, DEVIATIONS].map(|times| (mean + times * deviation) as usize);
    normal_bytes(rng, mean, deviation, least, most)
}

impl Iterator for Msn {
    type Item = Emission;

    fn next(&mut self) -> Option<Emission> {
        let sound_first = self.sound.at <= self.picture.at;
        let at = if sound_first { self.sound.at } else { self.picture.at };
        (at < LENGTH).then(|| if sound_first { self.next_sound() } else { self.next_picture() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_sends_what_the_source_recorded() {
        let packets: Vec<_> = (0..20).flat_map(|seed| Msn::new(Rng::from_seed(seed))).collect();
        let sound: Vec<_> = packets.iter().filter(|it| it.kind == Kind::Audio).map(|it| it.bytes as f64).collect();
        let rate = sound.len() as f64 / (20.0 * LENGTH.as_secs_f64());
        let mean = sound.iter().sum::<f64>() / sound.len() as f64;
        assert!((rate - 51.0).abs() < 0.2 && (mean - 133.0).abs() < 1.0, "{rate} packets of {mean} bytes a second");
        // Frames, put together again: their bytes in motion.
        let moves = |it: &Emission| it.kind == Kind::Video && !is_quiet(it.at);
        let bytes: usize = packets.iter().filter(|it| moves(it)).map(|it| it.bytes).sum();
        let frames = packets.iter().filter(|it| moves(it) && it.at == FRAME * it.frame as u32).count();
        assert!((bytes as f64 / frames as f64 - 1400.0).abs() < 20.0, "{} bytes a frame", bytes / frames);
        assert_eq!(frames, 20 * 25 * 45);
        assert!(packets.iter().all(|it| it.bytes <= 1330), "no packet is longer than a network takes");
        assert_eq!(packets.iter().filter(|it| it.at.is_zero()).count(), 20 * 2);
    }
}
