use std::time::Duration;

/// A connection of a [`Socket`](crate::Socket); numbers count up from 1 and are not used again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnectionId(pub u64);

/// How to send a message. The default: in order on stream 0, delivered however long it takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SendOptions {
    /// Messages of a stream are in order; streams do not wait for each other. 0 to 63 by default of
    /// both ends.
    pub stream: u16,
    /// Deliver it as soon as it is complete, whatever its stream waits for.
    pub unordered: bool,
    /// How long after now it must be at the other end. What would be later, by the delay of the
    /// quickest path, is neither sent nor repeated: [`Event::Discarded`](crate::Event::Discarded).
    /// `None`: it is never too late.
    pub deadline: Option<Duration>,
    /// Maximum number of retransmissions (RFC 7496 §3.1). `None`: no limit.
    pub max_retransmissions: Option<u16>,
    /// What the other end gets to know of its kind ([`Received::ppid`]).
    pub ppid: u32,
    /// Comes back in [`Event::Discarded`](crate::Event::Discarded),
    /// [`Event::Delivered`](crate::Event::Delivered) and [`Event::Closed`](crate::Event::Closed);
    /// not sent.
    pub context: u64,
    /// Report [`Event::Delivered`](crate::Event::Delivered) when all of it is acknowledged.
    pub report: bool,
    /// How important its stream is from now on, −3 to 4; 0 is usual. What waits in a stream of a
    /// higher number goes first, so that a file does not hold up telemetry beside it.
    pub priority: i8,
}

/// What is said of a message that was received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Received {
    /// The stream it came on.
    pub stream: u16,
    /// `true` if it was sent outside the order of its stream.
    pub unordered: bool,
    /// What the sender said of its kind ([`SendOptions::ppid`]).
    pub ppid: u32,
}
