//! Tests of the public interface, in one binary: linked once, and run side by side.

mod besieged;
mod capture;
mod closing;
mod common;
mod cubic;
mod faults;
mod handshake;
mod late_wake;
mod memory;
mod moved;
mod options;
mod path_mtu;
mod protection;
mod queue;
mod siege;
mod strangers;
mod tfrc;
mod transfer;
