use crate::combination::PREFIX;

/// Source symbols that came or were found, by number: the last `window` up to the newest that came, and as many ahead of it.
#[derive(Debug)]
pub(super) struct Sources {
    /// With its length in front, as repair symbols have it; in the place of its number modulo twice the window. Empty: not there.
    symbols: Vec<Vec<u8>>,
    base: u64,
}

impl Sources {
    pub(super) fn new(window: usize, first: u64) -> Self {
        Self { symbols: vec![Vec::new(); 2 * window.max(1)], base: first }
    }

    /// The lowest number that may be there.
    pub(super) const fn base(&self) -> u64 {
        self.base
    }

    /// The number after the highest that may be there.
    pub(super) const fn end(&self) -> u64 {
        self.base.saturating_add(self.symbols.len() as u64)
    }

    fn place(&self, id: u64) -> usize {
        (id % self.symbols.len() as u64) as usize
    }

    /// The symbol with its length in front.
    pub(super) fn get(&self, id: u64) -> Option<&[u8]> {
        let symbol = &self.symbols[self.place(id)];
        (id >= self.base && id < self.end() && !symbol.is_empty()).then_some(symbol)
    }

    /// `id` came: what is a window and more behind it is left behind.
    pub(super) fn advance(&mut self, id: u64) {
        let window = self.symbols.len() as u64 / 2;
        let base = self.base.max(id.saturating_add(1).saturating_sub(window));
        for gone in self.base..base.min(self.end()) {
            let place = self.place(gone);
            self.symbols[place].clear();
        }
        self.base = base;
    }

    /// Puts it in; false if it is there already, left behind, or too far ahead.
    pub(super) fn insert(&mut self, id: u64, symbol: &[u8]) -> bool {
        if id < self.base || id >= self.end() || self.get(id).is_some() {
            return false;
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
