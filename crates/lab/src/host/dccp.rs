//! DCCP with traffic on top. Either end may send; the one that a flow calls its sender is the client.

use super::encoder::Encoder;
use super::frame_log::FrameLog;
use super::jitter_buffers::JitterBuffers;
use super::rank::priority;
use super::samples::Samples;
use super::window::Window;
use crate::scenario::FlowSpec;
use braidcast_core::{Datagram, Ecn, Instant, Machine, Rng, Route, Transmit};
use braidcast_dccp::{
    Admission, Call, Ccid, CcidReport, Connection, ConnectionId, Endpoint, Event, Report, SendOptions, ServiceCode,
    Verdict,
};
use braidcast_sim::traffic::{self, DatagramSender, DatagramSink, FlowMeter, HEADER_BYTES, Kind, Stamp};
use core::fmt;
use core::time::Duration;
use std::net::SocketAddr;

/// The server's DCCP port: that of voice over RTP (RFC 5762 §5.4 leaves it to signalling).
const PORT: u16 = 5004;
/// `RTPA`, voice (RFC 5762 §5.2).
const SERVICE: ServiceCode = ServiceCode(0x5254_5041);

/// Source of messages.
#[derive(Debug)]
enum Supply {
    /// Nowhere.
    Nothing,
    /// There is always one more message, of `size` bytes; or until nothing is left.
    Bulk { size: usize, left: Option<u64>, sent: u32 },
    /// At the times of a source, which waits for nobody.
    Paced(DatagramSender),
}

/// The connection at one time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DccpSample {
    /// When.
    pub at: Instant,
    /// Its state.
    pub report: Report,
}

/// An end of a DCCP connection. Calls and other flows of a source share it; each is measured by itself.
///
/// A message of a source that finds the send queue full is lost, as at a socket that does not wait.
pub struct DccpHost {
    endpoint: Endpoint,
    connection: Option<ConnectionId>,
    /// A client has a time to connect at.
    connect_at: Option<Instant>,
    route: Option<Route>,
    rng: Rng,
    source: Option<traffic::Traffic>,
    message_bytes: usize,
    lifetime: Option<Duration>,
    by_kind: bool,
    supply: Supply,
    /// What makes the frames of a source larger or smaller, if the scenario has it.
    encoder: Option<Encoder>,
    /// Which calls of a source are carried, if the scenario has some refused.
    pub admission: Option<Admission<u16>>,
    window: Window,
    next_edge: Option<Instant>,
    buf: Vec<u8>,
    /// Messages that left, measured as they did: their delay is the time that they waited.
    pub departed: DatagramSink,
    /// Messages that came, while the window was open.
    pub arrived: DatagramSink,
    /// Who listens to them, if the scenario says how.
    pub jitter_buffers: Option<JitterBuffers>,
    /// Its frames: those that its application sent, or those that came, if the scenario asks for a log.
    pub frame_log: Option<FrameLog>,
    /// Messages that found the send queue full.
    pub refused: u64,
    /// The connection when the window opened.
    pub opened: Option<DccpSample>,
    /// The connection when the window closed.
    pub closed: Option<DccpSample>,
    /// The connection at regular times, if the scenario asks for it.
    pub samples: Samples<DccpSample>,
}

/// What its congestion control allows, for who counts calls.
fn allowed(connection: &Connection, now: Instant) -> Option<(Ccid, CcidReport)> {
    let report = connection.report(now);
    Some((report.sending, report.ccid))
}

impl fmt::Debug for DccpHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DccpHost({:?}, {:?}, {} refused)", self.window, self.supply, self.refused)
    }
}

impl DccpHost {
    /// The sending end of a flow: it connects at `start`.
    pub fn sender(flow: &FlowSpec, duration: Duration, start: Instant, rng: &Rng) -> Self {
        let mut host = Self::new(flow, duration, Some(flow.traffic.source.clone()), rng);
        host.connect_at = Some(start);
        if let (Some(max_loss), traffic::Traffic::Voice(voice)) = (flow.traffic.max_loss, &flow.traffic.source) {
            let payload = voice.payload().max(HEADER_BYTES);
            host.admission = Some(Admission::new(Call { payload, rate: voice.packet.as_secs_f64().recip(), max_loss }));
        }
        if let (Some(rate), traffic::Traffic::Gop(gop)) = (&flow.traffic.encoder, &flow.traffic.source) {
            host.encoder = Some(Encoder::new(rate.clone(), gop.rate()));
        }
        host.samples = Samples::new(flow.traffic.sample);
        host
    }

