use super::{Endpoint, Entry};
use crate::addresses::Addresses;
use crate::assoc::{Association, nonzero};
use crate::capabilities::{Offer, Unrecognized};
use crate::cookie::{Cookie, CookieError};
use crate::wire::chunk::{Abort, CookieAck, ErrorChunk, Init};
use crate::wire::{self, Cause, Causes, Chunk, Header, Packet, Parameter, Parameters};
use braidcast_core::{Ecn, Heard, Instant, Route, Writer};
use braidcast_secure::Insecure;
use core::time::Duration;
use std::sync::Arc;

/// What an INIT ACK says about us, from nothing or from an existing association.
struct Answer {
    local_tag: u32,
    initial_tsn: u32,
    offer: Offer,
    tie_tags: (u32, u32),
}

impl Endpoint {
    /// INIT: answered by INIT ACK with all that is known in a cookie, and forgotten (RFC 9260 §5.1
    /// B, §5.2.1, §5.2.2). The packet has `len` bytes.
    pub(super) fn handle_init(&mut self, now: Instant, route: Route, packet: &Packet<'_>, len: usize) {
        // RFC 9260 §8.5.1 A, §6.10: tag 0, and alone in its packet.
        if packet.header.verification_tag != 0 || packet.chunks().nth(1).is_some() {
            return;
        }
        let Some(raw) = packet.chunks().next().and_then(Result::ok) else { return };
        let Ok(Chunk::Init(init)) = Chunk::parse(raw) else { return };
        let port = packet.header.source_port;
        if init.initiate_tag == 0 {
            return; // RFC 9260 §3.3.2: silently discarded.
        }
        let there = || self.at(route, port).iter().filter_map(|id| Some((*id, self.association(*id)?)));
        if there().any(|(_, it)| it.local_tag() == init.initiate_tag) {
            return; // Our own, which somebody sent back: an answer would end our handshake.
        }
        // With security a newcomer stands beside what there is; only where both ends connect at
        // once is it one association.
        let secured = self.options.security.is_some();
        let existing = there().find(|(_, it)| !secured || it.is_opening());
        if secured && existing.is_some_and(|(_, it)| init.initiate_tag < it.local_tag()) {
            // Of two handshakes that of the greater tag goes on: both ends settle by the same
            // chunks.
            return;
        }
        let existing = existing.map(|(id, _)| id);
        if secured && existing.is_none() && !self.listening && there().next().is_some() {
            return;
        }
        if init.a_rwnd < Init::MIN_A_RWND || init.outbound_streams == 0 || init.inbound_streams == 0 {
            return self.refuse_init(route, port, init.initiate_tag, &Cause::InvalidMandatoryParameter);
        }
        if existing.is_none() && !self.listening {
            return self.refuse_init(route, port, init.initiate_tag, &Cause::OutOfResource);
        }
        let peer_offer = match Offer::parse(init.parameters) {
            Ok(offer) => offer,
            Err(refusal) => {
                let mut causes = Vec::new();
                refusal.emit(&mut Writer::new(&mut causes));
                return self.abort_stray(route, port, init.initiate_tag, false, &causes);
            }
        };
        if self.options.security.is_none() && peer_offer.encrypts() {
            self.turn_away(route, Insecure::plain_here());
        }
        let Some(answer) = self.answer(existing) else {
            // RFC 9260 §9.2: in SHUTDOWN-ACK-SENT the SHUTDOWN ACK is repeated instead.
            if let Some(id) = existing {
                if let Some(entry) = self.roster.get_mut(id) {
                    entry.association.repeat_shutdown_ack();
                }
                self.settle(id);
            }
            return;
        };
        if let Some(new) = existing.and_then(|id| self.new_addresses(id, route, init.parameters)) {
            return self.refuse_init(
                route,
                port,
                init.initiate_tag,
                &Cause::RestartWithNewAddresses(Parameters::new(&new)),
            );
        }
        if let Err(refusal) = answer.offer.agree_on_keys(&peer_offer, [0; 16]) {
            let mut causes = Vec::new();
            refusal.emit(&mut Writer::new(&mut causes));
            refusal.insecure().into_iter().for_each(|why| self.turn_away(route, why));
            return self.abort_stray(route, port, init.initiate_tag, false, &causes);
        }
        self.send_init_ack(now, (route, port), (&init, raw.bytes), peer_offer, answer, len);
    }

