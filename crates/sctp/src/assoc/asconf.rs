use super::control::Control;
use super::{Open, State};
use crate::api::{JoinError, PathState};
use crate::path::PathIndex;
use crate::wire::chunk::{Asconf, AsconfAck};
use crate::wire::{Cause, Causes, Chunk, Parameter, Parameters};
use braidcast_core::{Instant, PathId, Route, Writer};
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The address in every ASCONF parameter of ours: the receiver takes the packet's source, which is the only address
/// that is right behind NATs (RFC 5061 §4.2.1, §4.2.2).
const WILDCARD: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// Paths that join and leave (RFC 5061): one request at a time, by serial number.
#[derive(Debug)]
pub(super) struct Reconfiguration {
    next_serial: u32,
    waiting: VecDeque<Change>,
    request: Option<Request>,
    /// The peer's last request, and our answer to it as on the wire.
    peer_serial: u32,
    answer: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Change {
    /// Add the source address, sent from the path itself.
    Join(PathId),
    /// Delete all addresses but the source; the paths that stay then join anew.
    Leave,
}

/// The ASCONF that has not been answered.
#[derive(Debug)]
struct Request {
    serial: u32,
    change: Change,
    bytes: Vec<u8>,
    attempts: u32,
    /// T4-rto (RFC 5061 §5.1).
    due: Instant,
}

impl Reconfiguration {
    /// Attempts over the path that wants to join; then the serial number must be settled over another one.
    const OWN_ATTEMPTS: u32 = 3;

    /// Serial numbers begin at the initial TSN (RFC 5061 §4.1.1).
    pub(super) const fn new(initial_tsn: u32, peer_initial_tsn: u32) -> Self {
        let peer_serial = peer_initial_tsn.wrapping_sub(1);
        Self { next_serial: initial_tsn, waiting: VecDeque::new(), request: None, peer_serial, answer: Vec::new() }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.request.as_ref().map(|request| request.due)
    }

    fn is_under_way(&self, change: Change) -> bool {
        self.waiting.contains(&change) || self.request.as_ref().is_some_and(|request| request.change == change)
    }
}

impl Open {
    /// One more path, over `route`.
    pub(super) fn join(&mut self, now: Instant, route: Route) -> Result<PathId, JoinError> {
        if let Some(index) = self.paths.by_route(route) {
            return Ok(self.paths[index].id());
        }
        if !self.state.takes_messages() {
            return Err(JoinError::Closing);
        }
        if !self.agreed.asconf {
            return Err(JoinError::NotSupported);
        }
        self.paths.check_room()?;
        let index = self.paths.add(now, route, PathState::Unconfirmed);
        let id = self.paths[index].id();
        self.queue_join(now, index);
        self.next_request(now);
        Ok(id)
    }

    /// One path less, if it is not the last one that has joined.
    pub(super) fn leave(&mut self, now: Instant, route: Route) {
        let Some(index) = self.paths.by_route(route) else { return };
        if self.paths.len() < 2 || (self.state.is_up() && self.paths.best_rank(Some(index)).is_none()) {
            return;
        }
        let known_to_peer = self.paths[index].is_usable();
        self.remove_path(now, index);
        if known_to_peer && self.agreed.asconf && self.state.is_up() {
            if !self.reconfiguration.waiting.contains(&Change::Leave) {
                self.reconfiguration.waiting.push_back(Change::Leave);
            }
            self.next_request(now);
        }
    }

    /// Asks the peer to take the path `index` in.
    pub(super) fn queue_join(&mut self, now: Instant, index: PathIndex) {
        if !self.agreed.asconf {
            return self.remove_path(now, index);
        }
        let change = Change::Join(self.paths[index].id());
        if !self.reconfiguration.is_under_way(change) {
            self.reconfiguration.waiting.push_back(change);
        }
    }

