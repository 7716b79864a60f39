//! Every fuzz target, without libFuzzer: with all inputs that earlier fuzzing kept, and with new ones like them.
#![allow(clippy::disallowed_methods, reason = "files with inputs are read and written")]

mod inputs;
mod kept;
mod properties;
