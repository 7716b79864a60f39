//! The handshake, as the side that sent INIT sees it (RFC 9260 §5). The other side keeps nothing
//! until a cookie comes back.

use super::control::Control;
use super::opening::{Opening, Retry, Stage};
use super::receive::Inbound;
use super::{Open, Settled};
use crate::addresses::Addresses;
use crate::api::{CloseReason, JoinError, PathState};
use crate::capabilities::{Offer, Refusal, Unrecognized};
use crate::cookie::Cookie;
use crate::path::PathIndex;
use crate::wire::chunk::{Abort, CookieEcho, ErrorChunk, HeartbeatAck, Init};
use crate::wire::param::kind;
use crate::wire::{Cause, Causes, Chunk, Parameter, Parameters, UnknownAction, binding, padded};
use braidcast_core::{Ecn, Instant, PathId, Route, Writer};
use core::mem;
use core::time::Duration;

/// Bytes of padding in an INIT that offers keys (RFC 4820).
const PADDING: usize = 28;
/// An INIT ACK whose cookie nobody answers for this long over all paths leads nowhere: somebody on
/// one of the networks may have made it up. Two round trips of 1.2 s.
const NOWHERE: Duration = Duration::from_millis(2500);
/// For this long the answers of the other networks go first then.
const OTHERS_FIRST: Duration = Duration::from_secs(2);

