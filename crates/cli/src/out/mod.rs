//! What people and scripts see.

#[macro_use]
mod say;

pub(crate) mod json;
pub(crate) mod live;
pub(crate) mod security;
pub(crate) mod session;
pub(crate) mod style;
pub(crate) mod table;
pub(crate) mod text;
pub(crate) mod units;
