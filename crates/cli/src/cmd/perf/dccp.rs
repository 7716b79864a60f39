//! DCCP as a measurement sees it. What a client's messages are for is said once, by the service code.

use super::protocol::{ConnectionEvent, Ending, PathState, Protocol, Purpose, State};
use crate::args::PerfDccpArgs;
use crate::args::dccp::Congestion;
use crate::cmd::dccp::{ConnectionLine, MAX_PACKET};
use crate::cmd::probe::Probe;
use crate::cmd::security::Security;
use crate::failure::{Failure, Outcome};
use crate::out::units;
use braidcast_core::events::Tracer;
use braidcast_core::{Datagram, Heard, Instant, Machine, NotJoined, Rng, Route, Transmit};
use braidcast_dccp::{CloseReason, ConnectionId, Endpoint, Event, Limits, Options, SendOptions, ServiceCode};
use braidcast_session::SecurityReport;
use std::time::Duration;

/// Messages to be counted: SC:BRPB.
const BULK: ServiceCode = ServiceCode(u32::from_be_bytes(*b"BRPB"));
/// Messages that carry the time, and the answers: SC:BRPT.
const TIMED: ServiceCode = ServiceCode(u32::from_be_bytes(*b"BRPT"));
/// Messages that may wait: more than one wake of the driver sends, so that congestion control is what holds them up.
const SEND_QUEUE: Limits = Limits::messages(256);

/// Time after which a server that does not answer is not waited for any more. As long as SCTP, which
/// sends INIT again five times, has it.
const ANSWER: Duration = Duration::from_secs(20);
/// What arrives in one wake of the driver, and as much again.
const RECEIVE_BUFFER: usize = 4 << 20;

/// An endpoint and what is noted about its connections.
pub(super) struct Dccp {
    endpoint: Endpoint,
    probe: Option<Probe>,
}

impl Dccp {
    /// An end that uses `choice`, or a server that likes it best.
    pub(super) fn new(
        args: &PerfDccpArgs,
        choice: Congestion,
        server: bool,
        rng: Rng,
        (security, events): (&Security, Tracer),
    ) -> Outcome<Self> {
        let probe = args.probe.as_deref().map(Probe::create).transpose()?;
        let options = Options {
            send_queue: SEND_QUEUE,
            max_packet: MAX_PACKET,
            receive_buffer: RECEIVE_BUFFER,
            security: security.options.clone(),
            request_timeout: ANSWER,
            events: probe.iter().fold(events, |events, probe| events.with(probe.sink())),
            ..if server { choice.preferred() } else { choice.options() }
        };
        Ok(Self { endpoint: Endpoint::new(options, rng)?, probe })
    }

    /// Says which address a socket of native IP has.
    pub(super) fn set_local_address(&mut self, socket: braidcast_core::SocketId, address: std::net::IpAddr) {
        self.endpoint.set_local_address(socket, address);
    }

    /// Accepts measurements at this port.
    pub(super) fn listen(&mut self, port: u16) -> Outcome {
        [BULK, TIMED]
            .into_iter()
            .try_for_each(|service| self.endpoint.listen(port, service))
            .map_err(|e| Failure::new(format!("cannot listen at DCCP port {port}: {e}"), "choose another LISTEN"))
    }

    /// Begins a measurement with messages of `size` bytes.
    pub(super) fn connect(
        &mut self,
        now: Instant,
        route: Route,
        port: u16,
        purpose: Purpose,
        size: usize,
    ) -> Outcome<ConnectionId> {
        let service = if purpose == Purpose::Bulk { BULK } else { TIMED };
        let id = self
            .endpoint
            .connect(now, route, 0, port, service)
            .map_err(|e| Failure::new(format!("cannot connect: {e}"), "try again"))?;
        let limit = self.endpoint.connection(id).map_or(0, braidcast_dccp::Connection::max_payload);
        if size > limit {
            return Err(Failure::usage(
                format!("a DCCP packet carries {limit} bytes, not {size}: DCCP does not fragment"),
                format!("give --size {limit} or less"),
            ));
        }
        Ok(id)
    }
}

