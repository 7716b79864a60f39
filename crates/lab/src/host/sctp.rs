//! SCTP with traffic on top: a sender that keeps its association supplied, a receiver that takes everything at once.

use super::window::Window;
use crate::scenario::{FlowSpec, Traffic};
use braidcast_core::{Datagram, Instant, Machine, Rng, Route, Transmit};
use braidcast_sctp::{Association, AssociationId, Endpoint, Event, PathReport, Reliability, SendOptions, Stats};
use core::fmt;
use core::time::Duration;

/// An SCTP endpoint and the part of it that sends or receives.
pub struct SctpHost<P> {
    endpoint: Endpoint,
    association: Option<AssociationId>,
    window: Window,
    part: P,
}

impl<P: fmt::Debug> fmt::Debug for SctpHost<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SctpHost({:?}, {:?})", self.window, self.part)
    }
}

/// What a part of a host does whenever something may have changed.
pub trait Part {
    /// Whether it waits for the other end to call.
    const LISTENS: bool;

    /// Its routes.
    fn open(&mut self, routes: &[Route]);

    /// Begins the association if it is time to.
    fn connect(&mut self, now: Instant, endpoint: &mut Endpoint) -> Option<AssociationId>;

    /// The association can be used.
    fn work(&mut self, now: Instant, association: &mut Association, window: &mut Window);

    /// When it wants to work next.
    fn next(&self) -> Option<Instant>;
}

impl<P: Part> SctpHost<P> {
    fn new(flow: &FlowSpec, duration: Duration, rng: Rng, part: P) -> Self {
        let mut endpoint = Endpoint::new(flow.sctp.clone(), rng);
        if P::LISTENS {
            endpoint.listen();
        }
        Self { endpoint, association: None, window: Window::new(flow.traffic.warmup, duration), part }
    }

    /// Tells the host its routes.
    pub(super) fn open(&mut self, routes: &[Route]) {
        self.part.open(routes);
    }

    /// When it counts.
    pub const fn window(&self) -> &Window {
        &self.window
    }

    /// What it does.
    pub const fn part(&self) -> &P {
        &self.part
    }

    fn work(&mut self, now: Instant) {
        while let Some((id, event)) = self.endpoint.poll_event() {
            if event == Event::Connected {
                self.association = Some(id);
            }
        }
        if self.association.is_none() {
            // A connection that was begun counts from its `Connected` on.
            let _ = self.part.connect(now, &mut self.endpoint);
        } else if let Some(association) = self.association.and_then(|id| self.endpoint.association_mut(id)) {
            self.part.work(now, association, &mut self.window);
        }
    }
}

impl<P: Part> Machine for SctpHost<P> {
    type Event = core::convert::Infallible;

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        self.endpoint.handle_datagram(now, datagram);
        self.work(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.endpoint.poll_timeout().is_some_and(|at| at <= now) {
            self.endpoint.handle_timeout(now);
        }
        self.work(now);
    }

    fn poll_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        self.endpoint.poll_transmit(now, buf)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        [self.endpoint.poll_timeout(), self.part.next()].into_iter().flatten().min()
    }

    fn poll_event(&mut self) -> Option<Self::Event> {
        None
    }
}

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

/// Sends messages as fast as they are taken.
#[derive(Debug)]
pub struct SctpSender {
    port: u16,
    routes: Vec<Route>,
    traffic: Traffic,
    start: Instant,
    connecting: bool,
    message: Vec<u8>,
    sent: u64,
    next_sample: Option<Instant>,
    /// When the window opens or closes next.
    next_edge: Option<Instant>,
    /// When the window opened.
    pub opened: Option<Snapshot>,
    /// When the window closed.
    pub closed: Option<Snapshot>,
    /// The state at regular times, if the scenario asks for it.
    pub samples: Vec<Snapshot>,
}

impl SctpSender {
    /// A host that sends the flow's traffic for `duration`, beginning at `start`.
    pub fn host(flow: &FlowSpec, duration: Duration, start: Instant, rng: Rng) -> SctpHost<Self> {
        let part = Self {
            port: flow.sctp.local_port,
            routes: Vec::new(),
            traffic: flow.traffic.clone(),
            start,
            connecting: false,
            message: vec![0; flow.traffic.message],
            sent: 0,
            next_sample: None,
            next_edge: None,
            opened: None,
            closed: None,
            samples: Vec::new(),
        };
        SctpHost::new(flow, duration, rng, part)
    }

