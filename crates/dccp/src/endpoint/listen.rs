use super::cookie::{Cookie, MAX_CHANGES};
use super::{Endpoint, FlowId};
use crate::api::CloseReason;
use crate::conn::{Connection, Handshake, offer_in, offer_of_server, options_of_request};
use crate::seq::Seq;
use crate::wire::{Builder, Checksum, Header, Kind, Opt, Packet, Reset, ResetCode, ServiceCode, changes};
use braidcast_core::{Ecn, Heard, Instant};
use braidcast_secure::Insecure;
use std::sync::Arc;

impl Endpoint {
    /// A packet of no connection (RFC 4340 §8.5 steps 2 and 3).
    pub(super) fn handle_stray(
        &mut self,
        now: Instant,
        flow: FlowId,
        ecn: Ecn,
        checksum: Checksum,
        packet: &Packet<'_>,
    ) {
        let services = self.listeners.get(&flow.local_port);
        if services.is_none() && checksum != Checksum::Udp && !self.options.answer_for_host {
            // Packets of other processes come by here too; the answer is theirs.
            if !self.ports.owns(now, flow.local_port) {
                return;
            }
        }
        match (packet.header.kind, services) {
            (Kind::Request { .. }, None) => {
                self.reset(now, flow, packet, Reset::new(ResetCode::CONNECTION_REFUSED));
            }
            // The invalid code is in no list.
            (Kind::Request { service }, Some(services)) if !services.contains(&service) => {
                self.reset(now, flow, packet, Reset::new(ResetCode::BAD_SERVICE_CODE));
            }
            (Kind::Request { service }, Some(_)) => self.handle_request(now, flow, checksum, packet, service),
            (_, Some(_)) => self.handle_cookie(now, flow, ecn, checksum, packet),
            (_, None) => self.no_connection(now, flow, packet),
        }
    }

    fn handshake(flow: FlowId, checksum: Checksum, service: ServiceCode, iss: Seq) -> Handshake {
        let FlowId { route, local_port, remote_port } = flow;
        Handshake { route, checksum, local_port, remote_port, service, iss }
    }

    /// Returns `true` if there can be a connection with who sent this Request, as far as it is to be
    /// protected: if not, that is said at both ends.
    fn can_protect(&mut self, now: Instant, flow: FlowId, packet: &Packet<'_>) -> bool {
        let theirs = offer_in(&packet.options);
        let (ours, theirs_to_hear) = match (&self.options.security, theirs) {
            (None, None) => return true,
            (None, Some(_)) => (Insecure::plain_here(), Insecure::plain_there()),
            (Some(_), None) => (Insecure::plain_there(), Insecure::plain_here()),
            (Some(security), Some(theirs)) => match offer_of_server(security).agree(&theirs) {
                Ok(_) => return true,
                Err(disagreement) => (disagreement.into(), disagreement.mirrored().into()),
            },
        };
        if self.turned_away.len() < Self::MAX_TURNED_AWAY {
            self.turned_away.push_back((flow.route, CloseReason::Insecure(ours)));
        }
        let told = theirs_to_hear.reason().emit(CloseReason::MAX_TEXT);
        self.reset_with(now, flow, packet, Connection::no_protection(), &told);
        false
    }

    /// A Request for something that we serve: answered, and forgotten or not.
    fn handle_request(
        &mut self,
        now: Instant,
        flow: FlowId,
        checksum: Checksum,
        packet: &Packet<'_>,
        service: ServiceCode,
    ) {
        if !self.can_protect(now, flow, packet) {
            return;
        }
        let changes = changes(&packet.options);
        if !self.takes_clients() || changes.len() > MAX_CHANGES {
            return self.reset(now, flow, packet, Reset::new(ResetCode::TOO_BUSY));
        }
        let request = Seq::new(packet.header.seq);
        let iss = self.cookies.response_number(request, flow.into());
        let handshake = Self::handshake(flow, checksum, service, iss);
        let (options, rng) = (Arc::clone(&self.options), self.rng.fork());
        let mut connection = match Connection::respond(now, options, rng, handshake, request, &packet.options) {
            Ok(connection) => connection,
            Err(reset) => return self.reset(now, flow, packet, reset),
        };
        let refused_data = !packet.payload.is_empty();
        let cookie = self.cookies.seal(&Cookie { created: now, service, iss, isr: request, changes }, flow.into());
        connection.set_cookie(cookie);
        let most = flow.route.longest_answer(packet.as_bytes().len());
        if self.make_room_half_open() {
            connection.answer_request(refused_data, most);
            let id = self.insert(flow, connection, true);
            self.note_half_open(id);
        } else if self.roster.takes_replies() {
            let mut response = Vec::new();
            connection.respond_to_request(now, refused_data, most, &mut response);
            self.roster.reply(flow.route, response);
        }
    }