impl Machine for Dccp {
    type Event = (ConnectionId, Event);

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        self.endpoint.handle_datagram(now, datagram);
    }

    fn heard(&self) -> Heard {
        self.endpoint.heard()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        self.endpoint.poll_transmit(now, buf)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.endpoint.poll_timeout()
    }

    fn poll_event(&mut self) -> Option<Self::Event> {
        self.endpoint.poll_event()
    }
}

impl Protocol for Dccp {
    type Id = ConnectionId;

    fn poll(&mut self) -> Option<(ConnectionId, ConnectionEvent)> {
        let (id, event) = self.poll_event()?;
        let event = match event {
            Event::Connected => ConnectionEvent::Connected,
            Event::Readable => ConnectionEvent::Readable,
            Event::Closed(reason) => {
                let orderly = reason == CloseReason::Closed;
                let insecure = reason.insecure().cloned();
                ConnectionEvent::Closed(Ending { orderly, insecure, reason: reason.to_string() })
            }
            _ => ConnectionEvent::Other,
        };
        Some((id, event))
    }

    fn poll_turned_away(&mut self) -> Option<String> {
        self.endpoint.poll_turned_away().map(|(_, reason)| reason.to_string())
    }

    fn send(&mut self, now: Instant, id: ConnectionId, payload: &[u8], _purpose: Purpose) -> bool {
        let connection = self.endpoint.connection_mut(id);
        connection.is_some_and(|connection| connection.send(now, payload, SendOptions::default()).is_ok())
    }

    fn echo(&mut self, now: Instant, id: ConnectionId, stamp: &[u8]) {
        let _closing = self.send(now, id, stamp, Purpose::Timed);
    }

    fn recv(&mut self, _now: Instant, id: ConnectionId, out: &mut Vec<u8>) -> Option<Purpose> {
        let connection = self.endpoint.connection_mut(id)?;
        let purpose = if connection.service() == TIMED { Purpose::Timed } else { Purpose::Bulk };
        connection.recv(out).then_some(purpose)
    }

    fn close(&mut self, now: Instant, id: ConnectionId) {
        self.endpoint.connection_mut(id).into_iter().for_each(|connection| connection.close(now));
    }

    fn abort(&mut self, _now: Instant, id: ConnectionId) {
        self.endpoint.connection_mut(id).into_iter().for_each(braidcast_dccp::Connection::abort);
    }

    fn join(&mut self, _now: Instant, _id: ConnectionId, _route: Route) -> Result<(), NotJoined> {
        Ok(())
    }

    fn leave(&mut self, _now: Instant, id: ConnectionId, _route: Route) {
        // There is one path, and without it no connection.
        self.endpoint.connection_mut(id).into_iter().for_each(braidcast_dccp::Connection::abort);
    }

    fn state(&self, now: Instant, id: ConnectionId) -> Option<State> {
        let connection = self.endpoint.connection(id)?;
        let report = connection.report(now);
        let rate = report.ccid.allowed_rate.map(|rate| units::rate(rate * 8.0));
        let window = report.ccid.cwnd.map(|packets| format!("{packets} packets"));
        let path = PathState {
            route: connection.route(),
            rtt: report.rtt,
            allowed: rate.or(window).unwrap_or_default(),
            sent_packets: report.stats.sent_packets,
            sent_bytes: report.stats.sent_bytes,
            lost: report.ccid.lost,
            retransmitted: 0,
            mtu: MAX_PACKET,
        };
        let security = connection.standing().as_ref().map(SecurityReport::from);
        Some(State { paths: vec![path], dccp: Some(ConnectionLine::from(&report)), security })
    }

    fn probe(&mut self) -> Outcome {
        self.probe.as_ref().map_or(Ok(()), Probe::check)
    }

    fn end_probe(&mut self) -> Outcome {
        self.probe.as_ref().map_or(Ok(()), Probe::finish)
    }
}
