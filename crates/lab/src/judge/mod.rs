//! What the rows say about the claims of the source, and how far they are from the references.

mod claims;
mod differences;
mod tables;
#[cfg(test)]
mod tests;
mod words;

pub(crate) use claims::verdicts;
pub(crate) use differences::differences;
pub(crate) use tables::tables;
pub(crate) use words::quotes;

use crate::results::Row;
use crate::scenario::Point;

/// How far from a reference a row may be without a reason.
const FAR: f64 = 0.15;

/// A row and the point that it belongs to.
pub(crate) type Placed<'a> = (&'a Point, &'a Row);
