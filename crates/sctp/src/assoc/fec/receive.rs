use super::SYMBOL_FLAGS;
use crate::assoc::Open;
use crate::assoc::receive::Arrivals;
use crate::number::Tsn;
use crate::path::PathIndex;
use crate::wire::chunk::Redundancy;
use crate::wire::{Chunk, RawChunk};
use braidcast_core::Instant;
use braidcast_core::events::SctpEvent;
use braidcast_fec::{Coefficients, Combination, Evicted, Unusable};

/// The data chunk in `bytes`, its type and flags without what may differ from one transmission to
/// the next, and the rest.
fn symbol(bytes: &[u8]) -> Option<([u8; 2], &[u8])> {
    let (&[kind, flags], body) = bytes.split_first_chunk()?;
    Some(([kind, flags & SYMBOL_FLAGS], body))
}

impl Open {
    /// The data chunk `tsn` came, `bytes`, and is new.
    pub(in crate::assoc) fn note_symbol(&mut self, tsn: Tsn, bytes: &[u8]) {
        if let (Some(fec), Some((head, body))) = (&mut self.fec, symbol(bytes)) {
            fec.decoder.on_source_of(tsn.get(), &head, body);
        }
    }

    /// The data chunk `tsn` came again, or after it was made up for: it should say the same.
    pub(in crate::assoc) fn compare_symbol(&mut self, tsn: Tsn, bytes: &[u8]) {
        if let (Some(fec), Some((head, body))) = (&self.fec, symbol(bytes)) {
            let known = fec.decoder.source(tsn.get());
            let differs = known.is_some_and(|known| known.split_first_chunk() != Some((&head, body)));
            self.journal.stats.contradicting_chunks += u64::from(differs);
        }
    }

    /// REDUNDANCY. Whatever it says, the work is bounded by [`Redundancy::MAX_RANGE`] and the decoder's limits.
    pub(in crate::assoc) fn handle_redundancy(&mut self, chunk: &Redundancy<'_>) {
        let Some(fec) = self.fec.as_mut().filter(|_| self.state.accepts_data()) else { return };
        self.journal.stats.redundancy_received += 1;
        let coefficients = match chunk.rule {
            Redundancy::CAUCHY => Coefficients::Cauchy,
            Redundancy::RANDOM => Coefficients::Random,
            _ => {
                self.journal.stats.redundancy_refused += 1;
                return;
            }
        };
        let first = self.tracker.unwrap(chunk.first_tsn).get();
        let combination = Combination { coefficients, first, count: chunk.count, key: chunk.key };
        let outcome = if chunk.count > Redundancy::MAX_RANGE {
            Err(Unusable::Outside)
        } else {
            fec.decoder.on_repair_of(&combination, |n| chunk.covers(n), chunk.coded)
        };
        match outcome {
            Ok(()) => {}
            Err(Unusable::Redundant) => self.journal.stats.redundancy_useless += 1,
            Err(Unusable::TooOld) => self.journal.stats.redundancy_late += 1,
            Err(Unusable::Outside | Unusable::BadLength) => self.journal.stats.redundancy_refused += 1,
        }
    }

    /// After a packet: hands on what was made up for, and keeps what is held for decoding to the
    /// room that data leaves in the receive buffer.
    pub(in crate::assoc) fn take_recovered(&mut self, now: Instant, arrived: PathIndex, arrivals: &mut Arrivals) {
        let mut chunk = Vec::new();
        while let Some(tsn) = self.fec.as_mut().and_then(|fec| fec.decoder.poll_recovered(&mut chunk)) {
            self.recover(now, arrived, Tsn::new(tsn), &chunk, arrivals);
        }
        let room = self.receive_window();
        let Some(fec) = &mut self.fec else { return };
        fec.decoder.settle(self.tracker.cumulative().next().get());
        // ECMT algorithm 1: data first. What redundancy below the cumulative TSN covers is there,
        // so there is none of it.
        while fec.decoder.held() > room {
            match fec.decoder.evict() {
                Some(Evicted::Source) => {}
                Some(Evicted::Repair) => self.journal.stats.redundancy_evicted += 1,
                None => break,
            }
        }
        let inconsistent = fec.decoder.stats().inconsistent;
        self.journal.stats.inconsistent_chunks +=
            inconsistent - core::mem::replace(&mut fec.inconsistent, inconsistent);
    }

    /// The chunk `tsn` was made up for: it goes the way of a chunk that came, and is acknowledged at once (ECMT §II).
    fn recover(&mut self, now: Instant, arrived: PathIndex, tsn: Tsn, bytes: &[u8], arrivals: &mut Arrivals) {
        if self.tracker.has(tsn) {
            return; // Skipped by a FORWARD-TSN, or it came when the decoder had no room for it.
        }
        let Some((&[kind, flags, ..], value)) = bytes.split_first_chunk::<4>() else { return };
        let raw = RawChunk { kind, flags, value, bytes, offset: 0 };
        let stream = match Chunk::parse(raw) {
            Ok(Chunk::Data(c)) => c.stream,
            Ok(Chunk::IData(c)) => c.stream,
            _ => return,
        };
        // The decoder believes chunks of the type agreed on only.
        if !self.reassembly.has_stream(stream) {
            self.journal.stats.inconsistent_chunks += 1;
            if let Some(fec) = &mut self.fec {
                fec.decoder.distrust(tsn.get());
            }
            return;
        }
        let Ok(chunk) = Chunk::parse(raw) else { return };
        let before = core::mem::take(&mut arrivals.new);
        self.handle_chunk(now, arrived, raw, chunk, self.is_protected(), arrivals);
        self.journal.stats.recovered_chunks += u64::from(arrivals.new);
        if arrivals.new
            && let Some(path) = self.paths.at(arrived.get()).map(|index| self.paths[index].id())
        {
            self.journal.tell(|| SctpEvent::ChunkRecovered { path, tsn: tsn.wire() });
        }
        arrivals.immediate |= arrivals.new;
        arrivals.new |= before;
    }

    /// The peer abandoned what is up to the cumulative TSN, or had it acknowledged: no redundancy to come covers it.
    pub(in crate::assoc) fn forward_decoder(&mut self) {
        let below = self.tracker.cumulative().next().get();
        if let Some(fec) = &mut self.fec {
            fec.decoder.forget_below(below);
        }
    }
}