    /// The receiving end, which may send something as well.
    pub fn receiver(flow: &FlowSpec, duration: Duration, rng: &Rng) -> Self {
        let mut host = Self::new(flow, duration, flow.back.clone(), rng);
        host.endpoint.listen(PORT, SERVICE).expect("port and service are good ones");
        host
    }

    fn new(flow: &FlowSpec, duration: Duration, source: Option<traffic::Traffic>, rng: &Rng) -> Self {
        let traffic = &flow.traffic;
        let sink = || DatagramSink::with_meter(FlowMeter::default().with_deadline(traffic.deadline));
        Self {
            endpoint: Endpoint::new(flow.dccp.clone(), rng.stream("endpoint")).expect("scenarios check their options"),
            connection: None,
            connect_at: None,
            route: None,
            rng: rng.stream("traffic"),
            source,
            message_bytes: traffic.message,
            lifetime: traffic.lifetime,
            by_kind: traffic.by_kind,
            supply: Supply::Nothing,
            encoder: None,
            admission: None,
            window: Window::new(traffic.warmup, duration),
            next_edge: None,
            buf: Vec::new(),
            departed: sink(),
            arrived: sink(),
            jitter_buffers: traffic.playout.map(JitterBuffers::new),
            frame_log: traffic.log.then(|| FrameLog::new(traffic.deadline)),
            refused: 0,
            opened: None,
            closed: None,
            samples: Samples::new(None),
        }
    }

    /// Sets the host's routes, of which it uses the first, and the addresses of its ends.
    pub(super) fn open(&mut self, routes: &[Route], local: &[SocketAddr]) {
        self.route = routes.first().copied();
        if let (Some(route), Some(address)) = (self.route, local.first()) {
            self.endpoint.set_local_address(route.socket, address.ip());
        }
    }

    /// When it counts.
    pub const fn window(&self) -> &Window {
        &self.window
    }

    /// Returns `true` if it has taken all its measures.
    pub(super) const fn is_finished(&self) -> bool {
        self.closed.is_some()
    }

    /// Bits in a second of messages that came while the window was open; none if nothing did.
    pub fn goodput(&self) -> Option<f64> {
        let (from, until) = (self.window.opens()?, self.window.closes()?);
        let rates = self.arrived.meters().values().map(|meter| meter.series().rate(from, until));
        (!self.arrived.meters().is_empty()).then(|| rates.sum())
    }

    fn work(&mut self, now: Instant) {
        while let Some((id, event)) = self.endpoint.poll_event() {
            match event {
                Event::Connected => self.connected(now, id),
                Event::Closed(_) if self.connection == Some(id) => self.connection = None,
                _ => {}
            }
        }
        if let (Some(_), Some(route)) = (self.connect_at.take_if(|at| *at <= now), self.route) {
            self.endpoint.connect(now, route, 0, PORT, SERVICE).expect("a host connects once, to a good port");
        }
        let Some(connection) = self.connection.and_then(|id| self.endpoint.connection_mut(id)) else { return };
        self.window.begin(now);
        edges(now, connection, &self.window, [&mut self.opened, &mut self.closed]);
        if self.closed.is_some() {
            self.samples.stop();
        }
        self.samples.take(now, || DccpSample { at: now, report: connection.report(now) });
        self.next_edge = [self.window.opens(), self.window.closes()].into_iter().flatten().find(|at| *at > now);
        while connection.recv(&mut self.buf) {
            let Some(route) = self.route else { break };
            let datagram = Datagram { route, ecn: Ecn::NotEct, payload: &self.buf };
            if matches!(self.supply, Supply::Nothing) {
                FrameLog::note_payload(&mut self.frame_log, now, &self.buf);
            }
            if self.window.counts(now) {
                if let Some(jitter_buffers) = &mut self.jitter_buffers {
                    jitter_buffers.arrive(now, &self.buf);
                }
                self.arrived.handle_datagram(now, datagram);
            } else if !self.window.is_over(now) {
                self.arrived.leave_out(datagram);
            }
        }
        self.supply_bulk(now);
        self.supply_next(now);
    }

