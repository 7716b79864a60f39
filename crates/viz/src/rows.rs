//! What the page shows, a row for each thing.

/// No path, no frame.
pub(crate) const NONE: u32 = u32::MAX;

/// What a packet, or a chunk of it, is. The numbers are the page's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum What {
    New = 0,
    Repeat = 1,
    Copy = 2,
    Redundancy = 3,
    Sack = 4,
    Forward = 5,
    /// A packet without data.
    Control = 6,
}

/// What became of it. The numbers are the page's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum PacketOutcome {
    Unknown = 0,
    /// The other end says that it came, or acknowledged it.
    Arrived = 1,
    Lost = 2,
    /// It was lost, and redundancy made up for it.
    Recovered = 3,
    /// It came, and had come before.
    Duplicate = 4,
}

/// A chunk or packet in flight over one path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    /// Milliseconds; `NaN`: not known.
    pub(crate) sent: f64,
    pub(crate) arrived: f64,
    /// One of the two times is reckoned, not told.
    pub(crate) reckoned: bool,
    pub(crate) path: u32,
    /// The end that sent it.
    pub(crate) end: usize,
    pub(crate) number: f64,
    pub(crate) bytes: u32,
    pub(crate) what: What,
    pub(crate) outcome: PacketOutcome,
    /// The stream that its data is of.
    pub(crate) stream: u32,
    /// The association that it is of.
    pub(crate) flow: u32,
    /// The row of its frame.
    pub(crate) frame: u32,
    /// The number of its message, until frames are known.
    pub(crate) message: u64,
}

impl Sent {
    /// Something that `end` sent at `at`, of which no more is known.
    pub(crate) const fn new(at: f64, end: usize, path: u32, what: What, bytes: u32) -> Self {
        Self {
            sent: at,
            arrived: f64::NAN,
            reckoned: false,
            path,
            end,
            number: f64::NAN,
            bytes,
            what,
            outcome: PacketOutcome::Unknown,
            stream: NONE,
            flow: 0,
            frame: NONE,
            message: u64::MAX,
        }
    }
}

/// What is known of a path at a time; `NaN` what is not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub(crate) at: f64,
    pub(crate) end: usize,
    pub(crate) path: u32,
    pub(crate) cwnd: f64,
    pub(crate) in_flight: f64,
    pub(crate) srtt: f64,
    pub(crate) queued: f64,
}

/// Something that is marked in a view. The numbers are the page's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Sign {
    Unconfirmed = 0,
    Active = 1,
    PotentiallyFailed = 2,
    Inactive = 3,
    Left = 4,
    ReducedForLoss = 5,
    ReducedForMark = 6,
    ReducedForTimeout = 7,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    pub(crate) at: f64,
    pub(crate) end: usize,
    pub(crate) path: u32,
    pub(crate) sign: Sign,
}

/// A frame. `NaN` if a time is not known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub(crate) number: u32,
    pub(crate) kind: u8,
    pub(crate) reference: bool,
    pub(crate) bytes: u32,
    pub(crate) captured: f64,
    pub(crate) deadline: f64,
    pub(crate) arrived: f64,
    /// When it was abandoned.
    pub(crate) given_up: f64,
    pub(crate) outcome: Outcome,
    pub(crate) why: u8,
}

/// What became of a frame. The numbers are the page's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Outcome {
    Unknown = 0,
    OnTime = 1,
    Late = 2,
    /// Nothing of it was sent.
    Unsent = 3,
    /// Abandoned after a part of it was sent.
    GivenUp = 4,
    /// It did not come, and was not abandoned.
    Missing = 5,
}
