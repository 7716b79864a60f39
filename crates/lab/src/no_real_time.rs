//! In place of real time, if there is no event loop for sockets: `driver` needs Linux.

use crate::plan::{Done, Plan};
use crate::simulate::Failed;
use core::sync::atomic::AtomicBool;

/// Says what it would need.
pub(crate) fn run<R>(_: Plan, _: u64, _: &AtomicBool, _: impl FnOnce(&Done<'_>) -> R) -> Result<R, Failed> {
    Err(Failed::Broken("real time needs Linux; the simulator runs anywhere".to_owned()))
}
