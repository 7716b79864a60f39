use super::{Open, protect};
use crate::api::{CloseReason, Stats};
use crate::auth::AuthKeys;
use crate::number::Tsn;
use crate::path::PathIndex;
use crate::rx::{Arrival, Fragment, Key, ReassemblyError};
use crate::wire::chunk::{
    Abort, Data, ErrorChunk, ForwardTsn, GapBlocks, IData, IForwardTsn, ShutdownComplete, Slice, kind,
};
use crate::wire::{Cause, Causes, Chunk, Chunks, Packet, ParseError, RawChunk, UnknownAction};
use braidcast_core::events::SctpEvent;
use braidcast_core::{Ecn, Instant, Route, Writer};

/// What the data chunks of one packet came to, for the decision when to acknowledge.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Arrivals {
    any: bool,
    pub(super) new: bool,
    disorder: bool,
    pub(super) immediate: bool,
    carried: Carried,
}

/// What one packet carried, apart from what redundancy in it made up for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Carried {
    pub(super) lowest_tsn: Option<Tsn>,
    pub(super) redundancy: bool,
}

/// A packet that came, as far as it was not worked off yet.
#[derive(Debug)]
pub(super) struct Inbound<'a> {
    pub(super) route: Route,
    pub(super) ecn: Ecn,
    /// All of the packet.
    pub(super) bytes: &'a [u8],
    pub(super) chunks: Chunks<'a>,
    /// An AUTH chunk vouches for what is left, or a record held it.
    pub(super) authenticated: bool,
}

impl<'a> Inbound<'a> {
    pub(super) const fn new(route: Route, ecn: Ecn, packet: &Packet<'a>, bytes: &'a [u8]) -> Self {
        Self { route, ecn, bytes, chunks: packet.chunks(), authenticated: false }
    }

    /// The next chunk that counts, or why it cannot be read. What must be authenticated (RFC 4895
    /// §6.3) by `keys` and is not is passed over without a word.
    #[inline]
    pub(super) fn next(
        &mut self,
        keys: Option<&AuthKeys>,
        stats: &mut Stats,
    ) -> Option<Result<(RawChunk<'a>, Chunk<'a>), ParseError>> {
        loop {
            let Ok(raw) = self.chunks.next()? else {
                stats.dropped_packets += 1;
                return None;
            };
            let chunk = match Chunk::parse(raw) {
                Ok(chunk) => chunk,
                Err(error) => return Some(Err(error)),
            };
            if let Chunk::Auth(auth) = chunk {
                let following = self.bytes.get(raw.offset..).unwrap_or_default();
                if keys.is_none_or(|keys| keys.verify(&auth, following).is_err()) {
                    stats.dropped_packets += 1;
                    return None;
                }
                self.authenticated = true;
            } else if !self.authenticated && keys.is_some_and(|keys| keys.requires(raw.kind)) {
                stats.dropped_packets += 1;
                if raw.kind == kind::ASCONF {
                    return None; // With the rest of the packet (RFC 5061 §5.2).
                }
            } else {
                return Some(Ok((raw, chunk)));
            }
        }
    }
}

impl Open {
    /// A packet with our verification tag, or what is left of it.
    pub(super) fn handle_packet(&mut self, now: Instant, inbound: Inbound<'_>) {
        if self.protection.is_some() {
            self.handle_guarded(now, inbound);
        } else {
            self.handle_chunks(now, inbound);
        }
    }

    /// Returns `true` if a packet from a new route can only be the peer's: a NAT may have given it another port, and it
    /// need not know. A request to join is answered as what it is.
    fn is_proved(&self, inbound: &Inbound<'_>) -> bool {
        let asks = || inbound.chunks.clone().flatten().next().is_some_and(|raw| raw.kind == kind::ASCONF);
        inbound.authenticated && self.is_protected() && self.state.is_up() && !asks()
    }

