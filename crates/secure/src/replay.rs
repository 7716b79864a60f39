use core::fmt;

/// Which records of an epoch came already (RFC 9147 §4.5.1): the last 65,536 numbers, so that paths
/// of one association may be that many packets apart. 8 KiB.
#[derive(Clone)]
pub struct Window {
    /// One more than the highest number that came.
    next: u64,
    bits: Box<[u64; Self::WORDS]>,
}

impl Window {
    /// Numbers that it reaches back.
    pub const SIZE: u64 = 1 << 16;
    const WORDS: usize = (Self::SIZE / 64) as usize;

    /// Before anything came.
    pub fn new() -> Self {
        Self { next: 0, bits: Box::new([0; Self::WORDS]) }
    }

    /// One more than the highest number that came.
    pub const fn next(&self) -> u64 {
        self.next
    }

    const fn place(number: u64) -> (usize, u64) {
        ((number / 64) as usize % Self::WORDS, 1 << (number % 64))
    }

    /// Returns `true` if a record `number` may be taken: it did not come yet, and is not so old that nobody knows.
    pub fn is_new(&self, number: u64) -> bool {
        let (word, bit) = Self::place(number);
        number >= self.next || (self.next - number <= Self::SIZE && self.bits[word] & bit == 0)
    }

    /// The record `number` came and is authentic. Returns `true` if it had been
    /// [new](Self::is_new).
    pub fn accept(&mut self, number: u64) -> bool {
        if !self.is_new(number) {
            return false;
        }
        if number >= self.next {
            self.slide(number);
        }
        let (word, bit) = Self::place(number);
        self.bits[word] |= bit;
        true
    }

    /// Makes `number` the highest; the places of those between are free again.
    fn slide(&mut self, number: u64) {
        if number - self.next >= Self::SIZE {
            self.bits.fill(0);
        } else {
            let mut at = self.next;
            while at <= number {
                let (word, bit) = Self::place(at);
                if bit == 1 && number - at >= 63 {
                    self.bits[word] = 0;
                    at += 64;
                } else {
                    self.bits[word] &= !bit;
                    at += 1;
                }
            }
        }
        self.next = number + 1;
    }
}

impl Default for Window {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Window").field("next", &self.next).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
