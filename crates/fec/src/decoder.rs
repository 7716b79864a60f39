//! Decoding: lost source symbols out of those that came and repair symbols, as soon as there are enough.

mod equations;

use crate::gf::{inverse, mul};
use crate::sources::Sources;
use crate::symbol::{PREFIX, unpadded};
use crate::{Combination, Kernel};
use equations::Equations;
use std::collections::VecDeque;

/// Why a repair symbol was dropped.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum Unusable {
    /// All that it covers is there, or follows from what is.
    #[error("it says nothing new")]
    Redundant,
    /// It covers symbols that the window has left behind.
    #[error("it covers symbols that are gone")]
    TooOld,
    /// It covers symbols that are further ahead than the window is long, none, or more than the
    /// window or the code can have.
    #[error("it covers what it cannot")]
    Outside,
    /// It is shorter than any symbol, or longer than the limit.
    #[error("a repair symbol cannot have this length")]
    BadLength,
}

/// What a decoder may hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DecoderLimits {
    /// Source symbols behind the newest that came that are kept, and how many a repair symbol may
    /// cover. Memory is for twice as many, as symbols ahead of it may be recovered. Default 1024.
    pub window: usize,
    /// Repair symbols that wait for others. Default 64. Work for a packet is at most this number
    /// times what they cover together, in bytes of coefficients, and as many symbols as are
    /// recovered at once times the same, in bytes of data.
    pub repairs: usize,
    /// Bytes of a symbol. Default 9000.
    pub symbol: usize,
}

impl Default for DecoderLimits {
    fn default() -> Self {
        Self { window: 1024, repairs: 64, symbol: 9000 }
    }
}

/// Counts over the life of a decoder.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Source symbols that came.
    pub sources: u64,
    /// Repair symbols that came.
    pub repairs: u64,
    /// Repair symbols that were dropped at once ([`Unusable`]).
    pub unusable: u64,
    /// Repair symbols that were discarded, as others needed the room or the window left them
    /// behind.
    pub given_up: u64,
    /// Source symbols that were made up for.
    pub recovered: u64,
    /// Solutions that cannot be a symbol: a repair symbol lied. They are not delivered.
    pub inconsistent: u64,
}

/// Decodes every code whose repair symbols are linear combinations: block, convolutional, Tetrys,
/// whatever a [`Combination`] can say, even mixed.
///
/// Gaussian elimination goes on with each packet, but over coefficients only, which are few bytes;
/// data is touched once, when something is found, and only what was lost is solved for.
#[derive(Debug)]
pub struct LinearDecoder {
    limits: DecoderLimits,
    sources: Sources,
    equations: Equations,
    recovered: VecDeque<(u64, Vec<u8>)>,
    stats: Stats,
    coefficients: Vec<u8>,
    scratch: Scratch,
    plausible: fn(u64, &[u8]) -> bool,
}

/// Buffers that are kept so that solving allocates little.
#[derive(Debug, Default)]
struct Scratch {
    /// Rows that are solved, and the source symbols that they give.
    found: Vec<(usize, u64)>,
    /// Sources that are there of all that repair symbols cover.
    known: Vec<u64>,
    sum: Vec<u8>,
    /// For each found one the coefficients of the known ones and of the repair symbols.
    matrix: Vec<u8>,
}

/// What a decoder discarded to bound its memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Evicted {
    /// A source symbol, and all before it.
    Source,
    /// A repair symbol.
    Repair,
}

impl LinearDecoder {
    /// An empty decoder; the first source symbol has the number `first`.
    pub fn new(limits: DecoderLimits, first: u64) -> Self {
        Self::with_check(limits, first, |_, _| true)
    }

    /// The same if a symbol can be told from nonsense: a solution for which `plausible` says no,
    /// given its number, counts as [`Stats::inconsistent`].
    pub fn with_check(limits: DecoderLimits, first: u64, plausible: fn(u64, &[u8]) -> bool) -> Self {
        Self {
            plausible,
            limits,
            sources: Sources::new(limits.window, first),
            equations: Equations::default(),
            recovered: VecDeque::new(),
            stats: Stats::default(),
            coefficients: Vec::new(),
            scratch: Scratch::default(),
        }
    }

    /// Solves for what can be solved for.
    fn solve(&mut self) {
        if self.equations.solved().next().is_none() {
            return;
        }
        let mut scratch = core::mem::take(&mut self.scratch);
        scratch.found.clear();
        scratch.found.extend(self.equations.solved());
        self.solve_for(&mut scratch);
        self.scratch = scratch;
    }

