use super::{Emission, Kind, normal_bytes};
use braidcast_core::Rng;
use core::time::Duration;

/// Largest frame that is drawn, in bytes.
const LARGEST: usize = 16 << 20;

/// Bytes of a type of frame: normally distributed, at least 1.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct FrameSize {
    /// Mean in bytes.
    pub mean: f64,
    /// Standard deviation in bytes.
    pub spread: f64,
}

/// MPEG video: frames of a repeating group of pictures, with sizes by type.
#[derive(Clone, PartialEq, Debug)]
pub struct Gop {
    /// The group in the order of sending; kinds `I`, `P` and `B`, at least one.
    pub pattern: Vec<Kind>,
    /// Frames a second, above 0.
    pub fps: f64,
    /// Sizes of I frames.
    pub i: FrameSize,
    /// Sizes of P frames.
    pub p: FrameSize,
    /// Sizes of B frames.
    pub b: FrameSize,
    /// Frames until the end; without end if `None`.
    pub frames: Option<u64>,
}

impl Gop {
    /// The film of PRCMT fig. 14: 905 frames at 30 fps, of which 29 I, 198 P and 678 B, 978 kbit/s.
    ///
    /// The figure's totals are kilobits, as its column of rates shows (2312.53 kb in 905/30 s are 76.66 kbit/s). The
    /// pattern that the text prints, with four B in a row, cannot give those counts; seven times `PBBB` after
    /// `IBBB` gives exactly them. The source has no spread, so there is none.
    pub fn prcmt() -> Self {
        let mean = |kbit: f64, frames: f64| FrameSize { mean: kbit * 1000.0 / 8.0 / frames, spread: 0.0 };
        let group = |first| [first, Kind::B, Kind::B, Kind::B];
        let pattern = core::iter::once(Kind::I).chain([Kind::P; 7]).flat_map(group).collect();
        let (i, p, b) = (mean(2312.53, 29.0), mean(7887.13, 198.0), mean(19307.16, 678.0));
        Self { pattern, fps: 30.0, i, p, b, frames: Some(905) }
    }

    /// Bits in a second, on the average over the group.
    pub fn rate(&self) -> f64 {
        let bytes: f64 = self.pattern.iter().map(|kind| self.size(*kind).mean).sum();
        bytes * 8.0 * self.fps / self.pattern.len().max(1) as f64
    }

    fn size(&self, kind: Kind) -> FrameSize {
        match kind {
            Kind::I => self.i,
            Kind::P => self.p,
            _ => self.b,
        }
    }
}

#[derive(Debug)]
pub(super) struct GopSource {
    gop: Gop,
    rng: Rng,
    sent: u64,
}

impl GopSource {
    pub(super) const fn new(gop: Gop, rng: Rng) -> Self {
        Self { gop, rng, sent: 0 }
    }
}

/// When frame number `frame` is due.
pub(super) fn frame_time(frame: u64, fps: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(frame as f64 / fps).ok()
}

impl Iterator for GopSource {
    type Item = Emission;

    fn next(&mut self) -> Option<Emission> {
        let frame = self.sent;
        if self.gop.frames.is_some_and(|frames| frame >= frames) {
            return None;
        }
        self.sent += 1;
        let kind = self.gop.pattern[(frame % self.gop.pattern.len() as u64) as usize];
        let FrameSize { mean, spread } = self.gop.size(kind);
        let bytes = normal_bytes(&mut self.rng, mean, spread, 1, LARGEST);
        Some(Emission { at: frame_time(frame, self.gop.fps)?, bytes, kind, flow: 0, frame })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_film_has_the_counts_and_rates_of_its_table() {
        let frames: Vec<_> = GopSource::new(Gop::prcmt(), Rng::from_seed(1)).collect();
        let table = [(Kind::I, 29, 76.66), (Kind::P, 198, 261.45), (Kind::B, 678, 640.02)];
        for (kind, count, kbit_s) in table {
            let of_kind: Vec<_> = frames.iter().filter(|e| e.kind == kind).map(|e| e.bytes).collect();
            assert_eq!(of_kind.len(), count, "{kind}");
            let rate = of_kind.iter().sum::<usize>() as f64 * 8.0 / 1000.0 / (905.0 / 30.0);
            assert!((rate - kbit_s).abs() < 0.1, "{kind}: {rate} kbit/s");
        }
        assert_eq!(frames[904].at, Duration::from_secs_f64(904.0 / 30.0));
        // The last group is not whole, hence a little less than the table's 978.13.
        assert!((Gop::prcmt().rate() / 978.13e3 - 1.0).abs() < 0.01, "{}", Gop::prcmt().rate());
    }

    #[test]
    fn sizes_follow_mean_and_spread_of_their_type() {
        let size = |mean| FrameSize { mean, spread: mean / 5.0 };
        let (i, p, b) = (size(50_000.0), size(10_000.0), size(2000.0));
        let gop = Gop { pattern: vec![Kind::I, Kind::B, Kind::P], fps: 25.0, i, p, b, frames: Some(30_000) };
        let frames: Vec<_> = GopSource::new(gop, Rng::from_seed(2)).collect();
        for (kind, mean) in [(Kind::I, 50_000.0), (Kind::P, 10_000.0), (Kind::B, 2000.0)] {
            let sizes: Vec<_> = frames.iter().filter(|e| e.kind == kind).map(|e| e.bytes as f64).collect();
            let found = sizes.iter().sum::<f64>() / sizes.len() as f64;
            let sd = (sizes.iter().map(|s| (s - found).powi(2)).sum::<f64>() / sizes.len() as f64).sqrt();
            assert!((found / mean - 1.0).abs() < 0.01 && (sd / mean - 0.2).abs() < 0.01, "{kind}: {found} ± {sd}");
        }
    }
}
