use crate::Instant;
use crate::{PathId, Route};
use core::time::Duration;

/// What happens in an SCTP association. TSNs are as on the wire.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum SctpEvent {
    /// The handshake is done.
    Opened {
        /// Our verification tag, in what comes; it names the association at this end.
        local_tag: u32,
        /// The peer's, in what we send; it names the association at the other end.
        peer_tag: u32,
    },
    /// It is over.
    Closed,
    /// There is a path more.
    PathAdded {
        /// Its number.
        path: PathId,
        /// Where it runs.
        route: Route,
    },
    /// A path has left.
    PathRemoved {
        /// Its number.
        path: PathId,
    },
    /// A path is in another state.
    PathState {
        /// Its number.
        path: PathId,
        /// The state from now on.
        state: PathCondition,
    },
    /// What is known of a path has changed.
    PathMetrics {
        /// Its number.
        path: PathId,
        /// What is known now.
        metrics: PathMetrics,
    },
    /// The congestion window of a path was reduced.
    WindowReduced {
        /// Its number.
        path: PathId,
        /// For what.
        cause: Reduction,
    },
    /// A packet leaves, after the events of what is in it.
    PacketSent {
        /// The path it goes over.
        path: PathId,
        /// Its bytes above UDP.
        bytes: u32,
        /// What it is for.
        content: PacketContent,
    },
    /// A packet came and was dealt with.
    PacketReceived {
        /// The path it came over.
        path: PathId,
        /// Its bytes above UDP.
        bytes: u32,
        /// The network had marked it (ECN).
        marked: bool,
    },
    /// The application handed over a message.
    MessageQueued {
        /// Its number, of the application's choice.
        message: u64,
        /// The stream it goes on.
        stream: u16,
        /// Its bytes.
        bytes: u32,
        /// When it must be at the receiver.
        deadline: Option<Instant>,
    },
    /// A message was abandoned.
    MessageAbandoned {
        /// Its number.
        message: u64,
        /// The stream it was to go on.
        stream: u16,
        /// A part of it had been sent.
        sent: bool,
        /// The rule that abandoned it, and why.
        why: Unsent,
    },
    /// A data chunk leaves.
    ChunkSent {
        /// The path it goes over.
        path: PathId,
        /// Its number.
        tsn: u32,
        /// Bytes of data in it.
        bytes: u16,
        /// The stream of its message.
        stream: u16,
        /// The number of its message.
        message: u64,
        /// `true` if it is new, or why it is sent again.
        sending: Sending,
    },
    /// A data chunk was acknowledged.
    ChunkAcked {
        /// The path that it was last sent over, if it still is there.
        path: Option<PathId>,
        /// Its number.
        tsn: u32,
        /// It had been taken for lost, wrongly or too early.
        spurious: bool,
    },
    /// A data chunk is taken for lost.
    ChunkLost {
        /// The path that it was last sent over, if it still is there.
        path: Option<PathId>,
        /// Its number.
        tsn: u32,
        /// What says so.
        cause: Loss,
    },
    /// A data chunk came, or redundancy made up for it (then [`ChunkRecovered`](Self::ChunkRecovered) follows).
    ChunkReceived {
        /// The path it came over.
        path: PathId,
        /// Its number.
        tsn: u32,
        /// Bytes of data in it.
        bytes: u16,
        /// It had not come before.
        new: bool,
    },
    /// Redundancy made up for a data chunk.
    ChunkRecovered {
        /// The path that the last of what it was made of came over.
        path: PathId,
        /// Its number.
        tsn: u32,
    },
    /// Redundancy leaves.
    RedundancySent {
        /// The path it goes over.
        path: PathId,
        /// The first TSN that it covers.
        first: u32,
        /// How many TSNs from there on it may cover.
        count: u16,
        /// Its bytes.
        bytes: u16,
    },
    /// Redundancy came.
    RedundancyReceived {
        /// The path it came over.
        path: PathId,
        /// The first TSN that it covers.
        first: u32,
        /// How many TSNs from there on it may cover.
        count: u16,
    },
    /// A SACK leaves.
    SackSent {
        /// The path it goes over.
        path: PathId,
        /// The cumulative TSN.
        cumulative: u32,
        /// Blocks above it.
        gaps: u16,
        /// Room in the receive buffer, bytes.
        window: u32,
    },
    /// A SACK came.
    SackReceived {
        /// The path it came over.
        path: PathId,
        /// The cumulative TSN.
        cumulative: u32,
        /// Blocks above it.
        gaps: u16,
        /// Room in the peer's receive buffer, bytes.
        window: u32,
    },
    /// FORWARD-TSN leaves: the peer is to wait for nothing up to there.
    ForwardSent {
        /// The path it goes over.
        path: PathId,
        /// The new cumulative TSN.
        tsn: u32,
    },
    /// FORWARD-TSN came.
    ForwardReceived {
        /// The path it came over.
        path: PathId,
        /// The new cumulative TSN.
        tsn: u32,
    },
}

