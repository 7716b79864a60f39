use braidcast_core::Instant;
use core::time::Duration;

/// What a decision may know: the paths, and the data that waits for one.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The time, to which deadlines compare.
    pub now: Instant,
    /// The paths; a path keeps its index as long as it lives, and a place that no path has is not ready.
    pub paths: &'a [PathView],
    /// The data that waits.
    pub waiting: Waiting,
}

/// What a decision may know about one path.
#[derive(Clone, Copy, Debug, Default)]
pub struct PathView {
    /// The path can carry new data now: alive, with room in its congestion window, not held back by pacing.
    pub ready: bool,
    /// Data may go over the path at all: it is among the best that there are, be it full or not.
    pub active: bool,
    /// Congestion window in bytes.
    pub cwnd: usize,
    /// Slow start threshold in bytes; `usize::MAX` before the first loss.
    pub ssthresh: usize,
    /// Bytes sent and neither acknowledged nor taken for lost.
    pub in_flight: usize,
    /// Bytes in a second that the path carries: measured, or the window over the round trip. `None` before it is known.
    pub rate: Option<f64>,
    /// Share of the packets that are lost, of late: 0 to 1.
    pub loss_rate: f32,
    /// For how long it has acknowledged nothing though it should have. Zero while nothing is out.
    pub silent: Duration,
    /// Smoothed round-trip time; `None` before the first measurement.
    pub srtt: Option<Duration>,
    /// From here to the receiver: measured one way where both ends can, else half of the round
    /// trip; `None` before it is known.
    pub forward_delay: Option<Delay>,
    /// From the receiver back to here; `None` before it is known.
    pub return_delay: Option<Delay>,
    /// How long after it was sent a packet that is lost is known to be, where acknowledgements come
    /// back over the quickest path; `None` where they do not, or before it is known.
    pub known_lost: Option<Duration>,
}

/// A delay that was measured several times.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Delay {
    /// Its smoothed mean.
    pub mean: Duration,
    /// The smoothed distance of a measurement from the mean.
    pub deviation: Duration,
}

impl Delay {
    /// One direction of a round trip that is only measured as a whole: half of its mean, and all of
    /// its deviation, since it may come from either direction.
    pub fn half_of(srtt: Duration, rttvar: Duration) -> Self {
        Self { mean: srtt / 2, deviation: rttvar }
    }
}

/// What a decision may know about the data that waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Waiting {
    /// Bytes that wait, the head included.
    pub bytes: usize,
    /// Bytes of the first message that waits, or what is left of it.
    pub head: usize,
    /// When the first that waits becomes useless to the receiver; `None` for never.
    pub deadline: Option<Instant>,
    /// When it is to be there: a frame that others need is of use for a moment longer than it is shown on time.
    /// `None`: at its deadline.
    pub due: Option<Instant>,
    /// How important the first that waits is, as the send queues number it: 0 is the most important.
    pub priority: u8,
    /// What is to go was lost before: all that came after it may wait for it at the receiver.
    pub again: bool,
    /// Bytes that the receiver has room for beside what is in flight.
    pub peer_room: usize,
}