    /// The chunks of a packet.
    pub(super) fn handle_chunks(&mut self, now: Instant, mut inbound: Inbound<'_>) {
        let route = inbound.route;
        let mut arrived = self.paths.by_route(route);
        let listed = self.peer_addresses.contains(route.remote.ip()) || self.reconfiguration.was_deleted(now, route);
        if arrived.is_none() && listed && self.state.is_up() && self.paths.len() < self.options.paths.max_paths {
            arrived = Some(self.take_in(now, route)); // The tag proves that it is the peer who uses its other address.
        }
        if arrived.is_none() && self.is_proved(&inbound) {
            arrived = self.follow(now, route);
        }
        let mut arrivals = Arrivals::default();
        self.timestamps.on_packet();
        while let Some(next) = inbound.next(self.auth.as_ref(), &mut self.journal.stats) {
            let (raw, chunk) = match next {
                Ok(chunk) => chunk,
                Err(error) => {
                    // RFC 9260 §9.1: nothing answers a packet with ABORT.
                    if !inbound.chunks.clone().flatten().any(|raw| raw.kind == kind::ABORT) {
                        self.violation(&error.to_string());
                    }
                    break;
                }
            };
            let Some(path) = arrived else {
                // A new route may only ask to join, and must prove who it is (RFC 5061 §4.1.1).
                if let (Chunk::Asconf(asconf), true) = (&chunk, inbound.authenticated) {
                    self.handle_asconf(now, route, asconf);
                    arrived = self.paths.by_route(route);
                    continue;
                }
                self.journal.stats.dropped_packets += 1;
                break;
            };
            if !self.handle_chunk(now, path, raw, chunk, inbound.authenticated, &mut arrivals) || self.is_closed() {
                break;
            }
            if self.paths.have_changed() {
                arrived = self.paths.by_route(route); // A chunk may have taken the path away.
            }
        }
        let carried = arrivals.carried;
        let arrived = if self.paths.have_changed() { self.paths.by_route(route) } else { arrived };
        let Some(arrived) = arrived else { return };
        self.take_recovered(now, arrived, &mut arrivals);
        let path = &mut self.paths[arrived];
        path.on_packet_received(inbound.bytes.len(), inbound.ecn);
        let id = path.id();
        let (bytes, marked) = (inbound.bytes.len() as u32, inbound.ecn == Ecn::Ce);
        self.journal.tell(|| SctpEvent::PacketReceived { path: id, bytes, marked });
        if arrivals.any {
            self.slices.settle(self.tracker.cumulative());
            self.note_window(now);
            self.ack.on_data_packet(now, id, arrivals.new, arrivals.disorder, arrivals.immediate);
        }
        self.advance_stream_changes(now);
        self.hear_in_shutdown(now, arrivals.any);
        self.note_mark(now, arrived, inbound.ecn == Ecn::Ce, carried);
        self.select_path(now);
        self.advance_shutdown(now);
    }

