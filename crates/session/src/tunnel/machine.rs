//! A tunnel without I/O: datagrams of applications and of the network go in and come out, each at its own socket.

use super::carrier::{Carrier, ConnectionId, Farewell, How, News, Refused};
use super::class::Class;
use super::event::TunnelEvent;
use super::flow::Flow;
use super::header::{self, FlowId, Header};
use super::link::{Link, MAX_FLOWS};
use super::permit::Permit;
use super::settings::{SctpOptions, Settings};
use crate::report::SecurityReport;
use braidcast_core::{Datagram, Ecn, Heard, Instant, Machine, Misuse, Rng, Route, SocketId, Transmit};
use braidcast_dccp::{ListenError, Options, Report};
use braidcast_rate::RateReport;
use braidcast_sctp::{Fingerprint, PathReport};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

/// Pauses between attempts to connect double from the first to the last.
const RETRY: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(8));

/// What pings are called by; no flow is.
pub(super) const PING_CONTEXT: u64 = u64::MAX;

/// Names a [`Link`].
pub type LinkId = u32;

/// What a local socket is for.
#[derive(Clone, Copy, Debug)]
enum Local {
    /// Applications send to it; the n-th --listen, and what was said of it.
    Entrance(u8, Class),
    /// A flow of the other end's leaves by it.
    Exit(LinkId, FlowId),
}

/// Where a client connects.
#[derive(Debug)]
pub(super) struct Dial {
    port: u16,
    /// One with DCCP; none while the interfaces are gone.
    routes: Vec<Route>,
    pub(super) link: LinkId,
    /// When the next attempt is due, while there is no connection.
    at: Option<Instant>,
    pause: Duration,
}

/// One end of a tunnel.
pub struct Tunnel {
    pub(super) endpoint: Carrier,
    rng: Rng,
    pub(super) settings: Settings,
    network: BTreeSet<SocketId>,
    locals: BTreeMap<SocketId, Local>,
    pub(super) forwards: Vec<(SocketAddr, Class)>,
    /// With a list of keys.
    pub(super) permits: Option<BTreeMap<Fingerprint, Permit>>,
    pub(super) dial: Option<Dial>,
    pub(super) links: BTreeMap<LinkId, Link>,
    by_connection: BTreeMap<ConnectionId, LinkId>,
    next_link: LinkId,
    pub(super) next_tick: Instant,
    /// Datagrams for applications, each with its header.
    out: VecDeque<(Route, Vec<u8>)>,
    spare: Vec<Vec<u8>>,
    scratch: Vec<u8>,
    /// What the last datagram was.
    heard: Heard,
    pub(super) events: VecDeque<TunnelEvent>,
    said_too_long: bool,
    said_no_forward: bool,
    pub(super) said_too_far: bool,
    closing: bool,
}

impl Tunnel {
    /// Buffers that are kept.
    const SPARE: usize = 256;

    /// Flows of the n-th --listen of the other end go to the n-th of `forwards`, with what was said
    /// of the answers that come from there. Of `options`, the queue and the delay that it reckons
    /// with are what `settings` say.
    ///
    /// # Errors
    /// [`Misuse`]: the options cannot work.
    pub fn new(
        options: Options,
        rng: Rng,
        settings: Settings,
        forwards: Vec<(SocketAddr, Class)>,
    ) -> Result<Self, Misuse> {
        let flows = rng.stream("flows");
        let carrier = Carrier::dccp(options, &settings, rng)?;
        Ok(Self::over(carrier, flows, settings, forwards))
    }

    /// The same over SCTP, with as many paths as there are. Of `settings`, what is about DCCP alone says nothing.
    ///
    /// # Errors
    /// [`Misuse`]: the options cannot work.
    pub fn over_sctp(
        options: &SctpOptions,
        rng: Rng,
        settings: Settings,
        forwards: Vec<(SocketAddr, Class)>,
    ) -> Result<Self, Misuse> {
        let flows = rng.stream("flows");
        let carrier = Carrier::sctp(options.transport(&settings), options.redundancy, rng)?;
        Ok(Self::over(carrier, flows, settings, forwards))
    }

    fn over(endpoint: Carrier, rng: Rng, settings: Settings, forwards: Vec<(SocketAddr, Class)>) -> Self {
        Self {
            rng,
            endpoint,
            settings,
            network: BTreeSet::new(),
            locals: BTreeMap::new(),
            forwards,
            permits: None,
            dial: None,
            links: BTreeMap::new(),
            by_connection: BTreeMap::new(),
            next_link: 0,
            next_tick: Instant::ZERO,
            out: VecDeque::new(),
            spare: Vec::new(),
            scratch: Vec::new(),
            heard: Heard::Nothing,
            events: VecDeque::new(),
            said_too_long: false,
            said_no_forward: false,
            said_too_far: false,
            closing: false,
        }
    }

