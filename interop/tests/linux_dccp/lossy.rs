//! Loss and delay.
use braidcast_interop::linux::Guest;
pub(crate) fn all(_guest: &Guest) {}