    /// Handles one chunk. Returns `true` to go on with the packet.
    pub(super) fn handle_chunk(
        &mut self,
        now: Instant,
        arrived: PathIndex,
        raw: RawChunk<'_>,
        chunk: Chunk<'_>,
        authenticated: bool,
        arrivals: &mut Arrivals,
    ) -> bool {
        let path = self.paths[arrived].id();
        if !authenticated && self.protection.is_some() && !protect::may_be_clear(&chunk) {
            self.journal.stats.dropped_packets += 1;
            return true;
        }
        match chunk {
            Chunk::Data(c) => {
                let key = Key::Ssn(c.ssn);
                let (first, last, unordered, stream, ppid, payload) =
                    (c.first, c.last, c.unordered, c.stream, c.ppid, c.payload);
                let tsn = self.tracker.unwrap(c.tsn);
                arrivals.immediate |= c.immediate;
                let (arrived, timed) = (now, c.timed && self.agreed.timed);
                self.handle_data(
                    Fragment { tsn, stream, unordered, first, last, timed, ppid, key, payload, path, arrived },
                    raw.bytes,
                    arrivals,
                );
            }
            Chunk::IData(c) => {
                let key = Key::Mid { mid: c.mid, fsn: c.fsn };
                let (first, last, unordered, stream, ppid, payload) =
                    (c.first, c.last, c.unordered, c.stream, c.ppid, c.payload);
                let tsn = self.tracker.unwrap(c.tsn);
                arrivals.immediate |= c.immediate;
                let (arrived, timed) = (now, c.timed && self.agreed.timed);
                self.handle_data(
                    Fragment { tsn, stream, unordered, first, last, timed, ppid, key, payload, path, arrived },
                    raw.bytes,
                    arrivals,
                );
            }
            Chunk::Sack(sack) => {
                self.handle_sack(now, arrived, &sack, GapBlocks::EMPTY);
                self.advance_shutdown(now);
            }
            Chunk::NrSack(nr) if self.agreed.nr_sack => {
                self.handle_sack(now, arrived, &nr.sack, nr.kept);
                self.advance_shutdown(now);
            }
            Chunk::Heartbeat(heartbeat) => self.answer_heartbeat(now, arrived, &heartbeat),
            Chunk::HeartbeatAck(ack) => self.handle_heartbeat_ack(now, arrived, &ack),
            // RFC 3758 §3.3: who does not take part says that it does not know the chunk.
            Chunk::ForwardTsn(_) | Chunk::IForwardTsn(_) if !self.agreed.forward_tsn => {
                return self.handle_unknown(raw);
            }
            // RFC 8260 §2.3.1: one goes with DATA, the other with I-DATA.
            Chunk::ForwardTsn(_) if self.agreed.interleaving => {
                self.violation("FORWARD-TSN where messages are interleaved");
                return false;
            }
            Chunk::IForwardTsn(_) if !self.agreed.interleaving => {
                self.violation("I-FORWARD-TSN where messages are not interleaved");
                return false;
            }
            Chunk::ForwardTsn(forward) => {
                self.journal.tell(|| SctpEvent::ForwardReceived { path, tsn: forward.new_cumulative_tsn });
                self.handle_forward_tsn(now, &forward, arrivals);
            }
            Chunk::IForwardTsn(forward) => {
                self.journal.tell(|| SctpEvent::ForwardReceived { path, tsn: forward.new_cumulative_tsn });
                self.handle_i_forward_tsn(now, &forward, arrivals);
            }
            Chunk::Redundancy(redundancy) => {
                arrivals.carried.redundancy = true;
                let (first, count) = (redundancy.first_tsn, redundancy.count);
                self.journal.tell(|| SctpEvent::RedundancyReceived { path, first, count });
                self.handle_redundancy(&redundancy);
            }
            Chunk::Slice(slice) if self.agreed.slices => self.handle_slice(now, arrived, &slice, arrivals),
            Chunk::Timestamp(timestamp) if self.agreed.timestamps => {
                self.timestamps.on_arrival(now, timestamp);
                self.observe_clock(now, timestamp.sent);
            }
            Chunk::TimestampEcho(echo) if self.agreed.timestamps => self.handle_timestamp_echo(now, &echo),
            Chunk::Shutdown(shutdown) => self.handle_shutdown(now, arrived, shutdown.cumulative_tsn),
            Chunk::ShutdownAck(_) => self.handle_shutdown_ack(arrived),
            // With the T bit the tag would be the peer's own (RFC 9260 §8.5.1 B, C).
            Chunk::ShutdownComplete(ShutdownComplete { reflected: true })
            | Chunk::Abort(Abort { reflected: true, .. }) => {}
            Chunk::ShutdownComplete(_) => self.handle_shutdown_complete(),
            Chunk::Abort(abort) => self.aborted(abort.causes),
            Chunk::Error(error) => self.heed_error(&error),
            Chunk::Asconf(asconf) if authenticated => {
                self.handle_asconf(now, self.paths[arrived].route(), &asconf);
            }
            Chunk::ReConfig(re_config) if self.stream_changes.is_some() => {
                self.handle_re_config(now, arrived, &re_config)
            }
            Chunk::AsconfAck(ack) if authenticated => self.handle_asconf_ack(now, arrived, &ack),
            // Without RFC 4895 agreed on nobody may change addresses; the other chunks are the
            // endpoint's business or the handshake's, which is over, or carry nothing.
            Chunk::Asconf(_)
            | Chunk::AsconfAck(_)
            | Chunk::Init(_)
            | Chunk::InitAck(_)
            | Chunk::CookieAck(_)
            | Chunk::CookieEcho(_)
            | Chunk::Auth(_)
            | Chunk::Pad(_) => {}
            Chunk::Ecne(ecne) if self.agreed.ecn => self.handle_ecne(now, arrived, ecne),
            Chunk::Cwr(cwr) if self.agreed.ecn => self.handle_cwr(path, cwr),
            // What was not agreed on is as unknown as it is to others.
            Chunk::NrSack(_)
            | Chunk::Ecne(_)
            | Chunk::Cwr(_)
            | Chunk::Slice(_)
            | Chunk::Timestamp(_)
            | Chunk::TimestampEcho(_)
            | Chunk::ReConfig(_)
            | Chunk::Unknown(_) => {
                return self.handle_unknown(raw);
            }
        }
        true
    }

