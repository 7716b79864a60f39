use super::message::Header;
use super::{Part, SctpHost};
use crate::host::frame_log::FrameLog;
use crate::host::window::Window;
use crate::scenario::FlowSpec;
use braidcast_core::{Instant, PathId, Rng, Route};
use braidcast_sctp::{Association, AssociationId, Endpoint, Event, PathReport, Received, Stats};
use braidcast_sim::traffic::FlowMeter;
use core::time::Duration;

/// Most messages that are noted one by one: about 100 MB.
const MAX_LOG: usize = 1 << 21;

/// A message that came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// What it was.
    pub header: Header,
    /// When the last of it came; since then it waited for its turn.
    pub whole: Instant,
    /// When it was handed over.
    pub at: Instant,
    /// The path that the last of it came over.
    pub path: PathId,
    /// Its bytes.
    pub bytes: usize,
}

/// What a receiver handed to its application while its window was open.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Delivered {
    /// Bytes of messages.
    pub bytes: u64,
    /// Seconds that the window was open.
    pub seconds: f64,
    /// Numbers, delays, jitter and losses of the messages.
    pub meter: FlowMeter,
    /// Each message, if the scenario asks for it: the first 2 million.
    pub log: Vec<Arrival>,
    /// Messages beyond those.
    pub unlogged: u64,
}

impl Delivered {
    /// Bits in a second of what was handed over.
    pub fn goodput(&self) -> f64 {
        self.bytes as f64 * 8.0 / self.seconds
    }
}

/// Takes messages at once and counts them.
#[derive(Debug, Default)]
pub struct SctpReceiver {
    buf: Vec<u8>,
    keep_log: bool,
    next_edge: Option<Instant>,
    /// What it took.
    pub delivered: Delivered,
    /// The frames of all that came, if the scenario asks for a log.
    pub frame_log: Option<FrameLog>,
    /// The paths when the window opened.
    pub opened: Vec<PathReport>,
    /// The paths when the window closed.
    pub closed: Vec<PathReport>,
    /// The counts when the window opened and when it closed.
    stats: [Stats; 2],
}

impl SctpReceiver {
    /// A host that counts the flow's messages for `duration`.
    pub fn host(flow: &FlowSpec, duration: Duration, rng: &Rng) -> SctpHost<Self> {
        let mut part = Self { keep_log: flow.traffic.log, ..Self::default() };
        part.frame_log = flow.traffic.log.then(|| FrameLog::new(flow.traffic.deadline));
        part.delivered.seconds = duration.as_secs_f64();
        part.delivered.meter = FlowMeter::default().with_deadline(flow.traffic.deadline);
        SctpHost::new(flow, duration, rng.stream("endpoint"), part)
    }

    /// Bits in a second of SCTP packets that arrived while the window was open: the papers' throughput.
    pub fn throughput(&self) -> f64 {
        self.rate(|path| path.received_bytes)
    }

    /// Bits in a second of SCTP packets that it sent meanwhile, SACKs above all.
    pub fn return_traffic(&self) -> f64 {
        self.rate(|path| path.sent_bytes)
    }

    /// Bits in a second of what `bytes` counts, over all paths.
    fn rate(&self, bytes: impl Fn(&PathReport) -> u64) -> f64 {
        let all = |paths: &[PathReport]| paths.iter().map(&bytes).sum::<u64>();
        all(&self.closed).saturating_sub(all(&self.opened)) as f64 * 8.0 / self.delivered.seconds
    }

    /// How much `count` grew while the window was open.
    pub fn grown(&self, count: impl Fn(&Stats) -> u64) -> u64 {
        count(&self.stats[1]).saturating_sub(count(&self.stats[0]))
    }

    fn count(&mut self, now: Instant, received: Received) {
        let Some(header) = Header::get(&self.buf) else { return };
        let (delivered, bytes) = (&mut self.delivered, self.buf.len());
        delivered.bytes += bytes as u64;
        delivered.meter.record(now, header.sequence, header.sent, bytes);
        if self.keep_log && delivered.log.len() < MAX_LOG {
            delivered.log.push(Arrival { header, whole: received.whole, at: now, path: received.path, bytes });
        } else if self.keep_log {
            delivered.unlogged += 1;
        }
    }
}

impl Part for SctpReceiver {
    const LISTENS: bool = true;

    fn open(&mut self, _: &[Route]) {}

    fn connect(&mut self, _: Instant, _: &mut Endpoint) -> Option<AssociationId> {
        None
    }

    fn on_event(&mut self, _: Instant, _: &Event) {}

    fn work(&mut self, now: Instant, association: &mut Association, window: &mut Window) {
        // An association that is over is not seen again: its figures are final.
        let over = association.is_closed();
        if self.closed.is_empty() && (over || window.is_over(now)) {
            self.closed = association.paths().collect();
            self.stats[1] = association.stats();
        }
        while let Some(received) = association.recv(now, &mut self.buf) {
            window.begin(now);
            if let (Some(frame_log), Some(header)) = (&mut self.frame_log, Header::get(&self.buf)) {
                frame_log.note(now, header.frame_id());
            }
            if window.counts(now) {
                self.count(now, received);
            }
        }
        if self.opened.is_empty() && (over || window.counts(now)) {
            self.opened = association.paths().collect();
            self.stats[0] = association.stats();
        }
        self.next_edge = if self.opened.is_empty() { window.opens() } else { window.closes() };
        self.next_edge = self.next_edge.filter(|at| *at > now && !over);
    }

    fn is_finished(&self) -> bool {
        !self.closed.is_empty()
    }

    fn next(&self) -> Option<Instant> {
        self.next_edge
    }
}
