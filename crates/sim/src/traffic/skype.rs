use super::conference::LENGTH;
use super::{Emission, Kind, normal_bytes};
use braidcast_core::Rng;
use core::time::Duration;

/// A row of SBPN table 4.1.
struct Row {
    kind: Kind,
    /// Bytes at least and at most.
    range: [usize; 2],
    /// Mean and standard deviation of the bytes.
    size: [f64; 2],
    /// The same of the time to the next packet, ms.
    gap: [f64; 2],
}

/// The small packets, which the source takes for audio, the medium and the large ones.
const ROWS: [Row; 3] = [
    Row { kind: Kind::Audio, range: [100, 339], size: [235.0, 57.0], gap: [30.1, 2.5] },
    Row { kind: Kind::Video, range: [459, 799], size: [644.0, 80.0], gap: [27.9, 12.1] },
    Row { kind: Kind::Video, range: [890, 1294], size: [1061.0, 74.0], gap: [16.7, 7.6] },
];
/// The medium packets complete a frame, as the source supposes, of which the large ones before them are the rest.
const MEDIUM: usize = 1;
const LARGE: usize = 2;
/// Normal intervals are cut here, ms: no packet leaves before the one ahead of it. Chosen.
const LEAST_GAP: f64 = 0.5;

/// A call of 60 s as Skype made it in 2006 (SBPN §4.4.4): packets of three sizes, each at intervals of its own.
#[derive(Debug)]
pub(super) struct Skype {
    rng: Rng,
    /// What comes next of each size.
    next: [Emission; ROWS.len()],
}

impl Skype {
    pub(super) fn new(mut rng: Rng) -> Self {
        let next = ROWS.each_ref().map(|row| {
            let bytes = row.bytes(&mut rng);
            Emission { at: Duration::ZERO, bytes, kind: row.kind, flow: 0, frame: 0 }
        });
        Self { rng, next }
    }
}

impl Row {
    fn bytes(&self, rng: &mut Rng) -> usize {
        normal_bytes(rng, self.size[0], self.size[1], self.range[0], self.range[1])
    }

    fn gap(&self, rng: &mut Rng) -> Duration {
        Duration::from_secs_f64((self.gap[0] + self.gap[1] * rng.normal()).max(LEAST_GAP) / 1e3)
    }
}

impl Iterator for Skype {
    type Item = Emission;

    fn next(&mut self) -> Option<Emission> {
        let size = (0..ROWS.len()).min_by_key(|&size| self.next[size].at)?;
        let it = self.next[size];
        if it.at >= LENGTH {
            return None;
        }
        let at = it.at + ROWS[size].gap(&mut self.rng);
        let bytes = ROWS[size].bytes(&mut self.rng);
        let frame = if size == LARGE { it.frame } else { it.frame + 1 };
        self.next[size] = Emission { at, bytes, frame, ..it };
        if size == MEDIUM {
            self.next[LARGE].frame = frame;
        }
        Some(it)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets a second, and mean and deviation of their bytes, are near what is published.
    fn near(packets: &[Emission], sizes: core::ops::Range<usize>, published: [f64; 3]) {
        let sizes: Vec<f64> = packets.iter().filter(|it| sizes.contains(&it.bytes)).map(|it| it.bytes as f64).collect();
        let count = sizes.len() as f64;
        let mean = sizes.iter().sum::<f64>() / count;
        let deviation = (sizes.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / count).sqrt();
        let ours = [count / (20.0 * LENGTH.as_secs_f64()), mean, deviation];
        for (ours, theirs) in ours.into_iter().zip(published) {
            assert!((ours / theirs - 1.0).abs() < 0.05, "{ours:.1?}, published {published:?}");
        }
    }

    #[test]
    fn it_sends_packets_of_the_sizes_and_intervals_of_table_4_1() {
        let packets: Vec<_> = (0..20).flat_map(|seed| Skype::new(Rng::from_seed(seed))).collect();
        assert_eq!(packets.iter().filter(|it| it.at.is_zero()).count(), 20 * 3);
        near(&packets, 0..400, [1e3 / 30.1, 235.0, 54.0]);
        near(&packets, 400..850, [1e3 / 27.9, 644.0, 77.0]);
        near(&packets, 850..2000, [1e3 / 16.7, 1061.0, 74.0]);
        // A frame ends with a medium packet, and the times are in order.
        for run in packets.chunk_by(|a, b| a.at <= b.at) {
            let video: Vec<_> = run.iter().filter(|it| it.kind == Kind::Video).collect();
            let ends = video.windows(2).filter(|pair| pair[0].frame != pair[1].frame);
            assert!(ends.clone().count() > 2000 && ends.clone().all(|pair| pair[0].bytes < 850));
        }
    }
}