/// How a path is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathCondition {
    /// Not yet proved to lead to the peer.
    Unconfirmed,
    /// Carries data.
    Active,
    /// Missed an answer.
    PotentiallyFailed,
    /// Missed several answers.
    Inactive,
}

impl PathCondition {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unconfirmed => "unconfirmed",
            Self::Active => "active",
            Self::PotentiallyFailed => "potentially_failed",
            Self::Inactive => "inactive",
        }
    }
}

/// What the sender knows of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PathMetrics {
    /// Congestion window, bytes.
    pub cwnd: usize,
    /// Slow start threshold, bytes; `None` before the first loss.
    pub ssthresh: Option<usize>,
    /// Bytes sent and neither acknowledged nor taken for lost.
    pub in_flight: usize,
    /// Smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// Smallest round-trip time.
    pub min_rtt: Option<Duration>,
    /// Retransmission timeout.
    pub rto: Duration,
    /// How long packets stood in queues of late.
    pub queued: Duration,
    /// Largest SCTP packet, bytes.
    pub mtu: usize,
}

/// Why a congestion window was reduced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reduction {
    /// Packets were lost.
    Loss,
    /// Packets were marked (ECN).
    Mark,
    /// The retransmission timer expired.
    Timeout,
}

impl Reduction {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Loss => "loss",
            Self::Mark => "mark",
            Self::Timeout => "timeout",
        }
    }
}

/// What a packet is for, by the plan that made it leave, and what goes along.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketContent {
    /// What it is for.
    pub purpose: Purpose,
    /// A SACK is in it.
    pub sack: bool,
    /// Redundancy may be in it.
    pub redundancy: bool,
}

/// What a packet is for: the first of what is in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// A part of the handshake, before the association is open.
    Handshake,
    /// A control chunk.
    Control,
    /// FORWARD-TSN, a heartbeat or an MTU probe.
    Announcement,
    /// A copy of a chunk that went over another path.
    Copy,
    /// Redundancy that is due.
    Redundancy,
    /// A chunk that was lost.
    Repeat,
    /// New data.
    New,
    /// A SACK that is due, alone.
    Sack,
}

impl Purpose {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
            Self::Control => "control",
            Self::Announcement => "announcement",
            Self::Copy => "copy",
            Self::Redundancy => "redundancy",
            Self::Repeat => "repeat",
            Self::New => "new",
            Self::Sack => "sack",
        }
    }
}

/// Why a data chunk leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sending {
    /// For the first time.
    New,
    /// Again, as it was lost.
    Again(Loss),
    /// As a copy, while the chunk itself is in flight over another path.
    Copy,
}

impl Sending {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Again(Loss::Reported) => "fast_retransmission",
            Self::Again(Loss::Timeout) => "timeout_retransmission",
            Self::Again(Loss::Silence) => "rerouted",
            Self::Copy => "copy",
        }
    }
}

/// What says that a chunk is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loss {
    /// Acknowledgements of others.
    Reported,
    /// The retransmission timer.
    Timeout,
    /// The path fell silent, or left.
    Silence,
}

impl Loss {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reported => "reported",
            Self::Timeout => "timeout",
            Self::Silence => "silence",
        }
    }
}

/// Why a message was abandoned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unsent {
    /// It would have come too late: the queue discarded it.
    Expired,
    /// The queue wanted its place for another one.
    Replaced,
    /// The queue had no room.
    NoRoom,
    /// What was sent, lost or left of it would come too late, or was repeated as often as it may be.
    NotWorthIt,
}

impl Unsent {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Replaced => "replaced",
            Self::NoRoom => "no_room",
            Self::NotWorthIt => "not_worth_it",
        }
    }
}
