//! The work on bytes: sums of multiples in GF(256), with whichever instructions the processor has.
//!
//! Every kernel gives what [`Kernel::Portable`] gives, byte for byte.

#![allow(unsafe_code, reason = "vector instructions work on pointers; each block says why it may")]

#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;
mod vector;
#[cfg(target_arch = "x86_64")]
mod x86;

use braidcast_core::named;
use std::sync::OnceLock;

/// A way to do it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kernel {
    /// A table look-up for each byte: runs everywhere, and is what the others are compared with.
    Portable,
    /// 32 bytes at once by look-ups of half bytes.
    Avx2,
    /// 32 bytes at once by products of bit matrices.
    Gfni,
    /// 64 bytes at once by products of bit matrices.
    Avx512,
    /// 16 bytes at once by look-ups of half bytes.
    Neon,
}

impl Kernel {
    /// Returns `true` if this processor has the instructions.
    pub fn is_available(self) -> bool {
        match self {
            Self::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => x86::has_avx2(),
            #[cfg(target_arch = "x86_64")]
            Self::Gfni => x86::has_gfni(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => x86::has_avx512(),
            #[cfg(target_arch = "aarch64")]
            Self::Neon => true,
            #[allow(unreachable_patterns, reason = "which kernels there are depends on the architecture")]
            _ => false,
        }
    }

    /// The fastest of those that are available; looked for once.
    pub fn best() -> Self {
        static BEST: OnceLock<Kernel> = OnceLock::new();
        let find = || Self::ALL.iter().rev().map(|&(_, it)| it).find(|it| it.is_available());
        *BEST.get_or_init(|| find().unwrap_or(Self::Portable))
    }

    /// # Panics
    /// If the processor does not have it; that it has the best one is known without looking.
    #[cfg(target_arch = "x86_64")]
    fn check(self) {
        assert!(self == Self::best() || self.is_available(), "this processor has no {self}");
    }

    /// Adds `coefficient` times `source` to `sum`, as if the source went on with zeros.
    ///
    /// # Panics
    /// If the source is longer than the sum.
    pub fn add_multiple(self, sum: &mut [u8], source: &[u8], coefficient: u8) {
        assert!(source.len() <= sum.len(), "{} bytes are added to {}", source.len(), sum.len());
        if coefficient == 0 {
            return;
        }
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 | Self::Gfni | Self::Avx512 => {
                self.check();
                x86::add_multiple(self, sum, source, coefficient);
            }
            #[cfg(target_arch = "aarch64")]
            Self::Neon => neon::add_multiple(sum, source, coefficient),
            _ => portable::accumulate(&mut [sum], &[source], &[coefficient], source.len()),
        }
    }

    /// Adds to each of `sums` its combination of the sources: to sum i the product of source j and
    /// `coefficients[i · sources + j]`, for all j. Sources that are shorter than the sums count as
    /// if they went on with zeros.
    ///
    /// # Panics
    /// If the sums differ in length, a source is longer than they are, or there is not one coefficient for each pair.
    pub fn add_combinations(self, sums: &mut [&mut [u8]], sources: &[&[u8]], coefficients: &[u8]) {
        let (Some(sum), false) = (sums.first(), sources.is_empty()) else { return };
        let len = sum.len();
        assert!(sums.iter().all(|sum| sum.len() == len), "sums of unlike length");
        assert_eq!(coefficients.len(), sums.len() * sources.len(), "a coefficient for each pair");
        let longest = sources.iter().map(|source| source.len()).max().unwrap_or(0);
        assert!(longest <= len, "{longest} bytes are added to {len}");
        let common = sources.iter().map(|source| source.len()).min().unwrap_or(0);
        self.accumulate(sums, sources, coefficients, common);
        for (sum, row) in sums.iter_mut().zip(coefficients.chunks_exact(sources.len())) {
            for (source, &coefficient) in sources.iter().zip(row).filter(|(source, _)| source.len() > common) {
                self.add_multiple(&mut sum[common..], &source[common..], coefficient);
            }
        }
    }

    /// [`add_combinations`](Self::add_combinations) of the first `len` bytes, which every sum and every source has.
    fn accumulate(self, sums: &mut [&mut [u8]], sources: &[&[u8]], coefficients: &[u8], len: usize) {
        debug_assert!(sums.iter().all(|sum| sum.len() >= len) && sources.iter().all(|source| source.len() >= len));
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 | Self::Gfni | Self::Avx512 => {
                self.check();
                x86::accumulate(self, sums, sources, coefficients, len);
            }
            #[cfg(target_arch = "aarch64")]
            Self::Neon => neon::accumulate(sums, sources, coefficients, len),
            _ => portable::accumulate(sums, sources, coefficients, len),
        }
    }
}

named! {
    /// Every kernel by its name, slower ones first.
    Kernel, "kernel" {
        "portable" => Portable,
        "neon" => Neon,
        "avx2" => Avx2,
        "gfni" => Gfni,
        "avx512" => Avx512,
    }
}