impl Opening {
    /// Repeats INIT or COOKIE ECHO, over the routes in turn or over all, as any of them may be
    /// dead.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        let limit = self.options.timers.max_init_retransmits;
        let (rto, over_all) = (self.options.timers.rto, self.options.timers.open_over_all);
        let (Stage::CookieWait(retry) | Stage::CookieEchoed { retry, .. }) = &mut self.stage else { return };
        if retry.due > now {
            return;
        }
        if retry.tries > limit {
            return self.close(CloseReason::NoAnswer);
        }
        if let Stage::CookieEchoed { retry, route, .. } = &self.stage
            && over_all.is_some()
            && self.paths.len() > 1
            && now.since(retry.begun) >= NOWHERE
        {
            (self.misled, self.stage) = (Some((*route, now + OTHERS_FIRST)), Stage::CookieWait(*retry));
        }
        let (Stage::CookieWait(retry) | Stage::CookieEchoed { retry, .. }) = &mut self.stage else { return };
        // An answer that takes a second by what is known is not asked for again after half of it.
        let pause = (rto.initial * (1 << retry.tries.min(16))).min(over_all.unwrap_or(rto.max));
        retry.due = now + pause.max(retry.takes * 5 / 4).min(rto.max);
        let tries = retry.tries as usize;
        retry.tries += 1;
        // The first COOKIE ECHO goes where the INIT ACK came from.
        let echoes = matches!(self.stage, Stage::CookieEchoed { .. });
        if over_all.is_some() && !(echoes && tries == 0) {
            // What still waits of the last time would only come twice.
            self.control.clear();
            let paths: Vec<PathIndex> = self.paths.indices().collect();
            return paths.into_iter().for_each(|path| self.open_over(path));
        }
        let first = if echoes { self.paths.last().get() } else { 0 };
        if let Some(path) = self.paths.at((first + tries) % self.paths.places().max(1)) {
            self.open_over(path);
        }
    }

    /// Sends INIT or COOKIE ECHO over this path.
    pub(super) fn open_over(&mut self, path: PathIndex) {
        let control = match &self.stage {
            Stage::CookieWait(_) => Control { path, tag: 0, bytes: self.init(), alone: true },
            Stage::CookieEchoed { settled, echo, .. } => {
                Control { path, tag: settled.peer_tag, bytes: echo.clone(), alone: false }
            }
            Stage::Closed(_) => return,
        };
        self.control.push(control);
    }

    /// One more path, which joins when the association is open; it may be the one that opens it.
    pub(super) fn join(&mut self, now: Instant, route: Route) -> Result<PathId, JoinError> {
        if let Some(index) = self.paths.by_route(route) {
            return Ok(self.paths[index].id());
        }
        if self.is_closed() {
            return Err(JoinError::Closing);
        }
        self.paths.check_room()?;
        let index = self.paths.add(now, route, PathState::Unconfirmed);
        if self.options.timers.open_over_all.is_some() {
            self.open_over(index);
        }
        Ok(self.paths[index].id())
    }

    /// Our INIT, which says the same each time.
    fn init(&self) -> Vec<u8> {
        let mut parameters = Vec::with_capacity(Offer::MAX_EMITTED);
        let mut w = Writer::new(&mut parameters);
        self.offer.emit(&mut w);
        Addresses::ours(&self.options).emit(&mut w);
        if self.options.security.is_some() {
            // So that an answer with a cookie is no longer than an answer to a stranger may be.
            Parameter::Unknown { kind: kind::PADDING, value: &[0; PADDING] }.emit(&mut w);
        }
        let init = Init {
            initiate_tag: self.local_tag,
            a_rwnd: self.options.limits.receive_buffer as u32,
            outbound_streams: self.options.limits.streams,
            inbound_streams: self.options.limits.streams,
            initial_tsn: self.initial_tsn,
            parameters: Parameters::new(&parameters),
        };
        let mut bytes = Vec::new();
        init.emit(&mut Writer::new(&mut bytes));
        bytes
    }

    /// A packet with our verification tag. If it opens the association, the rest of it is left in
    /// `inbound`.
    pub(super) fn handle_packet(&mut self, now: Instant, inbound: &mut Inbound<'_>) -> Option<Box<Open>> {
        let mut redundancy = false;
        while !self.is_closed() {
            let (raw, chunk) = match inbound.next(self.stage.keys(), &mut self.journal.stats) {
                None => break,
                Some(Ok(chunk)) => chunk,
                Some(Err(error)) => {
                    self.violation(&error.to_string());
                    break;
                }
            };
            let Some(index) = self.paths.by_route(inbound.route) else {
                self.journal.stats.dropped_packets += 1;
                break;
            };
            let agreed = self.stage.settled().map(|settled| settled.agreed);
            match chunk {
                Chunk::InitAck(init) => self.handle_init_ack(now, index, init, raw.bytes),
                Chunk::CookieAck(_) => {
                    let open = self.handle_cookie_ack(now, index);
                    if open.is_some() {
                        return open;
                    }
                }
                // With the T bit the tag would be the peer's own (RFC 9260 §8.5.1 B).
                Chunk::Abort(abort) if !abort.reflected => {
                    self.control.clear(); // RFC 9260 §9.1: nothing answers it.
                    self.close(CloseReason::by_peer(abort.causes, false));
                }
                // RFC 9260 §8.3: from COOKIE-ECHOED on.
                Chunk::Heartbeat(heartbeat) => {
                    if let Some(tag) = self.stage.settled().map(|settled| settled.peer_tag) {
                        let ack = HeartbeatAck { info: heartbeat.info };
                        self.control.push_chunk(index, tag, &Chunk::HeartbeatAck(ack));
                    }
                }
                Chunk::Error(error) => self.handle_error(now, &error),
                Chunk::Redundancy(_) => redundancy = true,
                // What was agreed on is for an association that is open, as all below.
                Chunk::NrSack(_) if agreed.is_some_and(|agreed| agreed.nr_sack) => {}
                Chunk::Slice(_) if agreed.is_some_and(|agreed| agreed.slices) => {}
                Chunk::Ecne(_) | Chunk::Cwr(_) if agreed.is_some_and(|agreed| agreed.ecn) => {}
                Chunk::NrSack(_) | Chunk::Ecne(_) | Chunk::Cwr(_) | Chunk::Slice(_) | Chunk::Unknown(_)
                    if !UnknownAction::for_chunk(raw.kind).skips() =>
                {
                    break;
                }
                _ => {}
            }
        }
        let index = self.paths.by_route(inbound.route)?;
        let path = &mut self.paths[index];
        path.on_packet_received(inbound.bytes.len(), inbound.ecn);
        if self.stage.settled().is_some_and(|settled| settled.agreed.ecn) {
            path.on_mark_received(inbound.ecn == Ecn::Ce, false, redundancy);
        }
        None
    }

    /// INIT ACK (RFC 9260 §5.1 C), as `raw` has it. It came over the path `index`, and so confirms
    /// it.
    fn handle_init_ack(&mut self, now: Instant, index: PathIndex, init: Init<'_>, raw: &[u8]) {
        let route = self.paths[index].route();
        let misleads = self.misled.is_some_and(|(misled, until)| misled == route && now < until);
        if misleads || !matches!(self.stage, Stage::CookieWait(_)) {
            return; // RFC 9260 §5.2.3.
        }
        if let Some(what) = self.refuse_values(index, &init) {
            return self.close(CloseReason::Violation(what.into()));
        }
        if init.a_rwnd < Init::MIN_A_RWND {
            return; // RFC 9260 §3.3.3: dropped; T1 goes on.
        }
        let peer_offer = match Offer::parse(init.parameters) {
            Ok(offer) => offer,
            Err(refusal) => return self.refuse(init.initiate_tag, &refusal),
        };
        let bound = binding(&self.init(), raw);
        match self.offer.agree_on_keys(&peer_offer, bound) {
            Ok(_) => {}
            Err(refusal) => return self.refuse(init.initiate_tag, &refusal),
        }
        let mut cookie = None;
        for raw in init.parameters.iter().map_while(Result::ok) {
            if let Ok(Parameter::StateCookie(bytes)) = Parameter::parse(raw) {
                cookie = Some(bytes);
            }
        }
        let Some(cookie) = cookie else {
            let what = "INIT ACK without a state cookie";
            let mut causes = Vec::new();
            Cause::ProtocolViolation(what.as_bytes()).emit(&mut Writer::new(&mut causes));
            self.control.abort(&self.paths, Some(init.initiate_tag), &causes);
            return self.close(CloseReason::Violation(what.into()));
        };
        let ours = (self.initial_tsn, &self.offer);
        let settled = Box::new(Settled::by_init_ack(&self.options, ours, (&init, &peer_offer), bound));
        let mut echo = Vec::with_capacity(padded(4 + cookie.len()));
        Chunk::CookieEcho(CookieEcho { cookie }).emit(&mut Writer::new(&mut echo));
        let unrecognized = Unrecognized::new(init.parameters);
        if !unrecognized.is_empty() {
            // RFC 9260 §3.2.2: reported in an ERROR chunk bundled with the COOKIE ECHO.
            let mut causes = Vec::new();
            unrecognized.emit_cause(&mut Writer::new(&mut causes));
            Chunk::Error(ErrorChunk { causes: Causes::new(&causes) }).emit(&mut Writer::new(&mut echo));
        }
        self.paths.note_last(index);
        // INITs that have not left yet are useless.
        self.control.clear();
        let takes = match &self.stage {
            Stage::CookieWait(retry) => now.since(retry.begun),
            _ => Duration::ZERO,
        };
        self.stage = Stage::CookieEchoed { retry: Retry::new(now, takes), route, echo, settled };
        self.handle_timeout(now);
    }

    /// Answers values that an INIT ACK must not have by ABORT (RFC 9260 §3.3.3); why no association
    /// comes of it, if so.
    fn refuse_values(&mut self, index: PathIndex, init: &Init<'_>) -> Option<&'static str> {
        if init.initiate_tag == 0 {
            // The peer's tag is not known: ours goes back.
            self.control.clear();
            let abort = Abort { reflected: true, causes: Causes::new(&[]) };
            self.control.push_chunk(index, self.local_tag, &Chunk::Abort(abort));
            return Some("INIT ACK with a tag of zero");
        }
        let fatal = init.outbound_streams == 0 || init.inbound_streams == 0;
        if fatal {
            self.control.clear();
        }
        if fatal || init.a_rwnd < Init::MIN_A_RWND {
            let mut causes = Vec::new();
            Cause::InvalidMandatoryParameter.emit(&mut Writer::new(&mut causes));
            let abort = Abort { reflected: false, causes: Causes::new(&causes) };
            self.control.push_chunk(index, init.initiate_tag, &Chunk::Abort(abort));
        }
        fatal.then_some("INIT ACK with a stream count of zero")
    }

    /// COOKIE ACK (RFC 9260 §5.1 E): the handshake is done. The other routes join now.
    fn handle_cookie_ack(&mut self, now: Instant, index: PathIndex) -> Option<Box<Open>> {
        let (tries, begun, settled) = match mem::replace(&mut self.stage, Stage::Closed(None)) {
            Stage::CookieEchoed { retry, settled, .. } => (retry.tries, retry.begun, settled),
            stage => {
                self.stage = stage;
                return None; // RFC 9260 §5.2.5.
            }
        };
        self.paths[index].confirm();
        if tries == 1 {
            self.paths[index].measure_handshake(now.since(begun));
        }
        let mut open = Open::new(now, self.hand_over(), *settled);
        open.establish(now);
        // The peer may know the path of an earlier COOKIE ECHO only.
        open.begin_joins(now, index, tries > 1);
        Some(open)
    }

    /// A valid COOKIE ECHO for this association came over `route`: both ends connected at once (RFC
    /// 9260 §5.2.4 B, D).
    pub(super) fn handle_cookie_echo(&mut self, now: Instant, route: Route, cookie: &Cookie) -> Option<Box<Open>> {
        if self.is_closed() {
            return None;
        }
        let known = self.paths.by_route(route);
        let index = known.unwrap_or_else(|| self.paths.add(now, route, PathState::Active));
        self.paths[index].confirm();
        let settled = Settled::by_cookie(&self.options, cookie);
        let mut open = Open::new(now, self.hand_over(), settled);
        open.establish(now);
        open.begin_joins(now, index, false);
        open.cookie_ack(index);
        Some(open)
    }

    /// A Stale Cookie error: begin again (RFC 9260 §5.2.6).
    fn handle_error(&mut self, now: Instant, error: &ErrorChunk<'_>) {
        for raw in error.causes.iter().map_while(Result::ok) {
            if let (Ok(Cause::StaleCookie { .. }), Stage::CookieEchoed { retry, .. }) = (Cause::parse(raw), &self.stage)
            {
                self.stage = Stage::CookieWait(Retry { due: now, ..*retry });
            }
        }
    }

    /// The peer's offer cannot be taken.
    fn refuse(&mut self, peer_tag: u32, refusal: &Refusal<'_>) {
        let mut causes = Vec::new();
        refusal.emit(&mut Writer::new(&mut causes));
        self.control.abort(&self.paths, Some(peer_tag), &causes);
        let violation = || CloseReason::Violation(refusal.to_string());
        self.close(refusal.insecure().map_or_else(violation, CloseReason::Insecure));
    }

    /// The peer broke the protocol beyond repair.
    fn violation(&mut self, what: &str) {
        self.send_abort(&Cause::ProtocolViolation(CloseReason::cut(what)));
        self.close(CloseReason::Violation(what.into()));
    }
}
