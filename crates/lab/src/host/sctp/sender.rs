use super::message::Header;
use super::{Part, SctpHost};
use crate::host::frame_log::FrameLog;
use crate::host::rank::priority;
use crate::host::samples::Samples;
use crate::host::window::Window;
use crate::scenario::{FlowSpec, Traffic};
use braidcast_core::{Instant, PathId, Rng, Route};
use braidcast_sctp::{
    Association, AssociationId, Endpoint, Event, PathReport, Priority, SendError, SendOptions, Stats,
};
use braidcast_sim::traffic::{self, Emission, Kind, Source};
use core::time::Duration;

/// Most changes of paths that are kept: the first ones.
const MAX_CHANGES: usize = 1 << 16;

/// The state of a sender at one time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Snapshot {
    /// When.
    pub at: Instant,
    /// Its paths.
    pub paths: Vec<PathReport>,
    /// Its counts.
    pub stats: Stats,
}

impl Snapshot {
    fn of(now: Instant, association: &Association) -> Self {
        Self { at: now, paths: association.paths().collect(), stats: association.stats() }
    }
}

/// Source of messages.
#[derive(Debug)]
enum Supply {
    /// There is always one more.
    Bulk,
    /// At their times; the next one waits here.
    Paced(Box<dyn Source>, Option<Emission>),
}

/// Sends the messages of a source, as fast as they are taken.
#[derive(Debug)]
pub struct SctpSender {
    port: u16,
    routes: Vec<Route>,
    traffic: Traffic,
    supply: Supply,
    start: Instant,
    connecting: bool,
    message: Vec<u8>,
    /// When the source has its next message; none while it waits for room.
    next_message: Option<Instant>,
    /// When the window opens or closes next.
    next_edge: Option<Instant>,
    /// Messages taken by the association.
    pub sent: u64,
    /// Messages that it refused for good: longer than it takes, or while the queue that the scenario chose was full.
    pub refused: u64,
    /// The frames of its application, if the scenario asks for a log.
    pub frame_log: Option<FrameLog>,
    /// When the window opened.
    pub opened: Option<Snapshot>,
    /// When the window closed.
    pub closed: Option<Snapshot>,
    /// The state at regular times, if the scenario asks for it.
    pub samples: Samples<Snapshot>,
    /// Paths that went down (`false`) and came up (`true`), and when: the first 65536 changes.
    pub changes: Vec<(Instant, PathId, bool)>,
    /// When data went over to another path, as that is better: the first 65536 times.
    pub handovers: Vec<Instant>,
}

impl SctpSender {
    /// A host that sends the flow's traffic for `duration`, beginning at `start`.
    pub fn host(flow: &FlowSpec, duration: Duration, start: Instant, rng: &Rng) -> SctpHost<Self> {
        let supply = match &flow.traffic.source {
            traffic::Traffic::Bulk(None) => Supply::Bulk,
            other => {
                let mut source = other.source(rng.stream("traffic"));
                let first = source.next();
                Supply::Paced(source, first)
            }
        };
        let part = Self {
            port: flow.sctp.local_port,
            routes: Vec::new(),
            traffic: flow.traffic.clone(),
            supply,
            start,
            connecting: false,
            message: Vec::new(),
            next_message: None,
            next_edge: None,
            sent: 0,
            refused: 0,
            frame_log: flow.traffic.log.then(|| FrameLog::new(flow.traffic.deadline)),
            opened: None,
            closed: None,
            samples: Samples::new(flow.traffic.sample),
            changes: Vec::new(),
            handovers: Vec::new(),
        };
        SctpHost::new(flow, duration, rng.stream("endpoint"), part)
    }

    /// How much `count` grew while the window was open.
    pub fn grown(&self, count: impl Fn(&Stats) -> u64) -> u64 {
        let at = |snapshot: &Option<Snapshot>| snapshot.as_ref().map_or(0, |it| count(&it.stats));
        at(&self.closed).saturating_sub(at(&self.opened))
    }

    /// How much `count` grew while the window was open, path by path.
    pub fn grown_by_path(&self, count: impl Fn(&PathReport) -> u64) -> Vec<u64> {
        let before = |path: &PathReport| {
            let found = self.opened.iter().flat_map(|it| &it.paths).find(|it| it.id == path.id);
            found.map_or(0, &count)
        };
        self.closed.iter().flat_map(|it| &it.paths).map(|path| count(path).saturating_sub(before(path))).collect()
    }

