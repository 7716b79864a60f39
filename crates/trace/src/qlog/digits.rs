//! Numbers as text. An event has ten of them, and the standard library takes longer to show one than the
//! protocol takes for what happened.

use std::io::Write;

/// What is written without quotes.
pub(super) trait Value {
    /// Appends it to `out`.
    fn put(self, out: &mut Vec<u8>);
}

macro_rules! whole {
    ($($number:ty),*) => {
        $(impl Value for $number {
            fn put(self, out: &mut Vec<u8>) {
                put_whole(out, u64::from(self));
            }
        })*
    };
}

whole!(u8, u16, u32, u64);

impl Value for usize {
    fn put(self, out: &mut Vec<u8>) {
        put_whole(out, self as u64);
    }
}

impl Value for bool {
    fn put(self, out: &mut Vec<u8>) {
        out.extend_from_slice(if self { b"true" } else { b"false" });
    }
}

impl Value for f64 {
    fn put(self, out: &mut Vec<u8>) {
        let _never_fails = write!(out, "{self}");
    }
}

/// The digits of 0 to 99.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[b'0'; 2]; 100];
    let mut n = 0;
    while n < 100 {
        pairs[n] = [b'0' + (n / 10) as u8, b'0' + (n % 10) as u8];
        n += 1;
    }
    pairs
};

/// Appends a number as decimal digits.
pub(super) fn put_whole(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut from = digits.len();
    while number >= 10 {
        from -= 2;
        digits[from..from + 2].copy_from_slice(&PAIRS[(number % 100) as usize]);
        number /= 100;
    }
    if number > 0 || from == digits.len() {
        from -= 1;
        digits[from] = b'0' + number as u8;
    }
    out.extend_from_slice(&digits[from..]);
}

/// Appends nanoseconds as milliseconds, with all six decimals.
pub(super) fn put_millis(out: &mut Vec<u8>, nanos: u64) {
    put_whole(out, nanos / 1_000_000);
    let rest = (nanos % 1_000_000) as usize;
    let [a, b] = PAIRS[rest / 10_000];
    let [c, d] = PAIRS[rest / 100 % 100];
    let [e, f] = PAIRS[rest % 100];
    out.extend_from_slice(&[b'.', a, b, c, d, e, f]);
}

/// Appends eight hexadecimal digits.
pub(super) fn put_hex(out: &mut Vec<u8>, number: u32) {
    let digit = |at: u32| b"0123456789abcdef"[(number >> (28 - 4 * at) & 15) as usize];
    out.extend_from_slice(&core::array::from_fn::<_, 8, _>(|at| digit(at as u32)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(put: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        put(&mut out);
        String::from_utf8(out).unwrap()
    }

    fn all_agree(number: u64) {
        assert_eq!(text(|out| number.put(out)), format!("{number}"));
        let millis = format!("{}.{:06}", number / 1_000_000, number % 1_000_000);
        assert_eq!(text(|out| put_millis(out, number)), millis);
        assert_eq!(text(|out| put_hex(out, number as u32)), format!("{:08x}", number as u32));
    }

    #[test]
    fn numbers_at_the_limits_are_as_the_standard_library_has_them() {
        let powers = (0..20).map(|n| 10_u64.pow(n));
        powers.flat_map(|n| [n - 1, n, n + 1]).chain([u64::MAX]).for_each(all_agree);
    }

    #[test]
    fn so_are_all_others() {
        // Of every length: each step of an odd factor reaches other digits (Knuth's MMIX).
        let mut number = 1_u64;
        for n in 0..20_000 {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            all_agree(number >> (n % 64));
        }
    }
}
