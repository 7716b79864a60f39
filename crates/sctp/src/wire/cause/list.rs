use core::fmt;

use super::Cause;
use crate::wire::{Place, Tlvs, tlv};

/// The error causes of a chunk, left where they are in the packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Causes<'a>(&'a [u8]);

impl<'a> Causes<'a> {
    /// No causes.
    pub const EMPTY: Self = Self(&[]);

    /// The causes in `bytes`, from a packet or as [`Cause::emit`] wrote them one after the other. Padding of the last
    /// one is dropped, since a chunk's length must not count it (RFC 9260 §3.2).
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(tlv::without_last_padding(bytes))
    }

    /// The causes in order, to be read by [`Cause::parse`]; ends after the first error.
    pub const fn iter(&self) -> Tlvs<'a> {
        Tlvs::new(self.0, Place::Cause)
    }

    /// The bytes as on the wire, without padding of the last cause.
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.0
    }

    /// Returns `true` if there are no causes.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The causes between commas, for people.
impl fmt::Display for Causes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, raw) in self.iter().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            match raw.and_then(Cause::parse) {
                Ok(cause) => cause.fmt(f)?,
                Err(error) => write!(f, "malformed {error}")?,
            }
        }
        Ok(())
    }
}
