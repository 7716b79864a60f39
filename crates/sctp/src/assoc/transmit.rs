use super::schedule::Way;
use super::{Association, State};
use crate::number::Tsn;
use crate::path::{Path, PathIndex};
use crate::tx::{Chunk, Departure};
use crate::wire::chunk::{Abort, Data, ForwardTsn, GapBlock, GapBlocks, IData, IForwardTsn, ISkip, NrSack, Sack, Skip};
use crate::wire::{self, Cause, Causes, Entries, Entry, Header, padded};
use braidcast_core::{Instant, Transmit, Writer};

/// A control chunk that waits to be sent.
#[derive(Debug)]
pub(super) struct Control {
    /// The path it goes over.
    pub(super) path: PathIndex,
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
        let held = self.state.carries_data() && self.ledger.has_no_repeats() && self.peer_is_full();
        self.held_by_peer.observe(now, held);
        self.announce_forward();
        let (index, data) = self.next_path(now, may_wait)?;
        let limit = self.paths[index].mtu();
        let before = *self.paths[index].stats();
        let waiting = self.queue.waiting_bytes();
        let mut len = self.build_packet(now, index, limit, data, buf);
        if len == 0 {
            // Only an announcement that turned out to be void; or the queue discarded what was to go, and has other messages.
            let again = !data || (self.queue.front().is_some() && self.queue.waiting_bytes() < waiting);
            let redundancy = data && may_wait && self.redundancy_path().is_some();
            return if again || redundancy { self.transmit_next(now, buf, !redundancy) } else { None };
        }
        let (first, mut segment_size) = (len, None);
        let mut packets = 1;
        // More packets of the same size for the same path go along (UDP segmentation offload); a smaller one ends it.
        let most = if first <= limit { self.options.limits.max_segments } else { 1 };
        while data && len == first && packets < most && buf.len() + first <= usize::from(u16::MAX) {
            self.announce_forward();
            if self.redundancy_is_next(index) || !matches!(self.way(now), Way::Open(next) if next == index) {
                break;
            }
            len = self.build_packet(now, index, first, true, buf);
            if len == 0 {
                break;
            }
            segment_size = Some(first);
            packets += 1;
        }
        let path = &mut self.paths[index];
        path.on_packets_sent(now, packets, buf.len());
        let route = path.route();
        Some(Transmit { route, ecn: self.codepoint(index, &before), segment_size })
    }

    /// The path that has something to send, and whether data may be part of it.
    fn next_path(&mut self, now: Instant, may_wait: bool) -> Option<(PathIndex, bool)> {
        if let Some(control) = self.control.front() {
            return Some((control.path, false));
        }
        let announcing = |(_, path): &(PathIndex, &Path)| path.pending().any();
        if let Some((index, _)) = self.paths.enumerate().find(announcing).filter(|_| self.state.is_up()) {
            return Some((index, false));
        }
        if let Some((_, index)) = self.next_copy() {
            return Some((index, false));
        }
        let open = if let Way::Open(index) = self.way(now) { Some(index) } else { None };
        if let Some(index) = self.redundancy_path()
            && (!may_wait || open.is_none_or(|open| self.redundancy_is_next(open)))
        {
            return Some((index, false));
        }
        if let Some(index) = open {
            return Some((index, true));
        }
        if self.ack.due(now) && self.state.is_up() {
            return self.sack_path().map(|index| (index, false));
        }
        None
    }

    /// SACKs go back where the data came from (RFC 9260 §6.4), if that path still answers.
    pub(super) fn sack_path(&self) -> Option<PathIndex> {
        self.paths.for_control(self.ack.path().and_then(|id| self.paths.by_id(id)))
    }

    pub(super) const fn data_header(&self) -> usize {
        if self.agreed.interleaving { IData::HEADER } else { Data::HEADER }
    }

    /// Appends one packet of at most `limit` bytes for the path `index`; its length, 0 if there was nothing to put in.
    fn build_packet(&mut self, now: Instant, index: PathIndex, limit: usize, data: bool, buf: &mut Vec<u8>) -> usize {
        let start = buf.len();
        let tag =
            self.control.front().filter(|control| control.path == index).map_or(self.peer_tag, |control| control.tag);
        let (source_port, destination_port) = (self.options.local_port, self.peer_port);
        wire::begin(buf, Header { source_port, destination_port, verification_tag: tag });
        let mut auth = None;
        let alone = self.put_control(index, start + limit, buf, &mut auth);
        if !alone && tag == self.peer_tag && self.state.is_up() {
            self.put_announcements(now, index, start, limit, buf);
            let going = data || buf.len() > start + Header::LEN;
            if self.ack.pending() && (self.ack.due(now) || going) && self.sack_path() == Some(index) {
                self.echoes.emit(start + limit, buf);
                self.put_sack(index, start + limit, buf);
            }
            self.put_copies(index, start + limit, buf);
            if !data && self.redundancy_path() == Some(index) {
                self.put_redundancy(now, index, start, start + limit, buf);
            }
            if data {
                self.put_data(now, index, start, start + limit, buf);
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

    /// Appends the control chunks for the path `index` as far as they fit; whether nothing else may follow.
    fn put_control(&mut self, index: PathIndex, end: usize, buf: &mut Vec<u8>, auth: &mut Option<usize>) -> bool {
        let mut any = false;
        while let Some(control) = self.control.front().filter(|control| control.path == index) {
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
    fn put_announcements(&mut self, now: Instant, index: PathIndex, start: usize, limit: usize, buf: &mut Vec<u8>) {
        let pending = self.paths[index].take_pending();
        if let Some(point) = self.ledger.forward_point().filter(|_| pending.forward && self.ledger.is_forwarding()) {
            self.put_forward(point, start + limit, buf);
            self.paths[index].on_forward_sent(now);
        }
        if pending.heartbeat {
            self.put_heartbeat(now, index, buf);
        }
        if pending.mtu_probe && buf.len() == start + Header::LEN {
            self.put_mtu_probe(now, index, start, buf);
        } else if pending.mtu_probe {
            self.paths[index].postpone_mtu_probe();
        }
    }

    fn put_sack(&mut self, index: PathIndex, end: usize, buf: &mut Vec<u8>) {
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
        self.ack.sent(self.paths[index].id());
    }

    /// FORWARD-TSN or I-FORWARD-TSN up to the advanced `point` (RFC 3758 §3.5 C3, RFC 8260 §2.3.1), or as far as the
    /// skipped streams fit.
    fn put_forward(&self, point: Tsn, end: usize, buf: &mut Vec<u8>) {
        let room = end.saturating_sub(buf.len() + 8) / ISkip::SIZE;
        let mut skips: Vec<ISkip> = Vec::new();
        let mut reached = self.ledger.base().before();
        for (tsn, chunk) in self.ledger.iter().take_while(|&(tsn, _)| tsn <= point) {
            if chunk.is_abandoned() {
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
    fn put_data(&mut self, now: Instant, index: PathIndex, start: usize, end: usize, buf: &mut Vec<u8>) {
        let before = buf.len();
        self.put_repeats(now, index, start, end, buf);
        self.put_new(now, index, end, buf);
        let sent = buf.len() - before;
        if sent > 0 {
            self.note_sources(now);
            self.paths.note_last(index);
            self.scheduler.on_sent(index.get(), sent);
            self.paths[index].on_data_sent(now, sent);
        }
    }

    /// Appends what was lost and may go over the path `index`, as far as it fits.
    fn put_repeats(&mut self, now: Instant, index: PathIndex, start: usize, end: usize, buf: &mut Vec<u8>) {
        let header = self.data_header();
        let unheld = core::mem::take(&mut self.unheld_packet);
        while let Some(repeat) = self.next_repeat(index) {
            let (_, _, tsn) = repeat;
            let Some((key, len, repeats)) = self.ledger.get(tsn).map(|it| (it.piece().message, it.len(), it.repeats()))
            else {
                return;
            };
            if !self.queue.worth_repeating(now, key, repeats) {
                let (ledger, books) = self.books();
                ledger.abandon(books, key); // Takes its chunks out of those to be repeated.
                continue;
            }
            let fits = buf.len() + padded(header + len) <= end;
            // A packet of its own may exceed the limit: a chunk cannot be cut again once it has a TSN. Only the first
            // packet of a batch may: its size is the size of all.
            if !fits && (start > 0 || buf.len() > start + Header::LEN) {
                break;
            }
            let (ledger, books) = self.books();
            let departure = ledger.repeat(books, now, index, repeat);
            self.put_departure(now, index, &departure, buf);
            if !fits || !(unheld || self.path_has_room(index)) {
                break;
            }
        }
    }

    /// Appends new data for the path `index`, as far as it fits.
    fn put_new(&mut self, now: Instant, index: PathIndex, end: usize, buf: &mut Vec<u8>) {
        let header = self.data_header();
        while self.next_repeat(index).is_none()
            && self.may_carry_new(index)
            && self.has_new_data()
            && self.suits(now, index)
        {
            let most = self.paths.common_mtu() - Header::LEN - header - self.fec_reserve();
            let room = (end.saturating_sub(buf.len() + header) & !3).min(most);
            let worth_it = |left: usize| room >= left || room >= Self::MIN_PIECE.min(most);
            self.admit(now, index, worth_it);
            let Some((key, left)) = self.queue.peek() else { break };
            if !self.queue.get(key).may_send(now, 0) && (self.agreed.forward_tsn || self.queue.is_untouched(key)) {
                let (ledger, books) = self.books();
                ledger.abandon(books, key);
                continue;
            }
            if !worth_it(left) {
                break;
            }
            let Some(piece) = self.queue.cut(room) else { break };
            let (ledger, books) = self.books();
            let departure = ledger.send(books, now, index, piece);
            self.put_departure(now, index, &departure, buf);
        }
    }

    /// Writes a chunk that leaves now over the path `index`.
    fn put_departure(&mut self, now: Instant, index: PathIndex, departure: &Departure, buf: &mut Vec<u8>) {
        self.put_chunk(departure.tsn, &departure.chunk, buf);
        self.paths[index].on_chunk_sent(now, departure);
    }

    /// The next chunk of which a copy is owed, and the path that it goes over: the best but the one it took. It may have
    /// been cut for larger packets than any other path carries; then there is no copy.
    fn next_copy(&mut self) -> Option<(Tsn, PathIndex)> {
        let header = self.data_header();
        let paths = &self.paths;
        self.ledger.next_copy(|took, chunk| paths.best_other(took, Header::LEN + padded(header + chunk.len())))
    }

    /// Appends the copies that go over the path `index`, as far as they fit.
    fn put_copies(&mut self, index: PathIndex, end: usize, buf: &mut Vec<u8>) {
        while let Some((tsn, _)) = self.next_copy().filter(|&(_, other)| other == index) {
            let Some(len) = self.ledger.get(tsn).map(Chunk::len) else { return };
            if buf.len() + padded(self.data_header() + len) > end {
                return;
            }
            let Some((tsn, chunk)) = self.ledger.copy() else { return };
            self.put_chunk(tsn, &chunk, buf);
            self.paths[index].on_copy_sent();
        }
    }

    /// Appends the chunk `tsn` as it stands on the wire.
    fn put_chunk(&self, tsn: Tsn, chunk: &Chunk, buf: &mut Vec<u8>) {
        // The last chunk before a pause asks for its SACK at once (RFC 7053 §4).
        let immediate = chunk.piece().last && self.queue.waiting_bytes() == 0 && self.ledger.has_no_repeats();
        let payload = self.put_chunk_header(tsn, chunk, immediate, buf);
        let mut w = Writer::new(buf);
        w.bytes(payload);
        w.zeros(padded(payload.len()) - payload.len());
    }

    /// Appends all of the chunk `tsn` but the payload, which it returns.
    pub(super) fn put_chunk_header(&self, tsn: Tsn, chunk: &Chunk, immediate: bool, buf: &mut Vec<u8>) -> &[u8] {
        let piece = chunk.piece();
        let message = self.queue.get(piece.message);
        let (from, len) = (piece.offset as usize, usize::from(piece.len));
        let payload = &message.payload[from..from + len];
        let (stream, unordered, ppid) = (message.stream, message.unordered, message.ppid);
        let (tsn, first, last) = (tsn.wire(), piece.first, piece.last);
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

    /// Queues a control chunk for `path`.
    pub(super) fn control_chunk(&mut self, path: PathIndex, chunk: &wire::Chunk<'_>) {
        if self.control.len() >= Self::MAX_CONTROL {
            return;
        }
        let mut bytes = Vec::new();
        chunk.emit(&mut Writer::new(&mut bytes));
        self.control.push_back(Control { path, tag: self.peer_tag, bytes, alone: false });
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
        let preferred = self.paths.indices().next();
        if let Some(path) = self.paths.for_control(None).or(preferred) {
            self.control_chunk(path, &wire::Chunk::Abort(Abort { reflected: false, causes: Causes::new(causes) }));
        }
    }
}
