use braidcast_core::Instant;
use braidcast_sim::traffic::{Kind, Stamp};
use core::time::Duration;
use std::collections::BTreeMap;

/// A frame: what a source hands over at one time, of one flow and kind.
pub type FrameId = (Instant, u16, Kind);

/// How many frames a log has room for; those beyond are not noted.
const MAX_FRAMES: usize = 1 << 20;

/// The packets of each frame, at one end of a flow. Beside each other, the logs of both ends tell
/// what became of every frame.
#[derive(Debug)]
pub struct FrameLog {
    deadline: Duration,
    frames: BTreeMap<FrameId, Frame>,
}

/// What was noted of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Frame {
    /// Its packets.
    pub packets: u32,
    /// Those within the deadline.
    pub on_time: u32,
    /// The sum of their delays.
    pub delay: Duration,
}

impl FrameLog {
    pub(super) const fn new(deadline: Duration) -> Self {
        Self { deadline, frames: BTreeMap::new() }
    }

    /// A packet of the frame `id` leaves the application, or arrives.
    pub(super) fn note(&mut self, now: Instant, id: FrameId) {
        if self.frames.len() == MAX_FRAMES && !self.frames.contains_key(&id) {
            return;
        }
        let (frame, delay) = (self.frames.entry(id).or_default(), now.since(id.0));
        frame.packets += 1;
        frame.on_time += u32::from(delay <= self.deadline);
        frame.delay += delay;
    }

    /// The same, if there is a log, of the frame that a payload with a stamp belongs to.
    pub(super) fn note_payload(log: &mut Option<Self>, now: Instant, payload: &[u8]) {
        if let (Some(log), Some(Stamp { flow, kind, sent, .. })) = (log, Stamp::read(payload)) {
            log.note(now, (sent, flow, kind));
        }
    }

    /// Every frame, by the time at which it left the application.
    pub fn frames(&self) -> impl Iterator<Item = (&FrameId, &Frame)> {
        self.frames.iter()
    }

    /// What was noted of this frame.
    pub fn frame(&self, id: &FrameId) -> Frame {
        self.frames.get(id).copied().unwrap_or_default()
    }
}
