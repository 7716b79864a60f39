//! What carries a tunnel: DCCP over one path, or SCTP over as many as there are.

use super::settings::Settings;
use crate::redundancy::{Chooser, Redundancy};
use braidcast_core::{Datagram, Heard, Instant, Machine, Misuse, Rng, Route, Transmit};
use braidcast_dccp::{self as dccp, Report, ServiceCode};
use braidcast_dccp::{Priority, Why};
use braidcast_rate::{Allowed, RateReport};
use braidcast_sctp::{self as sctp, Insecure, PathReport, Standing};
use core::fmt;
use std::collections::BTreeMap;

/// What tunnels over DCCP tell each other by: SC:BRTU.
const SERVICE: ServiceCode = ServiceCode(u32::from_be_bytes(*b"BRTU"));
/// Payload protocol identifier of a tunnel's messages over SCTP, the same four letters.
const PPID: u32 = u32::from_be_bytes(*b"BRTU");

/// A connection of a [`Carrier`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum ConnectionId {
    Dccp(dccp::ConnectionId),
    Sctp(sctp::AssociationId),
}

/// Why a connection is over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Farewell {
    /// Both ends agreed.
    pub agreed: bool,
    /// No protection was to be agreed on, for this reason: the other end has none, is somebody else, or does not want
    /// us.
    pub insecure: Option<Insecure>,
    why: String,
}

impl Farewell {
    fn of_dccp(reason: &dccp::CloseReason) -> Self {
        let (agreed, insecure) = (*reason == dccp::CloseReason::Closed, reason.insecure().cloned());
        Self { agreed, insecure, why: reason.to_string() }
    }

    fn of_sctp(reason: &sctp::CloseReason) -> Self {
        let (agreed, insecure) = (*reason == sctp::CloseReason::Shutdown, reason.insecure().cloned());
        Self { agreed, insecure, why: reason.to_string() }
    }
}

impl fmt::Display for Farewell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

/// What a carrier reports.
pub(super) enum News {
    Connected,
    Readable,
    Closed(Farewell),
    Discarded { context: u64, why: Option<Why> },
    Moved(Route),
    PathUp(Route),
    PathDown(Route),
}

/// How a datagram is to go.
pub(super) struct How {
    pub(super) priority: Priority,
    pub(super) deadline: Instant,
    pub(super) context: u64,
}

/// Why a datagram does not go.
pub(super) enum Refused {
    TooLong { limit: usize },
    QueueFull,
    NotConnected,
}

/// The protocol below a tunnel, for any number of other ends.
pub(super) enum Carrier {
    Dccp(Box<dccp::Endpoint>),
    Sctp(Box<Bundle>),
}

/// SCTP, and what its associations need besides.
pub(super) struct Bundle {
    endpoint: sctp::Endpoint,
    redundancy: Redundancy,
    /// With redundancy that follows what the paths lose.
    choosers: BTreeMap<sctp::AssociationId, Chooser>,
}

impl Carrier {
    pub(super) fn dccp(options: dccp::Options, settings: &Settings, rng: Rng) -> Result<Self, Misuse> {
        Ok(Self::Dccp(Box::new(dccp::Endpoint::new(settings.apply(options), rng)?)))
    }

    pub(super) fn sctp(options: sctp::Options, redundancy: Redundancy, rng: Rng) -> Result<Self, Misuse> {
        let endpoint = sctp::Endpoint::new(options, rng)?;
        Ok(Self::Sctp(Box::new(Bundle { endpoint, redundancy, choosers: BTreeMap::new() })))
    }

    /// Clients come in at this port of the protocol; SCTP's is among its options.
    pub(super) fn listen(&mut self, port: u16) -> Result<(), dccp::ListenError> {
        match self {
            Self::Dccp(it) => it.listen(port, SERVICE),
            Self::Sctp(it) => {
                it.endpoint.listen();
                Ok(())
            }
        }
    }

    /// Begins a connection; `None` if that cannot be now.
    pub(super) fn connect(&mut self, now: Instant, routes: &[Route], port: u16) -> Option<ConnectionId> {
        match self {
            Self::Dccp(it) => it.connect(now, *routes.first()?, 0, port, SERVICE).ok().map(ConnectionId::Dccp),
            Self::Sctp(it) => it.endpoint.connect(now, port, routes).ok().map(ConnectionId::Sctp),
        }
    }

    fn association(&self, id: ConnectionId) -> Option<&sctp::Association> {
        match (self, id) {
            (Self::Sctp(it), ConnectionId::Sctp(id)) => it.endpoint.association(id),
            _ => None,
        }
    }

