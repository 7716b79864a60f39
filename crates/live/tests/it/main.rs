//! Both ends with real sockets.
#![allow(clippy::disallowed_methods, reason = "real time")]

mod ends;
mod networks;
mod streams;
