//! RaptorQ (RFC 6330) by the crate `raptorq`: a code that is no sum of multiples in GF(256), to show that one fits.
//!
//! What does not fit: it knows blocks only, so a repair symbol is of use to those alone that have the same `first` and `count`;
//! a block decodes whole or not at all, seldom (1 in 100, RFC 6330 §5) only with one symbol more than were lost; its symbols are of
//! one length, that of the repair symbols; and it keeps no state from packet to packet, so every attempt and every repair symbol
//! solves the block anew. For windows of a few packets the Cauchy block is better at everything.

use super::sources::Sources;
use super::{Decoder, DecoderLimits, Stats, Unusable, unpadded};
use crate::combination::{PREFIX, TooLarge};
use crate::{Coefficients, Combination};
use raptorq::{EncodingPacket, ObjectTransmissionInformation, PayloadId, SourceBlockDecoder, SourceBlockEncoder};
use std::collections::{BTreeMap, VecDeque};

/// Sources of a block at most (RFC 6330 §5.1.2, K'_max).
const MAX_SOURCES: usize = 56_403;

/// One block, whole in memory, its symbols not cut further (RFC 6330 §4.3: Z = N = Al = 1).
fn geometry(count: usize, symbol: u16) -> ObjectTransmissionInformation {
    ObjectTransmissionInformation::new(count as u64 * u64::from(symbol), symbol, 1, 1, 1)
}

/// Appends the repair symbol `key` of the block `sources` to `out`.
pub(crate) fn encode(key: u16, sources: &[&[u8]], out: &mut Vec<u8>) -> Result<(), TooLarge> {
    let longest = sources.iter().map(|source| source.len()).max().unwrap_or(0);
    let symbol = u16::try_from(PREFIX + longest).map_err(|_| TooLarge)?;
    if sources.is_empty() || sources.len() > MAX_SOURCES {
        return Err(TooLarge);
    }
    let mut block = Vec::with_capacity(sources.len() * usize::from(symbol));
    for source in sources {
        let end = block.len() + usize::from(symbol);
        block.extend_from_slice(&(source.len() as u16).to_be_bytes());
        block.extend_from_slice(source);
        block.resize(end, 0);
    }
    let encoder = SourceBlockEncoder::new(0, &geometry(sources.len(), symbol), &block);
    for packet in encoder.repair_packets(u32::from(key), 1) {
        out.extend_from_slice(packet.data());
    }
    Ok(())
}

/// Decodes blocks of RaptorQ.
#[derive(Debug)]
pub struct RaptorqDecoder {
    limits: DecoderLimits,
    sources: Sources,
    /// Blocks with repair symbols, the oldest repair symbol's first.
    blocks: VecDeque<Block>,
    recovered: VecDeque<(u64, Vec<u8>)>,
    stats: Stats,
}

/// Repair symbols of one block.
#[derive(Debug)]
struct Block {
    first: u64,
    count: u16,
    /// Bytes of each.
    symbol: u16,
    /// By their key.
    repairs: BTreeMap<u16, Vec<u8>>,
}

impl Block {
    fn is_of(&self, combination: &Combination, symbol: u16) -> bool {
        (self.first, self.count, self.symbol) == (combination.first, combination.count, symbol)
    }

    fn ids(&self) -> core::ops::Range<u64> {
        self.first..self.first + u64::from(self.count)
    }

    /// All its sources by number; `None` if it cannot be decoded yet. A source that is longer than its symbols shows that it is a
    /// lie: then there are none.
    fn decode(&self, sources: &Sources) -> Option<Vec<(u64, Vec<u8>)>> {
        let len = usize::from(self.symbol);
        let known = self.ids().filter_map(|id| Some((id, sources.get(id)?)));
        let mut packets = Vec::with_capacity(usize::from(self.count) + self.repairs.len());
        for (id, source) in known {
            if source.len() > len {
                return Some(Vec::new());
            }
            let mut data = source.to_vec();
            data.resize(len, 0);
            packets.push(EncodingPacket::new(PayloadId::new(0, (id - self.first) as u32), data));
        }
        if packets.len() + self.repairs.len() < usize::from(self.count) {
            return None;
        }
        for (&key, data) in &self.repairs {
            let id = PayloadId::new(0, u32::from(self.count) + u32::from(key));
            packets.push(EncodingPacket::new(id, data.clone()));
        }
        let count = usize::from(self.count);
        let mut decoder = SourceBlockDecoder::new(0, &geometry(count, self.symbol), (count * len) as u64);
        let bytes = decoder.decode(packets)?;
        let missing = self.ids().zip(bytes.chunks_exact(len)).filter(|&(id, _)| sources.get(id).is_none());
        Some(missing.map(|(id, symbol)| (id, symbol.to_vec())).collect())
    }
}

