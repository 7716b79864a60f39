use core::fmt;

use braidcast_core::Writer;

use super::{emit, kind};
use crate::wire::{ParseError, RawChunk};

/// Congestion Window Reduced: ECN Echoes up to this TSN were heard (RFC 4960 appendix A; the flags: usrsctp).
///
/// ```text
/// | type 13 8 | reserved 6 | same window 1 | override 1 | length 8 16 |
/// | lowest TSN                                                     32 |
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cwr {
    /// The TSN of the ECN Echo that this answers.
    pub lowest_tsn: u32,
    /// It is not known any more which path carried that TSN: end the echoes of all paths up to it.
    pub all_paths: bool,
    /// The window had been reduced for this round trip already.
    pub same_window: bool,
}

impl Cwr {
    /// The chunk type.
    pub const KIND: u8 = kind::CWR;
    const ALL_PATHS: u8 = 1;
    const SAME_WINDOW: u8 = 2;

    /// Reads the chunk.
    ///
    /// # Errors
    /// [`ParseError::Length`] where it is not 8 bytes.
    pub fn parse(raw: RawChunk<'_>) -> Result<Self, ParseError> {
        let mut fields = raw.fields();
        let lowest_tsn = fields.u32()?;
        fields.end()?;
        let flag = |bit| raw.flags & bit != 0;
        Ok(Self { lowest_tsn, all_paths: flag(Self::ALL_PATHS), same_window: flag(Self::SAME_WINDOW) })
    }

    /// Appends the chunk.
    pub fn emit(&self, w: &mut Writer<'_>) {
        let flag = |set, bit| if set { bit } else { 0 };
        let flags = flag(self.all_paths, Self::ALL_PATHS) | flag(self.same_window, Self::SAME_WINDOW);
        emit(w, Self::KIND, flags, |w| w.u32(self.lowest_tsn));
    }
}

impl fmt::Display for Cwr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CWR tsn={}", self.lowest_tsn)?;
        f.write_str(if self.all_paths { " all-paths" } else { "" })?;
        f.write_str(if self.same_window { " same-window" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Place, chunk::*};

    #[test]
    fn cwr_is_laid_out_as_rfc_4960_draws_it() {
        let plain = Cwr { lowest_tsn: 0x0102_0304, all_paths: false, same_window: false };
        check(&[13, 0, 0, 8, 1, 2, 3, 4], Chunk::Cwr(plain), "CWR tsn=16909060");
        let flagged = Cwr { all_paths: true, same_window: true, ..plain };
        check(&[13, 3, 0, 8, 1, 2, 3, 4], Chunk::Cwr(flagged), "CWR tsn=16909060 all-paths same-window");
    }

    #[test]
    fn cwr_of_another_length_is_refused() {
        for length in [4, 7, 9, 12] {
            let bytes = &[13; 12][..length];
            let raw = RawChunk { kind: 13, flags: 0, value: &bytes[4..], bytes, offset: 12 };
            let error = ParseError::Length { place: Place::Chunk(13), given: length, needed: 8 };
            assert_eq!(Cwr::parse(raw), Err(error));
        }
    }
}
