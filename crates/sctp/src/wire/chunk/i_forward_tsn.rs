use core::fmt;

use braidcast_core::Writer;

use super::{emit, kind};
use crate::wire::{Entries, Entry, ParseError, RawChunk};

/// Data abandoned, with I-DATA in use (RFC 8260 §2.3.1).
///
/// ```text
/// | type 194       8 | flags 0    8 | length          16 |
/// | new cumulative TSN                               32 |
/// | stream               16 | reserved         15 | U 1 | …
/// | message identifier                               32 | …
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IForwardTsn<'a> {
    /// The TSN that the receiver's cumulative TSN moves to.
    pub new_cumulative_tsn: u32,
    /// The messages skipped.
    pub skips: ISkips<'a>,
}

/// The skipped streams of an [`IForwardTsn`].
pub type ISkips<'a> = Entries<'a, ISkip>;

/// On `stream`, ordered or unordered messages up to `mid` are skipped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ISkip {
    /// Stream identifier.
    pub stream: u16,
    /// U bit: whether `mid` counts unordered messages.
    pub unordered: bool,
    /// The highest message identifier skipped.
    pub mid: u32,
}

impl Entry for ISkip {
    const SIZE: usize = 8;

    fn read(bytes: &[u8]) -> Self {
        let head = u32::read(bytes);
        let mid = u32::read(bytes.get(4..).unwrap_or_default());
        Self { stream: (head >> 16) as u16, unordered: head & 1 != 0, mid }
    }

    fn emit(&self, w: &mut Writer<'_>) {
        w.u16(self.stream);
        w.u16(u16::from(self.unordered));
        w.u32(self.mid);
    }
}

impl fmt::Display for ISkip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}:{}", self.stream, if self.unordered { "u" } else { "" }, self.mid)
    }
}

impl<'a> IForwardTsn<'a> {
    /// The chunk type.
    pub const KIND: u8 = kind::I_FORWARD_TSN;

    /// Reads the chunk.
    ///
    /// # Errors
    /// [`ParseError::Length`] where it is not 8 bytes and whole skips.
    pub fn parse(raw: RawChunk<'a>) -> Result<Self, ParseError> {
        let mut fields = raw.fields();
        Ok(Self { new_cumulative_tsn: fields.u32()?, skips: ISkips::new(fields.rest_of(ISkip::SIZE)?) })
    }

    /// Appends the chunk.
    pub fn emit(&self, w: &mut Writer<'_>) {
        emit(w, Self::KIND, 0, |w| {
            w.u32(self.new_cumulative_tsn);
            w.bytes(self.skips.as_bytes());
        });
    }
}

impl fmt::Display for IForwardTsn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "I-FORWARD-TSN cum={} skips=[{}]", self.new_cumulative_tsn, self.skips)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::chunk::*;

    #[test]
    fn i_forward_tsn_is_laid_out_as_rfc_8260_2_3_1_draws_it() {
        let skips = [0, 1, 0, 0, 0, 0, 0, 7, 0, 2, 0, 1, 0, 1, 0, 0];
        let mut bytes = vec![194, 0, 0, 24, 0, 0, 1, 0];
        bytes.extend_from_slice(&skips);
        let chunk = IForwardTsn { new_cumulative_tsn: 256, skips: ISkips::new(&skips) };
        check(&bytes, Chunk::IForwardTsn(chunk), "I-FORWARD-TSN cum=256 skips=[1:7,2u:65536]");
        assert_eq!(chunk.skips.iter().last(), Some(ISkip { stream: 2, unordered: true, mid: 65536 }));
    }
}
