//! AVX2, GFNI and AVX-512.

use super::Kernel;
use super::vector::{self, HALVES, Isa, MATRICES};
use core::arch::x86_64::*;

pub(super) fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2")
}

pub(super) fn has_gfni() -> bool {
    has_avx2() && is_x86_feature_detected!("gfni")
}

pub(super) fn has_avx512() -> bool {
    has_gfni() && is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw")
}

/// See [`Kernel::accumulate`]; `kernel` is one of this file's and available.
pub(super) fn accumulate(kernel: Kernel, sums: &mut [&mut [u8]], sources: &[&[u8]], coefficients: &[u8], len: usize) {
    // SAFETY: the caller found the kernel to be available, the lengths to suffice, and a coefficient for each pair.
    unsafe {
        match kernel {
            Kernel::Avx512 => accumulate_avx512(sums, sources, coefficients, len),
            Kernel::Gfni => accumulate_gfni(sums, sources, coefficients, len),
            _ => accumulate_avx2(sums, sources, coefficients, len),
        }
    }
}

/// See [`Kernel::add_multiple`]; `kernel` is one of this file's and available, and the sum as long as the source.
pub(super) fn add_multiple(kernel: Kernel, sum: &mut [u8], source: &[u8], coefficient: u8) {
    debug_assert!(source.len() <= sum.len());
    let (sum, source, len) = (sum.as_mut_ptr(), source.as_ptr(), source.len());
    // SAFETY: the caller found the kernel to be available and the lengths to suffice.
    unsafe {
        match kernel {
            Kernel::Avx512 => add_multiple_avx512(sum, source, coefficient, len),
            Kernel::Gfni => add_multiple_gfni(sum, source, coefficient, len),
            _ => add_multiple_avx2(sum, source, coefficient, len),
        }
    }
}

/// # Safety
/// As [`vector::with_16_registers`].
#[target_feature(enable = "avx2")]
unsafe fn accumulate_avx2(sums: &mut [&mut [u8]], sources: &[&[u8]], coefficients: &[u8], len: usize) {
    // SAFETY: the contract is the same.
    unsafe { vector::with_16_registers::<Avx2>(sums, sources, coefficients, len) }
}

/// # Safety
/// As [`vector::with_16_registers`].
#[target_feature(enable = "avx2,gfni")]
unsafe fn accumulate_gfni(sums: &mut [&mut [u8]], sources: &[&[u8]], coefficients: &[u8], len: usize) {
    // SAFETY: the contract is the same.
    unsafe { vector::with_16_registers::<Gfni>(sums, sources, coefficients, len) }
}

/// # Safety
/// As [`vector::with_16_registers`].
#[target_feature(enable = "avx512f,avx512bw,gfni")]
unsafe fn accumulate_avx512(sums: &mut [&mut [u8]], sources: &[&[u8]], coefficients: &[u8], len: usize) {
    // SAFETY: the contract is the same.
    unsafe { vector::with_32_registers::<Avx512>(sums, sources, coefficients, len) }
}

/// # Safety
/// As [`vector::add_multiple`].
#[target_feature(enable = "avx2")]
unsafe fn add_multiple_avx2(sum: *mut u8, source: *const u8, coefficient: u8, len: usize) {
    // SAFETY: the contract is the same.
    unsafe { vector::add_multiple::<Avx2>(sum, source, coefficient, len) }
}

/// # Safety
/// As [`vector::add_multiple`].
#[target_feature(enable = "avx2,gfni")]
unsafe fn add_multiple_gfni(sum: *mut u8, source: *const u8, coefficient: u8, len: usize) {
    // SAFETY: the contract is the same.
    unsafe { vector::add_multiple::<Gfni>(sum, source, coefficient, len) }
}

/// # Safety
/// As [`vector::add_multiple`].
#[target_feature(enable = "avx512f,avx512bw,gfni")]
unsafe fn add_multiple_avx512(sum: *mut u8, source: *const u8, coefficient: u8, len: usize) {
    // SAFETY: the contract is the same.
    unsafe { vector::add_multiple::<Avx512>(sum, source, coefficient, len) }
}

