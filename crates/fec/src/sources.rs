use crate::symbol::PREFIX;

/// Source symbols that came or were found, by number: the last `window` up to the newest that came,
/// and as many ahead of it.
#[derive(Debug)]
pub(crate) struct Sources {
    /// With its length in front, as repair symbols have it; in the place of its number modulo the
    /// places. Empty: not there. There are no places before the first symbol; then a power of two,
    /// as dividing takes longer than all else here.
    symbols: Vec<Vec<u8>>,
    window: u64,
    base: u64,
    /// Symbols below this number are held here only; those from it on somewhere else too.
    settled: u64,
    /// Bytes of the symbols below it.
    settled_bytes: usize,
    /// Storage of symbols that are gone.
    spare: Vec<Vec<u8>>,
}

impl Sources {
    pub(crate) fn new(window: usize, first: u64) -> Self {
        Self {
            symbols: Vec::new(),
            window: window.max(1) as u64,
            base: first,
            settled: first,
            settled_bytes: 0,
            spare: Vec::new(),
        }
    }

    /// The lowest number that may be there.
    pub(crate) const fn base(&self) -> u64 {
        self.base
    }

    /// The number after the highest that may be there.
    pub(crate) const fn end(&self) -> u64 {
        self.base.saturating_add(2 * self.window)
    }

    /// The number below which symbols are held here only.
    pub(crate) const fn settled(&self) -> u64 {
        self.settled
    }

    /// Bytes of symbols that are held here only.
    pub(crate) const fn settled_bytes(&self) -> usize {
        self.settled_bytes
    }

    fn place(&self, id: u64) -> usize {
        (id & ((2 * self.window).next_power_of_two() - 1)) as usize
    }

    /// The symbol with its length in front.
    pub(crate) fn get(&self, id: u64) -> Option<&[u8]> {
        let symbol = self.symbols.get(self.place(id))?;
        (id >= self.base && id < self.end() && !symbol.is_empty()).then_some(symbol)
    }

    /// `id` came: what is a window and more behind it is left behind.
    pub(crate) fn advance(&mut self, id: u64) {
        self.forget_below(id.saturating_add(1).saturating_sub(self.window));
    }

    /// Leaves behind what is below `base`.
    pub(crate) fn forget_below(&mut self, base: u64) {
        let base = self.base.max(base);
        for gone in self.base..base.min(self.end()) {
            self.forget(gone);
        }
        self.base = base;
        self.settle(base);
    }

    /// Takes out `id`, which lies between base and end.
    fn forget(&mut self, id: u64) {
        let place = self.place(id);
        let Some(symbol) = self.symbols.get_mut(place).map(core::mem::take) else { return };
        if id < self.settled {
            self.settled_bytes -= symbol.len();
        }
        if symbol.capacity() > 0 {
            self.spare.push(symbol);
        }
    }

    /// Takes out `id`, if it is there.
    pub(crate) fn remove(&mut self, id: u64) {
        if self.get(id).is_some() {
            self.forget(id);
        }
    }

    /// Symbols below `below` are held here only from now on.
    pub(crate) fn settle(&mut self, below: u64) {
        for id in self.settled.max(self.base)..below.min(self.end()) {
            self.settled_bytes += self.get(id).map_or(0, <[u8]>::len);
        }
        self.settled = self.settled.max(below);
    }

    /// Puts it in, which lies in two parts; false if it is there already, left behind, or too far ahead.
    pub(crate) fn insert(&mut self, id: u64, symbol: [&[u8]; 2]) -> bool {
        let takes = self.takes(id);
        if takes {
            let stored = self.stored(symbol);
            self.put(id, stored);
        }
        takes
    }

    /// The symbol with its length in front, in [`storage`](Self::storage).
    pub(crate) fn stored(&mut self, [head, body]: [&[u8]; 2]) -> Vec<u8> {
        let mut stored = self.storage();
        let len = head.len() + body.len();
        stored.reserve(PREFIX + len);
        stored.extend_from_slice(&(len as u16).to_be_bytes());
        stored.extend_from_slice(head);
        stored.extend_from_slice(body);
        stored
    }

    /// The same with a symbol that has its length in front already and was made in [`storage`](Self::storage).
    pub(crate) fn insert_stored(&mut self, id: u64, symbol: Vec<u8>) {
        if self.takes(id) {
            self.put(id, symbol);
        } else {
            self.give_back(symbol);
        }
    }

    /// Room for a symbol, empty.
    pub(crate) fn storage(&mut self) -> Vec<u8> {
        let mut storage = self.spare.pop().unwrap_or_default();
        storage.clear();
        storage
    }

    /// Takes unused [`storage`](Self::storage) back.
    pub(crate) fn give_back(&mut self, storage: Vec<u8>) {
        self.spare.push(storage);
    }

    fn takes(&self, id: u64) -> bool {
        id >= self.base && id < self.end() && self.get(id).is_none()
    }

    fn put(&mut self, id: u64, symbol: Vec<u8>) {
        if self.symbols.is_empty() {
            self.symbols.resize((2 * self.window).next_power_of_two() as usize, Vec::new());
        }
        if id < self.settled {
            self.settled_bytes += symbol.len();
        }
        let place = self.place(id);
        self.symbols[place] = symbol;
    }
}
