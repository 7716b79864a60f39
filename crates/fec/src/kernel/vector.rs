//! What the vector kernels have in common: which bytes meet in which order. An instruction set says
//! how to load, multiply and store.

use crate::gf::mul;
use core::marker::PhantomData;

/// Products of each element with the low and the high halves of a byte, 16 of each.
pub(super) static HALVES: [[u8; 32]; 256] = halves();
/// Multiplication by each element as a matrix of bits, as GF2P8AFFINEQB takes it.
#[cfg(target_arch = "x86_64")]
pub(super) static MATRICES: [u64; 256] = matrices();

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
#[cfg(target_arch = "x86_64")]
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
/// All functions may be called only if the processor has it; `load` and `store` with pointers to
/// `WIDTH` bytes, `load_part` and `store_part` to `len`, which is less.
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
}

/// `I` if all coefficients are 1.
struct Ones<I>(PhantomData<I>);

impl<I: Isa> Isa for Ones<I> {
    const WIDTH: usize = I::WIDTH;
    type Vector = I::Vector;
    type Factor = ();

    #[inline(always)]
    unsafe fn zero() -> I::Vector {
        // SAFETY: the contract is that of `I`, here and below.
        unsafe { I::zero() }
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> I::Vector {
        // SAFETY: see above.
        unsafe { I::load(from) }
    }

    #[inline(always)]
    unsafe fn store(to: *mut u8, vector: I::Vector) {
        // SAFETY: see above.
        unsafe { I::store(to, vector) }
    }

    #[inline(always)]
    unsafe fn load_part(from: *const u8, len: usize) -> I::Vector {
        // SAFETY: see above.
        unsafe { I::load_part(from, len) }
    }

    #[inline(always)]
    unsafe fn store_part(to: *mut u8, vector: I::Vector, len: usize) {
        // SAFETY: see above.
        unsafe { I::store_part(to, vector, len) }
    }

    #[inline(always)]
    unsafe fn factor(_: u8) {}

    #[inline(always)]
    unsafe fn add_product(sum: I::Vector, (): (), vector: I::Vector) -> I::Vector {
        // SAFETY: see above.
        unsafe { I::add(sum, vector) }
    }

    #[inline(always)]
    unsafe fn add(a: I::Vector, b: I::Vector) -> I::Vector {
        // SAFETY: see above.
        unsafe { I::add(a, b) }
    }
}

/// A function that does [`Kernel::accumulate`](super::Kernel) by [`rows_of`]: up to `$most` sums at
/// once, and for each number of sums, `$rows`, a number of vectors, `$vectors`, that all stay in
/// registers while every source is read once.
macro_rules! accumulate {
    ($name:ident, $most:literal, $($rows:literal by $vectors:literal),*) => {
        /// # Safety
        /// The processor has `I`; every sum and source has `len` bytes; there is a coefficient for
        /// each pair, and a source.
        #[inline(always)]
        pub(super) unsafe fn $name<I: Isa>(
            mut sums: &mut [&mut [u8]],
            sources: &[&[u8]],
            mut coefficients: &[u8],
            len: usize,
        ) {
            while !sums.is_empty() {
                let (now, later) = sums.split_at_mut(sums.len().min($most));
                let (rows, others) = coefficients.split_at(now.len() * sources.len());
                match now.len() {
                    // The first parity of a block: nothing is multiplied.
                    // SAFETY: as for this function; sums and their coefficients were kept together.
                    1 if rows.iter().all(|&it| it == 1) => unsafe { rows_of::<Ones<I>, 1, 4>(now, sources, rows, len) },
                    // SAFETY: as for this function; sums and their coefficients were kept together.
                    $($rows => unsafe { rows_of::<I, $rows, $vectors>(now, sources, rows, len) },)*
                    _ => unreachable!("1 to {} sums are taken at once", $most),
                }
                (sums, coefficients) = (later, others);
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
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
    // SAFETY: no vector ends after `len`, which every sum and source has, and there are `R` rows of
    // coefficients; the processor has `I` by the contract.
    unsafe {
        let Some(end) = len.checked_sub(I::WIDTH) else {
            let products = combine::<I, R, 1>(sources, coefficients, 0, Some(len));
            for (sum, [product]) in sums.iter_mut().zip(products) {
                let place = sum.as_mut_ptr();
                I::store_part(place, I::add(I::load_part(place, len), product), len);
            }
            return;
        };
        // The last vector overlaps the one before it, as parts of vectors are slow. It is made of
        // what is there at first, and so does not wait for what was just stored.
        let mut last = combine::<I, R, 1>(sources, coefficients, end, None);
        for (sum, [last]) in sums.iter().zip(&mut last) {
            *last = I::add(I::load(sum.as_ptr().add(end)), *last);
        }
        let mut at = 0;
        while at + U * I::WIDTH <= end {
            add_at::<I, R, U>(sums, sources, coefficients, at);
            at += U * I::WIDTH;
        }
        while at < end {
            add_at::<I, R, 1>(sums, sources, coefficients, at);
            at += I::WIDTH;
        }
        for (sum, [last]) in sums.iter_mut().zip(last) {
            I::store(sum.as_mut_ptr().add(end), last);
        }
    }
}

/// `U` vectors of each of `R` sums, from `at` on.
///
/// # Safety
/// As [`rows_of`], and `U` vectors are there.
#[inline(always)]
unsafe fn add_at<I: Isa, const R: usize, const U: usize>(
    sums: &mut [&mut [u8]],
    sources: &[&[u8]],
    coefficients: &[u8],
    at: usize,
) {
    // SAFETY: as for this function.
    unsafe {
        let products = combine::<I, R, U>(sources, coefficients, at, None);
        for (sum, products) in sums.iter_mut().zip(products) {
            for (u, product) in products.into_iter().enumerate() {
                let place = sum.as_mut_ptr().add(at + u * I::WIDTH);
                I::store(place, I::add(I::load(place), product));
            }
        }
    }
}

/// `R` combinations of the sources, `U` vectors of each, from `at` on; or of as many bytes as
/// `part` says, less than a vector.
///
/// # Safety
/// As [`rows_of`], and `U` vectors are there.
#[inline(always)]
unsafe fn combine<I: Isa, const R: usize, const U: usize>(
    sources: &[&[u8]],
    coefficients: &[u8],
    at: usize,
    part: Option<usize>,
) -> [[I::Vector; U]; R] {
    let k = sources.len();
    // SAFETY: as for this function; `i · k + j` is below R · k, the number of coefficients.
    unsafe {
        let mut sums = [[I::zero(); U]; R];
        for (j, source) in sources.iter().enumerate() {
            let mut vectors = [I::zero(); U];
            for (u, vector) in vectors.iter_mut().enumerate() {
                let from = source.as_ptr().add(at + u * I::WIDTH);
                *vector = match part {
                    None => I::load(from),
                    Some(len) => I::load_part(from, len),
                };
            }
            for (i, sums) in sums.iter_mut().enumerate() {
                let factor = I::factor(*coefficients.get_unchecked(i * k + j));
                for (sum, vector) in sums.iter_mut().zip(vectors) {
                    *sum = I::add_product(*sum, factor, vector);
                }
            }
        }
        sums
    }
}

/// Adds `coefficient` times `len` bytes of `source` to `sum`.
///
/// # Safety
/// The processor has `I`, and both have `len` bytes.
#[inline(always)]
pub(super) unsafe fn add_multiple<I: Isa>(sum: *mut u8, source: *const u8, coefficient: u8, len: usize) {
    // SAFETY: no vector ends after `len`; the processor has `I` by the contract.
    unsafe {
        let factor = I::factor(coefficient);
        let Some(end) = len.checked_sub(I::WIDTH) else {
            let result = I::add_product(I::load_part(sum, len), factor, I::load_part(source, len));
            return I::store_part(sum, result, len);
        };
        // The first and the last vector overlap others, as in `rows_of`, so that those between them
        // lie in one line of the cache each.
        let first = added::<I>(sum, source, factor, 0);
        let last = added::<I>(sum, source, factor, end);
        let mut at = I::WIDTH - sum.addr() % I::WIDTH;
        while at < end {
            let result = added::<I>(sum, source, factor, at);
            I::store(sum.add(at), result);
            at += I::WIDTH;
        }
        I::store(sum, first);
        I::store(sum.add(end), last);
    }
}

/// The vector at `at` of `sum` plus the product with that of `source`.
///
/// # Safety
/// As [`add_multiple`], and a vector is there.
#[inline(always)]
unsafe fn added<I: Isa>(sum: *const u8, source: *const u8, factor: I::Factor, at: usize) -> I::Vector {
    // SAFETY: as for this function.
    unsafe { I::add_product(I::load(sum.add(at)), factor, I::load(source.add(at))) }
}
