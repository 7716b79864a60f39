use core::fmt;

use braidcast_core::Writer;

use super::{emit, kind};
use crate::wire::{Entries, Entry, ParseError, RawChunk};

/// Data abandoned: take everything up to here as received (RFC 3758 §3.2).
///
/// ```text
/// | type 192       8 | flags 0    8 | length          16 |
/// | new cumulative TSN                               32 |
/// | stream               16 | stream sequence number 16 | …
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ForwardTsn<'a> {
    /// The TSN that the receiver's cumulative TSN moves to.
    pub new_cumulative_tsn: u32,
    /// The ordered messages skipped.
    pub skips: Skips<'a>,
}

/// The skipped streams of a [`ForwardTsn`].
pub type Skips<'a> = Entries<'a, Skip>;

/// On `stream`, ordered messages up to `ssn` are skipped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Skip {
    /// Stream identifier.
    pub stream: u16,
    /// The highest stream sequence number skipped.
    pub ssn: u16,
}

impl Entry for Skip {
    const SIZE: usize = 4;

    fn read(bytes: &[u8]) -> Self {
        let both = u32::read(bytes);
        Self { stream: (both >> 16) as u16, ssn: both as u16 }
    }

    fn emit(&self, w: &mut Writer<'_>) {
        w.u16(self.stream);
        w.u16(self.ssn);
    }
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.stream, self.ssn)
    }
}

impl<'a> ForwardTsn<'a> {
    /// The chunk type.
    pub const KIND: u8 = kind::FORWARD_TSN;

    /// Reads the chunk.
    ///
    /// # Errors
    /// [`ParseError::Length`] where it is not 8 bytes and whole skips.
    pub fn parse(raw: RawChunk<'a>) -> Result<Self, ParseError> {
        let mut fields = raw.fields();
        Ok(Self { new_cumulative_tsn: fields.u32()?, skips: Skips::new(fields.rest_of(Skip::SIZE)?) })
    }

    /// Appends the chunk.
    pub fn emit(&self, w: &mut Writer<'_>) {
        emit(w, Self::KIND, 0, |w| {
            w.u32(self.new_cumulative_tsn);
            w.bytes(self.skips.as_bytes());
        });
    }
}

impl fmt::Display for ForwardTsn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FORWARD-TSN cum={} skips=[{}]", self.new_cumulative_tsn, self.skips)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Place, chunk::*};

    #[test]
    fn forward_tsn_is_laid_out_as_rfc_3758_3_2_draws_it() {
        let bytes = [192, 0, 0, 16, 0, 0, 1, 0, 0, 1, 0, 7, 0, 2, 1, 1];
        let chunk = ForwardTsn { new_cumulative_tsn: 256, skips: Skips::new(&[0, 1, 0, 7, 0, 2, 1, 1]) };
        check(&bytes, Chunk::ForwardTsn(chunk), "FORWARD-TSN cum=256 skips=[1:7,2:257]");
        assert_eq!(chunk.skips.iter().last(), Some(Skip { stream: 2, ssn: 257 }));
        let raw = RawChunk { kind: 192, flags: 0, value: &bytes[4..14], bytes: &bytes[..14], offset: 12 };
        let error = ParseError::Length { place: Place::Chunk(192), given: 14, needed: 16 };
        assert_eq!(ForwardTsn::parse(raw), Err(error));
    }
}
