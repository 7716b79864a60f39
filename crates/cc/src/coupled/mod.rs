//! Windows that know of each other: several paths of one connection that share a bottleneck take
//! together about what one TCP would (resource pooling; Wischik, Handley and Bagnulo Braun, ACM CCR
//! 38(5), 2008).

mod controller;
mod lia;
mod olia;
mod rpv2;
mod siblings;

pub use controller::Coupled;
pub use siblings::Siblings;

use braidcast_core::named;
use core::time::Duration;

/// How the windows of the paths of one connection depend on each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Congestion {
    /// Not at all: each path is as aggressive as a connection of its own (RFC 9260 §7.2, plain CMT).
    #[default]
    PerPath,
    /// Linked Increases (RFC 6356).
    Lia,
    /// Opportunistic Linked Increases (Khalili et al., draft-khalili-mptcp-congestion-control-05).
    Olia,
    /// CMT/RPv2 (Dreibholz, Becke, Adhari and Rathgeb, "On the impact of congestion control for Concurrent Multipath
    /// Transfer on the transport layer", `ConTEL` 2011).
    RpV2,
}

/// What a coupled rule knows about one path.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct CoupledPath {
    /// Congestion window, bytes.
    pub cwnd: usize,
    /// Packet size, bytes.
    pub mtu: usize,
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// Bytes that got through between two losses ([`Controller::between_losses`](crate::Controller::between_losses)).
    pub between_losses: u64,
}

impl CoupledPath {
    /// Packets per second that the window allows.
    fn rate(&self) -> f64 {
        self.cwnd as f64 / self.mtu.max(1) as f64 / self.rtt.as_secs_f64().max(1e-6)
    }
}

/// How fast a window grows, as a share of what a path on its own would do.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Growth {
    /// Bytes for each byte acknowledged in slow start; 1 on its own.
    pub slow_start: f64,
    /// Packets for each window acknowledged in congestion avoidance; 1 on its own. May be negative.
    pub avoidance: f64,
    /// `true` if a window that equals its threshold, as it does after each loss, is in slow start.
    /// RFC 9260 §7.2.1 says so, RFC 5681 §3.1 leaves it open. Several coupled windows would gain so
    /// a packet each with every loss.
    pub slow_start_at_threshold: bool,
}

impl Default for Growth {
    fn default() -> Self {
        Self { slow_start: 1.0, avoidance: 1.0, slow_start_at_threshold: true }
    }
}

impl Growth {
    /// Rules of the TCP family, which leave slow start as it is.
    const fn linked(avoidance: f64) -> Self {
        Self { slow_start: 1.0, avoidance, slow_start_at_threshold: false }
    }
}

/// What a loss leaves.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Decrease {
    /// Share of the window that is kept.
    pub kept: f64,
    /// Packets that are left at least.
    pub floor: usize,
}

impl Decrease {
    /// Packets that RFC 9260 §7.2.3 leaves to a path on its own.
    const FLOOR: usize = 4;

    /// A path on its own that keeps the share `kept`.
    pub const fn alone(kept: f64) -> Self {
        Self { kept, floor: Self::FLOOR }
    }
}

impl Congestion {
    /// How the window of `paths[this]` grows. `paths`: those that carry data and have a measured
    /// round trip; with one alone every rule is that of a path on its own.
    pub fn growth(self, paths: &[CoupledPath], this: usize) -> Growth {
        if paths.len() < 2 || this >= paths.len() {
            return Growth::default();
        }
        match self {
            Self::PerPath => Growth::default(),
            Self::Lia => Growth::linked(lia::avoidance(paths, this)),
            Self::Olia => Growth::linked(olia::avoidance(paths, this)),
            Self::RpV2 => rpv2::growth(paths, this),
        }
    }

    /// What a loss on `paths[this]` leaves, where a path on its own would keep the share `kept`.
    pub fn decrease(self, paths: &[CoupledPath], this: usize, kept: f64) -> Decrease {
        if paths.len() < 2 || this >= paths.len() {
            return Decrease::alone(kept);
        }
        match self {
            Self::PerPath => Decrease::alone(kept),
            Self::Lia => Decrease { kept, floor: lia::FLOOR },
            Self::Olia => Decrease { kept, floor: olia::FLOOR },
            Self::RpV2 => Decrease { kept: rpv2::kept(paths, this, kept), floor: rpv2::FLOOR },
        }
    }
}

named! {
    /// Every rule, by the name that options and scenarios use.
    Congestion, "congestion control" {
        "per-path" => PerPath,
        "lia" => Lia,
        "olia" => Olia,
        "rpv2" => RpV2,
    }
}

#[cfg(test)]
mod tests;
