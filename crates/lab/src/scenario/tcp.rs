//! `[tcp]`: the options of a TCP connection, by name.

use super::keys::{self, Key, flag, key, put, time, whole, word};
use braidcast_sim::tcp::Config;

/// The keys.
pub(super) const KEYS: &[Key<Config>] = &[
    key("mss", |c, v| put(&mut c.mss, whole(v, 1, 9000))),
    key("initial_window", |c, v| put(&mut c.initial_window, whole(v, 1, 1000))),
    key("receive_window", |c, v| put(&mut c.receive_window, whole(v, 1, 1 << 30))),
    key("delayed_ack", |c, v| put(&mut c.delayed_ack, time(v))),
    key("rto_initial", |c, v| put(&mut c.rto.initial, time(v))),
    key("rto_min", |c, v| put(&mut c.rto.min, time(v))),
    key("rto_max", |c, v| put(&mut c.rto.max, time(v))),
    key("ecn", |c, v| put(&mut c.ecn, flag(v))),
    key("cc", |c, v| put(&mut c.cc, word(v))),
];

/// For the manual.
pub(super) fn accepted() -> Vec<(&'static str, String)> {
    keys::accepted(KEYS, &mut Config::default())
}