/// Loads and stores of 32 bytes, whole and in part; `Avx2` and `Gfni` differ only in how they multiply.
macro_rules! bytes_32 {
    () => {
        const WIDTH: usize = 32;
        type Vector = __m256i;

        #[inline(always)]
        unsafe fn zero() -> __m256i {
            // SAFETY: the processor has AVX2.
            unsafe { _mm256_setzero_si256() }
        }

        #[inline(always)]
        unsafe fn load(from: *const u8) -> __m256i {
            // SAFETY: 32 bytes are there, aligned or not.
            unsafe { _mm256_loadu_si256(from.cast()) }
        }

        #[inline(always)]
        unsafe fn store(to: *mut u8, vector: __m256i) {
            // SAFETY: 32 bytes are there, aligned or not.
            unsafe { _mm256_storeu_si256(to.cast(), vector) }
        }

        #[inline(always)]
        unsafe fn load_part(from: *const u8, len: usize) -> __m256i {
            let mut bytes = [0; 32];
            // SAFETY: `len` bytes are there, less than 32.
            unsafe {
                core::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), len);
                Self::load(bytes.as_ptr())
            }
        }

        #[inline(always)]
        unsafe fn store_part(to: *mut u8, vector: __m256i, len: usize) {
            let mut bytes = [0; 32];
            // SAFETY: `len` bytes are there, less than 32.
            unsafe {
                Self::store(bytes.as_mut_ptr(), vector);
                core::ptr::copy_nonoverlapping(bytes.as_ptr(), to, len);
            }
        }

        #[inline(always)]
        unsafe fn add(a: __m256i, b: __m256i) -> __m256i {
            // SAFETY: the processor has AVX2.
            unsafe { _mm256_xor_si256(a, b) }
        }
    };
}

struct Avx2;

impl Isa for Avx2 {
    /// Products with low and high halves, in both lanes.
    type Factor = (__m256i, __m256i);

    bytes_32!();

    #[inline(always)]
    unsafe fn factor(coefficient: u8) -> Self::Factor {
        let table = HALVES[usize::from(coefficient)].as_ptr();
        // SAFETY: the table has twice 16 bytes.
        unsafe {
            let [low, high] = [table, table.add(16)].map(|half| _mm_loadu_si128(half.cast()));
            (_mm256_broadcastsi128_si256(low), _mm256_broadcastsi128_si256(high))
        }
    }

    #[inline(always)]
    unsafe fn add_product(sum: __m256i, (low, high): Self::Factor, vector: __m256i) -> __m256i {
        // SAFETY: the processor has AVX2.
        unsafe {
            let mask = _mm256_set1_epi8(0x0f);
            let low = _mm256_shuffle_epi8(low, _mm256_and_si256(vector, mask));
            let high = _mm256_shuffle_epi8(high, _mm256_and_si256(_mm256_srli_epi64::<4>(vector), mask));
            _mm256_xor_si256(sum, _mm256_xor_si256(low, high))
        }
    }
}

struct Gfni;

impl Isa for Gfni {
    type Factor = __m256i;

    bytes_32!();

    #[inline(always)]
    unsafe fn factor(coefficient: u8) -> __m256i {
        // SAFETY: the processor has AVX2.
        unsafe { _mm256_set1_epi64x(MATRICES[usize::from(coefficient)].cast_signed()) }
    }

    #[inline(always)]
    unsafe fn add_product(sum: __m256i, factor: __m256i, vector: __m256i) -> __m256i {
        // SAFETY: the processor has AVX2 and GFNI.
        unsafe { _mm256_xor_si256(sum, _mm256_gf2p8affine_epi64_epi8::<0>(vector, factor)) }
    }
}

struct Avx512;

impl Isa for Avx512 {
    const WIDTH: usize = 64;
    type Vector = __m512i;
    type Factor = __m512i;

    #[inline(always)]
    unsafe fn zero() -> __m512i {
        // SAFETY: the processor has AVX-512.
        unsafe { _mm512_setzero_si512() }
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> __m512i {
        // SAFETY: 64 bytes are there, aligned or not.
        unsafe { _mm512_loadu_si512(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(to: *mut u8, vector: __m512i) {
        // SAFETY: 64 bytes are there, aligned or not.
        unsafe { _mm512_storeu_si512(to.cast(), vector) }
    }

    #[inline(always)]
    unsafe fn load_part(from: *const u8, len: usize) -> __m512i {
        // SAFETY: the mask lets it touch the first `len` bytes only, which are there.
        unsafe { _mm512_maskz_loadu_epi8(first(len), from.cast()) }
    }

    #[inline(always)]
    unsafe fn store_part(to: *mut u8, vector: __m512i, len: usize) {
        // SAFETY: the mask lets it touch the first `len` bytes only, which are there.
        unsafe { _mm512_mask_storeu_epi8(to.cast(), first(len), vector) }
    }

    #[inline(always)]
    unsafe fn factor(coefficient: u8) -> __m512i {
        // SAFETY: the processor has AVX-512.
        unsafe { _mm512_set1_epi64(MATRICES[usize::from(coefficient)].cast_signed()) }
    }

    #[inline(always)]
    unsafe fn add_product(sum: __m512i, factor: __m512i, vector: __m512i) -> __m512i {
        // SAFETY: the processor has AVX-512 and GFNI.
        unsafe { _mm512_xor_si512(sum, _mm512_gf2p8affine_epi64_epi8::<0>(vector, factor)) }
    }

    #[inline(always)]
    unsafe fn add(a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: the processor has AVX-512.
        unsafe { _mm512_xor_si512(a, b) }
    }
}

/// A mask of the first `len` bytes of 64, less than all.
#[inline(always)]
const fn first(len: usize) -> u64 {
    (1 << len) - 1
}