    /// A socket that applications send to, as the n-th --listen.
    pub fn add_entrance(&mut self, socket: SocketId, port: u8, class: Class) {
        self.locals.insert(socket, Local::Entrance(port, class));
    }

    /// A socket towards other ends; clients come in at this DCCP port. SCTP's is among its options.
    pub fn serve(&mut self, socket: SocketId, port: u16) -> Result<(), ListenError> {
        self.network.insert(socket);
        self.endpoint.listen(port)
    }

    /// Connects to port `port` of the protocol over `route`, now and whenever there is no connection.
    pub fn dial(&mut self, now: Instant, route: Route, port: u16) {
        let link = self.add_link(now, route);
        self.dial = Some(Dial { port, routes: Vec::new(), link, at: None, pause: RETRY.0 });
        self.reroute(now, Some(route));
    }

    /// One more path for a client over SCTP, from now on and for connections to come.
    pub fn join(&mut self, now: Instant, route: Route) {
        let Some(dial) = &mut self.dial else { return };
        if dial.routes.is_empty() {
            return self.reroute(now, Some(route));
        }
        if !dial.routes.contains(&route) {
            dial.routes.push(route);
        }
        self.network.insert(route.socket);
        if let Some(id) = self.links.get(&dial.link).and_then(|link| link.connection) {
            self.endpoint.join(now, id, route);
        }
        self.tend(now);
    }

    /// A path of a client over SCTP is gone.
    pub fn leave(&mut self, now: Instant, route: Route) {
        let Some(dial) = &mut self.dial else { return };
        dial.routes.retain(|it| *it != route);
        if let Some(id) = self.links.get(&dial.link).and_then(|link| link.connection) {
            self.endpoint.leave(now, id, route);
        }
        self.tend(now);
    }

    /// A client's path changed, or there is none now.
    pub fn reroute(&mut self, now: Instant, route: Option<Route>) {
        let Some(dial) = &mut self.dial else { return };
        (dial.routes, dial.at, dial.pause) = (route.into_iter().collect(), route.map(|_| now), RETRY.0);
        self.network.extend(route.map(|route| route.socket));
        if let Some(link) = self.links.get_mut(&dial.link) {
            link.route = route.unwrap_or(link.route);
            if let Some(old) = link.connection {
                self.endpoint.abort(now, old, "the path changed");
            }
        }
        self.tend(now);
    }

    /// The socket that a new flow asked for.
    pub fn give_socket(&mut self, link: LinkId, id: FlowId, socket: SocketId) {
        let port = self.links.get(&link).and_then(|link| link.flows.get(&id)).map(|flow| flow.port);
        let Some((target, _)) = port.and_then(|port| self.forward(link, port)) else {
            return self.events.push_back(TunnelEvent::FreeSocket(socket));
        };
        let Some(flow) = self.links.get_mut(&link).and_then(|link| link.flows.get_mut(&id)) else { return };
        let route = Route::new(socket, target);
        flow.local = Some(route);
        self.out.extend(flow.pending.drain(..).map(|datagram| (route, datagram)));
        self.locals.insert(socket, Local::Exit(link, id));
    }

    /// There is no socket for a new flow: it is forgotten, and its next datagram asks again.
    pub fn refuse_flow(&mut self, link: LinkId, id: FlowId) {
        if let Some(link) = self.links.get_mut(&link)
            && let Some(flow) = link.flows.remove(&id)
        {
            link.dropped.too_many += flow.pending.len() as u64;
        }
    }

    /// Closes all connections; [`is_closed`](Self::is_closed) says when that is done.
    pub fn close(&mut self, now: Instant) {
        self.closing = true;
        self.dial.iter_mut().for_each(|dial| dial.at = None);
        for link in self.links.values_mut() {
            if let Some(id) = link.connection {
                link.last_report = self.endpoint.report(now, id);
                link.last_paths = self.endpoint.paths(id); // Closed, it may be gone before the next tick.
                self.endpoint.close(now, id);
            }
        }
    }

    /// No connection is left.
    pub fn is_closed(&self) -> bool {
        self.links.values().all(|link| link.connection.is_none())
    }

    /// The other ends.
    pub fn links(&self) -> impl Iterator<Item = (LinkId, &Link)> {
        self.links.iter().map(|(&id, link)| (id, link))
    }

    /// How the DCCP connection to an end does, or did last.
    pub fn report(&self, now: Instant, link: &Link) -> Option<Report> {
        link.connection.and_then(|id| self.endpoint.report(now, id)).or(link.last_report)
    }

