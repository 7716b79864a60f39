use crate::seq::{Seq, back, within};
use crate::wire::option::{AckVector, DataDropped, DropCode, DropRun, PacketState, Run};
use braidcast_core::Writer;
use std::collections::VecDeque;

/// Packets of consecutive numbers in one state, and their nonces: so many that a word holds a bit for each.
#[derive(Clone, Copy, Debug)]
struct Span {
    state: PacketState,
    len: u8,
    /// The nonce of the newest packet in bit 0.
    nonces: u64,
}

impl Span {
    const fn missing(len: u8) -> Self {
        Self { state: PacketState::Missing, len, nonces: 0 }
    }

    const fn run(self) -> Run {
        Run { state: self.state, len: self.len }
    }
}

/// An acknowledgement that was sent and what it told.
#[derive(Clone, Copy, Debug)]
struct Record {
    /// Its sequence number.
    seq: Seq,
    /// All up to this was told as it still is.
    told: Seq,
}

/// The receiver's half of Ack Vectors: which packets came, and whether the sender knows (RFC 4340 appendix A), with
/// what became of their data (§11.7).
#[derive(Debug, Default)]
pub(crate) struct AckWindow {
    /// The newest in front.
    spans: VecDeque<Span>,
    /// The newest packet, the first in `spans`.
    newest: Seq,
    /// Packets in `spans`.
    len: u64,
    /// Acknowledgements sent, oldest first.
    records: VecDeque<Record>,
    /// Packets whose data did not reach the application, oldest first.
    dropped: VecDeque<(Seq, DropCode)>,
}

impl AckWindow {
    /// Spans that are kept: three Ack Vector options. The oldest go first, which only makes the
    /// sender take the packets for lost.
    const MAX_SPANS: usize = 3 * crate::wire::RawOption::MAX_VALUE;
    const MAX_RECORDS: usize = 128;
    const MAX_DROPPED: usize = 256;
    /// Bytes that Ack Vector and Data Dropped take at most together: what a header holds, less its
    /// fixed part and the other options. Of Data Dropped the oldest are left out beyond that.
    const MAX_LEN: usize = 840;

