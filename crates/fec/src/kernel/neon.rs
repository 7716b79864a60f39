//! NEON, which every 64-bit ARM has.

use super::vector::{self, HALVES, Isa};
use core::arch::aarch64::*;

/// See [`Kernel::accumulate`](super::Kernel).
pub(super) fn accumulate(sums: &mut [&mut [u8]], sources: &[&[u8]], coefficients: &[u8], len: usize) {
    // SAFETY: NEON is part of the architecture; the caller found the lengths to suffice, and a
    // coefficient for each pair.
    unsafe { vector::with_32_registers::<Neon>(sums, sources, coefficients, len) }
}

/// See [`Kernel::add_multiple`](super::Kernel).
pub(super) fn add_multiple(sum: &mut [u8], source: &[u8], coefficient: u8) {
    debug_assert!(source.len() <= sum.len());
    // SAFETY: NEON is part of the architecture; the caller found the sum to be as long as the source.
    unsafe { vector::add_multiple::<Neon>(sum.as_mut_ptr(), source.as_ptr(), coefficient, source.len()) }
}

struct Neon;

impl Isa for Neon {
    const WIDTH: usize = 16;
    type Vector = uint8x16_t;
    /// Products with low and high halves.
    type Factor = (uint8x16_t, uint8x16_t);

    #[inline(always)]
    unsafe fn zero() -> uint8x16_t {
        // SAFETY: NEON is part of the architecture.
        unsafe { vdupq_n_u8(0) }
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> uint8x16_t {
        // SAFETY: 16 bytes are there.
        unsafe { vld1q_u8(from) }
    }

    #[inline(always)]
    unsafe fn store(to: *mut u8, vector: uint8x16_t) {
        // SAFETY: 16 bytes are there.
        unsafe { vst1q_u8(to, vector) }
    }

    #[inline(always)]
    unsafe fn load_part(from: *const u8, len: usize) -> uint8x16_t {
        let mut bytes = [0; 16];
        // SAFETY: `len` bytes are there, less than 16.
        unsafe {
            core::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), len);
            Self::load(bytes.as_ptr())
        }
    }

    #[inline(always)]
    unsafe fn store_part(to: *mut u8, vector: uint8x16_t, len: usize) {
        let mut bytes = [0; 16];
        // SAFETY: `len` bytes are there, less than 16.
        unsafe {
            Self::store(bytes.as_mut_ptr(), vector);
            core::ptr::copy_nonoverlapping(bytes.as_ptr(), to, len);
        }
    }

    #[inline(always)]
    unsafe fn factor(coefficient: u8) -> Self::Factor {
        let table = HALVES[usize::from(coefficient)].as_ptr();
        // SAFETY: the table has twice 16 bytes.
        unsafe { (vld1q_u8(table), vld1q_u8(table.add(16))) }
    }

    #[inline(always)]
    unsafe fn add_product(sum: uint8x16_t, (low, high): Self::Factor, vector: uint8x16_t) -> uint8x16_t {
        // SAFETY: NEON is part of the architecture.
        unsafe {
            let low = vqtbl1q_u8(low, vandq_u8(vector, vdupq_n_u8(0x0f)));
            veorq_u8(sum, veorq_u8(low, vqtbl1q_u8(high, vshrq_n_u8::<4>(vector))))
        }
    }

    #[inline(always)]
    unsafe fn add(a: uint8x16_t, b: uint8x16_t) -> uint8x16_t {
        // SAFETY: NEON is part of the architecture.
        unsafe { veorq_u8(a, b) }
    }
}
