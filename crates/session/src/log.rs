use braidcast_core::{Instant, PathId};
use braidcast_media::Kind;

/// What became of one unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogEntry {
    /// The unit's number, counted by the sender from 0 over all units captured; wraps.
    pub sequence: u32,
    /// What it is.
    pub kind: Kind,
    /// `true` if other frames are predicted from it.
    pub reference: bool,
    /// Its bytes.
    pub bytes: usize,
    /// Presentation time, 90 kHz.
    pub pts: Option<u64>,
    /// When its first packet was captured, by the receiver's clock as known at its arrival.
    pub captured: Instant,
    /// When its first packet was due.
    pub due: Instant,
    /// When its last message arrived.
    pub arrived: Instant,
    /// The path over which that message came.
    pub path: PathId,
    /// `true` if all of it came before it was due.
    pub on_time: bool,
    /// `true` if it was handed out: on time, or late but of use
    /// ([`KindReport::late_of_use`](crate::KindReport::late_of_use)).
    pub used: bool,
}
