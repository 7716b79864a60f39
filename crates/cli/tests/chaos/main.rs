//! Real faults: processes, signals, pipes, disks, and networks in namespaces of the tests' own. No
//! test needs a quiet machine: time in which it stood still is not counted. `make chaos` runs the
//! long ones too.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "these tests are about real processes, networks and time"
)]

#[path = "../it/common/mod.rs"]
mod common;
mod eight;
mod files;
mod handover;
mod live;
mod networks;
mod outputs;
mod places;
mod process;
mod random;
mod run;
mod scripts;
mod sums;
mod ts;
mod wireguard;
