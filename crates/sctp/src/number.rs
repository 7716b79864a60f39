//! Numbers that must not be taken for each other: each counts something else.

use core::fmt;
use core::ops::{Add, Sub};

/// A transmission sequence number of either direction, unwrapped: it never wraps, and its low 32
/// bits stand on the wire.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Tsn(u64);

impl Tsn {
    pub(crate) const fn new(unwrapped: u64) -> Self {
        Self(unwrapped)
    }

    pub(crate) const fn get(self) -> u64 {
        self.0
    }

    /// As it stands on the wire.
    pub(crate) const fn wire(self) -> u32 {
        self.0 as u32
    }

    pub(crate) const fn next(self) -> Self {
        Self(self.0 + 1)
    }

    pub(crate) const fn before(self) -> Self {
        Self(self.0 - 1)
    }

    /// How many numbers lie from `from` up to this one; `None` if `from` is higher.
    pub(crate) fn index_from(self, from: Self) -> Option<usize> {
        usize::try_from(self.0.checked_sub(from.0)?).ok()
    }

    /// The number after this one; the last one stays.
    pub(crate) const fn saturating_next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// The numbers from this one up to but not including `end`.
    pub(crate) fn until(self, end: Self) -> impl DoubleEndedIterator<Item = Self> + Clone {
        (self.0..end.0).map(Self)
    }
}

impl Add<u64> for Tsn {
    type Output = Self;

    fn add(self, count: u64) -> Self {
        Self(self.0 + count)
    }
}

impl Sub for Tsn {
    type Output = u64;

    fn sub(self, from: Self) -> u64 {
        self.0 - from.0
    }
}

impl fmt::Debug for Tsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TSN {}", self.0)
    }
}

/// A place in the order in which chunks left over one path, repeats included. Unlike TSNs it says
/// what was sent before what over that path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Order(u64);

impl Order {
    pub(crate) const FIRST: Self = Self(0);

    /// For tests of what keeps orders.
    #[cfg(test)]
    pub(crate) const fn new(place: u64) -> Self {
        Self(place)
    }

    /// For algorithms of other crates that compare places.
    pub(crate) const fn get(self) -> u64 {
        self.0
    }

    pub(crate) const fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// The place before this one; the first place is before itself.
    pub(crate) const fn before(self) -> Self {
        Self(self.0.saturating_sub(1))
    }
}

impl fmt::Debug for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}
