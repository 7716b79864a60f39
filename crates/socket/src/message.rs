use braidcast_sctp::Timing;
use std::time::Duration;

/// A connection of a [`Socket`](crate::Socket); numbers count up from 1 and are not used again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnectionId(pub u64);

/// How to send a message. The default: in order on stream 0, delivered however long it takes.
///
/// ```
/// use braidcast_socket::SendOptions;
/// use std::time::Duration;
///
/// let reading = SendOptions::new().stream(1).unordered().deadline(Duration::from_millis(200));
/// assert_eq!(reading.report().context(7).context, 7);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct SendOptions {
    /// Messages of a stream are in order; streams do not wait for each other. 0 to 63 by default of
    /// both ends.
    pub stream: u16,
    /// Deliver it as soon as it is complete, whatever its stream waits for.
    pub unordered: bool,
    /// How long after now it must be at the other end. What would be later, by the delay of the
    /// quickest path, is neither sent nor repeated: [`Event::Discarded`](crate::Event::Discarded).
    /// What has left may still come later if the delay grows meanwhile: [`Received::is_late`].
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

impl SendOptions {
    /// The default.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same on this [`stream`](Self::stream).
    #[must_use]
    pub const fn stream(mut self, stream: u16) -> Self {
        self.stream = stream;
        self
    }

    /// The same, outside the order of its stream.
    #[must_use]
    pub const fn unordered(mut self) -> Self {
        self.unordered = true;
        self
    }

    /// The same, worth nothing after this time ([`deadline`](Self::deadline)).
    #[must_use]
    pub const fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// The same, repeated so often at most ([`max_retransmissions`](Self::max_retransmissions)).
    #[must_use]
    pub const fn max_retransmissions(mut self, most: u16) -> Self {
        self.max_retransmissions = Some(most);
        self
    }

    /// The same of this kind ([`ppid`](Self::ppid)).
    #[must_use]
    pub const fn ppid(mut self, ppid: u32) -> Self {
        self.ppid = ppid;
        self
    }

    /// The same, called so in events ([`context`](Self::context)).
    #[must_use]
    pub const fn context(mut self, context: u64) -> Self {
        self.context = context;
        self
    }

    /// The same, whose delivery is [reported](Self::report).
    #[must_use]
    pub const fn report(mut self) -> Self {
        self.report = true;
        self
    }

    /// The same on a stream of this [`priority`](Self::priority).
    #[must_use]
    pub const fn priority(mut self, priority: i8) -> Self {
        self.priority = priority;
        self
    }
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
    /// How old it is, and if it came by its deadline. `None`: it has none, or one more than half an hour
    /// ahead; the other end is older than this and does not say it; or the connection is so young that no
    /// round trip was measured.
    pub timing: Option<Timing>,
}

impl Received {
    /// Returns `true` if it is known to have come after its [deadline](SendOptions::deadline): the
    /// delay grew while it was under way. It is handed out all the same; a program to which it is
    /// worth nothing passes over it.
    #[must_use]
    pub const fn is_late(&self) -> bool {
        matches!(&self.timing, Some(timing) if timing.is_late())
    }
}
