use super::control::Control;
use super::fec::Fec;
use super::{Association, State};
use crate::addresses::Addresses;
use crate::api::{CloseReason, Event, PathState};
use crate::auth::AuthKeys;
use crate::capabilities::{Agreed, Offer, Unrecognized};
use crate::cookie::Cookie;
use crate::path::PathIndex;
use crate::rx::{Echoes, Limits, Slices, Tracker};
use crate::tx::Ledger;
use crate::wire::chunk::{CookieAck, CookieEcho, Init};
use crate::wire::{Cause, Chunk, Parameter, Parameters, padded};
use braidcast_core::{Instant, Route, Writer};

/// T1-init or T1-cookie (RFC 9260 §5.1).
#[derive(Debug)]
pub(crate) struct Handshake {
    /// The chunk to repeat, as on the wire; empty where it is made anew.
    chunk: Vec<u8>,
    tries: u32,
    /// When it is sent (again).
    pub(super) due: Instant,
}

impl Handshake {
    pub(crate) const fn new(now: Instant) -> Self {
        Self { chunk: Vec::new(), tries: 0, due: now }
    }
}

/// What the two INITs, or INIT and INIT ACK, settle for an association.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settled {
    peer_tag: u32,
    peer_addresses: Addresses,
    local_offer: Offer,
    peer_offer: Offer,
    local_initial_tsn: u32,
    peer_initial_tsn: u32,
    /// Bytes that the peer has room for at first.
    peer_window: usize,
    outbound_streams: u16,
    inbound_streams: u16,
}

impl From<&Cookie> for Settled {
    fn from(cookie: &Cookie) -> Self {
        Self {
            peer_tag: cookie.peer_tag,
            peer_addresses: cookie.peer_addresses,
            local_offer: cookie.local_offer,
            peer_offer: cookie.peer_offer,
            local_initial_tsn: cookie.local_initial_tsn,
            peer_initial_tsn: cookie.peer_initial_tsn,
            peer_window: cookie.peer_a_rwnd as usize,
            outbound_streams: cookie.outbound_streams,
            inbound_streams: cookie.inbound_streams,
        }
    }
}

impl Association {
    /// Repeats INIT or COOKIE ECHO; INIT goes over the routes in turn, as any of them may be dead.
    pub(super) fn handle_handshake_timeout(&mut self, now: Instant) {
        let limit = self.options.timers.max_init_retransmits;
        let rto = self.options.timers.rto;
        let (State::CookieWait(handshake) | State::CookieEchoed(handshake)) = &mut self.state else { return };
        if handshake.due > now {
            return;
        }
        if handshake.tries > limit {
            return self.close(CloseReason::NoAnswer);
        }
        handshake.due = now + (rto.initial * (1 << handshake.tries.min(16))).min(rto.max);
        let tries = handshake.tries as usize;
        handshake.tries += 1;
        let echo = handshake.chunk.clone();
        let places = self.paths.places().max(1);
        match &self.state {
            State::CookieWait(_) => {
                let mut bytes = Vec::new();
                self.emit_init(&mut bytes);
                if let Some(path) = self.paths.at(tries % places) {
                    self.control.push_back(Control { path, tag: 0, bytes, alone: true });
                }
            }
            _ => {
                if let Some(path) = self.paths.at((self.paths.last().get() + tries) % places) {
                    self.control.push_back(Control { path, tag: self.peer_tag, bytes: echo, alone: false });
                }
            }
        }
    }

    /// Appends our INIT, which says the same each time.
    fn emit_init(&self, out: &mut Vec<u8>) {
        let mut parameters = Vec::with_capacity(Offer::MAX_EMITTED);
        let mut w = Writer::new(&mut parameters);
        self.local_offer.emit(&mut w);
        Addresses::ours(&self.options).emit(&mut w);
        let init = Init {
            initiate_tag: self.local_tag,
            a_rwnd: self.options.limits.receive_buffer as u32,
            outbound_streams: self.options.limits.streams,
            inbound_streams: self.options.limits.streams,
            initial_tsn: self.local_initial_tsn,
            parameters: Parameters::new(&parameters),
        };
        init.emit(&mut Writer::new(out));
    }

