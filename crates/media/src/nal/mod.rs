//! Kind of the coded picture in an access unit of an elementary stream, from the first bits of its
//! slices.

mod bits;
mod h264;
mod h265;
mod mpeg2;

use crate::unit::Kind;
use bits::Bits;

/// Kind of a coded picture and `true` if others are predicted from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Picture {
    pub(crate) kind: Kind,
    pub(crate) reference: bool,
}

pub(crate) use h264::picture as h264_picture;
pub(crate) use h265::H265;
pub(crate) use mpeg2::picture as mpeg2_picture;

/// The parts of `stream` that follow a start code (00 00 01), each up to the next one.
fn units(stream: &[u8]) -> impl Iterator<Item = &[u8]> {
    let finder = memchr::memmem::Finder::new(&[0, 0, 1]);
    let mut rest = finder.find(stream).map(|at| &stream[at + 3..]);
    core::iter::from_fn(move || {
        let from = rest?;
        let next = finder.find(from);
        rest = next.map(|at| &from[at + 3..]);
        Some(&from[..next.unwrap_or(from.len())])
    })
}

/// Returns the kind of a coded picture from those of its slices: B if any is B, else P if any is P,
/// else I.
fn most_dependent(slices: impl Iterator<Item = Kind>) -> Option<Kind> {
    slices.max()
}
