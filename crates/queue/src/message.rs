use crate::Frame;
use braidcast_core::Instant;
use core::fmt;
use core::str::FromStr;
use core::time::Duration;

/// Importance of a message, from 0 (highest) to 7.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Priority(u8);

impl Priority {
    /// How many there are.
    pub const LEVELS: usize = 8;
    /// The most important.
    pub const FIRST: Self = Self(0);
    /// The least important.
    pub const LAST: Self = Self(Self::LEVELS as u8 - 1);

    /// The priority of this number.
    ///
    /// # Errors
    /// If it is above 7.
    pub fn new(level: u8) -> Result<Self, UnknownPriority> {
        if usize::from(level) < Self::LEVELS { Ok(Self(level)) } else { Err(UnknownPriority(level)) }
    }

    /// Its number, 0 to 7.
    pub const fn get(self) -> u8 {
        self.0
    }

    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Priority {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let level: u8 = text.parse().map_err(|_| format!("'{text}' is not a priority; use 0 (first) to 7"))?;
        Self::new(level).map_err(|error| error.to_string())
    }
}

/// A priority above 7.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnknownPriority(u8);

impl fmt::Display for UnknownPriority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not a priority; use 0 (first) to {}", self.0, Priority::LAST)
    }
}

impl core::error::Error for UnknownPriority {}

/// What the queue knows of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tag {
    /// How important it is.
    pub priority: Priority,
    /// When it becomes useless at the receiver; `None` for never. A time that has passed
    /// already is allowed: the message is treated as any that expired while it waited.
    pub expiry: Option<Instant>,
    /// Its bytes.
    pub len: usize,
    /// The frame that it belongs to; `None`: it stands alone.
    pub frame: Option<Frame>,
}

impl Tag {
    /// Share of the time that a message has within which it is to arrive for that to be easy. The
    /// rest is for losses, and for forecasts that do not hold.
    pub const EASE: f64 = 0.85;
    /// The same for a message that never expires, s.
    const SOON: f64 = 0.25;

    /// When it must be at the receiver: to be shown, where it is a frame's.
    pub fn due(&self) -> Option<Instant> {
        self.frame.and_then(|frame| frame.due).or(self.expiry)
    }

    /// Returns `true` if `bytes`, of which the last is the message's, arrive within
    /// [`EASE`](Self::EASE) of the time until it is due, or soon if it never is, where `delivered(t)`
    /// bytes arrive within t seconds.
    pub fn is_easy(&self, now: Instant, bytes: usize, delivered: &dyn Fn(f64) -> f64) -> bool {
        let within = self.due().map_or(Self::SOON, |due| due.since(now).as_secs_f64());
        delivered(Self::EASE * within) >= bytes as f64
    }

    /// Returns `true` if a message that leaves now comes too late (SBPN fig. 3.1).
    pub fn is_expired(&self, outlook: &Outlook) -> bool {
        self.expiry.is_some_and(|expiry| outlook.now + outlook.one_way_delay >= expiry)
    }
}

/// Longest time that sending is reckoned to take, s.
const LONGEST: f64 = 60.0;

/// What the transport knows about the way at this moment.
///
/// Queues keep no time of their own, so a clock that steps back makes messages look younger and does nothing else.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Outlook {
    /// The time.
    pub now: Instant,
    /// From sending to arrival: measured, or half of the round trip (SBPN §3.4). Zero while
    /// unknown, which makes late packets look good (SBPN §4.2.3).
    pub one_way_delay: Duration,
    /// Bytes in a second that congestion control allows, where it has a rate.
    pub rate: Option<f64>,
    /// Bytes that each message counts for, if congestion control with a rate counts the short as
    /// the long: TFRC lets a packet out as often as those of the mean size may go (RFC 3448 §4.6).
    pub packet_size: Option<f64>,
    /// Bytes that were taken out of the queue, or are to be sent again, and have to leave before what is taken out now.
    pub ahead: usize,
}

impl Outlook {
    /// How long `bytes` take at `share` of the rate; `None` while there is none.
    pub(crate) fn takes(&self, bytes: usize, share: f64) -> Option<Duration> {
        self.rate.map(|rate| Duration::from_secs_f64((bytes as f64 / (share * rate).max(1.0)).min(LONGEST)))
    }
}

/// How much a queue holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Messages at most, 1 or more.
    pub messages: usize,
    /// Bytes at most. A message that is larger is refused, always.
    pub bytes: usize,
}

impl Limits {
    /// No limit: memory is bounded by what the application puts in.
    pub const NONE: Self = Self { messages: usize::MAX, bytes: usize::MAX };

    /// So many messages of any length.
    pub const fn messages(messages: usize) -> Self {
        Self { messages, ..Self::NONE }
    }

    /// The same, of this number of bytes together.
    #[must_use]
    pub const fn bytes(self, bytes: usize) -> Self {
        Self { bytes, ..self }
    }
}

/// Why a message was discarded.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Why {
    /// It would have come too late, or the rest of the frame that it belongs to.
    Expired,
    /// The queue was full, and a newer or better message took its place.
    Replaced,
    /// The queue was full of what is more important.
    NoRoom,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expired => "expired",
            Self::Replaced => "replaced",
            Self::NoRoom => "no room",
        })
    }
}

/// A message that the queue abandoned.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Discard<M> {
    /// The reason.
    pub why: Why,
    /// What was known of it.
    pub tag: Tag,
    /// The message.
    pub message: M,
}

/// A message that was not taken: the application decides what becomes of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refused<M> {
    /// There is no room at the moment.
    Full(M),
    /// It is larger than the queue may ever be.
    TooLarge(M),
}

impl<M> Refused<M> {
    /// The message.
    pub fn into_message(self) -> M {
        let (Self::Full(message) | Self::TooLarge(message)) = self;
        message
    }
}
