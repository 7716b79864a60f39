use core::{fmt, marker::PhantomData};

use braidcast_core::Writer;

/// A fixed-size element of a list on the wire.
pub trait Entry: Copy + 'static {
    /// Bytes per entry.
    const SIZE: usize;

    /// Reads an entry from `bytes`, which are [`Self::SIZE`] long.
    fn read(bytes: &[u8]) -> Self;

    /// Appends the entry.
    fn emit(&self, w: &mut Writer<'_>);
}

/// A list of entries of equal size, left where it is in the packet.
pub struct Entries<'a, T> {
    bytes: &'a [u8],
    entry: PhantomData<T>,
}

impl<'a, T: Entry> Entries<'a, T> {
    /// No entries.
    pub const EMPTY: Self = Self { bytes: &[], entry: PhantomData };

    /// The entries in `bytes`, as [`Entry::emit`] writes them one after the other; a remainder shorter than an entry
    /// is left out.
    pub const fn new(bytes: &'a [u8]) -> Self {
        let (whole, _) = bytes.split_at(bytes.len() - bytes.len() % T::SIZE);
        Self { bytes: whole, entry: PhantomData }
    }

    /// How many entries there are.
    pub const fn len(&self) -> usize {
        self.bytes.len() / T::SIZE
    }

    /// Returns `true` if there are no entries.
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The entries in the order in which they stand.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = T> + ExactSizeIterator + Clone + 'a + use<'a, T> {
        self.bytes.chunks_exact(T::SIZE).map(T::read)
    }

    /// The bytes as on the wire.
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

impl<T> Clone for Entries<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Entries<'_, T> {}

impl<T> PartialEq for Entries<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl<T> Eq for Entries<'_, T> {}

impl<T: Entry + fmt::Debug> fmt::Debug for Entries<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Entries between commas.
impl<T: Entry + fmt::Display> fmt::Display for Entries<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, entry) in self.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            entry.fmt(f)?;
        }
        Ok(())
    }
}

impl Entry for u16 {
    const SIZE: usize = 2;

    fn read(bytes: &[u8]) -> Self {
        bytes.first_chunk().map_or(0, |b| Self::from_be_bytes(*b))
    }

    fn emit(&self, w: &mut Writer<'_>) {
        w.u16(*self);
    }
}

impl Entry for u32 {
    const SIZE: usize = 4;

    fn read(bytes: &[u8]) -> Self {
        bytes.first_chunk().map_or(0, |b| Self::from_be_bytes(*b))
    }

    fn emit(&self, w: &mut Writer<'_>) {
        w.u32(*self);
    }
}
