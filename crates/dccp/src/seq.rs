//! Sequence numbers of 48 bits and what is done with them (RFC 4340 §7).

use braidcast_core::Serial;

/// A sequence or acknowledgement number, modulo 2^48.
pub type Seq = Serial<48>;

/// Bits of a short sequence number on the wire.
const SHORT_BITS: u32 = 24;
const SHORT_MASK: u64 = (1 << SHORT_BITS) - 1;

/// The number `n` before `seq`.
pub(crate) const fn back(seq: Seq, n: u64) -> Seq {
    seq.plus(n.wrapping_neg())
}

/// Returns `true` if `low <= seq <= high` in circular order.
pub(crate) const fn within(low: Seq, seq: Seq, high: Seq) -> bool {
    low.distance_to(seq) <= low.distance_to(high)
}

/// The later of two numbers.
pub(crate) fn later(a: Seq, b: Seq) -> Seq {
    if b > a { b } else { a }
}

/// The 48-bit number nearest to `reference` whose low 24 bits are `short` (RFC 4340 §7.6, `Extend_Sequence_Number`).
pub(crate) const fn extend(short: u64, reference: Seq) -> Seq {
    let ahead = short.wrapping_sub(reference.get()) & SHORT_MASK;
    if ahead <= 1 << (SHORT_BITS - 1) { reference.plus(ahead) } else { back(reference, SHORT_MASK + 1 - ahead) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_numbers_extend_across_both_wraps() {
        let near_top = Seq::new(0x1234_56ff_fff0);
        assert_eq!(extend(0x00_0005, near_top).get(), 0x1234_5700_0005);
        assert_eq!(extend(0xff_ffe0, near_top).get(), 0x1234_56ff_ffe0);
        let near_bottom = Seq::new(0x1234_5600_0005);
        assert_eq!(extend(0xff_fff0, near_bottom).get(), 0x1234_55ff_fff0);
        assert_eq!(extend(0x00_0001, Seq::new(0xffff_ffff_ffff)).get(), 1);
        assert_eq!(extend(0xff_ffff, Seq::new(0)).get(), 0xffff_ffff_ffff);
    }

    #[test]
    fn windows_are_circular() {
        let (low, high) = (Seq::new(0xffff_ffff_fff0), Seq::new(5));
        assert!(within(low, Seq::new(0), high) && within(low, low, high) && within(low, high, high));
        assert!(!within(low, Seq::new(6), high) && !within(low, back(low, 1), high));
        assert_eq!(later(low, high), high);
    }
}