    /// INIT ACK (RFC 9260 §5.1 C). It came over the path `index`, which so is the first confirmed one.
    pub(super) fn handle_init_ack(&mut self, now: Instant, index: PathIndex, init: Init<'_>) {
        if !matches!(self.state, State::CookieWait(_)) {
            return; // RFC 9260 §5.2.3.
        }
        if init.initiate_tag == 0 || init.outbound_streams == 0 || init.inbound_streams == 0 {
            return self.close(CloseReason::Violation("INIT ACK with a tag or stream count of zero".into()));
        }
        let peer_offer = match Offer::parse(init.parameters) {
            Ok(offer) => offer,
            Err(refusal) => {
                self.peer_tag = init.initiate_tag;
                return self.refuse(&refusal);
            }
        };
        let mut cookie_bytes = None;
        for raw in init.parameters.iter().map_while(Result::ok) {
            if let Ok(Parameter::StateCookie(bytes)) = Parameter::parse(raw) {
                cookie_bytes = Some(bytes);
            }
        }
        let Some(bytes) = cookie_bytes else {
            self.peer_tag = init.initiate_tag;
            self.send_abort(&Cause::ProtocolViolation(b"INIT ACK without a state cookie"));
            return self.close(CloseReason::Violation("INIT ACK without a state cookie".into()));
        };
        self.settle(&Settled {
            peer_tag: init.initiate_tag,
            peer_addresses: Addresses::of_peer(&self.options, init.parameters),
            local_offer: self.local_offer,
            peer_offer,
            local_initial_tsn: self.local_initial_tsn,
            peer_initial_tsn: init.initial_tsn,
            peer_window: init.a_rwnd as usize,
            outbound_streams: self.options.limits.streams.min(init.inbound_streams),
            inbound_streams: self.options.limits.streams.min(init.outbound_streams),
        });
        let mut handshake = Handshake::new(now);
        handshake.chunk.reserve(padded(4 + bytes.len()));
        Chunk::CookieEcho(CookieEcho { cookie: bytes }).emit(&mut Writer::new(&mut handshake.chunk));
        let unrecognized = Unrecognized::new(init.parameters);
        if !unrecognized.is_empty() {
            // RFC 9260 §3.2.2: reported in an ERROR chunk bundled with the COOKIE ECHO.
            let mut causes = Vec::new();
            unrecognized.emit_cause(&mut Writer::new(&mut causes));
            let chunk = crate::wire::chunk::ErrorChunk { causes: crate::wire::Causes::new(&causes) };
            Chunk::Error(chunk).emit(&mut Writer::new(&mut handshake.chunk));
        }
        self.paths.note_last(index);
        self.scheduler.reset(index.get());
        self.state = State::CookieEchoed(handshake);
        self.handle_handshake_timeout(now);
    }

    /// COOKIE ACK (RFC 9260 §5.1 E): the handshake is done. The other routes join now.
    pub(super) fn handle_cookie_ack(&mut self, now: Instant, index: PathIndex) {
        let State::CookieEchoed(Handshake { tries, .. }) = self.state else {
            return; // RFC 9260 §5.2.5.
        };
        self.paths[index].confirm();
        self.establish(now);
        if tries > 1 && self.agreed.asconf {
            self.queue_join(now, index); // The peer may know the path of an earlier COOKIE ECHO only.
        }
        self.join_others(now, index);
    }

    /// Lets all paths but the one of the handshake join. Those to addresses that the peer listed are in already, as it was
    /// told ours: they only have to be confirmed (RFC 9260 §5.4).
    fn join_others(&mut self, now: Instant, index: PathIndex) {
        let others: Vec<PathIndex> = self.paths.indices().filter(|&other| other != index).collect();
        for other in others {
            if self.peer_addresses.contains(self.paths[other].route().remote.ip()) {
                self.paths[other].ask(now);
            } else {
                self.queue_join(now, other);
            }
        }
    }

