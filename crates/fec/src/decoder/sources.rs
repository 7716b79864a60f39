use crate::combination::PREFIX;

/// Source symbols that came or were found, by number, within a window that moves up with the newest.
#[derive(Debug)]
pub(super) struct Sources {
    /// With its length in front, as repair symbols have it; in the place of its number modulo the window. Empty: not there.
    symbols: Vec<Vec<u8>>,
    base: u64,
    /// After the newest.
    end: u64,
    started: bool,
}

impl Sources {
    pub(super) fn new(window: usize) -> Self {
        Self { symbols: vec![Vec::new(); window.max(1)], base: 0, end: 0, started: false }
    }

    /// The lowest number that may be there.
    pub(super) const fn base(&self) -> u64 {
        self.base
    }

    /// The number after the newest that came.
    pub(super) const fn end(&self) -> u64 {
        self.end
    }

    /// Whether any came.
    pub(super) const fn is_started(&self) -> bool {
        self.started
    }

    fn place(&self, id: u64) -> usize {
        (id % self.symbols.len() as u64) as usize
    }

    /// The symbol with its length in front.
    pub(super) fn get(&self, id: u64) -> Option<&[u8]> {
        let symbol = &self.symbols[self.place(id)];
        (id >= self.base && id < self.end && !symbol.is_empty()).then_some(symbol)
    }

    /// Puts it in; false if it is there already or left behind.
    pub(super) fn insert(&mut self, id: u64, symbol: &[u8]) -> bool {
        let window = self.symbols.len() as u64;
        if !self.started {
            // What came before the first that came may still come.
            (self.started, self.base, self.end) = (true, id.saturating_sub(window / 2), id);
        }
        if id < self.base || self.get(id).is_some() {
            return false;
        }
        if id >= self.end {
            let base = self.base.max((id + 1).saturating_sub(window));
            for gone in self.base..base.min(self.end) {
                let place = self.place(gone);
                self.symbols[place].clear();
            }
            (self.base, self.end) = (base, id + 1);
        }
        let place = self.place(id);
        let stored = &mut self.symbols[place];
        stored.clear();
        stored.reserve(PREFIX + symbol.len());
        stored.extend_from_slice(&(symbol.len() as u16).to_be_bytes());
        stored.extend_from_slice(symbol);
        true
    }
}