    /// Computes the symbols that are `found`, all in one pass over the data.
    fn solve_for(&mut self, scratch: &mut Scratch) {
        let Scratch { found, known, sum, matrix } = scratch;
        let (first, end) = self.equations.covered();
        known.clear();
        known.extend((first..end).filter(|&id| self.sources.get(id).is_some()));
        matrix.clear();
        for &(row, _) in &*found {
            self.equations.in_sources(row, known, first, sum, matrix);
            matrix.extend_from_slice(self.equations.mix(row));
        }
        let mut symbols: Vec<Vec<u8>> = found.iter().map(|_| self.sources.storage()).collect();
        let mut sources: Vec<&[u8]> = Vec::with_capacity(known.len() + self.equations.len());
        sources.extend(known.iter().filter_map(|&id| self.sources.get(id)));
        sources.extend(self.equations.repairs());
        let longest = sources.iter().map(|source| source.len()).max().unwrap_or(0);
        symbols.iter_mut().for_each(|symbol| symbol.resize(longest, 0));
        let mut places: Vec<&mut [u8]> = symbols.iter_mut().map(Vec::as_mut_slice).collect();
        Kernel::best().add_combinations(&mut places, &sources, matrix);
        for (&(_, id), symbol) in found.iter().zip(symbols) {
            self.equations.found(id);
            self.deliver(id, symbol);
        }
    }

    /// Computes the symbol `id`, which is all that is missing of what `repair` covers with the
    /// coefficients from `before` on, the symbol `first` and those behind it: no equation is
    /// needed.
    fn solve_alone(&mut self, id: u64, first: u64, before: usize, repair: &[u8]) {
        let coefficients = &self.coefficients[before..];
        let scale = inverse(coefficients[(id - first) as usize]);
        let mut symbol = self.sources.storage();
        let matrix = &mut self.scratch.matrix;
        matrix.clear();
        let mut sources: Vec<&[u8]> = Vec::with_capacity(coefficients.len());
        // Coefficients first: the numbers may end with the last of them.
        for (&coefficient, it) in coefficients.iter().zip(first..).filter(|&(&coefficient, _)| coefficient != 0) {
            let (factor, source) =
                if it == id { (1, repair) } else { (coefficient, self.sources.get(it).unwrap_or(&[])) };
            matrix.push(mul(factor, scale));
            sources.push(source);
        }
        let longest = sources.iter().map(|source| source.len()).max().unwrap_or(0);
        symbol.resize(longest, 0);
        Kernel::best().add_combinations(&mut [&mut symbol], &sources, matrix);
        if self.deliver(id, symbol) {
            self.equations.found(id);
            self.solve();
        }
    }

    /// The symbol `id` was solved for. Returns `true` if it is believed.
    fn deliver(&mut self, id: u64, mut symbol: Vec<u8>) -> bool {
        let Some(data) = unpadded(&symbol).filter(|data| (self.plausible)(id, data)) else {
            self.stats.inconsistent += 1;
            self.sources.give_back(symbol);
            return false;
        };
        self.stats.recovered += 1;
        let mut copy = self.sources.storage();
        copy.extend_from_slice(data);
        self.recovered.push_back((id, copy));
        let len = PREFIX + data.len();
        symbol.truncate(len);
        if id < self.sources.base() {
            // It was missing when it would have been evicted.
            self.equations.absorb(id, &symbol);
        }
        self.sources.insert_stored(id, symbol);
        true
    }
}

/// Takes what comes, in any order, and gives what was lost.
impl LinearDecoder {
    /// The source symbol `id` came.
    pub fn on_source(&mut self, id: u64, symbol: &[u8]) {
        self.on_source_of(id, &[], symbol);
    }

    /// The source symbol `id` came, in two parts: who has to change the first bytes need not copy all of it for that.
    pub fn on_source_of(&mut self, id: u64, head: &[u8], body: &[u8]) {
        self.stats.sources += 1;
        if head.len() + body.len() > self.limits.symbol.min(usize::from(u16::MAX)) {
            return;
        }
        let base = self.sources.base();
        self.sources.advance(id);
        if self.sources.base() != base {
            self.stats.given_up += self.equations.forget_below(self.sources.base());
        }
        if !self.sources.insert(id, [head, body]) {
            if id >= self.sources.base() || !self.equations.misses(id) {
                return;
            }
            let stored = self.sources.stored([head, body]);
            self.equations.absorb(id, &stored);
            self.sources.give_back(stored);
        }
        self.equations.found(id);
        self.solve();
    }

    /// A repair symbol came.
    ///
    /// # Errors
    /// If it cannot be of use; it was dropped, and nothing else is the worse for it.
    pub fn on_repair(&mut self, combination: &Combination, symbol: &[u8]) -> Result<(), Unusable> {
        self.on_repair_of(combination, |_| true, symbol)
    }

    /// Moves the next source symbol that was made up for into `symbol`; returns its number.
    pub fn poll_recovered(&mut self, symbol: &mut Vec<u8>) -> Option<u64> {
        let (id, recovered) = self.recovered.pop_front()?;
        self.sources.give_back(core::mem::replace(symbol, recovered));
        Some(id)
    }

    /// How it went so far.
    pub fn stats(&self) -> Stats {
        self.stats
    }
}

