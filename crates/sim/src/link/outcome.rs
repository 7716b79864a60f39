use braidcast_core::{Ecn, Instant};

/// Why a link dropped a packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum DropReason {
    /// It was larger than the MTU.
    TooBig,
    /// The policer had too few tokens for it.
    Policed,
    /// The queue was full.
    QueueFull,
    /// RED or CoDel dropped it before the queue was full.
    Early,
    /// It left during an outage, or the link was down.
    Outage,
    /// It was lost in flight.
    Loss,
}

/// What became of an offered packet so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Offer<P> {
    /// It is inside the link now.
    Queued,
    /// It was not taken; here it is back.
    Dropped(DropReason, P),
}

/// What became of a packet inside the link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome<P> {
    /// It arrived.
    Arrived(P),
    /// It arrived with one bit wrong: bit `n % bits`, where `bits` is its length in bits.
    Corrupted(P, u64),
    /// It did not arrive; here it is back.
    Dropped(DropReason, P),
}

impl<P> Outcome<P> {
    pub(super) const fn packet(&self) -> &P {
        match self {
            Self::Arrived(packet) | Self::Corrupted(packet, _) | Self::Dropped(_, packet) => packet,
        }
    }
}

/// A packet as it comes out of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exit<P> {
    /// When it arrived or was lost.
    pub at: Instant,
    /// How it is marked now: as it was offered, or [`Ecn::Ce`] if the queue marked it.
    pub ecn: Ecn,
    /// What became of it.
    pub outcome: Outcome<P>,
}

/// What happened to a packet at a link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum LinkAction {
    /// It entered the queue.
    Entered,
    /// The queue marked it as having met congestion instead of dropping it.
    Marked,
    /// Its last bit left the queue.
    Left,
    /// It arrived at the far end. A copy that the link made does so too.
    Arrived,
    /// It was dropped: on entering ([`DropReason::TooBig`], [`DropReason::Policed`], [`DropReason::QueueFull`],
    /// [`DropReason::Early`] by RED,
    /// [`DropReason::Outage`] while cut), at the head of the queue ([`DropReason::Early`] by CoDel), or after it
    /// left.
    Dropped(DropReason),
}

/// One thing that happened at a link, for who watches it ([`Link::offer_watched`](super::Link::offer_watched)).
#[derive(Clone, Copy, Debug)]
pub struct LinkEvent<'a, P> {
    /// When exactly.
    pub at: Instant,
    /// What.
    pub action: LinkAction,
    /// How the packet is marked after it.
    pub ecn: Ecn,
    /// The packet's bytes on the wire.
    pub len: usize,
    /// Packets in the queue after it, the one being sent included.
    pub queue_packets: usize,
    /// Their bytes on the wire.
    pub queue_bytes: usize,
    /// The packet.
    pub packet: &'a P,
}
