//! Tests of the public interface, in one binary: linked once, and run side by side.

mod ends;
mod extremes;
mod identity;
mod rate;
mod shared;
mod socket;
