//! Tests of the public interface, in one binary: linked once, and run side by side.

mod bad_input;
mod carried;
mod frames;
mod properties;