    /// How much `count` grew while the window was open, over all paths.
    pub fn grown(&self, count: impl Fn(&PathReport) -> u64) -> u64 {
        let sum = |snapshot: &Option<Snapshot>| snapshot.iter().flat_map(|it| &it.paths).map(&count).sum::<u64>();
        sum(&self.closed).saturating_sub(sum(&self.opened))
    }

    /// Sends as much as there is room for.
    fn supply(&mut self, now: Instant, association: &mut Association) {
        let lifetime = self.traffic.lifetime;
        while association.send_room() >= self.message.len() {
            self.message[..8].copy_from_slice(&self.sent.to_be_bytes());
            self.message[8..16].copy_from_slice(&now.as_nanos().to_be_bytes());
            let how = SendOptions {
                stream: (self.sent % u64::from(self.traffic.streams)) as u16,
                unordered: self.traffic.unordered,
                reliability: lifetime.map_or(Reliability::Reliable, Reliability::Lifetime),
                ..SendOptions::default()
            };
            if association.send(now, &self.message, how).is_err() {
                break;
            }
            self.sent += 1;
        }
    }

    fn observe(&mut self, now: Instant, association: &Association, window: &Window) {
        if self.opened.is_none() && window.counts(now) {
            self.opened = Some(Snapshot::of(now, association));
        }
        if self.closed.is_none() && window.is_over(now) {
            self.closed = Some(Snapshot::of(now, association));
        }
        self.next_edge = match (&self.opened, &self.closed) {
            (None, _) => window.opens(),
            (_, None) => window.closes(),
            _ => None,
        };
        if let Some(interval) = self.traffic.sample
            && self.next_sample.is_none_or(|at| at <= now)
        {
            self.samples.push(Snapshot::of(now, association));
            self.next_sample = self.closed.is_none().then(|| now + interval);
        }
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

    fn work(&mut self, now: Instant, association: &mut Association, window: &mut Window) {
        window.begin(now);
        self.observe(now, association, window);
        self.supply(now, association);
    }

    fn next(&self) -> Option<Instant> {
        let start = (!self.connecting).then_some(self.start);
        [start, self.next_sample, self.next_edge].into_iter().flatten().min()
    }
}

/// What a receiver handed to its application while its window was open.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Delivered {
    /// Messages.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Sum of the times from `send` at the one end to `recv` at the other, seconds.
    pub delay_sum: f64,
    /// The longest of them, seconds.
    pub delay_max: f64,
    /// Seconds that the window was open.
    pub seconds: f64,
}

impl Delivered {
    /// Bits in a second of what was handed over.
    pub fn goodput(&self) -> f64 {
        self.bytes as f64 * 8.0 / self.seconds
    }

    /// Mean time from `send` to `recv`, seconds.
    pub fn delay_mean(&self) -> f64 {
        if self.messages == 0 { 0.0 } else { self.delay_sum / self.messages as f64 }
    }
}

/// Takes messages and counts them.
#[derive(Debug, Default)]
pub struct SctpReceiver {
    buf: Vec<u8>,
    /// What it took.
    pub delivered: Delivered,
}

impl SctpReceiver {
    /// A host that counts the flow's messages for `duration`.
    pub fn host(flow: &FlowSpec, duration: Duration, rng: Rng) -> SctpHost<Self> {
        let mut part = Self::default();
        part.delivered.seconds = duration.as_secs_f64();
        SctpHost::new(flow, duration, rng, part)
    }
}

impl Part for SctpReceiver {
    const LISTENS: bool = true;

    fn open(&mut self, _: &[Route]) {}

    fn connect(&mut self, _: Instant, _: &mut Endpoint) -> Option<AssociationId> {
        None
    }

    fn work(&mut self, now: Instant, association: &mut Association, window: &mut Window) {
        while association.recv(now, &mut self.buf).is_some() {
            window.begin(now);
            if !window.counts(now) {
                continue;
            }
            let sent = self.buf.get(8..16).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_be_bytes);
            let delay = (now - Instant::from_nanos(sent)).as_secs_f64();
            self.delivered.messages += 1;
            self.delivered.bytes += self.buf.len() as u64;
            self.delivered.delay_sum += delay;
            self.delivered.delay_max = self.delivered.delay_max.max(delay);
        }
    }

    fn next(&self) -> Option<Instant> {
        None
    }
}
