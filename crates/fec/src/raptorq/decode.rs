use super::repair::{MAX_SOURCES, Repair, geometry};
use crate::sources::Sources;
use crate::symbol::{PREFIX, unpadded};
use crate::{DecoderLimits, Stats, Unusable};
use raptorq::{EncodingPacket, PayloadId, SourceBlockDecoder};
use std::collections::{BTreeMap, VecDeque};

/// Decodes blocks of RaptorQ.
#[derive(Debug)]
pub struct Decoder {
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
    fn is_of(&self, repair: &Repair, symbol: u16) -> bool {
        (self.first, self.count, self.symbol) == (repair.first, repair.count, symbol)
    }

    fn ids(&self) -> core::ops::Range<u64> {
        self.first..self.first + u64::from(self.count)
    }

    /// All its sources by number; `None` if it cannot be decoded yet. A source that is longer than
    /// its symbols shows that it is a lie: then there are none.
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

impl Decoder {
    /// An empty decoder; the first source symbol has the number `first`. Of the [`DecoderLimits`],
    /// `repairs` is for all blocks together; work for a packet is what it takes to solve a block of
    /// `window` symbols, at most `repairs` times.
    pub fn new(limits: DecoderLimits, first: u64) -> Self {
        let sources = Sources::new(limits.window, first);
        Self { limits, sources, blocks: VecDeque::new(), recovered: VecDeque::new(), stats: Stats::default() }
    }

    /// The source symbol `id` came.
    pub fn on_source(&mut self, id: u64, symbol: &[u8]) {
        self.stats.sources += 1;
        if symbol.len() > self.limits.symbol.min(usize::from(u16::MAX)) {
            return;
        }
        self.sources.advance(id);
        let base = self.sources.base();
        let gone = self.blocks.iter().filter(|block| block.first < base);
        self.stats.given_up += gone.map(|block| block.repairs.len() as u64).sum::<u64>();
        self.blocks.retain(|block| block.first >= base);
        if self.sources.insert(id, [&[], symbol]) {
            self.solve(|block| block.ids().contains(&id));
        }
    }

    /// A repair symbol came.
    ///
    /// # Errors
    /// If it cannot be of use; it was dropped, and nothing else is the worse for it.
    pub fn on_repair(&mut self, repair: &Repair, symbol: &[u8]) -> Result<(), Unusable> {
        self.stats.repairs += 1;
        let outcome = self.take_repair(repair, symbol);
        self.stats.unusable += u64::from(outcome.is_err());
        outcome
    }

    /// Moves the next source symbol that was made up for into `symbol`; returns its number.
    pub fn poll_recovered(&mut self, symbol: &mut Vec<u8>) -> Option<u64> {
        let (id, recovered) = self.recovered.pop_front()?;
        *symbol = recovered;
        Some(id)
    }

    /// How it went so far.
    pub fn stats(&self) -> Stats {
        self.stats
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

    /// Returns `true` if all of it can be symbols; if not, none of it is.
    fn take_in(&mut self, found: &[(u64, Vec<u8>)]) -> bool {
        let symbols: Option<Vec<_>> = found.iter().map(|(id, symbol)| Some((*id, unpadded(symbol)?))).collect();
        let Some(symbols) = symbols.filter(|it| !it.is_empty()) else { return false };
        for (id, data) in symbols {
            self.sources.insert(id, [&[], data]);
            self.stats.recovered += 1;
            self.recovered.push_back((id, data.to_vec()));
        }
        true
    }

    fn take_repair(&mut self, repair: &Repair, data: &[u8]) -> Result<(), Unusable> {
        let symbol = u16::try_from(data.len()).map_err(|_| Unusable::BadLength)?;
        if data.len() < PREFIX || data.len() > self.limits.symbol + PREFIX {
            return Err(Unusable::BadLength);
        }
        let count = usize::from(repair.count);
        if count == 0
            || count > self.limits.window.min(MAX_SOURCES)
            || repair.checked_end().is_none_or(|end| end > self.sources.end())
        {
            return Err(Unusable::Outside);
        }
        if repair.first < self.sources.base() {
            return Err(Unusable::TooOld);
        }
        if (repair.first..repair.end()).all(|id| self.sources.get(id).is_some()) {
            return Err(Unusable::Redundant);
        }
        let at = self.blocks.iter().position(|block| block.is_of(repair, symbol));
        let at = at.unwrap_or_else(|| {
            let &Repair { first, count, .. } = repair;
            self.blocks.push_back(Block { first, count, symbol, repairs: BTreeMap::new() });
            self.blocks.len() - 1
        });
        if self.blocks[at].repairs.contains_key(&repair.key) {
            return Err(Unusable::Redundant);
        }
        self.blocks[at].repairs.insert(repair.key, data.to_vec());
        while self.blocks.iter().map(|block| block.repairs.len()).sum::<usize>() > self.limits.repairs.max(1) {
            self.stats.given_up += self.blocks.pop_front().map_or(0, |block| block.repairs.len() as u64);
        }
        self.solve(|block| block.is_of(repair, symbol));
        Ok(())
    }
}
