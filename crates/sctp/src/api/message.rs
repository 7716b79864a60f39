use braidcast_core::Instant;
use core::time::Duration;

/// How long a message is worth sending (RFC 3758, RFC 7496).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Reliability {
    /// Until it arrives.
    #[default]
    Reliable,
    /// For so long after [`send`](crate::Association::send), whatever the delay to the receiver.
    /// Later it is neither sent nor repeated (RFC 3758 §4.1, timed reliability of RFC 7496). A
    /// queue ([`Options::queue`](crate::Options)) takes the end of it for the
    /// [`deadline`](SendOptions::deadline).
    Lifetime(Duration),
    /// Repeated at most so often (RFC 7496 §3.1).
    Retransmissions(u16),
    /// Until it arrives, unless a more important message finds the send buffer full while nothing
    /// of this one was sent: then it is abandoned, the least important first and of those the
    /// oldest (RFC 7496 §3.2). 0 is the most important; reliable messages are more important than
    /// all. A queue ([`Options::queue`](crate::Options)) makes room by its own rule, and takes it
    /// for reliable.
    Priority(u32),
}

/// A rule by which messages are abandoned (RFC 7496 §3).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum AbandonmentPolicy {
    /// Their time is over: [`Reliability::Lifetime`], or a deadline.
    Timed,
    /// [`Reliability::Retransmissions`].
    Retransmissions,
    /// [`Reliability::Priority`].
    Priority,
}

impl SendOptions {
    /// By which rule the message may be abandoned; `None`: by none.
    pub(crate) const fn policy(&self) -> Option<AbandonmentPolicy> {
        match self.reliability {
            Reliability::Lifetime(_) => Some(AbandonmentPolicy::Timed),
            Reliability::Retransmissions(_) => Some(AbandonmentPolicy::Retransmissions),
            Reliability::Priority(_) => Some(AbandonmentPolicy::Priority),
            Reliability::Reliable if self.deadline.is_some() => Some(AbandonmentPolicy::Timed),
            Reliability::Reliable => None,
        }
    }
}

/// How to send a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SendOptions {
    /// The stream, below the number that was negotiated.
    pub stream: u16,
    /// Payload protocol identifier, for the receiving application.
    pub ppid: u32,
    /// Deliver as soon as complete, without regard to the order of the stream.
    pub unordered: bool,
    /// When it must be at the receiver; `None`: it is never too late. What would arrive later, by
    /// the delay of the quickest path, is neither sent nor repeated. A queue
    /// ([`Options::queue`](crate::Options)) may let go what became too late while it waited: that
    /// is sent, and not repeated. Default `None`.
    pub deadline: Option<Instant>,
    /// How long it is worth sending besides.
    pub reliability: Reliability,
    /// Comes back in [`Event::Abandoned`](crate::Event::Abandoned); not sent.
    pub context: u64,
    /// How important it is to a queue that heeds it ([`Options::queue`](crate::Options)). Default
    /// the most important.
    pub priority: braidcast_queue::Priority,
    /// The frame of media that it belongs to, so that a queue that heeds frames discards what could
    /// not be shown ([`Options::queue`](crate::Options)). Default `None`: it stands alone.
    pub frame: Option<braidcast_queue::Frame>,
}

/// Rank of a stream: all that waits in streams of a lower number goes first (PRCMT §4.4). 0 to 7,
/// default 4.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Priority(u8);

impl Priority {
    /// How many ranks there are.
    pub const COUNT: usize = 8;

    /// The rank `rank`, or the last one if it is above 7.
    pub const fn new(rank: u8) -> Self {
        Self(if rank < Self::COUNT as u8 { rank } else { Self::COUNT as u8 - 1 })
    }

    /// The rank as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl Default for Priority {
    fn default() -> Self {
        Self(4)
    }
}
