use core::fmt;

use crate::wire::{Place, Tlvs, tlv};

/// The parameters of a chunk, left where they are in the packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameters<'a>(&'a [u8]);

impl<'a> Parameters<'a> {
    /// No parameters.
    pub const EMPTY: Self = Self(&[]);

    /// The parameters in `bytes`, from a packet or as [`Parameter::emit`](super::Parameter::emit) wrote them one after
    /// the other. Padding of the last one is dropped, since a chunk's length must not count it (RFC 9260 §3.2).
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(tlv::without_last_padding(bytes))
    }

    /// The parameters in order, to be read by [`Parameter::parse`](super::Parameter::parse); ends
    /// after the first error.
    pub const fn iter(&self) -> Tlvs<'a> {
        Self::iter_of(self.0)
    }

    /// The bytes as on the wire, without padding of the last parameter.
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.0
    }

    /// Returns `true` if there are no parameters.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) const fn iter_of(bytes: &'a [u8]) -> Tlvs<'a> {
        Tlvs::new(bytes, Place::Parameter)
    }
}

/// The types in brackets.
impl fmt::Display for Parameters<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (i, raw) in self.iter().enumerate() {
            let gap = if i == 0 { "" } else { " " };
            match raw {
                Ok(raw) => write!(f, "{gap}{:#06x}", raw.kind)?,
                Err(_) => write!(f, "{gap}malformed")?,
            }
        }
        f.write_str("]")
    }
}
