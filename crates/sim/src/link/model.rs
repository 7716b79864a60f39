use super::{Jitter, Loss, Outage, Policer, Queue, Rate, Reorder, Schedule};
use core::time::Duration;

/// What becomes of the ECN field of packets (RFC 3168 §5) in flight. Not all routers and firewalls
/// leave it alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum EcnField {
    /// It stays as it is.
    #[default]
    Kept,
    /// It is set to Not-ECT, marks included.
    Cleared,
    /// Packets that say anything but Not-ECT are lost.
    Refused,
}

/// How a link treats packets. The default is a perfect wire: no limit, no delay, no loss.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkModel {
    /// How fast packets leave the queue.
    pub rate: Rate,
    /// Propagation delay.
    pub delay: Duration,
    /// A propagation delay that changes, in nanoseconds, by the time at which a packet leaves the queue; takes the
    /// place of `delay`. A falling delay reorders nothing, as with [`Jitter`].
    pub delay_schedule: Option<Schedule>,
    /// Variation of the delay.
    pub jitter: Jitter,
    /// What is dropped before the queue since it comes faster than an operator allows.
    pub policer: Option<Policer>,
    /// How much may wait, and who is dropped or marked before that.
    pub queue: Queue,
    /// What is lost in flight.
    pub loss: Loss,
    /// What becomes of the ECN field behind the queue.
    pub ecn_field: EcnField,
    /// What arrives out of order.
    pub reorder: Reorder,
    /// The probability, 0 to 1, that a packet arrives twice.
    pub duplicate: f64,
    /// The probability, 0 to 1, that a packet arrives with one bit flipped
    /// ([`Outcome::Corrupted`](super::Outcome::Corrupted)).
    pub corrupt: f64,
    /// The largest packet in bytes, without `overhead`; larger ones are dropped without a word, as where ICMP is
    /// filtered.
    pub mtu: usize,
    /// Bytes that the link layer's framing adds to each packet: they take time on the wire and room in the queue.
    pub overhead: usize,
    /// Times without service.
    pub outages: Vec<Outage>,
}

impl Default for LinkModel {
    fn default() -> Self {
        Self {
            rate: Rate::default(),
            delay: Duration::ZERO,
            delay_schedule: None,
            jitter: Jitter::default(),
            policer: None,
            queue: Queue::default(),
            loss: Loss::default(),
            ecn_field: EcnField::default(),
            reorder: Reorder::default(),
            duplicate: 0.0,
            corrupt: 0.0,
            mtu: usize::MAX,
            overhead: 0,
            outages: Vec::new(),
        }
    }
}

impl LinkModel {
    /// A clean link with this rate and this propagation delay.
    pub fn wire(bits_per_second: u64, delay: Duration) -> Self {
        Self { rate: Rate::Bits(bits_per_second), delay, ..Self::default() }
    }

    /// The propagation delay at every time.
    pub(super) fn delays(&self) -> Schedule {
        let nanos = u64::try_from(self.delay.as_nanos()).unwrap_or(u64::MAX);
        self.delay_schedule.clone().unwrap_or_else(|| Schedule::constant(nanos))
    }
}
