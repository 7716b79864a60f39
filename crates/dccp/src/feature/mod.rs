//! Feature negotiation (RFC 4340 §6).

mod negotiation;
mod table;

pub(crate) use negotiation::{Negotiation, Preferences};
pub(crate) use table::{Place, number};
