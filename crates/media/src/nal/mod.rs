//! What the bits of an elementary stream say of its frames: where each begins, its kind, and if
//! others are predicted from it.

mod av1;
mod bits;
mod h264;
mod h265;
mod h266;
mod mpeg;
mod scanner;
mod sei;

pub(crate) use av1::Av1;
pub(crate) use h266::H266;
pub(crate) use scanner::{Found, Scanner, Syntax};

use crate::unit::Kind;
use bits::Bits;

/// Kind of a coded frame and `true` if others are predicted from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Picture {
    pub(crate) kind: Kind,
    pub(crate) reference: bool,
}

impl Picture {
    /// Of the frame that has both slices: B if either is B, else P if either is P.
    pub(crate) fn with(self, other: Self) -> Self {
        Self { kind: self.kind.max(other.kind), reference: self.reference || other.reference }
    }
}

/// What stands behind a start code, as far as access units are concerned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    /// What can only stand in front of a frame: delimiters, parameter sets, headers.
    Front,
    /// The same; and whoever begins to decode here sees whole frames some time later.
    Entry,
    /// A frame begins with it; its kind, if it can be read.
    First(Option<Picture>),
    /// It belongs to the frame that has begun.
    Rest(Option<Picture>),
    /// It says nothing.
    Nothing,
}