    /// What all applications together may send through the tunnel to an end, in the next frame
    /// and in the next second, if what they send has to be there after [`Settings::lifetime`]. Over
    /// DCCP it is the rate that congestion control allows, over SCTP what the paths carry, as far
    /// as they were used. `None` while there is no rate: without a connection, and with a CCID that
    /// has a window.
    pub fn rate_report(&self, now: Instant, link: &Link) -> Option<RateReport> {
        self.endpoint.rate_report(now, link.connection?, &self.settings)
    }

    /// The same while nothing is to be sent, as there is no connection: the least rate, and no frame.
    pub fn no_rate(&self) -> RateReport {
        RateReport::nothing(self.settings.encoder, self.settings.picture_interval)
    }

    /// How the paths to an end do, or did last, over SCTP.
    pub fn paths(&self, link: &Link) -> Vec<PathReport> {
        let paths = link.connection.map(|id| self.endpoint.paths(id)).unwrap_or_default();
        if paths.is_empty() { link.last_paths.clone() } else { paths }
    }

    /// The round trip to an end; of several paths the shortest one.
    pub fn round_trip(&self, now: Instant, link: &Link) -> Option<Duration> {
        let paths = self.paths(link);
        let shortest = paths.iter().filter_map(|path| path.srtt).min();
        self.report(now, link).map_or(shortest, |report| report.rtt)
    }

    fn add_link(&mut self, now: Instant, route: Route) -> LinkId {
        let id = self.next_link;
        self.next_link += 1;
        self.links.insert(id, Link::new(now, route, self.rng.u32() as u16));
        id
    }

    /// A datagram of an application, which came to a socket of ours.
    fn take_local(&mut self, now: Instant, local: Local, datagram: Datagram<'_>) {
        let Route { socket, remote } = datagram.route;
        let (link_id, flow) = match local {
            Local::Exit(link, flow) => {
                let Some(port) = self.links.get(&link).and_then(|link| Some(link.flows.get(&flow)?.port)) else {
                    return;
                };
                if self.forward(link, port).is_none_or(|(target, _)| target != remote) {
                    return; // from somebody who was not asked
                }
                (link, flow)
            }
            Local::Entrance(port, class) => {
                let Some(id) = self.outlet(now, socket, remote) else { return };
                if !self.is_admitted(now, id, datagram.route, class) {
                    return;
                }
                if self.links.get(&id).is_some_and(|link| !link.has_flow_from(socket, remote)) {
                    self.make_room_for_flow(id);
                }
                let jitter_buffer = self.settings.jitter_buffer;
                let Some(link) = self.links.get_mut(&id) else { return };
                let new = || Flow::new(now, port, class, Some(datagram.route), jitter_buffer);
                let Some(flow) = link.flow_from(socket, remote, new) else {
                    link.dropped.too_many += 1;
                    return;
                };
                (id, flow)
            }
        };
        self.send(now, link_id, flow, datagram.payload);
    }

    /// Hands a datagram to the carrier.
    fn send(&mut self, now: Instant, link_id: LinkId, id: FlowId, payload: &[u8]) {
        let Some(link) = self.links.get_mut(&link_id) else { return };
        let Some(flow) = link.flows.get_mut(&id) else { return };
        let number = flow.number(now, payload.len());
        self.scratch.clear();
        Header::Datagram { flow: id, port: flow.port, number, stamp: header::stamp(now) }.emit(&mut self.scratch);
        self.scratch.extend_from_slice(payload);
        let how = How {
            priority: flow.priority(now).0,
            deadline: flow.deadline(self.settings.lifetime),
            context: id.context(),
        };
        let sent = match link.connection {
            Some(id) => self.endpoint.send(now, id, &self.scratch, &how),
            None => Err(Refused::NotConnected),
        };
        let Err(error) = sent else { return };
        flow.refused += 1;
        match error {
            Refused::TooLong { limit } => {
                link.dropped.too_long += 1;
                if !std::mem::replace(&mut self.said_too_long, true) {
                    let limit = limit.saturating_sub(header::LEN);
                    self.events.push_back(TunnelEvent::TooLong(payload.len(), limit));
                }
            }
            Refused::QueueFull => link.dropped.queue_full += 1,
            Refused::NotConnected => link.dropped.unconnected += 1,
        }
    }

