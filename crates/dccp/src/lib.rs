//! DCCP without I/O.
#![allow(dead_code)]
mod ackvec;
mod ccid;
mod feature;
mod seq;
pub mod wire;
pub use ccid::{Ccid, CcidReport};
pub use seq::Seq;