    /// Hands over all that is due and taken.
    fn supply(&mut self, now: Instant, association: &mut Association, begun: Instant) {
        loop {
            let emission = match &self.supply {
                // Asking for room first spares an error for each packet.
                Supply::Bulk if association.send_room() < self.traffic.message => return,
                Supply::Bulk => Emission {
                    at: now - begun,
                    bytes: self.traffic.message,
                    kind: Kind::default(),
                    flow: 0,
                    frame: self.sent,
                },
                Supply::Paced(_, Some(next)) if begun + next.at <= now => *next,
                Supply::Paced(..) => return,
            };
            if !self.send(now, association, &emission, begun) {
                return;
            }
            if let Supply::Paced(source, next) = &mut self.supply {
                *next = source.next();
            }
        }
    }

    /// Sends the message of an emission; `false` if there is no room for it now.
    fn send(&mut self, now: Instant, association: &mut Association, emission: &Emission, begun: Instant) -> bool {
        // Nothing is ever written behind the header: what is there is zeros.
        self.message.resize(emission.bytes.max(Header::LEN), 0);
        let header = Header::of(emission, self.sent, begun);
        header.put(&mut self.message);
        let stream = if self.traffic.by_kind {
            rank(emission.kind)
        } else {
            (self.sent % u64::from(self.traffic.streams)) as u16
        };
        let how = SendOptions {
            stream,
            unordered: self.traffic.unordered,
            reliability: self.traffic.reliability(),
            priority: priority(emission.kind, self.traffic.by_kind),
            ..SendOptions::default()
        };
        match association.send(now, &self.message, how) {
            Ok(()) => self.sent += 1,
            Err(SendError::BufferFull { .. } | SendError::Closing) => return false,
            Err(SendError::QueueFull { .. }) if matches!(self.supply, Supply::Bulk) => return false,
            Err(_) => self.refused += 1,
        }
        if let Some(frame_log) = &mut self.frame_log {
            frame_log.note(now, header.frame_id());
        }
        true
    }

    fn observe(&mut self, now: Instant, association: &Association, window: &Window) {
        // An association that is over is not seen again: its figures are final.
        let over = association.is_closed();
        if self.opened.is_none() && (over || window.counts(now)) {
            self.opened = Some(Snapshot::of(now, association));
        }
        if self.closed.is_none() && (over || window.is_over(now)) {
            self.closed = Some(Snapshot::of(now, association));
        }
        self.next_edge = match (&self.opened, &self.closed) {
            (None, _) => window.opens(),
            (_, None) => window.closes(),
            _ => None,
        };
        if self.closed.is_some() {
            self.samples.stop();
        }
        self.samples.take(now, || Snapshot::of(now, association));
    }

    /// When the source next has something, if it is not waiting for room.
    fn next_emission(&self, now: Instant, begun: Instant) -> Option<Instant> {
        match &self.supply {
            Supply::Paced(_, Some(next)) => Some(begun + next.at).filter(|at| *at > now),
            _ => None,
        }
    }
}

/// Stream and rank of a kind of data if streams follow kinds: I frames, audio and what has no
/// kind first, then P and video without types, then B.
const fn rank(kind: Kind) -> u16 {
    match kind {
        Kind::P | Kind::Video => 1,
        Kind::B => 2,
        _ => 0,
    }
}

impl Part for SctpSender {
    const LISTENS: bool = false;

    fn open(&mut self, routes: &[Route]) {
        self.routes = routes.to_vec();
    }

    fn connect(&mut self, now: Instant, endpoint: &mut Endpoint) -> Option<AssociationId> {
        if self.connecting || now < self.start {
            return None;
        }
        self.connecting = true;
        endpoint.connect(now, self.port, &self.routes).ok()
    }

    fn on_event(&mut self, now: Instant, event: &Event) {
        match event {
            Event::PathSelected(..) if self.handovers.len() < MAX_CHANGES => self.handovers.push(now),
            _ if self.changes.len() >= MAX_CHANGES => {}
            Event::PathUp(id, _) => self.changes.push((now, *id, true)),
            Event::PathDown(id, _) => self.changes.push((now, *id, false)),
            _ => {}
        }
    }

    fn work(&mut self, now: Instant, association: &mut Association, window: &mut Window) {
        if window.first().is_none() {
            window.begin(now);
            for stream in 0..if self.traffic.by_kind { 3 } else { 0 } {
                association.set_priority(stream, Priority::new(stream as u8));
            }
        }
        self.observe(now, association, window);
        let begun = window.first().unwrap_or(now);
        self.supply(now, association, begun);
        self.next_message = self.next_emission(now, begun).filter(|_| !association.is_closed());
    }

    fn is_finished(&self) -> bool {
        self.closed.is_some()
    }

    fn next(&self) -> Option<Instant> {
        let start = (!self.connecting).then_some(self.start);
        Instant::first_of([start, self.samples.next(), self.next_edge, self.next_message])
    }
}