    /// Bulk traffic fills whatever room there is.
    fn supply_bulk(&mut self, now: Instant) {
        let Some(connection) = self.connection.and_then(|id| self.endpoint.connection_mut(id)) else { return };
        let Supply::Bulk { size, left, sent } = &mut self.supply else { return };
        let how = SendOptions { deadline: self.lifetime.map(|lifetime| now + lifetime), ..SendOptions::default() };
        while left.is_none_or(|left| left > 0) {
            let bytes = left.map_or(*size, |left| left.min(*size as u64) as usize);
            Stamp { flow: 0, kind: Kind::Data, sequence: *sent, sent: now }.write(&mut self.buf, bytes);
            if connection.send(now, &self.buf, how).is_err() {
                break;
            }
            *sent = sent.wrapping_add(1);
            *left = left.map(|left| left - bytes as u64);
        }
    }

    /// The next message of a source that is due, if one is. One at a time: what congestion control
    /// lets out leaves before the next one looks for room, as at a socket.
    fn supply_next(&mut self, now: Instant) -> bool {
        let Some(connection) = self.connection.and_then(|id| self.endpoint.connection_mut(id)) else { return false };
        let Supply::Paced(source) = &mut self.supply else { return false };
        if let Some(encoder) = self.encoder.as_mut().filter(|_| source.poll_timeout().is_some_and(|at| at <= now)) {
            source.scale(encoder.scale(now, connection.report(now).ccid.allowed_rate));
        }
        if source.poll_transmit(now, &mut self.buf).is_none() {
            return false;
        }
        let stamp = Stamp::read(&self.buf);
        if let (Some(admission), Some(stamp)) = (&mut self.admission, stamp)
            && admission.take(now, stamp.flow, || allowed(connection, now)) != Verdict::Carried
        {
            return true;
        }
        FrameLog::note_payload(&mut self.frame_log, now, &self.buf);
        let kind = stamp.map_or(Kind::Data, |stamp| stamp.kind);
        let priority = priority(kind, self.by_kind);
        let deadline = self.lifetime.map(|lifetime| now + lifetime);
        let how = SendOptions { deadline, priority, ..SendOptions::default() };
        self.refused += u64::from(connection.send(now, &self.buf, how).is_err());
        true
    }

    /// The application begins as soon as there is a connection.
    fn connected(&mut self, now: Instant, id: ConnectionId) {
        self.connection = Some(id);
        let Some(connection) = self.endpoint.connection(id) else { return };
        let (room, route) = (connection.max_payload().max(HEADER_BYTES), connection.route());
        self.supply = match self.source.take() {
            None => Supply::Nothing,
            Some(traffic::Traffic::Bulk(left)) => Supply::Bulk { size: self.message_bytes.min(room), left, sent: 0 },
            Some(traffic) => {
                let mut sender = DatagramSender::with_max_payload(room);
                // Only bulk traffic is refused.
                let _ = sender.add(route, 0, &traffic, self.rng.clone(), now);
                Supply::Paced(sender)
            }
        };
    }

    /// Notes a message that leaves in the DCCP packet `packet`.
    fn note_departure(&mut self, now: Instant, route: Route, packet: &[u8]) {
        // RFC 4340 §5.1: the fifth byte says where the data begins, in words.
        let payload = packet.get(4).and_then(|&words| packet.get(usize::from(words) * 4..)).unwrap_or_default();
        if payload.is_empty() {
            return;
        }
        let datagram = Datagram { route, ecn: Ecn::NotEct, payload };
        if self.window.counts(now) {
            self.departed.handle_datagram(now, datagram);
        } else if !self.window.is_over(now) {
            self.departed.leave_out(datagram);
        }
    }
}

/// Notes the state of the connection when the window opens and closes.
fn edges(now: Instant, connection: &Connection, window: &Window, edges: [&mut Option<DccpSample>; 2]) {
    let passed = [window.opens(), window.closes()].map(|at| at.is_some_and(|at| at <= now));
    for (edge, _) in edges.into_iter().zip(passed).filter(|(edge, passed)| edge.is_none() && *passed) {
        *edge = Some(DccpSample { at: now, report: connection.report(now) });
    }
}

impl Machine for DccpHost {
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
        let transmit = loop {
            if let Some(transmit) = self.endpoint.poll_transmit(now, buf) {
                break transmit;
            }
            if !self.supply_next(now) {
                return None;
            }
        };
        self.note_departure(now, transmit.route, buf);
        self.supply_bulk(now);
        Some(transmit)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let source = if let Supply::Paced(source) = &self.supply { source.poll_timeout() } else { None };
        let own = [self.connect_at, self.next_edge, self.samples.next(), source];
        own.into_iter().flatten().chain(self.endpoint.poll_timeout()).min()
    }

    fn poll_event(&mut self) -> Option<Self::Event> {
        None
    }
}
