//! Recordings of real links that the program has inside.

/// An LTE uplink recorded while driving (AT&T, 2016), in mahimahi's format; `traces/README.md` says where it comes from.
pub const LTE: Recording = Recording {
    name: "ATT-LTE-driving-2016.up",
    text: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/traces/ATT-LTE-driving-2016.up")),
};

/// A recorded link: one line for each chance to send 1500 bytes, with its millisecond.
#[derive(Clone, Copy, Debug)]
pub struct Recording {
    /// The name of its file.
    pub name: &'static str,
    /// What stands in it.
    pub text: &'static str,
}