    /// Anything but a Request at a port that we listen at: it begins a connection if it brings an
    /// Init Cookie of ours back.
    fn handle_cookie(&mut self, now: Instant, flow: FlowId, ecn: Ecn, checksum: Checksum, packet: &Packet<'_>) {
        let cookies = packet.options.known().filter_map(|option| match option {
            Opt::InitCookie(value) => Some(value),
            _ => None,
        });
        let bytes: Vec<u8> = cookies.flatten().copied().collect();
        if bytes.is_empty() {
            return self.no_connection(now, flow, packet);
        }
        let bad = Reset::new(ResetCode::BAD_INIT_COOKIE);
        let Some(cookie) = self.cookies.open(&bytes, flow.into(), now) else {
            return self.reset(now, flow, packet, bad);
        };
        if !self.takes_clients() {
            return self.reset(now, flow, packet, Reset::new(ResetCode::TOO_BUSY));
        }
        let secured = self.options.security.is_some();
        let host = flow.route.remote.ip();
        if secured && !self.make_room_for_stranger(now, host) {
            return; // It asks again, and finds a place in time.
        }
        let handshake = Self::handshake(flow, checksum, cookie.service, cookie.iss);
        let request = options_of_request(&cookie.changes, cookie.service);
        let (options, rng) = (Arc::clone(&self.options), self.rng.fork());
        // What was taken before the Response left is taken again, and leads to the same.
        let Ok(mut connection) = Connection::respond(now, options, rng, handshake, cookie.isr, &request) else {
            return self.reset(now, flow, packet, bad);
        };
        connection.revive(now);
        if connection.handle_packet(now, ecn, packet) {
            self.heard = Heard::Peer;
        }
        if !connection.is_half_open() {
            let id = self.insert(flow, connection, true);
            if secured {
                self.strangers.enter(now, host, id);
            }
        }
    }

    /// Answers a packet that belongs nowhere, unless it is a Reset itself (RFC 4340 §8.5 step 2).
    pub(super) fn no_connection(&mut self, now: Instant, flow: FlowId, packet: &Packet<'_>) {
        self.reset(now, flow, packet, Reset::new(ResetCode::NO_CONNECTION));
    }

    /// A Reset on behalf of no connection: its numbers are taken from the packet (RFC 4340 §8.3.1).
    fn reset(&mut self, now: Instant, flow: FlowId, packet: &Packet<'_>, reset: Reset) {
        self.reset_with(now, flow, packet, reset, &[]);
    }

    /// The same with a text for the other end's user.
    fn reset_with(&mut self, now: Instant, flow: FlowId, packet: &Packet<'_>, reset: Reset, text: &[u8]) {
        let header = &packet.header;
        if matches!(header.kind, Kind::Reset { .. }) || !self.roster.takes_replies() || !self.resets.allow(now) {
            return;
        }
        let Some(checksum) = self.checksum(flow.route) else { return };
        let mask = if header.short { 0xff_ffff } else { (1 << 48) - 1 };
        let seq = header.kind.ack().map_or(0, |ack| ack.wrapping_add(1) & mask);
        let kind = Kind::Reset { ack: header.seq, reset };
        let (source_port, destination_port) = (flow.local_port, flow.remote_port);
        let header = Header { source_port, destination_port, ccval: 0, coverage: 0, short: false, seq, kind };
        let mut bytes = Vec::new();
        Builder::begin(&mut bytes, &header).finish(text, checksum);
        self.roster.reply(flow.route, bytes);
    }
}
