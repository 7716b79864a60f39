use core::time::Duration;
use proptest::prelude::*;

/// A value for an option that is a number: one of the `ends` of what such options may be, or any,
/// small ones as likely as large ones.
pub fn extreme(ends: Vec<u64>) -> impl Strategy<Value = u64> {
    prop_oneof![
        3 => prop::sample::select(ends),
        2 => (0_u32..64, any::<u64>()).prop_map(|(bits, any)| any >> bits),
    ]
}

/// The same for an option that is a time: `number` nanoseconds, or the longest time that there is
/// for the largest number.
pub const fn nanos(number: u64) -> Duration {
    if number == u64::MAX { Duration::MAX } else { Duration::from_nanos(number) }
}
