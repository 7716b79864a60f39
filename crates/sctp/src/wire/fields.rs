use braidcast_core::{Reader, Truncated};

use super::error::{ParseError, Place};

/// Reads the fields of one chunk, parameter or cause and says whose field was missing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a> {
    reader: Reader<'a>,
    place: Place,
    /// Bytes of the whole item, with its four-byte header.
    whole: usize,
}

impl<'a> Fields<'a> {
    /// The fields in `value`, which follows the four-byte header of `place`.
    pub(crate) const fn new(place: Place, value: &'a [u8]) -> Self {
        Self { reader: Reader::new(value), place, whole: value.len() + 4 }
    }

    pub(crate) fn u16(&mut self) -> Result<u16, ParseError> {
        self.reader.u16().map_err(|t| self.short(t))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, ParseError> {
        self.reader.u32().map_err(|t| self.short(t))
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], ParseError> {
        self.reader.array().map_err(|t| self.short(t))
    }

    pub(crate) fn take(&mut self, n: usize) -> Result<&'a [u8], ParseError> {
        self.reader.take(n).map_err(|t| self.short(t))
    }

    /// Everything that is left.
    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.reader.rest()
    }

    /// Everything that is left, which must be whole entries of `N` bytes.
    pub(crate) const fn rest_of(&self, n: usize) -> Result<&'a [u8], ParseError> {
        let rest = self.reader.rest();
        if rest.len().is_multiple_of(n) { Ok(rest) } else { Err(self.length(self.whole + n - rest.len() % n)) }
    }

    /// Nothing may be left.
    pub(crate) const fn end(&self) -> Result<(), ParseError> {
        if self.reader.is_empty() { Ok(()) } else { Err(self.length(self.whole - self.reader.len())) }
    }

    const fn short(&self, t: Truncated) -> ParseError {
        self.length((self.whole - t.left).saturating_add(t.needed))
    }

    const fn length(&self, needed: usize) -> ParseError {
        ParseError::Length { place: self.place, given: self.whole, needed }
    }
}
