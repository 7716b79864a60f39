use super::{Fec, SYMBOL_FLAGS};
use crate::api::FecWindow;
use crate::assoc::Open;
use crate::number::Tsn;
use crate::path::{Path, PathIndex};
use crate::tx::{Chunk, Prospect};
use crate::wire::Header;
use crate::wire::chunk::Redundancy;
use crate::wire::padded;
use braidcast_core::events::SctpEvent;
use braidcast_core::{Instant, Writer};
use braidcast_fec::{Coefficients, Combination};
use core::ops::RangeInclusive;

/// If what waits takes the paths more than this share of the time that a frame has, they are crowded: redundancy makes
/// as much late as it brings back. It is the share within which the last packets of a large frame leave
/// ([`Conditions`](braidcast_fec::Conditions)). A tenth shows as much, two fifths a point less (decision 44).
const CROWDED: f64 = 0.2;

impl super::Sender {
    /// Redundancy is due; the oldest gives way if too much waits for room.
    fn on_due(&mut self, combination: Combination) {
        if self.due.len() == Fec::MAX_DUE {
            self.due.pop_front();
        }
        self.due.push_back(combination);
    }
}

impl Open {
    /// Bytes by which data chunks are cut shorter than packets would allow.
    pub(in crate::assoc) fn fec_reserve(&self) -> usize {
        self.fec.as_ref().map_or(0, |fec| fec.reserve())
    }

    /// Informs the encoder what was sent for the first time since the last call, and asks it for redundancy.
    ///
    /// TSNs that stand for what was abandoned unsent are among them: its numbers have no gaps.
    pub(in crate::assoc) fn note_sources(&mut self, now: Instant) {
        if !self.sends_redundancy() {
            return;
        }
        let pause = self.queue.waiting_bytes() == 0 || !self.paths.best().any(|(index, _)| self.path_has_room(index));
        let part = self.part_sent();
        let Some(sender) = self.fec.as_mut().and_then(|fec| fec.sender.as_mut()) else { return };
        sender.encoder.on_acknowledged(self.ledger.base().get());
        for tsn in sender.next.until(self.ledger.next_tsn()) {
            sender.encoder.on_source(tsn.get());
            let Some(credit) = &mut sender.credit else {
                while let Some(combination) = sender.encoder.poll_repair() {
                    sender.on_due(combination);
                }
                continue;
            };
            // What goes over two paths needs nothing else.
            let chunk = self.ledger.get(tsn).filter(|chunk| chunk.has_message());
            let chunk = chunk.filter(|_| !self.ledger.owes_copy(tsn));
            if let Some((index, _)) = chunk.and_then(Chunk::place) {
                credit.on_source(now, part * self.paths[index].redundancy_owed());
            }
        }
        sender.next = self.ledger.next_tsn();
        let due = sender.credit.as_mut().map_or(0, |credit| credit.take(now, pause));
        for _ in 0..due.min(Fec::MAX_DUE) {
            if let Some(combination) = sender.encoder.repair() {
                sender.on_due(combination);
            }
        }
    }

    /// The part of what paths owe that is sent now: all of it unless they are crowded, which
    /// without frames they never are.
    fn part_sent(&self) -> f64 {
        let spared = self.options.redundancy.spared_in_a_crowd;
        if spared > 0 && self.is_crowded() { 1.0 - f64::from(spared) / 100.0 } else { 1.0 }
    }

    /// Returns `true` if what waits takes the paths a large part of the time that a frame has.
    fn is_crowded(&self) -> bool {
        let time = self.queue.front().and_then(crate::tx::Front::time);
        let takes = self.rate().map(|rate| self.queue.waiting_bytes() as f64 / rate);
        time.zip(takes).is_some_and(|(time, takes)| takes > CROWDED * time.as_secs_f64())
    }