    /// Packet `seq` has become acknowledgeable (RFC 4340 §8.5 step 8; A.1).
    pub(crate) fn insert(&mut self, seq: Seq, marked: bool, nonce: bool) {
        let state = if marked { PacketState::Marked } else { PacketState::Received };
        let nonce = nonce && !marked;
        if self.spans.is_empty() {
            (self.newest, self.len) = (back(seq, 1), 0);
        }
        if seq > self.newest {
            self.append(seq, state, nonce);
        } else {
            self.fill(seq, state, nonce);
        }
        while self.spans.len() > Self::MAX_SPANS {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        self.len -= self.spans.pop_back().map_or(0, |span| u64::from(span.len));
    }

    /// A.1.1: a new packet, and what is missing before it.
    fn append(&mut self, seq: Seq, state: PacketState, nonce: bool) {
        let mut gap = self.newest.distance_to(seq) - 1;
        if gap > Self::MAX_SPANS as u64 * u64::from(Run::MAX) {
            self.spans.clear();
            (self.len, gap) = (0, 0);
        }
        self.len += gap + 1;
        self.newest = seq;
        while gap > 0 {
            let len = gap.min(u64::from(Run::MAX));
            self.spans.push_front(Span::missing(len as u8));
            gap -= len;
        }
        match self.spans.front_mut() {
            Some(span) if span.state == state && span.len < Run::MAX => {
                span.len += 1;
                span.nonces = span.nonces << 1 | u64::from(nonce);
            }
            _ => self.spans.push_front(Span { state, len: 1, nonces: u64::from(nonce) }),
        }
    }

    /// A.1.2: a packet that was missing. One that is not missing stays as it is (§11.4.1 allows that).
    fn fill(&mut self, seq: Seq, state: PacketState, nonce: bool) {
        let mut skip = seq.distance_to(self.newest);
        let found = self.spans.iter().position(|span| {
            let here = skip < u64::from(span.len);
            if !here {
                skip -= u64::from(span.len);
            }
            here
        });
        let Some(at) = found.filter(|&at| self.spans[at].state == PacketState::Missing) else { return };
        let (before, after) = (skip as u8, self.spans[at].len - skip as u8 - 1);
        self.spans[at] = Span { state, len: 1, nonces: u64::from(nonce) };
        if after > 0 {
            self.spans.insert(at + 1, Span::missing(after));
        }
        if before > 0 {
            self.spans.insert(at, Span::missing(before));
        }
        // A.3: acknowledgements that told it was missing must not clear it.
        for record in self.records.iter_mut().rev().take_while(|record| record.told >= seq) {
            record.told = back(seq, 1);
        }
    }

    /// The data of packet `seq` did not reach the application.
    pub(crate) fn dropped(&mut self, seq: Seq, code: DropCode) {
        let at = self.dropped.iter().rposition(|&(other, _)| other < seq).map_or(0, |at| at + 1);
        if self.dropped.get(at).is_some_and(|&(other, _)| other == seq) {
            return;
        }
        if self.dropped.len() == Self::MAX_DROPPED {
            self.dropped.pop_front();
        }
        self.dropped.insert(at.min(self.dropped.len()), (seq, code));
    }

    /// Returns `true` if anything is to be told.
    pub(crate) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Bytes that [`emit`](Self::emit) takes at most.
    pub(crate) fn emitted_len(&self) -> usize {
        let vector = self.vector_len();
        if self.dropped.is_empty() { vector } else { (vector + self.dropped_len()).min(Self::MAX_LEN) }
    }

    /// Bytes of the Ack Vectors.
    fn vector_len(&self) -> usize {
        self.spans.len() + 2 * self.spans.len().div_ceil(crate::wire::RawOption::MAX_VALUE)
    }

    /// Bytes of Data Dropped: at most two blocks for each packet, and normal blocks for what lies between.
    fn dropped_len(&self) -> usize {
        let blocks = 2 * self.dropped.len() + (self.len / u64::from(DropRun::max(None))) as usize + 1;
        blocks + 2 * blocks.div_ceil(crate::wire::RawOption::MAX_VALUE)
    }

    /// Appends Ack Vector and Data Dropped for a packet with number `seq` whose acknowledgement number is `ack`.
    ///
    /// `nonces` is false if we cannot read ECN bits: the echo is 0 then (§12.2).
    pub(crate) fn emit(&mut self, seq: Seq, ack: Seq, nonces: bool, w: &mut Writer<'_>) {
        // The newest packet is the one acknowledged, as GSR is the greatest number that was acknowledgeable.
        if self.spans.is_empty() || self.newest != ack {
            return;
        }
        let (mut bytes, mut used, mut parity) = ([0; crate::wire::RawOption::MAX_VALUE], 0, false);
        for (at, span) in self.spans.iter().enumerate() {
            bytes[used] = span.run().byte();
            parity ^= span.nonces.count_ones() % 2 == 1;
            used += 1;
            if used == bytes.len() || at + 1 == self.spans.len() {
                AckVector::new(parity && nonces, &bytes[..used]).emit(w);
                (used, parity) = (0, false);
            }
        }
        self.emit_dropped(w);
        if self.records.len() == Self::MAX_RECORDS {
            self.records.pop_front();
        }
        self.records.push_back(Record { seq, told: self.newest });
    }

    fn emit_dropped(&self, w: &mut Writer<'_>) {
        if self.dropped.is_empty() {
            return;
        }
        let left = Self::MAX_LEN.saturating_sub(self.vector_len());
        let mut blocks = Blocks { w, left, bytes: [0; crate::wire::RawOption::MAX_VALUE], used: 0 };
        let mut at = self.newest;
        let mut open: Option<DropRun> = None;
        // Nothing is told of packets that the vector does not cover: those that wait in the
        // reordering buffer, and old ones.
        let covered = |seq: Seq| seq.distance_to(self.newest) < self.len;
        for &(seq, code) in self.dropped.iter().rev().filter(|&&(seq, _)| covered(seq)) {
            let mut normal = seq.distance_to(at);
            if normal > 0 || open.is_some_and(|run| run.code != Some(code) || run.len == DropRun::max(run.code)) {
                open.take().into_iter().for_each(|run| blocks.push(run));
            }
            while normal > 0 {
                let len = normal.min(u64::from(DropRun::max(None)));
                blocks.push(DropRun { code: None, len: len as u8 });
                normal -= len;
            }
            let len = open.map_or(1, |run| run.len + 1);
            open = Some(DropRun { code: Some(code), len });
            at = back(seq, 1);
        }
        open.into_iter().for_each(|run| blocks.push(run));
        blocks.flush();
    }

    /// The sender has our packet `ack`: what that told need not be told again (A.3).
    pub(crate) fn acknowledged(&mut self, ack: Seq) {
        self.acknowledged_between(ack, ack);
    }

    /// The sender has all our packets from `low` to `high`. Whether it told anything.
    pub(crate) fn acknowledged_between(&mut self, low: Seq, high: Seq) -> bool {
        let Some(at) = self.records.iter().rposition(|record| within(low, record.seq, high)) else { return false };
        let told = self.records[at].told;
        self.records.drain(..=at);
        // The newest packet stays: the vector must begin with it.
        let keep = if told >= self.newest { 1 } else { told.distance_to(self.newest) };
        while self.len > keep {
            let Some(span) = self.spans.back_mut() else { break };
            let excess = (self.len - keep).min(u64::from(span.len));
            span.len -= excess as u8;
            self.len -= excess;
            if span.len == 0 {
                self.spans.pop_back();
            } else {
                span.nonces &= u64::MAX >> (64 - span.len);
            }
        }
        let oldest = back(self.newest, self.len.saturating_sub(1));
        while self.dropped.front().is_some_and(|&(seq, _)| seq < oldest) {
            self.dropped.pop_front();
        }
        true
    }
}

/// Collects Data Dropped blocks into options.
struct Blocks<'a, 'b> {
    w: &'a mut Writer<'b>,
    /// Bytes that there is room for yet.
    left: usize,
    bytes: [u8; crate::wire::RawOption::MAX_VALUE],
    used: usize,
}

impl Blocks<'_, '_> {
    fn push(&mut self, run: DropRun) {
        if self.used == self.bytes.len() {
            self.flush();
        }
        // The first block of an option brings its type and length.
        let cost = if self.used == 0 { 3 } else { 1 };
        if self.left < cost {
            self.left = 0;
            return;
        }
        self.left -= cost;
        self.bytes[self.used] = run.byte();
        self.used += 1;
    }

    fn flush(&mut self) {
        if self.used > 0 {
            DataDropped::new(&self.bytes[..self.used]).emit(self.w);
            self.used = 0;
        }
    }
}

#[cfg(test)]
#[path = "window_tests.rs"]
mod tests;