    /// Our side of an INIT ACK; `None` where none is due.
    fn answer(&mut self, existing: Option<super::AssociationId>) -> Option<Answer> {
        let mut rng = self.rng.fork();
        let options = &self.options;
        let Some(association) = existing.and_then(|id| self.association(id)) else {
            let offer = Offer::of(&mut rng, options).answering(&mut rng, options.security.as_ref());
            return Some(Answer { local_tag: nonzero(&mut rng), initial_tsn: rng.u32(), offer, tie_tags: (0, 0) });
        };
        let (local_tag, peer_tag) = (association.local_tag(), association.peer_tag());
        if let Some((initial_tsn, offer)) = association.opening() {
            // Both ends connect at once: the INIT ACK names what our INIT named (RFC 9260 §5.2.1).
            let tie_tags = if peer_tag == 0 { (0, 0) } else { (local_tag, peer_tag) };
            return Some(Answer { local_tag, initial_tsn, offer, tie_tags });
        }
        if association.awaits_shutdown_complete() {
            return None;
        }
        // The peer may have restarted: a new tag, and the old ones tied to it (RFC 9260 §5.2.2).
        let offer = Offer::of(&mut rng, options);
        let tie_tags = (local_tag, peer_tag);
        Some(Answer { local_tag: nonzero(&mut rng), initial_tsn: rng.u32(), offer, tie_tags })
    }

    /// The addresses, as parameters, that an INIT lists and the association `id` does not know:
    /// whoever restarts it must not bring any (RFC 9260 §5.2.1, §5.2.2). `None`: it brings none, or
    /// lists do not count.
    fn new_addresses(&self, id: super::AssociationId, route: Route, listed: Parameters<'_>) -> Option<Vec<u8>> {
        let association = self.association(id).filter(|it| it.peer_tag() != 0)?;
        let mut bytes = Vec::new();
        let new = Addresses::of_peer(&self.options, listed);
        let new = new.iter().filter(|&it| it != route.remote.ip() && !association.knows_address(it));
        new.for_each(|address| wire::param::emit_address(&mut Writer::new(&mut bytes), address));
        (!bytes.is_empty()).then_some(bytes)
    }