    fn association_mut(&mut self, id: ConnectionId) -> Option<&mut sctp::Association> {
        match (self, id) {
            (Self::Sctp(it), ConnectionId::Sctp(id)) => it.endpoint.association_mut(id),
            _ => None,
        }
    }

    fn connection(&self, id: ConnectionId) -> Option<&dccp::Connection> {
        match (self, id) {
            (Self::Dccp(it), ConnectionId::Dccp(id)) => it.connection(id),
            _ => None,
        }
    }

    fn connection_mut(&mut self, id: ConnectionId) -> Option<&mut dccp::Connection> {
        match (self, id) {
            (Self::Dccp(it), ConnectionId::Dccp(id)) => it.connection_mut(id),
            _ => None,
        }
    }

    /// The handshake is done. Where the other end is; of several paths the first.
    pub(super) fn on_connected(&mut self, now: Instant, id: ConnectionId, settings: &Settings) -> Option<Route> {
        if let Some(connection) = self.connection_mut(id) {
            connection.set_wanted(settings.wanted);
            return Some(connection.route());
        }
        let association = self.association_mut(id)?;
        association.follow_rate(now, &settings.rate_options());
        let route = association.paths().next()?.route;
        if let (Self::Sctp(it), ConnectionId::Sctp(id)) = (self, id)
            && it.redundancy == Redundancy::Auto
        {
            it.choosers.insert(id, Chooser::new(Some(settings.lifetime)));
        }
        Some(route)
    }

    /// Hands a message over.
    pub(super) fn send(&mut self, now: Instant, id: ConnectionId, message: &[u8], how: &How) -> Result<(), Refused> {
        let &How { priority, deadline, context } = how;
        if let Some(connection) = self.connection_mut(id) {
            let how = dccp::SendOptions {
                priority,
                deadline: Some(deadline),
                context: Some(context),
                ..dccp::SendOptions::default()
            };
            return connection.send(now, message, how).map_err(|error| match error {
                dccp::SendError::TooLong { limit, .. } => Refused::TooLong { limit },
                dccp::SendError::QueueFull { .. } => Refused::QueueFull,
                _ => Refused::NotConnected,
            });
        }
        let how = sctp::SendOptions {
            ppid: PPID,
            unordered: true,
            deadline: Some(deadline),
            context,
            priority,
            ..sctp::SendOptions::default()
        };
        let association = self.association_mut(id).ok_or(Refused::NotConnected)?;
        association.send(now, message, how).map_err(|error| match error {
            sctp::SendError::TooLong { limit, .. } => Refused::TooLong { limit },
            sctp::SendError::QueueFull { .. } | sctp::SendError::BufferFull { .. } => Refused::QueueFull,
            _ => Refused::NotConnected,
        })
    }

    /// Takes the next message; `false` if there is none.
    pub(super) fn recv(&mut self, now: Instant, id: ConnectionId, message: &mut Vec<u8>) -> bool {
        if let Some(connection) = self.connection_mut(id) {
            return connection.recv(message);
        }
        self.association_mut(id).is_some_and(|association| association.recv(now, message).is_some())
    }

    pub(super) fn close(&mut self, now: Instant, id: ConnectionId) {
        if let Some(connection) = self.connection_mut(id) {
            connection.close(now);
        } else if let Some(association) = self.association_mut(id) {
            association.shutdown(now);
        }
    }

    pub(super) fn abort(&mut self, now: Instant, id: ConnectionId, why: &str) {
        if let Some(connection) = self.connection_mut(id) {
            connection.abort();
        } else if let Some(association) = self.association_mut(id) {
            association.abort(now, why);
        }
    }

    /// One more path to the other end; DCCP has one only.
    pub(super) fn join(&mut self, now: Instant, id: ConnectionId, route: Route) {
        if let Some(association) = self.association_mut(id) {
            // It is tried again with the next connection; the others go on meanwhile.
            let _refused = association.join(now, route);
        }
    }

    pub(super) fn leave(&mut self, now: Instant, id: ConnectionId, route: Route) {
        if let Some(association) = self.association_mut(id) {
            association.leave(now, route);
        }
    }

    /// How a connection of DCCP does.
    pub(super) fn report(&self, now: Instant, id: ConnectionId) -> Option<Report> {
        self.connection(id).map(|connection| connection.report(now))
    }

    /// How the paths of SCTP do.
    pub(super) fn paths(&self, id: ConnectionId) -> Vec<PathReport> {
        self.association(id).map(|association| association.paths().collect()).unwrap_or_default()
    }

