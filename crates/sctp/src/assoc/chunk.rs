use super::Open;
use crate::number::Tsn;
use crate::tx::Chunk;
use crate::wire::chunk::{Data, IData};
use crate::wire::padded;
use braidcast_core::Writer;

impl Open {
    /// Bytes before the payload of a data chunk.
    pub(super) const fn data_header(&self) -> usize {
        if self.agreed.interleaving { IData::HEADER } else { Data::HEADER }
    }

    /// Returns `true` if `chunk` is the last before a pause, which asks for its SACK at once (RFC 7053 §4).
    pub(super) fn ends_burst(&self, chunk: &Chunk) -> bool {
        chunk.piece().last && self.queue.waiting_bytes() == 0 && self.ledger.has_no_repeats()
    }

    /// Appends the chunk `tsn` as it stands on the wire; `immediate`: it asks for its SACK at once.
    pub(super) fn put_chunk(&self, tsn: Tsn, chunk: &Chunk, immediate: bool, buf: &mut Vec<u8>) {
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
        let timed = last && message.is_timed();
        let mut w = Writer::new(buf);
        if self.agreed.interleaving {
            let (mid, fsn) = (message.number, piece.fsn);
            let chunk = IData { tsn, stream, mid, unordered, first, last, immediate, timed, ppid, fsn, payload };
            chunk.emit_header(&mut w, len);
        } else {
            let ssn = message.number as u16;
            let chunk = Data { tsn, stream, ssn, ppid, unordered, first, last, immediate, timed, payload };
            chunk.emit_header(&mut w, len);
        }
        payload
    }
}