impl RaptorqDecoder {
    /// An empty decoder; the first source symbol has the number `first`. Of the [`DecoderLimits`], `repairs` is for all blocks
    /// together; work for a packet is what it takes to solve a block of `window` symbols, at most `repairs` times.
    pub fn new(limits: DecoderLimits, first: u64) -> Self {
        let sources = Sources::new(limits.window, first);
        Self { limits, sources, blocks: VecDeque::new(), recovered: VecDeque::new(), stats: Stats::default() }
    }

    /// Decodes what can be decoded of the blocks that `affected` says yes to.
    fn solve(&mut self, affected: impl Fn(&Block) -> bool) {
        let mut at = 0;
        while let Some(block) = self.blocks.get(at) {
            let complete = block.ids().all(|id| self.sources.get(id).is_some());
            let found = if complete || !affected(block) { None } else { block.decode(&self.sources) };
            if !complete && found.is_none() {
                at += 1;
                continue;
            }
            self.blocks.remove(at);
            if found.is_some_and(|found| !self.take_in(&found)) {
                self.stats.inconsistent += 1;
            }
        }
    }

    /// Whether all of it can be symbols; if not, none of it is.
    fn take_in(&mut self, found: &[(u64, Vec<u8>)]) -> bool {
        let symbols: Option<Vec<_>> = found.iter().map(|(id, symbol)| Some((*id, unpadded(symbol)?))).collect();
        let Some(symbols) = symbols.filter(|it| !it.is_empty()) else { return false };
        for (id, data) in symbols {
            self.sources.insert(id, data);
            self.stats.recovered += 1;
            self.recovered.push_back((id, data.to_vec()));
        }
        true
    }

    fn take_repair(&mut self, combination: &Combination, data: &[u8]) -> Result<(), Unusable> {
        let symbol = u16::try_from(data.len()).map_err(|_| Unusable::BadLength)?;
        if data.len() < PREFIX || data.len() > self.limits.symbol + PREFIX {
            return Err(Unusable::BadLength);
        }
        let count = usize::from(combination.count);
        if combination.coefficients != Coefficients::RaptorQ
            || count == 0
            || count > self.limits.window.min(MAX_SOURCES)
            || combination.checked_end().is_none_or(|end| end > self.sources.end())
        {
            return Err(Unusable::Outside);
        }
        if combination.first < self.sources.base() {
            return Err(Unusable::TooOld);
        }
        if (combination.first..combination.end()).all(|id| self.sources.get(id).is_some()) {
            return Err(Unusable::Redundant);
        }
        let at = self.blocks.iter().position(|block| block.is_of(combination, symbol));
        let at = at.unwrap_or_else(|| {
            let &Combination { first, count, .. } = combination;
            self.blocks.push_back(Block { first, count, symbol, repairs: BTreeMap::new() });
            self.blocks.len() - 1
        });
        if self.blocks[at].repairs.contains_key(&combination.key) {
            return Err(Unusable::Redundant);
        }
        self.blocks[at].repairs.insert(combination.key, data.to_vec());
        while self.blocks.iter().map(|block| block.repairs.len()).sum::<usize>() > self.limits.repairs.max(1) {
            self.stats.given_up += self.blocks.pop_front().map_or(0, |block| block.repairs.len() as u64);
        }
        self.solve(|block| block.is_of(combination, symbol));
        Ok(())
    }
}

impl Decoder for RaptorqDecoder {
    fn on_source(&mut self, id: u64, symbol: &[u8]) {
        self.stats.sources += 1;
        if symbol.len() > self.limits.symbol.min(usize::from(u16::MAX)) {
            return;
        }
        self.sources.advance(id);
        let base = self.sources.base();
        let gone = self.blocks.iter().filter(|block| block.first < base);
        self.stats.given_up += gone.map(|block| block.repairs.len() as u64).sum::<u64>();
        self.blocks.retain(|block| block.first >= base);
        if self.sources.insert(id, symbol) {
            self.solve(|block| block.ids().contains(&id));
        }
    }

    fn on_repair(&mut self, combination: &Combination, symbol: &[u8]) -> Result<(), Unusable> {
        self.stats.repairs += 1;
        let outcome = self.take_repair(combination, symbol);
        self.stats.unusable += u64::from(outcome.is_err());
        outcome
    }

    fn poll_recovered(&mut self, symbol: &mut Vec<u8>) -> Option<u64> {
        let (id, recovered) = self.recovered.pop_front()?;
        *symbol = recovered;
        Some(id)
    }

    fn stats(&self) -> Stats {
        self.stats
    }
}
