use super::Open;
use super::intake::Intake;
use super::plan::{Plan, What};
use crate::number::Tsn;
use crate::path::PathIndex;
use crate::tx::{Chunk, Departure, Leave, Piece};
use crate::wire::chunk::{ForwardTsn, GapBlock, GapBlocks, IForwardTsn, ISkip, NrSack, Sack, Skip};
use crate::wire::{self, Entries, Entry, Header, PROTECTION, padded};
use braidcast_cc::PathMtu;
use braidcast_core::events::SctpEvent;
use braidcast_core::{Instant, Transmit, Writer};
use braidcast_queue::Planned;

/// Plans in a row that write nothing: each of them takes something away, an announcement or messages
/// of the queue. More of them than this would be a loop without an end.
const MOST_VOID_PLANS: u32 = 10_000;

impl Open {
    /// A message is not cut for less than this, unless it ends there: better begin in the next packet.
    const MIN_PIECE: usize = 256;

    /// Writes the next packets, all for one route, into `buf`.
    pub(super) fn transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        self.advance_stream_changes(now);
        let mut may_wait = true;
        let mut turns = 0;
        loop {
            turns += 1;
            buf.clear();
            let held = self.state.carries_data() && self.ledger.has_no_repeats() && self.peer_is_full();
            self.held_by_peer.observe(now, held);
            if held {
                self.scheduler.on_held();
                self.doubt_timestamps(now);
            }
            let plan = self.plan(now, may_wait)?;
            let waiting = self.queue.waiting_bytes();
            if let Some(repeat) = self.next_oversized(now, plan) {
                return Some(self.transmit_slices(now, plan, repeat, buf));
            }
            let transmit = self.write(now, plan, buf);
            if transmit.is_some() {
                return transmit;
            }
            // Only an announcement that turned out to be void; or the queue discarded what was to
            // go, and has other messages.
            let discarded = self.queue.front().is_some() && self.queue.waiting_bytes() < waiting;
            let redundancy = plan.is_data() && may_wait && self.redundancy_path().is_some();
            if plan.is_data() && !discarded && !redundancy {
                return None;
            }
            may_wait = !redundancy;
            if turns == MOST_VOID_PLANS {
                debug_assert!(false, "plans that write nothing, the last of them {plan:?}");
                return None;
            }
        }
    }

    /// Writes the packet that is planned, and more of the same size for the same path (UDP
    /// segmentation offload); a smaller one ends it. `None` if there was nothing to put in.
    fn write(&mut self, now: Instant, plan: Plan, buf: &mut Vec<u8>) -> Option<Transmit> {
        let limit = self.paths[plan.path].mtu();
        let before = *self.paths[plan.path].stats();
        let first = self.build_packet(now, plan, limit, buf);
        if first == 0 {
            return None;
        }
        let (mut len, mut packets) = (first, 1);
        let framing = self.framing();
        let most = if plan.is_data() && first <= limit + framing { self.options.limits.max_segments } else { 1 };
        while len == first && packets < most && buf.len() + first <= usize::from(u16::MAX) {
            let Some(more) = self.plan_more(now, plan.path) else { break };
            len = self.build_packet(now, more, first - framing, buf);
            packets += usize::from(len > 0);
        }
        let path = &mut self.paths[plan.path];
        path.on_packets_sent(now, packets, buf.len());
        let route = path.route();
        let segment_size = (packets > 1).then_some(first);
        Some(Transmit { route, ecn: self.codepoint(plan.path, &before), segment_size })
    }

    /// Appends the packet that is planned, of at most `limit` bytes. Returns its length, 0 if there
    /// was nothing to put in.
    fn build_packet(&mut self, now: Instant, plan: Plan, limit: usize, buf: &mut Vec<u8>) -> usize {
        let (begin, index) = (buf.len(), plan.path);
        let start = self.leave_room(buf);
        let tag = self.control.next().filter(|&(path, _)| path == index).map_or(self.peer_tag, |(_, tag)| tag);
        let (source_port, destination_port) = (self.options.local_port, self.peer_port);
        wire::begin(buf, Header { source_port, destination_port, verification_tag: tag });
        let mut control = self.control.put(index, start + limit, self.auth.as_ref(), buf);
        if !self.paths[index].may_get(buf.len() - start + self.framing()) {
            // The peer asks again, and then more has come from there.
            buf.truncate(start + Header::LEN);
            control.auth = None;
        }
        if !control.alone && tag == self.peer_tag && self.state.is_up() {
            self.put_announcements(now, index, start, limit, buf);
            if plan.sack {
                self.echoes.emit(start + limit, buf);
                self.put_sack(now, index, start + limit, buf);
                self.timestamps.emit(now, start + limit, buf);
            }
            self.put_copies(index, start + limit, buf);
            self.put_everywhere(now, index, start + limit, buf);
            if plan.redundancy {
                self.put_redundancy(now, index, start, start + limit, buf);
            }
            if plan.is_data() {
                self.put_data(now, plan, start, start + limit, buf);
                self.queue.end_packet();
                self.put_timestamp(now, index, start + limit, buf);
            }
        }
        if buf.len() == start + Header::LEN {
            buf.truncate(begin);
            return 0;
        }
        if let (Some(at), Some(keys)) = (control.auth, &self.auth) {
            keys.seal(&mut buf[at..]);
        }
        self.finish(now, index, start, buf);
        let size = buf.len() - begin;
        if plan.is_data() {
            let next = self.ledger.next_order(index);
            self.paths[index].on_packet_sent(next, size);
        }
        self.journal.tell(|| plan.as_told(self.paths[index].id(), size));
        size
    }

    /// Appends FORWARD-TSN, HEARTBEAT and MTU probes that the path owes.
    fn put_announcements(&mut self, now: Instant, index: PathIndex, start: usize, limit: usize, buf: &mut Vec<u8>) {
        let pending = self.paths[index].take_pending();
        if let Some(point) = self.ledger.forward_point().filter(|_| pending.forward && self.ledger.is_forwarding()) {
            let point = self.forward_before_reset(point);
            self.put_forward(point, start + limit, buf);
            self.journal.tell(|| SctpEvent::ForwardSent { path: self.paths[index].id(), tsn: point.wire() });
            self.paths[index].on_forward_sent(now);
        }
        if pending.heartbeat && self.put_heartbeat(now, index, start, buf) {
            self.put_timestamp(now, index, start + limit, buf);
        }
        if pending.mtu_probe && buf.len() == start + Header::LEN {
            self.put_mtu_probe(now, index, start, buf);
        } else if pending.mtu_probe {
            self.paths[index].postpone_mtu_probe();
        }
        if pending.train && buf.len() == start + Header::LEN {
            self.put_train_packet(now, index, start, buf);
        } else if pending.train {
            self.paths[index].postpone_train_packet();
        }
    }

    fn put_sack(&mut self, now: Instant, index: PathIndex, end: usize, buf: &mut Vec<u8>) {
        let room = end.saturating_sub(buf.len());
        let header = if self.agreed.nr_sack { NrSack::HEADER } else { Sack::HEADER };
        let Some(entries) = room.checked_sub(header).map(|room| room / GapBlock::SIZE) else { return };
        let mut scratch = core::mem::take(&mut self.scratch);
        self.tracker.gaps(&mut scratch.gaps, entries);
        let left = (entries - scratch.gaps.len() / GapBlock::SIZE) * u32::SIZE;
        self.tracker.take_duplicates(&mut scratch.duplicates);
        scratch.duplicates.truncate(left);
        let sack = Sack {
            cumulative_tsn: self.tracker.cumulative().wire(),
            a_rwnd: u32::try_from(self.receive_window()).unwrap_or(u32::MAX),
            flags: self.ack.dac_packets() << 6,
            gaps: Entries::new(&scratch.gaps),
            duplicates: Entries::new(&scratch.duplicates),
        };
        if self.agreed.nr_sack {
            // Nothing that was received is ever dropped here, so all gap blocks are of that kind.
            let chunk = NrSack { sack: Sack { gaps: GapBlocks::EMPTY, ..sack }, kept: sack.gaps };
            chunk.emit(&mut Writer::new(buf));
        } else {
            sack.emit(&mut Writer::new(buf));
        }
        let (cumulative, window) = (sack.cumulative_tsn, sack.a_rwnd);
        let (gaps, path) = (sack.gaps.len() as u16, self.paths[index].id());
        self.journal.tell(|| SctpEvent::SackSent { path, cumulative, gaps, window });
        self.scratch = scratch;
        let path = &self.paths[index];
        self.ack.sent(now, path.id(), !path.has_failed());
    }

    /// FORWARD-TSN or I-FORWARD-TSN up to the advanced `point` (RFC 3758 §3.5 C3, RFC 8260 §2.3.1), or as far as the
    /// skipped streams fit.
    fn put_forward(&self, point: Tsn, end: usize, buf: &mut Vec<u8>) {
        let room = end.saturating_sub(buf.len() + 8) / ISkip::SIZE;
        let mut skips: Vec<ISkip> = Vec::new();
        let mut reached = self.ledger.base().before();
        for (tsn, chunk) in self.ledger.iter().take_while(|&(tsn, _)| tsn <= point) {
            if chunk.is_abandoned() && chunk.has_message() {
                let message = self.queue.get(chunk.piece().message);
                let &crate::tx::Message { stream, unordered, number: mid, .. } = message;
                if self.agreed.interleaving || !unordered {
                    match skips.iter().position(|skip| (skip.stream, skip.unordered) == (stream, unordered)) {
                        Some(at) => skips[at].mid = mid, // TSNs and numbers of a stream rise together.
                        None if skips.len() == room => break,
                        None => skips.push(ISkip { stream, unordered, mid }),
                    }
                }
            }
            reached = tsn;
        }
        let mut entries = Vec::with_capacity(skips.len() * ISkip::SIZE);
        let mut w = Writer::new(&mut entries);
        let new_cumulative_tsn = reached.wire();
        if self.agreed.interleaving {
            skips.iter().for_each(|skip| skip.emit(&mut w));
            IForwardTsn { new_cumulative_tsn, skips: Entries::new(&entries) }.emit(&mut Writer::new(buf));
        } else {
            skips.iter().for_each(|skip| Skip { stream: skip.stream, ssn: skip.mid as u16 }.emit(&mut w));
            ForwardTsn { new_cumulative_tsn, skips: Entries::new(&entries) }.emit(&mut Writer::new(buf));
        }
    }

    /// Fills the packet: first what was lost, then what is new (RFC 9260 §6.1 C).
    fn put_data(&mut self, now: Instant, plan: Plan, start: usize, end: usize, buf: &mut Vec<u8>) {
        let (before, index) = (buf.len(), plan.path);
        let waits = self.queue.waiting_bytes();
        self.put_repeats(now, index, start, end, buf);
        match plan.what {
            What::Planned(planned) if self.queue.waiting_bytes() == waits => {
                self.put_planned(now, index, planned, end, buf);
            }
            // Its place may be another one's, as something was abandoned.
            What::Planned(_) => {}
            _ => self.put_new(now, index, end, buf),
        }
        let sent = buf.len() - before;
        if sent > 0 {
            self.note_data_sent(now, index, sent);
        }
    }

    /// `sent` bytes of data chunks leave over the path `index`.
    pub(super) fn note_data_sent(&mut self, now: Instant, index: PathIndex, sent: usize) {
        self.note_sources(now);
        self.paths.note_last(index);
        self.scheduler.on_sent(index.get(), sent);
        self.paths[index].on_data_sent(now, sent);
        self.note_idle_windows();
    }

    /// If nothing waits, windows that have room say nothing about what their paths carry.
    fn note_idle_windows(&mut self) {
        if self.queue.waiting_bytes() > 0 || !self.ledger.has_no_repeats() {
            return;
        }
        for place in 0..self.paths.places() {
            if let Some(index) = self.paths.at(place).filter(|&index| self.path_has_room(index)) {
                let in_flight = self.ledger.in_flight_over(index);
                self.paths[index].on_app_limited(in_flight);
            }
        }
    }

    /// Appends what was lost and may go over the path `index`, as far as it fits.
    fn put_repeats(&mut self, now: Instant, index: PathIndex, start: usize, end: usize, buf: &mut Vec<u8>) {
        let header = self.data_header();
        let unheld = core::mem::take(&mut self.unheld_packet);
        while let Some(repeat) = self.next_repeat(now, index) {
            let (_, _, tsn) = repeat;
            let Some((key, len, repeats)) = self.ledger.get(tsn).map(|it| (it.piece().message, it.len(), it.repeats()))
            else {
                return;
            };
            if !self.queue.is_worth_repeating(self.prospect_for(now, key), key, repeats) {
                let (ledger, books) = self.books();
                ledger.abandon(books, key); // Takes its chunks out of those to be repeated.
                continue;
            }
            let fits = buf.len() + padded(header + len) <= end;
            // A packet of its own may exceed the limit: a chunk cannot be cut again once it has a TSN. Only the first
            // packet of a batch may: its size is the size of all.
            if !fits && (start > self.room() || buf.len() > start + Header::LEN) {
                break;
            }
            let leave = self.departs(now, index, len);
            let (ledger, books) = self.books();
            let departure = ledger.repeat(books, leave, repeat);
            self.put_departure(now, index, &departure, buf);
            if !fits || !(unheld || self.path_has_room(index)) {
                break;
            }
        }
    }

    /// Bytes that a packet with new data may have, before it is protected. What agrees on keys is cut
    /// so that any path carries it, since it cannot be cut again.
    fn longest_packet(&self) -> usize {
        let most = self.paths.common_mtu();
        if self.agrees_on_keys() { most.min(PathMtu::MIN - PROTECTION) } else { most }
    }

    /// Appends new data for the path `index`, as far as it fits.
    fn put_new(&mut self, now: Instant, index: PathIndex, end: usize, buf: &mut Vec<u8>) {
        while self.next_repeat(now, index).is_none()
            && self.may_carry_new(index)
            && self.has_new_data()
            && self.suits(now, index)
        {
            let (room, least) = self.piece_room(now, index, end, buf);
            let worth_it = |left: usize| room >= left || room >= least;
            self.admit(now, index, worth_it);
            let Some((key, left)) = self.queue.peek_ahead(self.lead) else { break };
            if !self.queue.is_worth_sending(self.prospect_for(now, key), key, 0)
                && (self.agreed.forward_tsn || self.queue.is_untouched(key))
            {
                let (ledger, books) = self.books();
                ledger.abandon(books, key);
                continue;
            }
            if !worth_it(left) {
                break;
            }
            let Some(piece) = self.queue.cut_ahead(self.lead, room) else { break };
            self.put_piece(now, index, piece, buf);
        }
    }

    /// The longest piece of new data for a packet that ends at `end`, and the shortest that is worth it.
    fn piece_room(&self, now: Instant, index: PathIndex, end: usize, buf: &[u8]) -> (usize, usize) {
        let header = self.data_header();
        let most =
            self.longest_packet() - Header::LEN - header - self.fec_reserve() - self.timestamp_reserve(now, index);
        ((end.saturating_sub(buf.len() + header) & !3).min(most), Self::MIN_PIECE.min(most))
    }

    /// Appends a piece of what a plan gives to the path `index`, if nothing is to be repeated there.
    fn put_planned(&mut self, now: Instant, index: PathIndex, planned: Planned, end: usize, buf: &mut Vec<u8>) {
        if self.next_repeat(now, index).is_some() || !self.may_carry_new(index) {
            return;
        }
        let (room, least) = self.piece_room(now, index, end, buf);
        let Some((_, left)) = self.queue.peek_planned(planned) else { return };
        if room < left.min(least) {
            return;
        }
        let outlook = self.prospects(now);
        if let Some(piece) = self.queue.cut_planned(planned, room, &outlook) {
            self.put_piece(now, index, piece, buf);
        }
    }

    /// Appends a piece of new data.
    fn put_piece(&mut self, now: Instant, index: PathIndex, piece: Piece, buf: &mut Vec<u8>) {
        if self.options.limits.skip_tsns && self.agreed.forward_tsn && self.queue.waiting_bytes() > 0 {
            self.ledger.leave_out(now, &mut self.rng, piece);
        }
        let leave = self.departs(now, index, usize::from(piece.len));
        let (ledger, books) = self.books();
        let departure = ledger.send(books, leave, piece);
        if self.scheduler.is_everywhere() {
            self.ledger.owe_everywhere(departure.tsn);
        }
        if self.owes_copy(now, index, piece.message) {
            self.ledger.owe_copy(departure.tsn);
        }
        self.put_departure(now, index, &departure, buf);
    }

    /// A chunk of `len` bytes is about to leave over the path `index`.
    pub(super) fn departs(&mut self, now: Instant, index: PathIndex, len: usize) -> Leave {
        let in_flight = self.ledger.in_flight_over(index);
        Leave { now, path: index, stamp: self.paths[index].stamp(now, in_flight, len) }
    }

    /// Writes a chunk that leaves now over the path `index`.
    fn put_departure(&mut self, now: Instant, index: PathIndex, departure: &Departure, buf: &mut Vec<u8>) {
        let order = self.ledger.next_order(index).before();
        let immediate = self.ends_burst(&departure.chunk) || self.paths[index].wants_answer(now, order);
        self.put_chunk(departure.tsn, &departure.chunk, immediate, buf);
        if immediate {
            self.paths[index].on_asking();
        }
        self.paths[index].on_chunk_sent(now, departure);
    }

    /// Appends the copies that go over the path `index`, as far as they fit.
    fn put_copies(&mut self, index: PathIndex, end: usize, buf: &mut Vec<u8>) {
        while let Some((tsn, _)) = self.next_copy().filter(|&(_, other)| other == index) {
            let Some(len) = self.ledger.get(tsn).map(Chunk::len) else { return };
            if buf.len() + padded(self.data_header() + len) > end {
                return;
            }
            let Some((tsn, chunk)) = self.ledger.copy() else { return };
            self.put_chunk(tsn, &chunk, self.ends_burst(&chunk), buf);
            self.journal.chunk_copied(index, tsn, &chunk, self.queue.get(chunk.piece().message));
            self.paths[index].on_copy_sent();
        }
    }
}
