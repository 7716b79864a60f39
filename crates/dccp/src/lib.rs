//! DCCP without I/O.
#![allow(dead_code)]
mod seq;
pub mod wire;