    /// A timestamp of the peer: it says what its clock shows (decision 39).
    fn observe_clock(&mut self, now: Instant, sent: u32) {
        if self.agreed.timed {
            let round_trip = self.paths.iter().filter_map(|path| path.rtt().srtt()).min();
            self.reassembly.observe_clock(now, sent, round_trip);
        }
    }

    /// A slice of a chunk; the chunk is handled once it is whole.
    fn handle_slice(&mut self, now: Instant, arrived: PathIndex, slice: &Slice<'_>, arrivals: &mut Arrivals) {
        let tsn = self.tracker.unwrap(slice.tsn);
        if !self.state.accepts_data() {
            return;
        }
        if self.tracker.has(tsn) {
            (arrivals.any, arrivals.disorder) = (true, true);
            return;
        }
        let Some(bytes) = self.slices.insert(tsn, slice) else { return };
        let Some((&[kind, flags, ..], value)) = bytes.split_first_chunk::<4>() else { return };
        let raw = RawChunk { kind, flags, value, bytes: &bytes, offset: 0 };
        match Chunk::parse(raw) {
            Ok(chunk @ Chunk::Data(Data { tsn, .. }) | chunk @ Chunk::IData(IData { tsn, .. })) if tsn == slice.tsn => {
                self.handle_chunk(now, arrived, raw, chunk, self.is_protected(), arrivals);
            }
            _ => self.journal.stats.dropped_packets += 1,
        }
    }

