//! The congestion controller of one path: a trait in bytes and time, and a file for each that there is.
//!
//! A transport finds losses, marks and rounds, and reports them; a controller answers with a
//! window and a pacing rate. To add one, write its file with a type that has `new(&Setup)` and
//! implements [`Controller`], and give it a row in the table of `algorithm.rs`. Options, scenarios,
//! the command line and the property tests follow from that table.

mod algorithm;
mod beside;
mod cubic;
mod live;
mod policed;
mod recent;
mod reno;
mod scream;
mod standard;
mod unloaded;
mod veno;

use crate::{RateSample, Siblings};
use braidcast_core::Instant;
use core::fmt;
use core::time::Duration;

pub use algorithm::Algorithm;
pub use standard::{Counting, LossBasis, Standard};
pub use veno::shows_congestion;

/// What a controller begins with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setup {
    /// Bytes that a full packet counts for in the window.
    pub mtu: usize,
    /// The first window, bytes.
    pub initial: usize,
    /// The first slow start ends here even if nothing is lost, bytes; `usize::MAX` if it has no limit.
    pub ssthresh: usize,
    /// What the transport's standard lays down.
    pub standard: Standard,
    /// How long packets may stand in queues, for a controller that bounds that itself.
    pub queueing: Duration,
}

impl Setup {
    /// How long packets may stand in queues unless told otherwise.
    pub const QUEUEING: Duration = Duration::from_millis(50);

    /// A first window of `min(4·MTU, max(2·MTU, 4404))` bytes (RFC 9260 §7.2.1) and an unlimited slow start.
    pub fn new(standard: Standard, mtu: usize) -> Self {
        Self {
            mtu,
            initial: (4 * mtu).min((2 * mtu).max(4404)),
            ssthresh: usize::MAX,
            standard,
            queueing: Self::QUEUEING,
        }
    }
}

/// What the transport knows of the path when something happens.
#[derive(Clone, Copy, Debug, Default)]
pub struct Conditions<'a> {
    /// The time.
    pub now: Instant,
    /// Bytes that a full packet counts for in the window.
    pub mtu: usize,
    /// Bytes in flight. With an acknowledgement: what is left. With a loss, mark or timeout: what was out when it was
    /// noticed (`FlightSize`, RFC 5681 §2).
    pub in_flight: usize,
    /// Smoothed round-trip time, once measured.
    pub srtt: Option<Duration>,
    /// How long packets stand in queues of late ([`QueueingDelay`](crate::QueueingDelay)).
    pub queueing: Duration,
    /// The round trip without that; zero until measured.
    pub base_rtt: Duration,
    /// The shortest round trip ever measured, by the same way as `base_rtt`, which is of late; zero
    /// where nobody measures it.
    pub shortest_rtt: Duration,
    /// Share of the packets that were lost of late, 0 to 1.
    pub loss_rate: f32,
    /// Packets of which it is known whether they arrived, from the beginning, and how many did not;
    /// 0 where nobody counts them.
    pub packets: u64,
    /// See `packets`.
    pub lost_packets: u64,
    /// Bytes of redundancy sent from the beginning, beside the data; nobody acknowledges them.
    pub redundancy: u64,
    /// The other paths of the same connection, for a [`Coupled`](crate::Coupled) controller.
    pub siblings: Siblings<'a>,
}

/// What an acknowledgement says.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Acked {
    /// Bytes acknowledged for the first time that count for the window.
    pub bytes: usize,
    /// Of these, what earns no growth in congestion avoidance.
    pub uncredited: usize,
    /// The transport lets the window grow: the path is not recovering from losses, for example.
    pub may_grow: bool,
    /// Before this acknowledgement as much was in flight as the window allows. A window that the
    /// application does not fill must not grow (RFC 7661 §1).
    pub was_full: bool,
    /// Data packets that the peer acknowledges at once (Ack Ratio, RFC 4340 §11.3); heeded by [`Counting::Packets`].
    pub ack_ratio: u16,
    /// Round-trip time of the newest packet acknowledged, unless it was sent more than once.
    pub rtt: Option<Duration>,
    /// All that was in flight when the round began is acknowledged.
    pub ends_round: bool,
    /// How fast the path delivered.
    pub rate: Option<RateSample>,
}

/// Packets were lost or marked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Signal {
    /// Bytes lost or marked.
    pub bytes: usize,
    /// They left after the window was last reduced. Losses and marks of one window of data are one
    /// congestion event, which reduces it once (RFC 9260 §7.2.4, RFC 3168 §6.1.2).
    pub new_round: bool,
}

/// What is known of an operator that drops what comes faster than a rate, without a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Policing {
    /// No loss looks like that.
    #[default]
    None,
    /// That is being tried: packets are to leave one by one, as there is no queue for a burst.
    Suspected,
    /// It is so. What was lost until now was lost since too much was sent.
    Known,
}

/// The congestion controller of one path.
///
/// All sizes are bytes, counted as the transport counts what is in flight.
pub trait Controller: fmt::Debug + Send {
    /// `bytes` left.
    fn on_sent(&mut self, _path: &Conditions<'_>, _bytes: usize) {}

    /// An acknowledgement came: of new data, or of what only moves time on.
    fn on_acked(&mut self, path: &Conditions<'_>, acked: &Acked);

    /// Packets were found lost by acknowledgements.
    fn on_lost(&mut self, path: &Conditions<'_>, lost: &Signal);

    /// The peer echoed that packets were marked (ECN).
    fn on_marked(&mut self, path: &Conditions<'_>, marked: &Signal);

    /// The retransmission timer expired: all that was out is lost.
    fn on_timeout(&mut self, path: &Conditions<'_>);

    /// The last timeout was spurious: the path stood still for a while and lost nothing (RFC 4015 §3).
    fn on_spurious_timeout(&mut self);

    /// Nothing was sent for so long that the window is no longer warranted: `most` bytes are, by
    /// the transport's standard. Slow start may lead back to where the window was.
    fn on_idle(&mut self, path: &Conditions<'_>, most: usize);

    /// The path takes no more than `most` bytes although it lost nothing: a queue stands, or the
    /// receiver is slow. Slow start is over.
    fn settle(&mut self, path: &Conditions<'_>, most: usize);

    /// Congestion window: bytes that may be in flight, one packet at least.
    fn window(&self) -> usize;

    /// Slow start threshold, bytes; `usize::MAX` until something has set it.
    fn ssthresh(&self) -> usize;

    /// Returns `true` if the window grows exponentially.
    fn in_slow_start(&self) -> bool {
        self.window() < self.ssthresh()
    }

    /// Bytes per second to spread packets at; `None` until a round trip was measured. By default
    /// two windows per round trip in slow start and 1.25 later, as Linux does.
    fn pacing_rate(&self, srtt: Option<Duration>) -> Option<f64> {
        let gain = if self.in_slow_start() { 2.0 } else { 1.25 };
        Some(gain * self.window() as f64 / srtt?.as_secs_f64().max(1e-6))
    }

    /// Bytes in a second that the path delivers, as far as the controller knows; `None` if it does not.
    fn delivery_rate(&self) -> Option<f64> {
        None
    }

    /// The same without a margin for what it may carry beyond what was sent.
    fn measured_rate(&self) -> Option<f64> {
        self.delivery_rate()
    }

    /// What the controller knows of a policer on the path.
    fn policing(&self) -> Policing {
        Policing::None
    }

    /// Bytes acknowledged since the last loss or between the two before it, whichever is more; 0 if nobody counts them.
    fn between_losses(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests;
