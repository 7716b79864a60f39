//! `[network]`: what concerns the network as a whole.

use super::keys::{self, Key, apply, key, put, share, time};
use super::value::Settings;
use super::wrong::Wrong;
use core::time::Duration;

/// The network as a whole.
#[derive(Clone, Debug, Default)]
pub struct NetworkSpec {
    /// How packets are wrapped.
    pub wrap: Wrap,
    /// Each flow starts up to this much later, drawn for each run.
    pub vary_start: Duration,
    /// The delay of each link is up to this share more or less, drawn for each run.
    pub vary_delay: f64,
}

/// How packets of the protocols are wrapped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Wrap {
    /// In UDP and IPv4: 28 bytes.
    #[default]
    Udp,
    /// In IPv4 alone: 20 bytes.
    Ip,
}

impl Wrap {
    /// Bytes of its headers.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Udp => 28,
            Self::Ip => 20,
        }
    }
}

const KEYS: &[Key<NetworkSpec>] = &[
    key("wrap", |network, v| {
        network.wrap = match v.to_string().as_str() {
            "udp" => Wrap::Udp,
            "ip" => Wrap::Ip,
            other => return Err(format!("'{other}' is neither udp nor ip")),
        };
        Ok(())
    }),
    key("vary_start", |network, v| put(&mut network.vary_start, time(v))),
    key("vary_delay", |network, v| put(&mut network.vary_delay, share(v))),
];

/// For the manual.
pub(super) fn accepted() -> Vec<(&'static str, String)> {
    keys::accepted(KEYS, &mut NetworkSpec::default())
}

impl NetworkSpec {
    pub(super) fn new(settings: &Settings) -> Result<Self, Wrong> {
        let mut network = Self::default();
        apply(KEYS, &mut network, settings, "network")?;
        Ok(network)
    }
}