    /// A Stale Cookie error: begin again (RFC 9260 §5.2.6).
    pub(super) fn handle_stale_cookie(&mut self, now: Instant) {
        if let State::CookieEchoed(handshake) = &self.state {
            let tries = handshake.tries;
            self.state = State::CookieWait(Handshake { tries, ..Handshake::new(now) });
        }
    }

    /// A valid COOKIE ECHO for this association came over `route` (RFC 9260 §5.2.4). `restart`: case A, the peer
    /// lost its state. Whether a COOKIE ACK goes out over a path; else the caller answers.
    pub(crate) fn handle_cookie_echo(&mut self, now: Instant, route: Route, cookie: &Cookie, restart: bool) -> bool {
        let known = self.paths.by_route(route);
        if known.is_none() && !restart && self.state.is_up() {
            return false; // Anybody may have recorded it: a cookie does not let a new path join.
        }
        let index = known.unwrap_or_else(|| self.paths.add(now, route, crate::api::PathState::Active));
        if restart {
            self.restart(now, index, cookie);
        } else if matches!(self.state, State::CookieWait(_) | State::CookieEchoed(_)) {
            self.settle(&Settled::from(cookie));
            self.paths[index].confirm();
            self.establish(now);
            self.join_others(now, index); // Both ends connected at once.
        }
        self.control_chunk(index, &Chunk::CookieAck(CookieAck));
        true
    }

    /// Case A: everything begins anew, over the path that the restart came from. Messages of which nothing or a part
    /// was cut are sent again whole; those that were out whole are out of reach (RFC 9260 §5.2.4.1).
    fn restart(&mut self, now: Instant, index: PathIndex, cookie: &Cookie) {
        let (ledger, books) = self.books();
        ledger.abandon_all(books);
        let others: Vec<PathIndex> = self.paths.indices().filter(|&other| other != index).collect();
        for other in others {
            self.remove_path(now, other);
        }
        self.paths.renew(now, index);
        self.scheduler.on_restarted(index.get());
        self.queue.restart();
        self.local_tag = cookie.local_tag;
        self.local_initial_tsn = cookie.local_initial_tsn;
        self.local_offer = cookie.local_offer;
        self.reconfiguration = super::Reconfiguration::new(cookie.local_initial_tsn);
        self.control.clear();
        self.errors = 0;
        self.settle(&Settled::from(cookie));
        self.state = State::Established;
        self.paths[index].start(now);
        self.journal.events.push_back(Event::Restarted);
    }

    /// Takes over what the handshake settled.
    pub(super) fn settle(&mut self, settled: &Settled) {
        let &Settled { peer_tag, peer_addresses, local_offer, peer_offer, .. } = settled;
        self.peer_tag = peer_tag;
        self.peer_addresses = peer_addresses;
        self.agreed = Agreed::new(&local_offer, &peer_offer);
        self.auth = AuthKeys::new(&local_offer, &peer_offer, &self.options.key);
        self.outbound_streams = settled.outbound_streams;
        self.ledger = Ledger::new(&self.options, settled.local_initial_tsn, settled.peer_window);
        self.queue.settle(self.agreed.interleaving, self.agreed.forward_tsn);
        self.tracker = Tracker::new(settled.peer_initial_tsn);
        self.echoes = Echoes::default();
        self.slices = Slices::default();
        self.reassembly.reset(Limits {
            streams: settled.inbound_streams,
            interleaving: self.agreed.interleaving,
            max_message: self.options.limits.max_message,
        });
        self.reconfiguration.expect(settled.peer_initial_tsn);
        let (local, peer) = (self.ledger.next_tsn().get(), self.tracker.cumulative() + 1);
        let interleaving = self.agreed.interleaving;
        let fec = || Box::new(Fec::new(&self.options, interleaving, local, peer, settled.peer_window));
        self.fec = self.agreed.redundancy.then(fec);
    }

    /// The handshake is done: data and joins may flow.
    pub(super) fn establish(&mut self, now: Instant) {
        self.state = State::Established;
        self.paths.note_answer(now);
        self.journal.events.push_back(Event::Connected);
        for path in self.paths.iter_mut() {
            if path.state() == PathState::Active {
                path.start(now);
                self.journal.events.push_back(Event::PathUp(path.id(), path.route()));
            }
        }
    }
}
