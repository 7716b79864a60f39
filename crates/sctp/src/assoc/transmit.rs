use super::schedule::Way;
use super::{Association, State};
use crate::tx::{Chunk, ChunkState, LossCause};
use crate::wire::chunk::{Abort, Data, ForwardTsn, GapBlock, GapBlocks, IData, IForwardTsn, ISkip, NrSack, Sack, Skip};
use crate::wire::{self, Cause, Causes, Entries, Entry, Header, padded};
use braidcast_core::{Instant, Transmit, Writer};

/// A control chunk that waits to be sent.
#[derive(Debug)]
pub(super) struct Control {
    /// The path it goes over.
    pub(super) slot: usize,
    /// The verification tag of its packet: 0 for INIT.
    pub(super) tag: u32,
    /// The chunk as on the wire, padded.
    pub(super) bytes: Vec<u8>,
    /// Nothing may share its packet (RFC 9260 §6.10: INIT and the like).
    pub(super) alone: bool,
}

impl Association {
    /// Control chunks that wait at most; a peer that makes us answer more than that loses the answers.
    pub(super) const MAX_CONTROL: usize = 64;
    /// A message is not cut for less than this, unless it ends there: better begin in the next packet.
    const MIN_PIECE: usize = 256;

    /// Writes the next packets, all for one route, into `buf`.
    pub(super) fn transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        self.transmit_next(now, buf, true)
    }

    /// The same; redundancy that can wait for more data waits if it `may_wait`.
    fn transmit_next(&mut self, now: Instant, buf: &mut Vec<u8>, may_wait: bool) -> Option<Transmit> {
        buf.clear();
        let held = self.state.carries_data() && self.retransmit.is_empty() && self.peer_is_full();
        self.held_by_peer.observe(now, held);
        let (slot, data) = self.next_slot(now, may_wait)?;
        let limit = self.paths.get(slot)?.mtu();
        let before = self.paths.get(slot)?.stats;
        let waiting = self.queue.waiting_bytes();
        let mut len = self.build_packet(now, slot, limit, data, buf);
        if len == 0 {
            // Only an announcement that turned out to be void; or the queue discarded what was to go, and has other messages.
            let again = !data || (self.queue.front().is_some() && self.queue.waiting_bytes() < waiting);
            let redundancy = data && may_wait && self.redundancy_slot().is_some();
            return if again || redundancy { self.transmit_next(now, buf, !redundancy) } else { None };
        }
        let (first, mut segment_size) = (len, None);
        let mut packets = 1;
        // More packets of the same size for the same path go along (UDP segmentation offload); a smaller one ends it.
        let most = if first <= limit { self.options.limits.max_segments } else { 1 };
        while data && len == first && packets < most && buf.len() + first <= usize::from(u16::MAX) {
            if self.redundancy_is_next(slot) || !matches!(self.way(now), Way::Open(next) if next == slot) {
                break;
            }
            len = self.build_packet(now, slot, first, true, buf);
            if len == 0 {
                break;
            }
            segment_size = Some(first);
            packets += 1;
        }
        let bytes = buf.len();
        let path = self.paths.get_mut(slot)?;
        path.last_sent = now;
        path.stats.sent_packets += packets as u64;
        path.stats.sent_bytes += bytes as u64;
        let route = path.route;
        Some(Transmit { route, ecn: self.codepoint(slot, &before), segment_size })
    }

    /// The path that has something to send, and whether data may be part of it.
    fn next_slot(&mut self, now: Instant, may_wait: bool) -> Option<(usize, bool)> {
        self.control.retain(|control| self.paths.get(control.slot).is_some());
        if let Some(control) = self.control.front() {
            return Some((control.slot, false));
        }
        let announcing =
            |path: &crate::path::Path| path.pending.forward || path.pending.heartbeat || path.pending.mtu_probe;
        if let Some((slot, _)) = self.paths.enumerate().find(|(_, path)| self.state.is_up() && announcing(path)) {
            return Some((slot, false));
        }
        if let Some(slot) = self.next_copy().map(|(_, slot)| slot) {
            return Some((slot, false));
        }
        let open = if let Way::Open(slot) = self.way(now) { Some(slot) } else { None };
        if let Some(slot) = self.redundancy_slot()
            && (!may_wait || open.is_none_or(|open| self.redundancy_is_next(open)))
        {
            return Some((slot, false));
        }
        if let Some(slot) = open {
            return Some((slot, true));
        }
        if self.ack.due(now) && self.state.is_up() {
            return self.sack_slot().map(|slot| (slot, false));
        }
        None
    }

    /// SACKs go back where the data came from (RFC 9260 §6.4), if that path still answers.
    pub(super) fn sack_slot(&self) -> Option<usize> {
        self.paths.for_control(self.ack.path().and_then(|id| self.paths.by_id(id)))
    }

    pub(super) const fn data_header(&self) -> usize {
        if self.agreed.interleaving { IData::HEADER } else { Data::HEADER }
    }

    /// Appends one packet of at most `limit` bytes for the path in `slot`; its length, 0 if there was nothing to put in.
    fn build_packet(&mut self, now: Instant, slot: usize, limit: usize, data: bool, buf: &mut Vec<u8>) -> usize {
        let start = buf.len();
        let tag =
            self.control.front().filter(|control| control.slot == slot).map_or(self.peer_tag, |control| control.tag);
        let (source_port, destination_port) = (self.options.local_port, self.peer_port);
        wire::begin(buf, Header { source_port, destination_port, verification_tag: tag });
        let mut auth = None;
        let alone = self.put_control(slot, start + limit, buf, &mut auth);
        if !alone && tag == self.peer_tag && self.state.is_up() {
            self.put_announcements(now, slot, start, limit, buf);
            let going = data || buf.len() > start + Header::LEN;
            if self.ack.pending() && (self.ack.due(now) || going) && self.sack_slot() == Some(slot) {
                self.echoes.emit(start + limit, buf);
                self.put_sack(slot, start + limit, buf);
            }
            self.put_copies(slot, start + limit, buf);
            if !data && self.redundancy_slot() == Some(slot) {
                self.put_redundancy(now, slot, start, start + limit, buf);
            }
            if data {
                self.put_data(now, slot, start, start + limit, buf);
            }
        }
        if buf.len() == start + Header::LEN {
            buf.truncate(start);
            return 0;
        }
        if let (Some(at), Some(keys)) = (auth, &self.auth) {
            keys.seal(&mut buf[at..]);
        }
        wire::seal(&mut buf[start..]);
        buf.len() - start
    }

    /// Appends the control chunks for `slot` as far as they fit; whether nothing else may follow.
    fn put_control(&mut self, slot: usize, end: usize, buf: &mut Vec<u8>, auth: &mut Option<usize>) -> bool {
        let mut any = false;
        while let Some(control) = self.control.front().filter(|control| control.slot == slot) {
            let kind = control.bytes.first().copied().unwrap_or_default();
            let keys = self.auth.as_ref().filter(|keys| auth.is_none() && keys.peer_requires(kind));
            let needed = control.bytes.len() + keys.map_or(0, |keys| padded(keys.overhead()));
            if any && (control.alone || buf.len() + needed > end) {
                return true;
            }
            if let Some(keys) = keys {
                *auth = Some(keys.emit(buf));
            }
            buf.extend_from_slice(&control.bytes);
            any = true;
            let alone = control.alone;
            self.control.pop_front();
            if alone {
                return true;
            }
        }
        false
    }

    /// Appends FORWARD-TSN, HEARTBEAT and MTU probes that the path owes.
    fn put_announcements(&mut self, now: Instant, slot: usize, start: usize, limit: usize, buf: &mut Vec<u8>) {
        let Some(path) = self.paths.get_mut(slot) else { return };
        let pending = core::mem::take(&mut path.pending);
        if pending.forward && self.is_forwarding() {
            self.put_forward(start + limit, buf);
            if let Some(path) = self.paths.get_mut(slot) {
                path.timers.forward = Some(now + path.rtt.rto());
            }
        }
        if pending.heartbeat {
            self.put_heartbeat(now, slot, buf);
        }
        if pending.mtu_probe && buf.len() == start + Header::LEN {
            self.put_mtu_probe(now, slot, start, buf);
        } else if let Some(path) = self.paths.get_mut(slot) {
            // In a packet of its own: what is with it may be lost with it.
            path.pending.mtu_probe = pending.mtu_probe;
        }
    }

    fn put_sack(&mut self, slot: usize, end: usize, buf: &mut Vec<u8>) {
        let room = end.saturating_sub(buf.len());
        let header = if self.agreed.nr_sack { NrSack::HEADER } else { Sack::HEADER };
        let Some(entries) = room.checked_sub(header).map(|room| room / GapBlock::SIZE) else { return };
        let mut scratch = core::mem::take(&mut self.scratch);
        self.tracker.gaps(&mut scratch.gaps, entries);
        let left = (entries - scratch.gaps.len() / GapBlock::SIZE) * u32::SIZE;
        self.tracker.take_duplicates(&mut scratch.duplicates);
        scratch.duplicates.truncate(left);
        let sack = Sack {
            cumulative_tsn: self.tracker.cumulative() as u32,
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
        self.scratch = scratch;
        if let Some(path) = self.paths.get(slot) {
            self.ack.sent(path.id);
        }
    }

    /// FORWARD-TSN or I-FORWARD-TSN up to the advanced point (RFC 3758 §3.5 C3, RFC 8260 §2.3.1), or as far as the
    /// skipped streams fit.
    fn put_forward(&self, end: usize, buf: &mut Vec<u8>) {
        let room = end.saturating_sub(buf.len() + 8) / ISkip::SIZE;
        let mut skips: Vec<ISkip> = Vec::new();
        let mut point = self.out.base() - 1;
        for (tsn, chunk) in self.out.iter().take_while(|&(tsn, _)| tsn <= self.forward.point) {
            if chunk.is_abandoned() {
                let message = self.queue.get(chunk.piece.message);
                let &crate::tx::Message { stream, unordered, number: mid, .. } = message;
                if self.agreed.interleaving || !unordered {
                    match skips.iter().position(|skip| (skip.stream, skip.unordered) == (stream, unordered)) {
                        Some(at) => skips[at].mid = mid, // TSNs and numbers of a stream rise together.
                        None if skips.len() == room => break,
                        None => skips.push(ISkip { stream, unordered, mid }),
                    }
                }
            }
            point = tsn;
        }
        let mut entries = Vec::with_capacity(skips.len() * ISkip::SIZE);
        let mut w = Writer::new(&mut entries);
        let new_cumulative_tsn = point as u32;
        if self.agreed.interleaving {
            skips.iter().for_each(|skip| skip.emit(&mut w));
            IForwardTsn { new_cumulative_tsn, skips: Entries::new(&entries) }.emit(&mut Writer::new(buf));
        } else {
            skips.iter().for_each(|skip| Skip { stream: skip.stream, ssn: skip.mid as u16 }.emit(&mut w));
            ForwardTsn { new_cumulative_tsn, skips: Entries::new(&entries) }.emit(&mut Writer::new(buf));
        }
    }

    /// Fills the packet: first what was lost, then what is new (RFC 9260 §6.1 C).
    fn put_data(&mut self, now: Instant, slot: usize, start: usize, end: usize, buf: &mut Vec<u8>) {
        let before = buf.len();
        let header = self.data_header();
        let unheld = core::mem::take(&mut self.unheld_packet);
        while let Some((origin, priority, tsn)) = self.next_repeat(slot) {
            let Some(chunk) = self.out.get(tsn).copied() else {
                self.retransmit.remove(origin, priority, tsn);
                continue;
            };
            if !self.worth_repeating(now, chunk.piece.message, chunk.repeats) {
                self.abandon(chunk.piece.message); // Takes its chunks out of `retransmit`.
                self.advance_forward_point();
                continue;
            }
            let fits = buf.len() + padded(header + usize::from(chunk.piece.len)) <= end;
            // A packet of its own may exceed the limit: a chunk cannot be cut again once it has a TSN. Only the first
            // packet of a batch may: its size is the size of all.
            if !fits && (start > 0 || buf.len() > start + Header::LEN) {
                break;
            }
            self.retransmit.remove(origin, priority, tsn);
            self.send_chunk(now, slot, tsn, chunk, buf);
            if !fits || !(unheld || self.slot_has_room(slot)) {
                break;
            }
        }
        while self.next_repeat(slot).is_none()
            && self.may_carry_new(slot)
            && self.has_new_data()
            && self.suits(now, slot)
        {
            let common = self.paths.common_mtu().unwrap_or(self.options.paths.base_mtu);
            let most = common - Header::LEN - header - self.fec_reserve();
            let room = (end.saturating_sub(buf.len() + header) & !3).min(most);
            let worth_it = |left: usize| room >= left || room >= Self::MIN_PIECE.min(most);
            self.admit(now, slot, worth_it);
            let Some((key, left)) = self.queue.peek() else { break };
            if !self.is_worth_sending(now, key, 0) && (self.agreed.forward_tsn || self.queue.is_untouched(key)) {
                self.abandon(key);
                self.advance_forward_point();
                continue;
            }
            if !worth_it(left) {
                break;
            }
            let Some(piece) = self.queue.cut(room) else { break };
            let chunk = Chunk::new(piece, ChunkState::InFlight, slot as u8, now);
            let tsn = self.out.push(chunk);
            let message = self.queue.get_mut(piece.message);
            if message.chunks == 0 {
                message.first_tsn = tsn;
            }
            message.last_tsn = tsn;
            message.chunks += 1;
            self.send_chunk(now, slot, tsn, chunk, buf);
        }
        let sent = buf.len() - before;
        if sent > 0 {
            self.note_sources(now);
            self.paths.last = slot;
            let (probe, ack_delay) = (self.options.paths.probe, self.options.sack.delay);
            if let Some(path) = self.paths.get_mut(slot) {
                path.pacer.on_sent(sent);
                path.burst += 1;
                path.timers.probe = path.probe_timeout(ack_delay).filter(|_| probe).map(|timeout| now + timeout);
            }
        }
    }

    /// The next chunk of which a copy is owed, and the path that it goes over: the best but the one it took. It may have
    /// been cut for larger packets than any other path carries; then there is no copy.
    fn next_copy(&mut self) -> Option<(u64, usize)> {
        let header = self.data_header();
        while let Some(&tsn) = self.copies.front() {
            let chunk = self.out.get(tsn).filter(|chunk| chunk.state == ChunkState::InFlight);
            let size = |chunk: &Chunk| Header::LEN + padded(header + usize::from(chunk.piece.len));
            let other = chunk.and_then(|chunk| self.paths.best_other(usize::from(chunk.slot), size(chunk)));
            if let Some(slot) = other {
                return Some((tsn, slot));
            }
            self.copies.pop_front();
        }
        None
    }

    /// Appends the copies that go over the path in `slot`, as far as they fit.
    fn put_copies(&mut self, slot: usize, end: usize, buf: &mut Vec<u8>) {
        while let Some((tsn, _)) = self.next_copy().filter(|&(_, other)| other == slot) {
            let Some(chunk) = self.out.get(tsn).copied() else { return };
            if buf.len() + padded(self.data_header() + usize::from(chunk.piece.len)) > end {
                return;
            }
            self.copies.pop_front();
            self.put_chunk(tsn, chunk, buf);
            if let Some(chunk) = self.out.get_mut(tsn) {
                chunk.copied = true;
            }
            if let Some(path) = self.paths.get_mut(slot) {
                path.stats.copied_chunks += 1;
            }
        }
    }

    /// Writes the chunk `tsn` and notes that it went over the path in `slot`.
    fn send_chunk(&mut self, now: Instant, slot: usize, tsn: u64, chunk: Chunk, buf: &mut Vec<u8>) {
        let again = chunk.state == ChunkState::Lost;
        debug_assert!(again || chunk.repeats == 0, "{:?} is not to be sent again", chunk.state);
        let len = usize::from(chunk.piece.len);
        self.put_chunk(tsn, chunk, buf);
        if !again && self.queue.get(chunk.piece.message).copied {
            self.copies.push_back(tsn);
        }
        if let Some(before) = self.paths.get_mut(usize::from(chunk.slot)).filter(|_| again) {
            before.unacked -= len;
        }
        let Some(path) = self.paths.get_mut(slot) else { return };
        path.unacked += len;
        let fast = again && chunk.lost_by == LossCause::Reported;
        if fast && path.sent.front().is_none_or(|&(first, _)| tsn < first) {
            // The oldest of this path leaves anew (RFC 9260 §7.2.4 4).
            path.timers.retransmission = Some(now + path.rtt.rto());
        }
        let order = path.on_chunk_sent(now, tsn, len, again.then_some(chunk.lost_by));
        let stats = &mut self.stats;
        if again {
            self.sent_again.note(tsn);
            stats.retransmissions += 1;
            stats.fast_retransmissions += u64::from(fast);
            stats.timeout_retransmissions += u64::from(chunk.lost_by == LossCause::Timeout);
        } else {
            stats.new_chunks += 1;
            stats.new_bytes += len as u64;
        }
        self.out.in_flight += len;
        self.peer_rwnd = self.peer_rwnd.saturating_sub(len);
        if let Some(chunk) = self.out.get_mut(tsn) {
            chunk.state = ChunkState::InFlight;
            chunk.slot = slot as u8;
            chunk.order = order;
            chunk.sent = now;
            chunk.missing = 0;
            chunk.held_until = None;
            chunk.copied = false;
            chunk.repeats += u16::from(again);
        }
    }

    /// Appends the chunk `tsn` as it stands on the wire.
    fn put_chunk(&self, tsn: u64, chunk: Chunk, buf: &mut Vec<u8>) {
        // The last chunk before a pause asks for its SACK at once (RFC 7053 §4).
        let immediate = chunk.piece.last && self.queue.waiting_bytes() == 0 && self.retransmit.is_empty();
        let payload = self.put_chunk_header(tsn, &chunk, immediate, buf);
        let mut w = Writer::new(buf);
        w.bytes(payload);
        w.zeros(padded(payload.len()) - payload.len());
    }

    /// Appends all of the chunk `tsn` but the payload, which it returns.
    pub(super) fn put_chunk_header(&self, tsn: u64, chunk: &Chunk, immediate: bool, buf: &mut Vec<u8>) -> &[u8] {
        let piece = chunk.piece;
        let message = self.queue.get(piece.message);
        let (from, len) = (piece.offset as usize, usize::from(piece.len));
        let payload = &message.payload[from..from + len];
        let (stream, unordered, ppid) = (message.stream, message.unordered, message.ppid);
        let (tsn, first, last) = (tsn as u32, piece.first, piece.last);
        let mut w = Writer::new(buf);
        if self.agreed.interleaving {
            let (mid, fsn) = (message.number, piece.fsn);
            let chunk = IData { tsn, stream, mid, unordered, first, last, immediate, ppid, fsn, payload };
            chunk.emit_header(&mut w, len);
        } else {
            let ssn = message.number as u16;
            let chunk = Data { tsn, stream, ssn, ppid, unordered, first, last, immediate, payload };
            chunk.emit_header(&mut w, len);
        }
        payload
    }

    /// Queues a control chunk for the path in `slot`.
    pub(super) fn control_chunk(&mut self, slot: usize, chunk: &wire::Chunk<'_>) {
        if self.control.len() >= Self::MAX_CONTROL {
            return;
        }
        let mut bytes = Vec::new();
        chunk.emit(&mut Writer::new(&mut bytes));
        self.control.push_back(Control { slot, tag: self.peer_tag, bytes, alone: false });
    }

    pub(super) fn send_abort(&mut self, cause: &Cause<'_>) {
        let mut causes = Vec::new();
        cause.emit(&mut Writer::new(&mut causes));
        self.send_abort_with(&causes);
    }

    /// ABORT is the last thing that is sent; all that waited before it is void.
    pub(super) fn send_abort_with(&mut self, causes: &[u8]) {
        if matches!(self.state, State::Closed) {
            return;
        }
        self.control.clear();
        if self.peer_tag == 0 {
            return;
        }
        let preferred = self.paths.enumerate().next().map(|(slot, _)| slot);
        if let Some(slot) = self.paths.for_control(None).or(preferred) {
            self.control_chunk(slot, &wire::Chunk::Abort(Abort { reflected: false, causes: Causes::new(causes) }));
        }
    }
}
