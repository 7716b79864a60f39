//! The simulator's own agents as hosts: TCP, and datagrams without any control.

use super::frame_log::FrameLog;
use super::jitter_buffers::JitterBuffers;
use super::window::Window;
use crate::scenario::{Agent, FlowSpec};
use braidcast_core::{Datagram, Instant, Machine, Rng, Route, Transmit};
use braidcast_sim::tcp::{self, FlowId};
use braidcast_sim::traffic::{Agent as Machinery, DatagramSender, DatagramSink, FlowMeter, Traffic};
use core::time::Duration;

/// A TCP or datagram host.
#[derive(Debug)]
pub struct PlainHost {
    agent: Machinery,
    window: Window,
    /// What a sender does once it knows its route.
    plan: Option<(Traffic, Rng, Instant)>,
    connection: Option<FlowId>,
    jitter_buffers: Option<JitterBuffers>,
    /// The frames of datagrams that it sent, or that came.
    frame_log: Option<FrameLog>,
}

impl PlainHost {
    /// The sending end of a flow whose agent is TCP or UDP.
    pub fn sender(flow: &FlowSpec, duration: Duration, start: Instant, rng: &Rng) -> Self {
        let agent = match flow.agent {
            Agent::Tcp => Machinery::Tcp(tcp::Host::new(flow.tcp)),
            Agent::Udp | Agent::Sctp | Agent::Dccp | Agent::Live => Machinery::Sender(DatagramSender::default()),
        };
        let plan = Some((flow.traffic.source.clone(), rng.stream("traffic"), start));
        Self {
            agent,
            window: Window::new(flow.traffic.warmup, duration),
            plan,
            connection: None,
            jitter_buffers: None,
            frame_log: log(flow),
        }
    }

    /// The receiving end of such a flow.
    pub fn receiver(flow: &FlowSpec, duration: Duration) -> Self {
        let agent = match flow.agent {
            Agent::Tcp => Machinery::Tcp(tcp::Host::new(flow.tcp)),
            Agent::Udp | Agent::Sctp | Agent::Dccp | Agent::Live => {
                let meter = FlowMeter::default().with_deadline(flow.traffic.deadline);
                Machinery::Sink(Box::new(DatagramSink::with_meter(meter)))
            }
        };
        Self {
            agent,
            window: Window::new(flow.traffic.warmup, duration),
            plan: None,
            connection: None,
            jitter_buffers: flow.traffic.playout.map(JitterBuffers::new),
            frame_log: log(flow),
        }
    }

    /// Sets the host's routes, of which it uses the first.
    pub(super) fn open(&mut self, routes: &[Route]) {
        let (Some(&route), Some((traffic, rng, start))) = (routes.first(), self.plan.take()) else { return };
        self.window.begin(start);
        match &mut self.agent {
            Machinery::Tcp(host) => self.connection = host.connect(route, &traffic, rng, start),
            // Bulk traffic over datagrams is refused when the scenario is read.
            Machinery::Sender(sender) => drop(sender.add(route, 0, &traffic, rng, start)),
            Machinery::Sink(_) => {}
        }
    }

    /// When it counts.
    pub const fn window(&self) -> &Window {
        &self.window
    }

    /// The sending end of its TCP connection, if it has one.
    pub fn tcp_sender(&self) -> Option<&tcp::Sender> {
        self.agent.as_tcp().zip(self.connection).map(|(host, id)| host.sender(id))
    }

    /// What it measured of datagrams, if it is a sink.
    pub fn sink(&self) -> Option<&DatagramSink> {
        self.agent.as_sink()
    }

    /// Who listens to datagrams, if somebody does.
    pub const fn jitter_buffers(&self) -> Option<&JitterBuffers> {
        self.jitter_buffers.as_ref()
    }

    /// The frames of its datagrams, if the scenario asks for a log.
    pub(super) const fn frame_log(&self) -> Option<&FrameLog> {
        self.frame_log.as_ref()
    }

    /// Bits in a second that came while the window was open; none for a sender.
    pub fn goodput(&self) -> Option<f64> {
        let (from, until) = (self.window.opens()?, self.window.closes()?);
        match &self.agent {
            Machinery::Sink(sink) => Some(sink.meters().values().map(|meter| meter.series().rate(from, until)).sum()),
            Machinery::Tcp(host) if self.connection.is_none() => {
                Some(host.receivers().map(|(_, receiver)| receiver.delivered().rate(from, until)).sum())
            }
            _ => None,
        }
    }
}

/// A log of the frames of a flow of datagrams, if its scenario asks for one; TCP has no frames.
fn log(flow: &FlowSpec) -> Option<FrameLog> {
    (flow.traffic.log && flow.agent == Agent::Udp).then(|| FrameLog::new(flow.traffic.deadline))
}

impl Machine for PlainHost {
    type Event = core::convert::Infallible;

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        self.window.begin(now);
        if let Some(jitter_buffers) = self.jitter_buffers.as_mut().filter(|_| self.window.counts(now)) {
            jitter_buffers.arrive(now, datagram.payload);
        }
        if self.agent.as_sink().is_some() {
            FrameLog::note_payload(&mut self.frame_log, now, datagram.payload);
        }
        self.agent.handle_datagram(now, datagram);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.agent.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        let transmit = self.agent.poll_transmit(now, buf)?;
        FrameLog::note_payload(&mut self.frame_log, now, buf);
        Some(transmit)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.agent.poll_timeout()
    }

    fn poll_event(&mut self) -> Option<Self::Event> {
        None
    }
}
