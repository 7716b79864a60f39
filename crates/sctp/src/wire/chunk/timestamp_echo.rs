use core::fmt;

use braidcast_core::{Reader, Writer};

use super::{emit, kind};
use crate::wire::{Entries, Entry, ParseError, Place, RawChunk};

/// When packets came that had a [`Timestamp`](super::Timestamp), and how long ago: goes with a SACK
/// (our own layout, decision 21; THESIS §7.1.3, eq. 7.6, with `T_r - T_e` in one field).
///
/// ```text
/// | type 0xb3 8 | reserved 8 | length          16 |
/// | path         16 | reserved                 16 | …
/// | sent, as it stood in the timestamp         32 | …
/// | arrived, microseconds of any beginning     32 | …
/// | elapsed since then, microseconds           32 | …
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimestampEcho<'a> {
    /// One for each path that a timestamp came over.
    pub arrivals: Entries<'a, StampArrival>,
}

/// One timestamp that came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StampArrival {
    /// What the sender calls the path.
    pub path: u16,
    /// What the timestamp said.
    pub sent: u32,
    /// Microseconds of the receiver's clock when it came; it wraps.
    pub arrived: u32,
    /// Microseconds that it waited for this chunk to leave.
    pub elapsed: u32,
}

impl Entry for StampArrival {
    const SIZE: usize = 16;

    fn read(bytes: &[u8]) -> Self {
        let mut r = Reader::new(bytes);
        let (path, _) = (r.u16().unwrap_or_default(), r.u16());
        let mut next = || r.u32().unwrap_or_default();
        Self { path, sent: next(), arrived: next(), elapsed: next() }
    }

    fn emit(&self, w: &mut Writer<'_>) {
        w.u16(self.path);
        w.u16(0);
        w.u32(self.sent);
        w.u32(self.arrived);
        w.u32(self.elapsed);
    }
}

impl fmt::Display for StampArrival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, sent, arrived, elapsed } = self;
        write!(f, "{path}:{sent}/{arrived}/{elapsed}")
    }
}

impl<'a> TimestampEcho<'a> {
    /// The chunk type: one that who does not know it skips without a word (RFC 9260 §3.2). Not registered with IANA.
    pub const KIND: u8 = kind::TIMESTAMP_ECHO;
    /// Bytes in front of the arrivals.
    pub const HEADER: usize = 4;

    /// Reads the chunk.
    ///
    /// # Errors
    /// [`ParseError::Length`] where it does not hold whole arrivals.
    pub fn parse(raw: RawChunk<'a>) -> Result<Self, ParseError> {
        let given = raw.bytes.len();
        let whole = raw.value.len().next_multiple_of(StampArrival::SIZE);
        if raw.value.is_empty() || whole != raw.value.len() {
            let needed = Self::HEADER + whole.max(StampArrival::SIZE);
            return Err(ParseError::Length { place: Place::Chunk(Self::KIND), given, needed });
        }
        Ok(Self { arrivals: Entries::new(raw.value) })
    }

    /// Appends the header of a chunk that `count` arrivals follow.
    pub fn begin(w: &mut Writer<'_>, count: usize) {
        w.u8(Self::KIND);
        w.u8(0);
        w.u16((Self::HEADER + count * StampArrival::SIZE) as u16);
    }

    /// Appends the chunk.
    pub fn emit(&self, w: &mut Writer<'_>) {
        emit(w, Self::KIND, 0, |w| w.bytes(self.arrivals.as_bytes()));
    }
}

impl fmt::Display for TimestampEcho<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TIMESTAMP-ECHO {}", self.arrivals)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::chunk::*;

    #[test]
    fn an_echo_is_laid_out_as_decision_21_draws_it() {
        let bytes = [0xb3, 0, 0, 20, 0, 3, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0];
        let echo = TimestampEcho { arrivals: Entries::new(&bytes[4..]) };
        check(&bytes, Chunk::TimestampEcho(echo), "TIMESTAMP-ECHO 3:256/512/768");
        assert_eq!(
            echo.arrivals.iter().collect::<Vec<_>>(),
            [StampArrival { path: 3, sent: 256, arrived: 512, elapsed: 768 }]
        );
    }

    #[test]
    fn an_echo_of_parts_is_refused() {
        for length in [4, 19, 21, 35] {
            let bytes = &[0; 40][..length];
            let raw = RawChunk { kind: 0xb3, flags: 0, value: &bytes[4..], bytes, offset: 12 };
            assert!(TimestampEcho::parse(raw).is_err(), "{length}");
        }
    }
}