    /// DATA or I-DATA (RFC 9260 §6.2), `bytes` as it came.
    fn handle_data(&mut self, fragment: Fragment<'_>, bytes: &[u8], arrivals: &mut Arrivals) {
        if !self.state.accepts_data() {
            return;
        }
        if (self.is_agreeing() || self.asks) && !protect::is_key_message(&fragment) {
            self.journal.stats.dropped_packets += 1;
            return;
        }
        arrivals.any = true;
        let lowest = arrivals.carried.lowest_tsn.get_or_insert(fragment.tsn);
        *lowest = fragment.tsn.min(*lowest);
        if fragment.payload.is_empty() {
            self.send_abort(&Cause::NoUserData { tsn: fragment.tsn.wire() });
            return self.close(CloseReason::Violation("a data chunk without data".into()));
        }
        if self.stream_changes.as_ref().is_some_and(|it| it.is_too_early(fragment.stream, fragment.tsn)) {
            arrivals.disorder = true;
            return;
        }
        // With the buffer full, only what lets messages out is taken, with some slack: what fills a gap, or anything if
        // no message is whole, as the application can make no room then.
        let full = self.receive_window() == 0;
        let slack = self.reassembly.buffered() < 2 * self.receive_limit();
        let stuck = !self.reassembly.is_readable();
        if full && stuck && !slack {
            // Interleaved messages of which none can be finished: better a clear end than to hang.
            self.send_abort(&Cause::OutOfResource);
            return self.close(CloseReason::Violation("unfinished messages fill twice the receive buffer".into()));
        }
        if full && !(slack && (stuck || fragment.tsn < self.tracker.highest())) {
            arrivals.disorder = true;
            return;
        }
        let arrival = self.tracker.observe(fragment.tsn);
        self.journal.tell(|| SctpEvent::ChunkReceived {
            path: fragment.path,
            tsn: fragment.tsn.wire(),
            bytes: fragment.payload.len() as u16,
            new: matches!(arrival, Arrival::New { .. }),
        });
        match arrival {
            Arrival::New { in_order, .. } => {
                arrivals.new = true;
                arrivals.disorder |= !in_order;
                self.note_symbol(fragment.tsn, bytes);
            }
            Arrival::Duplicate => {
                arrivals.disorder = true;
                self.journal.stats.duplicate_chunks += 1;
                self.compare_symbol(fragment.tsn, bytes);
                return;
            }
            Arrival::OutOfWindow => return,
        }
        match self.reassembly.insert(fragment) {
            Ok(()) => {}
            Err(ReassemblyError::InvalidStream(stream)) => self.send_error(&Cause::InvalidStream { stream }),
            Err(error) => self.violation(&error.to_string()),
        }
    }

    fn handle_forward_tsn(&mut self, now: Instant, chunk: &ForwardTsn<'_>, arrivals: &mut Arrivals) {
        if !self.state.accepts_data() {
            return;
        }
        let until = self.tracker.unwrap(chunk.new_cumulative_tsn);
        for skip in chunk.skips.iter() {
            if self.reassembly.is_outdated(skip.stream, until) {
                continue;
            }
            self.reassembly.skip_ssn(now, skip.stream, skip.ssn);
        }
        self.forward_to(now, chunk.new_cumulative_tsn, arrivals);
    }

    fn handle_i_forward_tsn(&mut self, now: Instant, chunk: &IForwardTsn<'_>, arrivals: &mut Arrivals) {
        if !self.state.accepts_data() {
            return;
        }
        let until = self.tracker.unwrap(chunk.new_cumulative_tsn);
        for skip in chunk.skips.iter() {
            if self.reassembly.is_outdated(skip.stream, until) {
                continue;
            }
            self.reassembly.skip_mid(now, skip.stream, skip.unordered, skip.mid);
        }
        self.forward_to(now, chunk.new_cumulative_tsn, arrivals);
    }

    /// What is left of a FORWARD-TSN once the streams have skipped (RFC 3758 §3.6).
    fn forward_to(&mut self, now: Instant, new_cumulative: u32, arrivals: &mut Arrivals) {
        let new_cumulative = self.tracker.unwrap(new_cumulative);
        self.reassembly.forward_tsn(new_cumulative);
        arrivals.any = true;
        if self.tracker.forward(new_cumulative) {
            arrivals.new = true;
            self.forward_decoder();
        } else {
            self.ack.demand(now);
        }
    }

    /// Does what the high bits of an unknown chunk type ask for (RFC 9260 §3.2). Returns `true` to go
    /// on with the packet.
    fn handle_unknown(&mut self, raw: RawChunk<'_>) -> bool {
        let action = UnknownAction::for_chunk(raw.kind);
        if action.reports() {
            self.send_error(&Cause::UnrecognizedChunk(raw.bytes));
        }
        action.skips()
    }

    pub(super) fn send_error(&mut self, cause: &Cause<'_>) {
        let mut causes = Vec::new();
        cause.emit(&mut Writer::new(&mut causes));
        if let Some(index) = self.paths.for_control(None) {
            self.answer(index, &Chunk::Error(ErrorChunk { causes: Causes::new(&causes) }));
        }
    }
}