    /// The INIT came in a packet of `len` bytes, from who knows where: the answer is no longer than
    /// [`Route::longest_answer`]. What does not fit is left out: what the peer did not offer, which
    /// comes to nothing anyway; then the report of what we do not know.
    fn send_init_ack(
        &mut self,
        now: Instant,
        (route, port): (Route, u16),
        (init, raw): (&Init<'_>, &[u8]),
        peer_offer: Offer,
        mut ours: Answer,
        len: usize,
    ) {
        let most = route.longest_answer(len);
        for reports in [true, true, false] {
            let packet = self.init_ack(now, (route, port), (init, raw), peer_offer, &ours, reports);
            if packet.len() <= most {
                return self.roster.reply(route, packet);
            }
            ours.offer = ours.offer.as_far_as(&peer_offer);
        }
    }

    fn init_ack(
        &mut self,
        now: Instant,
        (route, port): (Route, u16),
        (init, raw): (&Init<'_>, &[u8]),
        peer_offer: Offer,
        ours: &Answer,
        reports: bool,
    ) -> Vec<u8> {
        let preservative = crate::capabilities::recognized(init.parameters).find_map(|parameter| match parameter {
            Ok(Parameter::CookiePreservative(ms)) => Some(Duration::from_millis(u64::from(ms))),
            _ => None,
        });
        // At most doubled (RFC 9260 §5.2.6 leaves the limit to us).
        let life = self.options.timers.cookie_life;
        let lifespan = life + preservative.unwrap_or_default().min(life);
        let mut stated = Vec::new();
        let mut w = Writer::new(&mut stated);
        ours.offer.emit(&mut w);
        Addresses::ours(&self.options).emit(&mut w);
        if reports {
            Unrecognized::new(init.parameters).emit_parameters(&mut w);
        }
        let chunk = |parameters| Init {
            initiate_tag: ours.local_tag,
            a_rwnd: self.options.limits.receive_buffer as u32,
            // No more than the peer takes (RFC 9260 §3.3.3).
            outbound_streams: self.options.limits.streams.min(init.inbound_streams),
            inbound_streams: self.options.limits.streams,
            initial_tsn: ours.initial_tsn,
            parameters: Parameters::new(parameters),
        };
        let mut unsigned = Vec::new();
        chunk(&stated).emit_ack(&mut Writer::new(&mut unsigned));
        let cookie = Cookie {
            created: now,
            lifespan,
            local_tag: ours.local_tag,
            peer_tag: init.initiate_tag,
            local_initial_tsn: ours.initial_tsn,
            peer_initial_tsn: init.initial_tsn,
            peer_a_rwnd: init.a_rwnd,
            outbound_streams: self.options.limits.streams.min(init.inbound_streams),
            inbound_streams: self.options.limits.streams.min(init.outbound_streams),
            local_port: self.options.local_port,
            peer_port: port,
            route,
            local_tie_tag: ours.tie_tags.0,
            peer_tie_tag: ours.tie_tags.1,
            local_offer: ours.offer,
            peer_offer,
            peer_addresses: Addresses::of_peer(&self.options, init.parameters),
            bound: wire::binding(raw, &unsigned),
        };
        let mut sealed = Vec::new();
        self.cookies.issue(&cookie, &mut sealed);
        let mut parameters = Vec::new();
        Parameter::StateCookie(&sealed).emit(&mut Writer::new(&mut parameters));
        parameters.extend_from_slice(&stated);
        self.one_chunk(port, init.initiate_tag, &Chunk::InitAck(chunk(&parameters)))
    }

    /// COOKIE ECHO: the one thing that makes an association (RFC 9260 §5.1 D, §5.2.4).
    pub(super) fn handle_cookie_echo(&mut self, now: Instant, route: Route, packet: &Packet<'_>, bytes: &[u8]) {
        let Some(Ok(Chunk::CookieEcho(echo))) = packet.chunks().next().and_then(Result::ok).map(Chunk::parse) else {
            return;
        };
        let header = packet.header;
        let cookie = match self.cookies.open(echo.cookie, now) {
            Ok(cookie) => cookie,
            Err(CookieError::Stale { by, cookie }) => {
                if self.existing(route, &cookie).is_some_and(|(_, case)| case == Case::Duplicate) {
                    *cookie
                } else {
                    return self.reply_stale(route, &cookie, by);
                }
            }
            Err(CookieError::Forged | CookieError::Malformed { .. }) => return,
        };
        // RFC 9260 §5.1.5 2, 3: tag and ports must be those that the cookie was made for.
        if header.verification_tag != cookie.local_tag
            || (header.source_port, header.destination_port) != (cookie.peer_port, cookie.local_port)
        {
            return;
        }
        let existing = self.existing(route, &cookie);
        self.heard = Heard::Peer;
        let id = match existing {
            Some((_, Case::Stray)) => return,
            Some((id, case)) => {
                let restart = case == Case::Restart;
                let entry = self.roster.get_mut(id);
                if entry.is_some_and(|entry| !entry.association.handle_cookie_echo(now, route, &cookie, restart)) {
                    return self.reply_chunk(route, cookie.peer_port, cookie.peer_tag, &Chunk::CookieAck(CookieAck));
                }
                id
            }
            None => {
                // Where the cookie was sent somebody is; where this came from there may be nobody.
                let host = cookie.route.remote.ip();
                let most = self.options.limits.max_associations;
                let secured = self.options.security.is_some();
                let crowded = !secured && self.roster.len() >= most && self.count_alive() >= most;
                let full = most == 0 || (crowded && !self.turn_out_idlest(now, host));
                if !self.listening || full {
                    return self.refuse_init(route, cookie.peer_port, cookie.peer_tag, &Cause::OutOfResource);
                }
                if secured && !self.make_room_for_stranger(now, host) {
                    return; // It asks again, and finds a place in time.
                }
                let rng = self.rng.fork();
                let mut association = Association::accept(now, Arc::clone(&self.options), rng, &cookie, route);
                association.handle_cookie_echo(now, route, &cookie, false);
                let id = self.insert(Entry::new(association, Some((host, now))));
                if secured {
                    self.strangers.enter(now, host, id);
                }
                id
            }
        };
        // What is bundled behind the cookie: data, perhaps.
        if let Some(entry) = self.roster.get_mut(id) {
            entry.association.handle_packet(now, route, Ecn::NotEct, packet, bytes);
        }
        self.settle(id);
    }

    /// The cookie is too old, `by` how much: the peer begins again.
    fn reply_stale(&mut self, route: Route, cookie: &Cookie, by: Duration) {
        let staleness_us = u32::try_from(by.as_micros()).unwrap_or(u32::MAX);
        let mut causes = Vec::new();
        Cause::StaleCookie { staleness: staleness_us }.emit(&mut Writer::new(&mut causes));
        let chunk = Chunk::Error(ErrorChunk { causes: Causes::new(&causes) });
        self.reply_chunk(route, cookie.peer_port, cookie.peer_tag, &chunk);
    }

    /// The association that `cookie` is about, and which case of RFC 9260 §5.2.4 table 12 this is.
    /// With security none restarts another: who lost its state lost its keys, and comes as a
    /// newcomer.
    fn existing(&self, route: Route, cookie: &Cookie) -> Option<(super::AssociationId, Case)> {
        let by_tag = self.by_tag.get(&cookie.local_tag);
        let by_route = || self.at(route, cookie.peer_port).first().filter(|_| self.options.security.is_none());
        let id = *by_tag.or_else(by_route)?;
        let association = self.association(id)?;
        let (local, peer) = (association.local_tag(), association.peer_tag());
        let case = match (cookie.local_tag == local, cookie.peer_tag == peer) {
            (true, _) => Case::Duplicate,
            (false, false) if (cookie.local_tie_tag, cookie.peer_tie_tag) == (local, peer) => Case::Restart,
            _ => Case::Stray,
        };
        Some((id, case))
    }

    fn refuse_init(&mut self, route: Route, port: u16, tag: u32, cause: &Cause<'_>) {
        let mut causes = Vec::new();
        cause.emit(&mut Writer::new(&mut causes));
        self.abort_stray(route, port, tag, false, &causes);
    }

    pub(super) fn abort_stray(&mut self, route: Route, port: u16, tag: u32, reflected: bool, causes: &[u8]) {
        self.reply_chunk(route, port, tag, &Chunk::Abort(Abort { reflected, causes: Causes::new(causes) }));
    }

    /// Answers with one chunk, on behalf of no association.
    pub(super) fn reply_chunk(&mut self, route: Route, port: u16, tag: u32, chunk: &Chunk<'_>) {
        let packet = self.one_chunk(port, tag, chunk);
        self.roster.reply(route, packet);
    }

    fn one_chunk(&self, port: u16, tag: u32, chunk: &Chunk<'_>) -> Vec<u8> {
        let mut packet = Vec::new();
        let source_port = self.options.local_port;
        wire::begin(&mut packet, Header { source_port, destination_port: port, verification_tag: tag });
        chunk.emit(&mut Writer::new(&mut packet));
        wire::seal(&mut packet);
        packet
    }
}

/// What a COOKIE ECHO means to the association that there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Case {
    /// A: the peer restarted.
    Restart,
    /// B and D: both connected at once, or the COOKIE ACK was lost.
    Duplicate,
    /// C and all others: dropped.
    Stray,
}
