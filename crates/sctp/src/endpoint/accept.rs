use super::Endpoint;
use crate::addresses::Addresses;
use crate::assoc::{Association, nonzero};
use crate::capabilities::{Offer, Unrecognized};
use crate::cookie::{Cookie, CookieError};
use crate::wire::chunk::{Abort, CookieAck, ErrorChunk, Init};
use crate::wire::{self, Cause, Causes, Chunk, Header, Packet, Parameter, Parameters};
use braidcast_core::{Ecn, Instant, Route, Writer};
use core::time::Duration;
use std::sync::Arc;

/// What an INIT ACK tells about us, from nothing or from the association that there is.
struct Answer {
    local_tag: u32,
    initial_tsn: u32,
    offer: Offer,
    tie_tags: (u32, u32),
}

impl Endpoint {
    /// Least a_rwnd that an INIT may name (RFC 9260 §3.3.2).
    const MIN_A_RWND: u32 = 1500;

    /// INIT: answered by INIT ACK with all that is known in a cookie, and forgotten (RFC 9260 §5.1 B, §5.2.1, §5.2.2).
    pub(super) fn handle_init(&mut self, now: Instant, route: Route, packet: &Packet<'_>) {
        // RFC 9260 §8.5.1 A, §6.10: tag 0, and alone in its packet.
        if packet.header.verification_tag != 0 || packet.chunks().count() != 1 {
            return;
        }
        let Some(Ok(Chunk::Init(init))) = packet.chunks().next().and_then(Result::ok).map(Chunk::parse) else { return };
        let port = packet.header.source_port;
        let existing = self.by_route.get(&(route, port)).copied();
        if init.initiate_tag == 0 {
            return; // RFC 9260 §3.3.2: silently discarded.
        }
        if init.a_rwnd < Self::MIN_A_RWND || init.outbound_streams == 0 || init.inbound_streams == 0 {
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
        if let Err(refusal) = answer.offer.agree_on_keys(&peer_offer) {
            let mut causes = Vec::new();
            refusal.emit(&mut Writer::new(&mut causes));
            return self.abort_stray(route, port, init.initiate_tag, false, &causes);
        }
        self.send_init_ack(now, route, port, &init, peer_offer, &answer);
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

    fn send_init_ack(
        &mut self,
        now: Instant,
        route: Route,
        port: u16,
        init: &Init<'_>,
        peer_offer: Offer,
        ours: &Answer,
    ) {
        let preservative = crate::capabilities::recognized(init.parameters).find_map(|parameter| match parameter {
            Ok(Parameter::CookiePreservative(ms)) => Some(Duration::from_millis(u64::from(ms))),
            _ => None,
        });
        // At most doubled (RFC 9260 §5.2.6 leaves the limit to us).
        let life = self.options.timers.cookie_life;
        let lifespan = life + preservative.unwrap_or_default().min(life);
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
        };
        let mut sealed = Vec::new();
        self.cookies.issue(&cookie, &mut sealed);
        let mut parameters = Vec::new();
        let mut w = Writer::new(&mut parameters);
        Parameter::StateCookie(&sealed).emit(&mut w);
        ours.offer.emit(&mut w);
        Addresses::ours(&self.options).emit(&mut w);
        Unrecognized::new(init.parameters).emit_parameters(&mut w);
        let chunk = Init {
            initiate_tag: ours.local_tag,
            a_rwnd: self.options.limits.receive_buffer as u32,
            outbound_streams: self.options.limits.streams,
            inbound_streams: self.options.limits.streams,
            initial_tsn: ours.initial_tsn,
            parameters: Parameters::new(&parameters),
        };
        self.reply_chunk(route, port, init.initiate_tag, &Chunk::InitAck(chunk));
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
                    let staleness_us = u32::try_from(by.as_micros()).unwrap_or(u32::MAX);
                    let mut causes = Vec::new();
                    Cause::StaleCookie { staleness: staleness_us }.emit(&mut Writer::new(&mut causes));
                    let chunk = Chunk::Error(ErrorChunk { causes: Causes::new(&causes) });
                    return self.reply_chunk(route, header.source_port, cookie.peer_tag, &chunk);
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
        let id = match self.existing(route, &cookie) {
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
                if !self.listening || self.roster.len() >= self.options.limits.max_associations {
                    return self.refuse_init(route, cookie.peer_port, cookie.peer_tag, &Cause::OutOfResource);
                }
                let rng = self.rng.fork();
                let mut association = Association::accept(now, Arc::clone(&self.options), rng, &cookie, route);
                association.handle_cookie_echo(now, route, &cookie, false);
                self.insert(association)
            }
        };
        // What is bundled behind the cookie: data, perhaps.
        if let Some(entry) = self.roster.get_mut(id) {
            entry.association.handle_packet(now, route, Ecn::NotEct, packet, bytes);
        }
        self.settle(id);
    }

    /// The association that `cookie` is about, and which case of RFC 9260 §5.2.4 table 12 this is.
    fn existing(&self, route: Route, cookie: &Cookie) -> Option<(super::AssociationId, Case)> {
        let by_tag = self.by_tag.get(&cookie.local_tag);
        let id = *by_tag.or_else(|| self.by_route.get(&(route, cookie.peer_port)))?;
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
        let mut packet = Vec::new();
        let source_port = self.options.local_port;
        wire::begin(&mut packet, Header { source_port, destination_port: port, verification_tag: tag });
        chunk.emit(&mut Writer::new(&mut packet));
        wire::seal(&mut packet);
        self.roster.reply(route, packet);
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
