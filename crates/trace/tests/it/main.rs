//! Tests of the public interface, in one binary: linked once, and run side by side.

mod ns2;
mod pcapng;
mod qlog;
