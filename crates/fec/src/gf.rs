//! The field GF(256) with the polynomial x⁸ + x⁴ + x³ + x² + 1 (0x11d), that of RFC 5510, RFC 6330 and RFC 8681.
//!
//! Addition is exclusive or. 2 generates all elements but 0.

/// The polynomial, without x⁸.
const POLYNOMIAL: u8 = 0x1d;

/// Powers of 2, twice over, so that a sum of two logarithms needs no reduction.
const EXP: [u8; 512] = exp();
/// Logarithms to the base 2; that of 0 means nothing.
const LOG: [u8; 256] = log();

const fn exp() -> [u8; 512] {
    let mut table = [0; 512];
    let (mut power, mut i) = (1u8, 0);
    while i < 512 {
        table[i] = power;
        power = (power << 1) ^ if power & 0x80 == 0 { 0 } else { POLYNOMIAL };
        i += 1;
    }
    table
}

const fn log() -> [u8; 256] {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 255 {
        table[EXP[i] as usize] = i as u8;
        i += 1;
    }
    table
}

/// The product of `a` and `b`.
pub const fn mul(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 { 0 } else { EXP[LOG[a as usize] as usize + LOG[b as usize] as usize] }
}

/// What `a` is to be multiplied with to give 1; 0 for 0, which has no inverse.
pub const fn inverse(a: u8) -> u8 {
    if a == 0 { 0 } else { EXP[255 - LOG[a as usize] as usize] }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Multiplication by its definition: polynomials, reduced.
    fn long(a: u8, b: u8) -> u8 {
        let mut product = (0..8).filter(|bit| b >> bit & 1 == 1).fold(0u16, |sum, bit| sum ^ u16::from(a) << bit);
        for bit in (8..15).rev() {
            if product >> bit & 1 == 1 {
                product ^= (0x100 | u16::from(POLYNOMIAL)) << (bit - 8);
            }
        }
        product as u8
    }

    #[test]
    fn products_and_inverses_are_what_they_are_defined_to_be() {
        // Miri takes a thousand times as long.
        let factors = (0..=255).step_by(if cfg!(miri) { 17 } else { 1 });
        for (a, b) in factors.flat_map(|a| (0..=255).map(move |b| (a, b))) {
            assert_eq!(mul(a, b), long(a, b), "{a} · {b}");
        }
        assert!((1..=255).all(|a| mul(a, inverse(a)) == 1));
        assert_eq!(inverse(0), 0);
    }
}