    /// A path of ours fails: perhaps a NAT forgot it and the peer sees another address now. Join anew.
    pub(super) fn rejoin(&mut self, now: Instant, index: PathIndex) {
        let failing = self.paths[index].errors() >= 2;
        if self.initiator && self.agreed.asconf && failing && matches!(self.state, State::Established) {
            self.queue_join(now, index);
            self.next_request(now);
        }
    }

    /// Sends the next change if none is under way.
    pub(super) fn next_request(&mut self, now: Instant) {
        if self.reconfiguration.request.is_some() {
            return;
        }
        let change = loop {
            match self.reconfiguration.waiting.pop_front() {
                Some(Change::Join(id)) if self.paths.by_id(id).is_none() => {}
                Some(change) => break change,
                None => return,
            }
        };
        let serial = self.reconfiguration.next_serial;
        self.reconfiguration.next_serial = serial.wrapping_add(1);
        let mut parameters = Vec::new();
        let parameter = match change {
            Change::Join(_) => Parameter::AddIp { correlation: serial, address: WILDCARD },
            Change::Leave => Parameter::DeleteIp { correlation: serial, address: WILDCARD },
        };
        parameter.emit(&mut Writer::new(&mut parameters));
        let mut bytes = Vec::new();
        Asconf { serial, address: WILDCARD, parameters: Parameters::new(&parameters) }
            .emit(&mut Writer::new(&mut bytes));
        self.reconfiguration.request = Some(Request { serial, change, bytes, attempts: 0, due: now });
        self.handle_asconf_timeout(now);
    }

    /// Sends the request (again).
    pub(super) fn handle_asconf_timeout(&mut self, now: Instant) {
        self.next_request_if_idle(now);
        let rto = self.options.timers.rto;
        let Some(request) = self.reconfiguration.request.as_mut().filter(|request| request.due <= now) else { return };
        request.due = now + (rto.initial * (1 << request.attempts.min(10))).min(rto.max);
        let own = match request.change {
            Change::Join(id) if request.attempts < Reconfiguration::OWN_ATTEMPTS => self.paths.by_id(id),
            Change::Join(_) | Change::Leave => None,
        };
        request.attempts += 1;
        let bytes = request.bytes.clone();
        if let Some(path) = own.or_else(|| self.paths.for_control(None)) {
            self.control.push(Control { path, tag: self.peer_tag, bytes, alone: false });
        }
    }

    fn next_request_if_idle(&mut self, now: Instant) {
        if self.reconfiguration.request.is_none() && !self.reconfiguration.waiting.is_empty() {
            self.next_request(now);
        }
    }

    /// ASCONF-ACK (RFC 5061 §5.1).
    pub(super) fn handle_asconf_ack(&mut self, now: Instant, ack: &AsconfAck<'_>) {
        let Some(request) = self.reconfiguration.request.take_if(|request| request.serial == ack.serial) else {
            return;
        };
        let mut refused = false;
        for raw in ack.parameters.iter().map_while(Result::ok) {
            refused |= matches!(Parameter::parse(raw), Ok(Parameter::ErrorCauseIndication { .. }));
        }
        match request.change {
            Change::Join(id) => {
                let Some(index) = self.paths.by_id(id) else { return self.next_request(now) };
                if refused && !self.paths[index].is_usable() {
                    self.remove_path(now, index);
                } else {
                    self.paths[index].ask(now);
                }
            }
            Change::Leave => {
                // All but the path that carried the request have left with it; the others come back.
                let carrier = self.paths.for_control(None);
                let others: Vec<PathIndex> = self.paths.indices().filter(|&index| Some(index) != carrier).collect();
                others.into_iter().for_each(|index| self.queue_join(now, index));
            }
        }
        self.next_request(now);
    }

