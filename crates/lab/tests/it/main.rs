//! Tests of the public interface, in one binary: linked once, and run side by side.

mod cmt;
mod dccp;
mod deep_dive;
mod live;
mod memory;
mod prcmt;
mod real_time;
mod reasons;
mod reordering;
mod runs;
mod sctp_queue;
mod survey;
mod wrong_scenarios;
