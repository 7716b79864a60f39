//! Tests of the public interface, in one binary: linked once, and run side by side.

mod common;
mod driver;
mod interrupt;
mod namespace;
mod native;
