use super::Open;
use super::plan::{Plan, What};
use crate::tx::Repeat;
use crate::wire::chunk::Slice;
use crate::wire::{self, Header, padded};
use braidcast_core::{Instant, Transmit, Writer};

impl Open {
    /// The chunk that is to be sent again over the planned path, if it was cut for larger packets
    /// than that carries now.
    pub(super) fn next_oversized(&mut self, now: Instant, plan: Plan) -> Option<Repeat> {
        if plan.what != What::Repeat || !self.agreed.slices {
            return None;
        }
        let repeat = self.next_repeat(now, plan.path)?;
        let (_, _, tsn) = repeat;
        let chunk = self.ledger.get(tsn)?;
        let (key, len, repeats) = (chunk.piece().message, chunk.len(), chunk.repeats());
        let fits = Header::LEN + padded(self.data_header() + len) <= self.paths[plan.path].mtu();
        let worth_it = !fits && self.queue.is_worth_repeating(self.prospect_for(now, key), key, repeats);
        worth_it.then_some(repeat)
    }

    /// Writes the chunk to be repeated in slices, a packet each, of the same size but for the last.
    pub(super) fn transmit_slices(&mut self, now: Instant, plan: Plan, repeat: Repeat, buf: &mut Vec<u8>) -> Transmit {
        let (index, (_, _, tsn)) = (plan.path, repeat);
        let len = self.ledger.get(tsn).map_or(0, crate::tx::Chunk::len);
        let limit = self.paths[index].mtu();
        let before = *self.paths[index].stats();
        self.unheld_packet = false;
        let leave = self.departs(now, index, len);
        let (ledger, books) = self.books();
        let departure = ledger.repeat(books, leave, repeat);
        let mut chunk = core::mem::take(&mut self.scratch.slices);
        chunk.clear();
        let immediate = self.ends_burst(&departure.chunk);
        self.put_chunk(departure.tsn, &departure.chunk, immediate, &mut chunk);
        chunk.truncate(self.data_header() + len);
        let header = Header {
            source_port: self.options.local_port,
            destination_port: self.peer_port,
            verification_tag: self.peer_tag,
        };
        let most = (limit - Header::LEN - Slice::HEADER) & !3;
        let mut packets = 0;
        for (n, bytes) in chunk.chunks(most).enumerate() {
            let begin = buf.len();
            let start = self.leave_room(buf);
            wire::begin(buf, header);
            let (total, offset) = (chunk.len() as u16, (n * most) as u16);
            Slice { tsn: departure.tsn.wire(), total, offset, bytes }.emit(&mut Writer::new(buf));
            self.finish(now, index, start, buf);
            self.journal.tell(|| plan.as_told(self.paths[index].id(), buf.len() - begin));
            packets += 1;
        }
        self.scratch.slices = chunk;
        let (next, framing) = (self.ledger.next_order(index), self.framing());
        let path = &mut self.paths[index];
        path.on_packet_sent(next, limit + framing);
        path.on_chunk_sent(now, &departure);
        self.note_data_sent(now, index, buf.len());
        let path = &mut self.paths[index];
        path.on_packets_sent(now, packets, buf.len());
        let route = path.route();
        let segment_size = (packets > 1).then_some(Header::LEN + Slice::HEADER + most + self.framing());
        Transmit { route, ecn: self.codepoint(index, &before), segment_size }
    }
}
