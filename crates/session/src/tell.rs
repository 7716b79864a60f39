//! What is told of frames ([`braidcast_core::events`]).

use crate::identity::Identity;
use crate::log::LogEntry;
use braidcast_core::events::{FrameKind, MediaEvent};
use braidcast_media::{Kind, Unit};
use core::time::Duration;

/// The number by which events name a stream: the same at both ends.
pub(crate) fn number(identity: &Identity) -> u32 {
    let [a, b, c, d, ..] = identity.0;
    u32::from_be_bytes([a, b, c, d])
}

/// `unit` was handed to the transport in `parts` messages, to be shown `latency` after its capture.
pub(crate) fn captured(sequence: u64, unit: &Unit, parts: usize, latency: Option<Duration>) -> MediaEvent {
    MediaEvent::FrameCaptured {
        frame: sequence as u32,
        kind: kind(unit.kind),
        reference: unit.reference,
        bytes: unit.bytes.len() as u32,
        parts: u16::try_from(parts).unwrap_or(u16::MAX),
        captured: unit.first_captured,
        deadline: latency.map(|latency| unit.first_captured + latency),
        pts: unit.pts,
    }
}

/// A unit that the transport did not take.
pub(crate) fn unsent(sequence: u64, of: Kind) -> MediaEvent {
    MediaEvent::FrameUnsent { frame: sequence as u32, kind: kind(of) }
}

/// All of a unit is there.
pub(crate) fn arrived(entry: &LogEntry) -> MediaEvent {
    let &LogEntry { sequence, reference, bytes, pts, captured, due, path, on_time, .. } = entry;
    let (kind, bytes) = (kind(entry.kind), bytes as u32);
    MediaEvent::FrameArrived { frame: sequence, kind, reference, bytes, path, captured, due, on_time, pts }
}

fn kind(kind: Kind) -> FrameKind {
    FrameKind::of(kind.index())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_the_same_names_in_events() {
        let names = |kinds: &[Kind]| kinds.iter().map(|&it| (it.name(), kind(it).name())).collect::<Vec<_>>();
        assert!(names(&Kind::ALL).iter().all(|(ours, told)| ours == told));
        assert_eq!(Kind::ALL.len(), FrameKind::ALL.len());
    }
}
