use core::fmt;

/// The name of a path inside its association: where it stands among the [`Paths`](super::Paths).
///
/// Whoever holds one may rely on the path: when a path is removed, everything that names it is
/// changed in the same step (the ledger, control chunks that wait), and only then may the place be
/// used again. Outside of the association, and on the wire, a path is a
/// [`PathId`](braidcast_core::PathId), which is not used twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PathIndex(u8);

impl PathIndex {
    /// # Panics
    /// If `place` is not below 256: [`PathOptions::max_paths`](crate::PathOptions::max_paths) is.
    pub(crate) fn new(place: usize) -> Self {
        Self(u8::try_from(place).expect("Options limit the paths of an association"))
    }

    pub(crate) const fn get(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Debug for PathIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "path {}", self.0)
    }
}