    /// The path that redundancy goes over now, if some is due: of those that may carry data the one
    /// that has carried the least redundancy for the data that it carries, so that redundancy
    /// follows the scheduler; of two alike not the one that the last data took, which it covers.
    pub(in crate::assoc) fn redundancy_path(&mut self) -> Option<PathIndex> {
        let sender = self.fec.as_mut()?.sender.as_mut()?;
        let acknowledged = self.ledger.base().get();
        while sender.due.front().is_some_and(|combination| combination.end() <= acknowledged) {
            sender.due.pop_front();
        }
        if sender.due.is_empty() || !self.state.carries_data() {
            return None;
        }
        let inside = self.options.redundancy.fec_window == FecWindow::Inside;
        let open = self.paths.for_data().filter(|&(index, _)| !inside || self.path_has_room(index));
        let key = |index, path: &Path| (path.redundancy_share(), index == self.paths.last());
        let least = open
            .map(|(index, path)| (key(index, path), index))
            .min_by(|(a, _), (b, _)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        least.map(|(_, index)| index)
    }

    /// Returns `true` if redundancy goes before more data over the path `index`. Where the window has room
    /// for both, it waits for data that may go at the same moment: its packets are larger, and each
    /// would end a batch that one system call takes.
    pub(in crate::assoc) fn redundancy_is_next(&mut self, index: PathIndex) -> bool {
        if self.redundancy_path().is_none() {
            return false;
        }
        let due = self.fec.as_ref().and_then(|fec| fec.sender.as_ref()).map_or(0, |sender| sender.due.len());
        let path = &self.paths[index];
        let occupied = path.occupied(self.ledger.in_flight_over(index));
        due >= Fec::MAX_WAITING || occupied + (due + 1) * path.mtu() > path.cwnd()
    }

    /// Appends redundancy that is due, if it fits. What would not even fit a packet of its own, as
    /// the MTU has shrunk, is dropped, and so is what covers nothing any more.
    pub(in crate::assoc) fn put_redundancy(
        &mut self,
        now: Instant,
        index: PathIndex,
        start: usize,
        end: usize,
        buf: &mut Vec<u8>,
    ) {
        let (header, prospect) = (self.data_header(), self.prospect(now));
        let Some(mut fec) = self.fec.take() else { return };
        let range = fec.range;
        while let Some(sender) = &mut fec.sender
            && let Some(&combination) = sender.due.front()
        {
            let Some(combination) = self.encode(prospect, combination, range, &mut sender.scratch) else {
                sender.due.pop_front();
                continue;
            };
            let range = usize::from(sender.code.window().min(Redundancy::MAX_RANGE)).div_ceil(8);
            let super::Scratch { covered, coded, .. } = &mut sender.scratch;
            if sender.due.len() > 1 {
                // As long as with the longest range, so that it shares a batch with those behind it.
                coded.resize(coded.len() + range.saturating_sub(covered.len()), 0);
            }
            let chunk = Redundancy {
                rule: rule(combination.coefficients),
                first_tsn: combination.first as u32,
                count: combination.count,
                key: combination.key,
                covered,
                coded,
            };
            let size = padded(Redundancy::HEADER + covered.len() + coded.len());
            if buf.len() + size > end {
                if buf.len() > start + Header::LEN {
                    break;
                }
                sender.due.pop_front();
                continue;
            }
            chunk.emit(&mut Writer::new(buf));
            sender.due.pop_front();
            self.journal.stats.redundancy_sent += 1;
            let (first, count, path) = (combination.first as u32, combination.count, self.paths[index].id());
            self.journal.tell(|| SctpEvent::RedundancySent { path, first, count, bytes: size as u16 });
            let counted = coded.len().saturating_sub(header);
            self.paths[index].on_redundancy_sent(size, counted, self.ledger.last_order(index));
            if self.options.redundancy.fec_window == FecWindow::Inside {
                self.scheduler.on_extra(index.get(), size);
            }
            break;
        }
        self.fec = Some(fec);
    }

    /// Computes redundancy over what of the range of `combination` is neither acknowledged, nor
    /// abandoned, nor useless; the range that it came to, or `None` if nothing is left.
    fn encode(
        &self,
        prospect: Prospect,
        combination: Combination,
        range: u16,
        scratch: &mut super::Scratch,
    ) -> Option<Combination> {
        let wanted = |tsn: &u64| self.ledger.get(Tsn::new(*tsn)).is_some_and(|chunk| self.is_wanted(prospect, chunk));
        let (first, end) = (combination.first, combination.end());
        let (lowest, highest) = ((first..end).find(wanted)?, (first..end).rev().find(wanted)?);
        // A block's columns belong to its places; random coefficients to the range that they are drawn for.
        let first = match combination.coefficients {
            Coefficients::Cauchy => first,
            Coefficients::Random => lowest.max((highest + 1).saturating_sub(u64::from(range))),
        };
        let count = u16::try_from(highest + 1 - first).ok().filter(|&count| count <= Redundancy::MAX_RANGE)?;
        let combination = Combination { first, count, ..combination };
        combination.coefficients(&mut scratch.coefficients).ok()?;
        scratch.covered.clear();
        scratch.covered.resize(Redundancy::bits(count), 0);
        scratch.coded.clear();
        let mut rest = first..=highest;
        while !rest.is_empty() {
            self.add_chunks(prospect, first, &mut rest, scratch);
        }
        Some(combination)
    }

    /// Adds the next chunks of `rest` that are wanted, as many as the kernels take at once, to
    /// redundancy whose range begins with `first`.
    fn add_chunks(&self, prospect: Prospect, first: u64, rest: &mut RangeInclusive<u64>, scratch: &mut super::Scratch) {
        const AT_ONCE: usize = 16;
        let header = self.data_header();
        let super::Scratch { coefficients, covered, coded, heads } = scratch;
        let (mut factors, mut bodies) = ([0; AT_ONCE], [&[][..]; AT_ONCE]);
        let mut count = 0;
        heads.clear();
        for tsn in rest.by_ref() {
            let Some(chunk) = self.ledger.get(Tsn::new(tsn)).filter(|chunk| self.is_wanted(prospect, chunk)) else {
                continue;
            };
            let n = (tsn - first) as usize;
            covered[n / 8] |= 0x80 >> (n % 8);
            factors[count] = coefficients[n];
            bodies[count] = self.put_chunk_header(Tsn::new(tsn), chunk, false, heads);
            debug_assert_eq!(heads[count * header + 1] & !SYMBOL_FLAGS, 0);
            count += 1;
            if count == AT_ONCE {
                break;
            }
        }
        let mut parts = [&[][..]; AT_ONCE];
        for (part, head) in parts.iter_mut().zip(heads.chunks_exact(header)) {
            *part = head;
        }
        Combination::add_sources(&factors[..count], &parts[..count], &bodies[..count], coded);
    }

    /// Returns `true` if `chunk` is to get through and has not: redundancy is not spent on what would come too late.
    fn is_wanted(&self, prospect: Prospect, chunk: &Chunk) -> bool {
        chunk.is_wanted() && self.queue.is_worth_sending(prospect, chunk.piece().message, 0)
    }
}

/// How a rule stands on the wire.
const fn rule(coefficients: Coefficients) -> u8 {
    match coefficients {
        Coefficients::Cauchy => Redundancy::CAUCHY,
        Coefficients::Random => Redundancy::RANDOM,
    }
}