    /// Looks at what the carrier has to tell.
    pub(super) fn pump(&mut self, now: Instant) {
        while let Some((connection, event)) = self.endpoint.poll_event() {
            match event {
                News::Connected => self.on_connected(now, connection),
                News::Readable => self.read(now, connection),
                News::Closed(reason) => self.on_closed(now, connection, reason),
                News::Moved(route) => self.on_moved(connection, route),
                News::PathUp(route) => self.tell_path(connection, route, true),
                News::PathDown(route) => self.tell_path(connection, route, false),
                News::Discarded { context, why } => {
                    let link = self.by_connection.get(&connection).and_then(|link| self.links.get_mut(link));
                    let flow = FlowId::from_context(context);
                    let flow = link.filter(|_| context != PING_CONTEXT).and_then(|link| link.flows.get_mut(&flow));
                    flow.into_iter().for_each(|flow| flow.discard(why));
                }
            }
        }
        while let Some(farewell) = self.endpoint.poll_turned_away() {
            self.events.push_back(TunnelEvent::TurnedAway(farewell));
        }
    }

    fn tell_path(&mut self, id: ConnectionId, route: Route, up: bool) {
        let link = self.by_connection.get(&id).copied();
        self.events.extend(link.map(|link| TunnelEvent::Path(link, route, up)));
    }

    /// The other end has another address now: it would come back from there.
    fn on_moved(&mut self, id: ConnectionId, route: Route) {
        let link = self.by_connection.get(&id).and_then(|link| self.links.get_mut(link));
        link.into_iter().for_each(|link| link.route = route);
    }

    fn on_connected(&mut self, now: Instant, id: ConnectionId) {
        let Some(route) = self.endpoint.on_connected(now, id, &self.settings) else { return };
        let link_id = match self.by_connection.get(&id) {
            Some(&link) => link,
            // A client that comes back from where it was gets its flows again.
            None => {
                let known = self.links.iter().find(|(_, link)| link.route == route).map(|(&id, _)| id);
                known.unwrap_or_else(|| self.add_link(now, route))
            }
        };
        if !self.admit(id, link_id) {
            // Its key was taken out of the list while it connected.
            return self.endpoint.abort(now, id, "this key may reach nothing");
        }
        let Some(link) = self.links.get_mut(&link_id) else { return };
        if let Some(old) = link.connection.filter(|&old| old != id) {
            self.by_connection.remove(&old);
            self.endpoint.abort(now, old, "another connection took over");
        }
        link.attach(now, id);
        link.connected = true;
        link.security = self.endpoint.standing(id).as_ref().map(SecurityReport::from);
        link.connections += 1;
        self.by_connection.insert(id, link_id);
        self.dial.iter_mut().for_each(|dial| dial.pause = RETRY.0);
        self.events.push_back(TunnelEvent::Connected(link_id));
        self.make_room_for_client(now, link_id);
        if self.closing {
            self.endpoint.close(now, id);
        }
    }

    fn on_closed(&mut self, now: Instant, id: ConnectionId, reason: Farewell) {
        self.read(now, id);
        let Some(link_id) = self.by_connection.remove(&id) else {
            if reason.insecure.is_some() {
                self.events.push_back(TunnelEvent::TurnedAway(reason));
            }
            return;
        };
        let Some(link) = self.links.get_mut(&link_id).filter(|link| link.connection == Some(id)) else { return };
        (link.connection, link.connected) = (None, false);
        link.closed = reason.agreed;
        if let Some(dial) = self.dial.as_mut().filter(|dial| !self.closing && !dial.routes.is_empty()) {
            dial.at = Some(now + dial.pause);
            dial.pause = (dial.pause * 2).min(RETRY.1);
        }
        self.events.push_back(TunnelEvent::Disconnected(link_id, reason));
    }

    /// Takes what came over a connection.
    fn read(&mut self, now: Instant, id: ConnectionId) {
        let Some(&link) = self.by_connection.get(&id) else { return };
        loop {
            let mut message = self.spare.pop().unwrap_or_default();
            if !self.endpoint.recv(now, id, &mut message) {
                return self.recycle(message);
            }
            if let Some(message) = self.take_message(now, link, message) {
                self.recycle(message);
            }
        }
    }

