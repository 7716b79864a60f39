use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

/// A seeded source of randomness that can be split into named streams.
///
/// ChaCha8: the same seed gives the same numbers on every machine (logarithms and cosines come from
/// `libm`, as those of the standard library may differ between platforms in the last bit), and
/// verification tags and cookie keys drawn from an unguessable seed stay unguessable.
#[derive(Clone, Debug)]
pub struct Rng(ChaCha8Rng);

impl Rng {
    /// A generator for experiments, from a number a person can type.
    pub fn from_seed(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// A generator from 32 bytes of the operating system's entropy.
    pub fn from_entropy(seed: [u8; 32]) -> Self {
        Self(ChaCha8Rng::from_seed(seed))
    }

    /// An independent generator for the component called `name`.
    ///
    /// It depends on this generator's seed and the name alone, not on how much was drawn, so that adding a
    /// component does not disturb the draws of another.
    pub fn stream(&self, name: &str) -> Self {
        // FNV-1a, 64 bit: spreads short names; no security rests on it.
        let id = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
        let mut parent = ChaCha8Rng::from_seed(self.0.get_seed());
        parent.set_stream(id);
        let mut seed = [0; 32];
        parent.fill_bytes(&mut seed);
        Self(ChaCha8Rng::from_seed(seed))
    }

    /// A generator of its own, seeded by the next 32 bytes of this one.
    pub fn fork(&mut self) -> Self {
        let mut seed = [0; 32];
        self.fill(&mut seed);
        Self::from_entropy(seed)
    }

    /// A uniform 32-bit number.
    pub fn u32(&mut self) -> u32 {
        self.0.next_u32()
    }

    /// A uniform 64-bit number.
    pub fn u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A uniform number in `0.0..1.0`.
    pub fn f64(&mut self) -> f64 {
        (self.u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// `true` with probability `p`; never for `p <= 0`, always for `p >= 1`.
    pub fn chance(&mut self, p: f64) -> bool {
        p > 0.0 && self.f64() < p
    }

    /// A uniform number in `0..n`, or 0 if `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        // Lemire's multiply-shift; the bias is below 2^-32 for the small n used here.
        ((u128::from(self.u64()) * u128::from(n)) >> 64) as u64
    }

    /// A standard normal number (Box–Muller).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * libm::log(1.0 - self.f64())).sqrt();
        radius * libm::cos(core::f64::consts::TAU * self.f64())
    }

    /// An exponentially distributed number of mean 1.
    pub fn exponential(&mut self) -> f64 {
        -libm::log(1.0 - self.f64())
    }

    /// Fills `out` with random bytes.
    pub fn fill(&mut self, out: &mut [u8]) {
        self.0.fill_bytes(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_depend_on_seed_and_name_only() {
        let mut drawn = Rng::from_seed(7);
        drawn.u64();
        let (mut a, mut b) = (drawn.stream("loss"), Rng::from_seed(7).stream("loss"));
        assert_eq!(a.u64(), b.u64());
        assert_ne!(Rng::from_seed(7).stream("loss").u64(), Rng::from_seed(7).stream("delay").u64());
        assert_ne!(Rng::from_seed(7).stream("loss").u64(), Rng::from_seed(8).stream("loss").u64());
        let nested = |first: &str| Rng::from_seed(7).stream(first).stream("loss").u64();
        assert_ne!(nested("wifi"), nested("lte"));
    }

    #[test]
    fn the_same_seed_gives_the_same_numbers_on_every_machine() {
        let mut rng = Rng::from_seed(1);
        let drawn: Vec<u64> = (0..3).flat_map(|_| [rng.normal().to_bits(), rng.exponential().to_bits()]).collect();
        let noted = [
            4_606_174_990_331_787_498,
            4_606_351_306_057_267_557,
            13_817_866_982_094_016_879,
            4_608_263_196_208_021_843,
            4_603_926_291_142_385_937,
            4_611_860_964_585_295_523,
        ];
        assert_eq!(drawn, noted);
    }

    #[test]
    #[cfg_attr(miri, ignore = "half a million draws take an hour")]
    fn draws_have_their_means() {
        let mut rng = Rng::from_seed(1);
        let n = 100_000;
        let mean = |f: &mut dyn FnMut() -> f64| (0..n).map(|_| f()).sum::<f64>() / f64::from(n);
        assert!((mean(&mut || rng.f64()) - 0.5).abs() < 0.01);
        assert!(mean(&mut || rng.normal()).abs() < 0.02);
        assert!((mean(&mut || rng.exponential()) - 1.0).abs() < 0.02);
        assert!((mean(&mut || rng.below(10) as f64) - 4.5).abs() < 0.05);
        assert!((mean(&mut || f64::from(u8::from(rng.chance(0.05)))) - 0.05).abs() < 0.005);
    }
}
