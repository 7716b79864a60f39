use core::cmp::Ordering;

/// A serial number of `BITS` bits with the arithmetic of RFC 1982.
///
/// Two numbers exactly half the space apart have no order (RFC 1982 §3.2), so this implements `PartialOrd` only.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Serial<const BITS: u32>(u64);

impl<const BITS: u32> Serial<BITS> {
    const MASK: u64 = if BITS == 64 { u64::MAX } else { (1 << BITS) - 1 };
    const HALF: u64 = 1 << (BITS - 1);

    /// The serial number of the low `BITS` bits of `value`.
    pub const fn new(value: u64) -> Self {
        Self(value & Self::MASK)
    }

    /// The number as it stands on the wire.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The number `n` further on.
    #[must_use]
    pub const fn plus(self, n: u64) -> Self {
        Self::new(self.0.wrapping_add(n))
    }

    /// How many steps lead from `self` to `other`, going up.
    pub const fn distance_to(self, other: Self) -> u64 {
        other.0.wrapping_sub(self.0) & Self::MASK
    }
}

impl<const BITS: u32> PartialOrd for Serial<BITS> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match self.distance_to(*other) {
            0 => Some(Ordering::Equal),
            d if d == Self::HALF => None,
            d if d < Self::HALF => Some(Ordering::Less),
            _ => Some(Ordering::Greater),
        }
    }
}

/// Turns serial numbers of `BITS` bits into `u64` that never wrap, so that the rest of the code compares
/// and subtracts them as plain numbers.
///
/// Each number is taken to be the one nearest to the highest seen so far.
#[derive(Clone, Copy, Debug)]
pub struct Unwrapper<const BITS: u32> {
    highest: u64,
}

impl<const BITS: u32> Unwrapper<BITS> {
    /// An unwrapper whose first number is `first`.
    ///
    /// Unwrapped numbers start one whole cycle up, so that numbers before `first` have a place too.
    pub const fn new(first: u64) -> Self {
        Self { highest: (1 << BITS) + Serial::<BITS>::new(first).get() }
    }

    /// The number that `wire` most likely stands for, without moving the reference.
    pub fn peek(&self, wire: u64) -> u64 {
        let reference = Serial::<BITS>::new(self.highest);
        let ahead = reference.distance_to(Serial::new(wire));
        if ahead < Serial::<BITS>::HALF {
            self.highest.saturating_add(ahead)
        } else {
            self.highest.saturating_sub(Serial::<BITS>::MASK + 1 - ahead)
        }
    }

    /// The number that `wire` most likely stands for; a higher one becomes the reference.
    pub fn unwrap(&mut self, wire: u64) -> u64 {
        let value = self.peek(wire);
        self.highest = self.highest.max(value);
        value
    }

    /// The highest number unwrapped so far.
    pub const fn highest(&self) -> u64 {
        self.highest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn order_follows_rfc_1982() {
        let top = Serial::<16>::new(0xffff);
        assert!(top < top.plus(1));
        assert_eq!(top.plus(1).get(), 0);
        assert_eq!(Serial::<16>::new(0).partial_cmp(&Serial::new(0x8000)), None);
        assert!(Serial::<24>::new(5) > Serial::new(0xff_fff0));
        assert_eq!(Serial::<48>::new(u64::MAX).get(), 0xffff_ffff_ffff);
    }

    proptest! {
        #[test]
        fn unwrapping_a_walk_gives_the_walk(first: u32, steps in prop::collection::vec(0_u64..1 << 30, 1..50)) {
            let mut unwrapper = Unwrapper::<32>::new(u64::from(first));
            let mut at = unwrapper.highest();
            for step in steps {
                at += step;
                prop_assert_eq!(unwrapper.unwrap(at & 0xffff_ffff), at);
                prop_assert_eq!(unwrapper.peek((at - step) & 0xffff_ffff), at - step);
            }
        }
    }
}