    /// ASCONF, authenticated, that came over `route` (RFC 5061 §5.2).
    pub(super) fn handle_asconf(&mut self, now: Instant, route: Route, asconf: &Asconf<'_>) {
        if !self.agreed.asconf || !self.state.is_up() {
            return;
        }
        let expected = self.reconfiguration.peer_serial.wrapping_add(1);
        if asconf.serial == expected {
            let mut parameters = Vec::new();
            for raw in asconf.parameters.iter().map_while(Result::ok) {
                let Ok(parameter) = Parameter::parse(raw) else { break };
                if let Err((correlation, cause)) = self.reconfigure(now, route, &parameter) {
                    let mut causes = Vec::new();
                    cause.emit(&mut Writer::new(&mut causes));
                    let causes = Causes::new(&causes);
                    Parameter::ErrorCauseIndication { correlation, causes }.emit(&mut Writer::new(&mut parameters));
                }
            }
            let ack = AsconfAck { serial: asconf.serial, parameters: Parameters::new(&parameters) };
            self.reconfiguration.answer.clear();
            Chunk::AsconfAck(ack).emit(&mut Writer::new(&mut self.reconfiguration.answer));
            self.reconfiguration.peer_serial = expected;
        } else if asconf.serial != self.reconfiguration.peer_serial {
            return; // RFC 5061 §5.2 E4: out of turn.
        }
        let bytes = self.reconfiguration.answer.clone();
        let path = self.paths.by_route(route).or_else(|| self.paths.for_control(None));
        if let (Some(path), true) = (path, self.control.has_room()) {
            self.control.push(Control { path, tag: self.peer_tag, bytes, alone: false });
        }
    }

    /// A new path over `route`, which the peer named; to be confirmed.
    pub(super) fn take_in(&mut self, now: Instant, route: Route) -> PathIndex {
        let index = self.paths.add(now, route, PathState::Unconfirmed);
        self.paths[index].ask(now);
        index
    }

    /// Does what one parameter of an ASCONF from `source` asks for, or says why not.
    fn reconfigure(
        &mut self,
        now: Instant,
        source: Route,
        parameter: &Parameter<'_>,
    ) -> Result<(), (u32, Cause<'static>)> {
        match *parameter {
            Parameter::AddIp { correlation, address } => {
                let route = self.named(source, address);
                if self.paths.by_route(route).is_none() {
                    if self.paths.len() >= self.options.paths.max_paths {
                        // A NAT that forgets leaves a dead path behind each time.
                        match self.paths.worst() {
                            Some(index) => self.remove_path(now, index),
                            None => return Err((correlation, Cause::ResourceShortage(&[]))),
                        }
                    }
                    self.take_in(now, route);
                }
                Ok(())
            }
            Parameter::DeleteIp { correlation, address } => {
                if self.paths.by_route(source).is_none() || (!address.is_unspecified() && address == source.remote.ip())
                {
                    return Err((correlation, Cause::DeleteSourceAddress(&[])));
                }
                let leaves =
                    |route: Route| route != source && (address.is_unspecified() || route.remote.ip() == address);
                let gone: Vec<PathIndex> =
                    self.paths.enumerate().filter(|(_, path)| leaves(path.route())).map(|(index, _)| index).collect();
                gone.into_iter().for_each(|index| self.remove_path(now, index));
                // The peer may know that the path works when we do not yet: ask at once if it is all that is left.
                let unsure = self.paths.best_rank(None).is_none();
                if let Some(index) = self.paths.by_route(source).filter(|_| unsure) {
                    self.paths[index].ask(now);
                }
                Ok(())
            }
            _ => Ok(()), // Set Primary asks for a preference that measured delays overrule.
        }
    }

    /// The route that an address parameter stands for: the source of the packet for the wildcard, else that address
    /// with the source's port, as SCTP over UDP has it (RFC 6951 §5.4).
    fn named(&self, source: Route, address: IpAddr) -> Route {
        if address.is_unspecified() {
            return source;
        }
        Route::new(source.socket, SocketAddr::new(address, source.remote.port()))
    }
}
