//! What the vector kernels have in common: which bytes meet in which order. An instruction set says how to load, multiply
//! and store.

use crate::gf::mul;

/// Products of each element with the low and the high halves of a byte, 16 of each.
pub(super) static HALVES: [[u8; 32]; 256] = halves();
/// Multiplication by each element as a matrix of bits, as GF2P8AFFINEQB takes it.
pub(super) static MATRICES: [u64; 256] = matrices();

/// 32 zeros, then 32 times all bits: a mask of the last bytes of a vector begins in there.
pub(super) static LAST: [u8; 64] = last();

const fn last() -> [u8; 64] {
    let mut table = [0; 64];
    let mut at = 32;
    while at < 64 {
        table[at] = 0xff;
        at += 1;
    }
    table
}

const fn halves() -> [[u8; 32]; 256] {
    let mut table = [[0; 32]; 256];
    let mut a = 0;
    while a < 256 {
        let mut half = 0;
        while half < 16 {
            table[a][half] = mul(a as u8, half as u8);
            table[a][16 + half] = mul(a as u8, (half as u8) << 4);
            half += 1;
        }
        a += 1;
    }
    table
}

/// Byte 7 − i of a matrix has the bits of the factor that add up to bit i of the product.
const fn matrices() -> [u64; 256] {
    let mut table = [0; 256];
    let mut a = 0;
    while a < 256 {
        let mut bit = 0;
        while bit < 8 {
            let column = mul(a as u8, 1 << bit);
            let mut row = 0;
            while row < 8 {
                if column >> row & 1 == 1 {
                    table[a] |= 1 << ((7 - row) * 8 + bit);
                }
                row += 1;
            }
            bit += 1;
        }
        a += 1;
    }
    table
}

/// An instruction set.
///
/// # Safety
/// All functions may be called only where the processor has it; `load` and `store` with pointers to `WIDTH` bytes, `load_part`
/// and `store_part` to `len`, which is less.
pub(super) trait Isa {
    /// Bytes in a vector.
    const WIDTH: usize;
    type Vector: Copy;
    /// A coefficient, ready to be multiplied with.
    type Factor: Copy;

    unsafe fn zero() -> Self::Vector;
    unsafe fn load(from: *const u8) -> Self::Vector;
    unsafe fn store(to: *mut u8, vector: Self::Vector);
    /// Zeros follow.
    unsafe fn load_part(from: *const u8, len: usize) -> Self::Vector;
    unsafe fn store_part(to: *mut u8, vector: Self::Vector, len: usize);
    unsafe fn factor(coefficient: u8) -> Self::Factor;
    /// `sum` plus the product.
    unsafe fn add_product(sum: Self::Vector, factor: Self::Factor, vector: Self::Vector) -> Self::Vector;
    unsafe fn add(a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// Zeros for all but the last `len` bytes, which are fewer than `WIDTH`.
    unsafe fn keep_last(vector: Self::Vector, len: usize) -> Self::Vector;
}

/// A function that does [`Kernel::accumulate`](super::Kernel) by [`rows_of`]: so many sums at once, and for each number of
/// them so many vectors, that all stay in registers while every source is read once.
macro_rules! accumulate {
    ($name:ident, $most:literal, $($rows:literal by $vectors:literal),*) => {
        /// # Safety
        /// The processor has `I`; every sum and source has `len` bytes; there is a coefficient for each pair, and a source.
        #[inline(always)]
        pub(super) unsafe fn $name<I: Isa>(
            sums: &mut [&mut [u8]],
            sources: &[&[u8]],
            coefficients: &[u8],
            len: usize,
        ) {
            let k = sources.len();
            for (sums, rows) in sums.chunks_mut($most).zip(coefficients.chunks($most * k)) {
                match sums.len() {
                    // SAFETY: as for this function; the chunks keep sums and their coefficients together.
                    $($rows => unsafe { rows_of::<I, $rows, $vectors>(sums, sources, rows, len) },)*
                    _ => unreachable!("a chunk has 1 to {} sums", $most),
                }
            }
        }
    };
}

accumulate!(with_16_registers, 4, 1 by 4, 2 by 4, 3 by 2, 4 by 2);
accumulate!(with_32_registers, 10, 1 by 4, 2 by 4, 3 by 4, 4 by 4, 5 by 4, 6 by 2, 7 by 2, 8 by 2, 9 by 2, 10 by 2);

/// `R` sums, `U` vectors of each at a time.
///
/// # Safety
/// As [`with_16_registers`], and there are `R` sums.
#[inline(always)]
unsafe fn rows_of<I: Isa, const R: usize, const U: usize>(
    sums: &mut [&mut [u8]],
    sources: &[&[u8]],
    coefficients: &[u8],
    len: usize,
) {
    let k = sources.len();
    let mut at = 0;
    // SAFETY: `at` plus what is loaded or stored there never exceeds `len`, and `back` is at most `at` where a vector fits, which every sum and source has; `i · k + j` is
    // below R · k, the number of coefficients; the processor has `I` by the contract.
    unsafe {
        while at + U * I::WIDTH <= len {
            let mut held = [[I::zero(); U]; R];
            for (j, source) in sources.iter().enumerate() {
                let mut vectors = [I::zero(); U];
                for (u, vector) in vectors.iter_mut().enumerate() {
                    *vector = I::load(source.as_ptr().add(at + u * I::WIDTH));
                }
                for (i, held) in held.iter_mut().enumerate() {
                    let factor = I::factor(*coefficients.get_unchecked(i * k + j));
                    for (held, vector) in held.iter_mut().zip(vectors) {
                        *held = I::add_product(*held, factor, vector);
                    }
                }
            }
            for (sum, held) in sums.iter_mut().zip(held) {
                for (u, held) in held.into_iter().enumerate() {
                    let place = sum.as_mut_ptr().add(at + u * I::WIDTH);
                    I::store(place, I::add(I::load(place), held));
                }
            }
            at += U * I::WIDTH;
        }
        while at < len {
            let part = (len - at).min(I::WIDTH);
            // The last vector goes back over bytes that are done, and adds nothing there: parts of vectors are slow.
            let back = if len < I::WIDTH { 0 } else { I::WIDTH - part };
            let (whole, from_at) = (part + back == I::WIDTH, at - back);
            let mut held = [I::zero(); R];
            for (j, source) in sources.iter().enumerate() {
                let from = source.as_ptr().add(from_at);
                let vector = if whole { I::load(from) } else { I::load_part(from, part) };
                for (i, held) in held.iter_mut().enumerate() {
                    let factor = I::factor(*coefficients.get_unchecked(i * k + j));
                    *held = I::add_product(*held, factor, vector);
                }
            }
            for (sum, held) in sums.iter_mut().zip(held) {
                let place = sum.as_mut_ptr().add(from_at);
                let held = if back > 0 { I::keep_last(held, part) } else { held };
                if whole {
                    I::store(place, I::add(I::load(place), held));
                } else {
                    I::store_part(place, I::add(I::load_part(place, part), held), part);
                }
            }
            at += part;
        }
    }
}