    /// Passes a message on to its application; gives the buffer back if it does not go there.
    fn take_message(&mut self, now: Instant, link_id: LinkId, message: Vec<u8>) -> Option<Vec<u8>> {
        let Some(link) = self.links.get_mut(&link_id) else { return Some(message) };
        let Ok(header) = Header::parse(&message) else {
            link.dropped.malformed += 1;
            return Some(message);
        };
        let Header::Datagram { flow: id, port, number, stamp } = header else { return Some(message) };
        if !self.make_way(link_id, id, port) {
            return Some(message);
        }
        let link = self.links.get_mut(&link_id)?;
        if !link.flows.contains_key(&id) {
            // A flow of ours that was forgotten has nobody left who waits for it.
            if id.ours {
                return Some(message);
            }
            let Some((target, class)) = self.forward(link_id, port) else {
                let link = self.links.get_mut(&link_id)?;
                link.dropped.no_forward += 1;
                if !std::mem::replace(&mut self.said_no_forward, true) {
                    self.events.push_back(TunnelEvent::NoForward(port));
                }
                return Some(message);
            };
            self.make_room_for_flow(link_id);
            let link = self.links.get_mut(&link_id)?;
            if link.flows.len() >= MAX_FLOWS {
                link.dropped.too_many += 1;
                return Some(message);
            }
            link.flows.insert(id, Flow::new(now, port, class, None, self.settings.jitter_buffer));
            self.events.push_back(TunnelEvent::WantSocket(link_id, id, target));
        }
        let flow = self.links.get_mut(&link_id)?.flows.get_mut(&id)?;
        flow.arrive(now, number, stamp, message.len() - header::LEN);
        match flow.local {
            Some(route) => {
                self.out.push_back((route, message));
                None
            }
            None => {
                let refused = flow.keep(message);
                let link = self.links.get_mut(&link_id)?;
                link.dropped.too_many += u64::from(refused.is_some());
                refused
            }
        }
    }

    /// Returns `true` if a flow of this number may be one of the opening end's `port`. If that end began anew
    /// and gave the number to another application, the old flow is forgotten.
    fn make_way(&mut self, link: LinkId, id: FlowId, port: u8) -> bool {
        let Some(link) = self.links.get_mut(&link) else { return false };
        let Some(flow) = link.flows.get(&id).filter(|flow| flow.port != port) else { return true };
        // What we opened is as we know it; and a socket that was asked for must come first.
        if id.ours || flow.local.is_none() {
            link.dropped.too_many += 1;
            return false;
        }
        if let Some(flow) = link.flows.remove(&id) {
            link.ended_flows += 1;
            self.free_exit(&flow);
        }
        true
    }

    /// Releases the socket of a forgotten flow, if it has one of its own.
    pub(super) fn free_exit(&mut self, flow: &Flow) {
        if let Some(route) = flow.local.filter(|route| matches!(self.locals.get(&route.socket), Some(Local::Exit(..))))
        {
            self.locals.remove(&route.socket);
            self.events.push_back(TunnelEvent::FreeSocket(route.socket));
        }
    }

    fn recycle(&mut self, buffer: Vec<u8>) {
        if self.spare.len() < Self::SPARE {
            self.spare.push(buffer);
        }
    }

    pub(super) fn redial(&mut self, now: Instant) {
        let Some(dial) = self.dial.as_mut().filter(|dial| dial.at.is_some_and(|at| at <= now)) else { return };
        let Some(link) = self.links.get_mut(&dial.link).filter(|link| link.connection.is_none()) else { return };
        dial.at = None;
        match self.endpoint.connect(now, &dial.routes, dial.port) {
            Some(connection) => {
                link.attach(now, connection);
                self.by_connection.insert(connection, dial.link);
            }
            // A port will be free, or another connection gone.
            None => dial.at = Some(now + RETRY.1).filter(|_| !dial.routes.is_empty()),
        }
    }
}

impl Machine for Tunnel {
    type Event = TunnelEvent;

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        self.heard = Heard::Nothing;
        if let Some(&local) = self.locals.get(&datagram.route.socket) {
            self.heard = Heard::Peer;
            self.take_local(now, local, datagram);
        } else if self.network.contains(&datagram.route.socket) {
            self.heard = self.endpoint.handle_datagram(now, datagram);
            self.pump(now);
        }
    }

    fn heard(&self) -> Heard {
        self.heard
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.endpoint.poll_timeout().is_some_and(|at| at <= now) {
            self.endpoint.handle_timeout(now);
            self.pump(now);
        }
        self.tend(now);
    }

    fn poll_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        if let Some((route, message)) = self.out.pop_front() {
            buf.clear();
            buf.extend_from_slice(message.get(header::LEN..).unwrap_or_default());
            self.recycle(message);
            return Some(Transmit { route, ecn: Ecn::NotEct, segment_size: None });
        }
        let transmit = self.endpoint.poll_transmit(now, buf);
        if transmit.is_none() {
            self.pump(now);
        }
        transmit
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let redial = self.dial.as_ref().and_then(|dial| dial.at);
        [self.endpoint.poll_timeout(), redial, Some(self.next_tick)].into_iter().flatten().min()
    }

    fn poll_event(&mut self) -> Option<TunnelEvent> {
        self.events.pop_front()
    }
}