impl LinearDecoder {
    /// Repair symbols that wait for others.
    pub fn waiting(&self) -> usize {
        self.equations.len()
    }

    /// A repair symbol came that leaves some source symbols of its range out: of the n-th `covers`
    /// says whether it is in.
    ///
    /// # Errors
    /// As [`on_repair`](Self::on_repair).
    pub fn on_repair_of(
        &mut self,
        combination: &Combination,
        covers: impl Fn(usize) -> bool,
        symbol: &[u8],
    ) -> Result<(), Unusable> {
        self.stats.repairs += 1;
        let outcome = self.take_repair(combination, covers, symbol);
        self.stats.unusable += u64::from(outcome.is_err());
        outcome
    }

    /// The source symbol `id`, if it came or was found and is still here.
    pub fn source(&self, id: u64) -> Option<&[u8]> {
        self.sources.get(id).map(|symbol| &symbol[PREFIX..])
    }

    /// The source symbol `id`, which was found, turned out to be wrong.
    pub fn distrust(&mut self, id: u64) {
        self.sources.remove(id);
    }

    /// No repair symbol to come covers anything below `id`.
    pub fn forget_below(&mut self, id: u64) {
        self.sources.forget_below(id);
        self.stats.given_up += self.equations.forget_below(self.sources.base());
    }

    /// Source symbols below `below` are held nowhere else any more, and count in [`held`](Self::held).
    pub fn settle(&mut self, below: u64) {
        self.sources.settle(below);
    }

    /// Bytes of repair symbols and of source symbols that nobody else holds ([`settle`](Self::settle)).
    pub fn held(&self) -> usize {
        self.sources.settled_bytes() + self.equations.repairs().map(<[u8]>::len).sum::<usize>()
    }

    /// Discards the least useful symbol: the oldest source symbol that nobody else holds, or else
    /// the oldest repair symbol.
    ///
    /// ECMT algorithm 1 spares source symbols that a repair symbol here needs. Here none needs them
    /// any more: it is taken out of those repair symbols, which then cover one less.
    pub fn evict(&mut self) -> Option<Evicted> {
        let last = self.sources.settled().min(self.sources.end()); // As it is now: the end moves along.
        while self.sources.base() < last {
            let oldest = self.sources.base();
            let there = self.sources.get(oldest).map(|symbol| self.equations.absorb(oldest, symbol)).is_some();
            self.sources.forget_below(oldest + 1);
            if there {
                return Some(Evicted::Source);
            }
        }
        if self.equations.len() == 0 {
            return None;
        }
        self.equations.give_up_oldest();
        self.stats.given_up += 1;
        Some(Evicted::Repair)
    }

    fn take_repair(
        &mut self,
        combination: &Combination,
        covers: impl Fn(usize) -> bool,
        symbol: &[u8],
    ) -> Result<(), Unusable> {
        if symbol.len() < PREFIX || symbol.len() > self.limits.symbol + PREFIX {
            return Err(Unusable::BadLength);
        }
        if combination.count == 0 || usize::from(combination.count) > self.limits.window {
            return Err(Unusable::Outside);
        }
        if combination.checked_end().is_none_or(|end| end > self.sources.end()) {
            return Err(Unusable::Outside);
        }
        // Most of them are useless; that is found out before coefficients are computed, none of
        // which is 0.
        let ids = || (combination.first..combination.end()).enumerate().filter(|&(n, _)| covers(n)).map(|(_, id)| id);
        if ids().next().ok_or(Unusable::Outside)? < self.sources.base() {
            return Err(Unusable::TooOld);
        }
        if ids().all(|id| self.sources.get(id).is_some()) {
            return Err(Unusable::Redundant);
        }
        combination.coefficients(&mut self.coefficients).map_err(|_| Unusable::Outside)?;
        for (_, coefficient) in self.coefficients.iter_mut().enumerate().filter(|&(at, _)| !covers(at)) {
            *coefficient = 0;
        }
        let before = self.coefficients.iter().position(|&it| it != 0).ok_or(Unusable::Outside)?;
        let first = combination.first + before as u64;
        let covered = (first..combination.end()).zip(&self.coefficients[before..]).filter(|&(_, &it)| it != 0);
        let mut missing = covered.map(|(id, _)| id).filter(|&id| self.sources.get(id).is_none()).peekable();
        let alone = missing.next().ok_or(Unusable::Redundant)?;
        if missing.peek().is_none() {
            self.solve_alone(alone, first, before, symbol);
            return Ok(());
        }
        let missing = core::iter::once(alone).chain(missing);
        if !self.equations.add(first, &self.coefficients[before..], missing, symbol) {
            return Err(Unusable::Redundant);
        }
        if self.equations.len() > self.limits.repairs {
            self.equations.give_up_oldest();
            self.stats.given_up += 1;
        }
        self.solve();
        Ok(())
    }
}