    /// What has come of a connection: any number that grows.
    pub(super) fn heard_of(&self, now: Instant, id: ConnectionId) -> u64 {
        let packets = self.report(now, id).map(|report| report.stats.received_packets);
        packets.unwrap_or_else(|| self.paths(id).iter().map(|path| path.received_packets).sum())
    }

    /// From here to the other end, as DCCP reckons; over SCTP half of the shortest round trip.
    pub(super) fn one_way_delay(&self, now: Instant, id: ConnectionId) -> Option<core::time::Duration> {
        if let Some(association) = self.association(id) {
            let shortest = association.paths().filter_map(|path| path.min_rtt.or(path.srtt)).min();
            return shortest.map(|rtt| rtt / 2);
        }
        self.connection(id)?.one_way_delay(now)
    }

    /// What may be sent in the next frame, and in the next second.
    pub(super) fn rate_report(&self, now: Instant, id: ConnectionId, settings: &Settings) -> Option<RateReport> {
        if let Some(association) = self.association(id) {
            return association.rate_report(now);
        }
        let connection = self.connection(id)?;
        let report = connection.report(now);
        let allowed = Allowed {
            rate: report.ccid.allowed_rate?,
            queued: (report.queued_bytes, report.queued_messages),
            one_way: connection.one_way_delay(now),
        };
        Some(allowed.report(settings.picture_interval, settings.lifetime, settings.encoder))
    }

    /// What is to be looked at now and then.
    pub(super) fn tend(&mut self, now: Instant) {
        let Self::Sctp(it) = self else { return };
        let Bundle { endpoint, choosers, .. } = &mut **it;
        choosers.retain(|&id, chooser| {
            let association = endpoint.association_mut(id);
            association.map(|association| chooser.update(now, association)).is_some()
        });
    }

    /// How a connection is protected; `None` if it is not.
    pub(super) fn standing(&self, id: ConnectionId) -> Option<Standing> {
        self.connection(id).and_then(dccp::Connection::standing).or_else(|| self.association(id)?.standing())
    }

    /// Why somebody could not be connected with, as protection was not to be agreed on.
    pub(super) fn poll_turned_away(&mut self) -> Option<Farewell> {
        Some(match self {
            Self::Dccp(it) => Farewell::of_dccp(&it.poll_turned_away()?.1),
            Self::Sctp(it) => Farewell::of_sctp(&it.endpoint.poll_turned_away()?.1),
        })
    }

    pub(super) fn poll_event(&mut self) -> Option<(ConnectionId, News)> {
        match self {
            Self::Dccp(it) => loop {
                let (id, event) = it.poll_event()?;
                let news = match event {
                    dccp::Event::Connected => News::Connected,
                    dccp::Event::Readable => News::Readable,
                    dccp::Event::Moved(route) => News::Moved(route),
                    dccp::Event::Closed(reason) => News::Closed(Farewell::of_dccp(&reason)),
                    dccp::Event::Discarded { context, why } => News::Discarded { context, why },
                    _ => continue, // `Writable` and `MaxPayload` are asked for in any case.
                };
                return Some((ConnectionId::Dccp(id), news));
            },
            Self::Sctp(it) => loop {
                let (id, event) = it.endpoint.poll_event()?;
                let news = match event {
                    sctp::Event::Connected => News::Connected,
                    sctp::Event::Readable => News::Readable,
                    sctp::Event::PathUp(_, route) => News::PathUp(route),
                    sctp::Event::PathDown(_, route) => News::PathDown(route),
                    sctp::Event::Closed(reason) => News::Closed(Farewell::of_sctp(&reason)),
                    sctp::Event::Abandoned { context, why, .. } => {
                        News::Discarded { context, why: why.or(Some(Why::Expired)) }
                    }
                    _ => continue,
                };
                return Some((ConnectionId::Sctp(id), news));
            },
        }
    }

    pub(super) fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) -> Heard {
        match self {
            Self::Dccp(it) => {
                it.handle_datagram(now, datagram);
                it.heard()
            }
            Self::Sctp(it) => {
                it.endpoint.handle_datagram(now, datagram);
                it.endpoint.heard()
            }
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::Dccp(it) => it.handle_timeout(now),
            Self::Sctp(it) => it.endpoint.handle_timeout(now),
        }
    }

    pub(super) fn poll_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        match self {
            Self::Dccp(it) => it.poll_transmit(now, buf),
            Self::Sctp(it) => it.endpoint.poll_transmit(now, buf),
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Dccp(it) => it.poll_timeout(),
            Self::Sctp(it) => it.endpoint.poll_timeout(),
        }
    }
}
