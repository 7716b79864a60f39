use crate::gf::{inverse, mul};
use crate::kernel::Kernel;
use crate::symbol::PREFIX;
use crate::tinymt::TinyMt32;

/// Which source symbols a repair symbol is made of, and how. It goes with the repair symbol; the
/// coefficients follow from it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Combination {
    /// Where the coefficients come from.
    pub coefficients: Coefficients,
    /// The first source symbol.
    pub first: u64,
    /// How many, from there on.
    pub count: u16,
    /// The row of the matrix, or the seed.
    pub key: u16,
}

/// Where the coefficients of a repair symbol come from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Coefficients {
    /// A row of a Cauchy matrix with columns scaled such that row 0 is all ones: any r rows make up
    /// for any r lost symbols.
    Cauchy,
    /// TinyMT32 with the key as the seed, none of them 0 (RFC 8681 §3.6).
    Random,
}

impl Combination {
    /// Rows and columns of a Cauchy matrix, together.
    pub const CAUCHY_SIZE: usize = 256;

    /// The symbol after the last one.
    pub const fn end(&self) -> u64 {
        self.first.saturating_add(self.count as u64)
    }

    /// The same, if numbers go that far.
    pub(crate) fn checked_end(&self) -> Option<u64> {
        self.first.checked_add(u64::from(self.count))
    }

    /// Puts the coefficients of all symbols, the first one's first, into `out`.
    ///
    /// # Errors
    /// If a Cauchy matrix is not that large.
    pub fn coefficients(&self, out: &mut Vec<u8>) -> Result<(), TooLarge> {
        out.clear();
        let count = usize::from(self.count);
        match self.coefficients {
            Coefficients::Cauchy => {
                let rows = usize::from(self.key) + 1;
                if rows + count > Self::CAUCHY_SIZE {
                    return Err(TooLarge);
                }
                // Row i stands for the element 255 − i, column j for j; the entry is the inverse of their sum.
                let row = 255 - self.key as u8;
                out.extend((0..count).map(|column| {
                    let column = column as u8;
                    mul(255 ^ column, inverse(row ^ column))
                }));
            }
            Coefficients::Random => {
                let mut rng = TinyMt32::new(u32::from(self.key));
                out.extend((0..count).map(|_| rng.next_nonzero()));
            }
        }
        Ok(())
    }

    /// Makes the repair symbol of the source symbols `sources`, all of them in order, into `out`.
    ///
    /// # Errors
    /// If the code has no such repair symbol.
    ///
    /// # Panics
    /// If there is not one source for each that the combination names, or one is longer than 65,535 bytes.
    pub fn encode(&self, sources: &[&[u8]], scratch: &mut Vec<u8>, out: &mut Vec<u8>) -> Result<(), TooLarge> {
        assert_eq!(sources.len(), usize::from(self.count), "a source for each that is named");
        self.coefficients(scratch)?;
        let longest = sources.iter().map(|source| source.len()).max().unwrap_or(0);
        out.clear();
        out.resize(PREFIX + longest, 0);
        let (prefix, sum) = out.split_at_mut(PREFIX);
        add_lengths(prefix, scratch, sources.iter().map(|source| source.len()));
        Kernel::best().add_combinations(&mut [sum], sources, scratch);
        Ok(())
    }

    /// Adds some source symbols to the repair symbol in `out`, empty at first: what
    /// [`encode`](Self::encode) does for all at once, where some may be left out, and each lies in
    /// two parts, of which the first is as long as those of all others.
    ///
    /// # Panics
    /// If there is not one coefficient and one head for each body, heads differ in length, or a
    /// symbol is longer than 65,535 bytes.
    pub fn add_sources(coefficients: &[u8], heads: &[&[u8]], bodies: &[&[u8]], out: &mut Vec<u8>) {
        assert_eq!(
            (coefficients.len(), heads.len()),
            (bodies.len(), bodies.len()),
            "a coefficient and a head for each"
        );
        let head = heads.first().map_or(0, |head| head.len());
        let longest = bodies.iter().map(|body| body.len()).max().unwrap_or(0);
        if out.len() < PREFIX + head + longest {
            out.resize(PREFIX + head + longest, 0);
        }
        let (prefix, symbol) = out.split_at_mut(PREFIX);
        add_lengths(prefix, coefficients, bodies.iter().map(|body| head + body.len()));
        let (head_sum, body_sum) = symbol.split_at_mut(head);
        Kernel::best().add_combinations(&mut [head_sum], heads, coefficients);
        Kernel::best().add_combinations(&mut [body_sum], bodies, coefficients);
    }
}

/// Adds the lengths of source symbols to the prefix of a repair symbol.
fn add_lengths(prefix: &mut [u8], coefficients: &[u8], lengths: impl Iterator<Item = usize>) {
    for (length, &coefficient) in lengths.zip(coefficients) {
        let length = u16::try_from(length).expect("a symbol is no longer than a packet");
        for (sum, byte) in prefix.iter_mut().zip(length.to_be_bytes()) {
            *sum ^= mul(coefficient, byte);
        }
    }
}

/// A Cauchy matrix has no more than 256 rows and columns together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the code has no such repair symbol: a block has no more than {} symbols", Combination::CAUCHY_SIZE)]
pub struct TooLarge;

#[cfg(test)]
mod tests {
    use super::*;

    fn row(coefficients: Coefficients, count: u16, key: u16) -> Result<Vec<u8>, TooLarge> {
        let mut out = Vec::new();
        Combination { coefficients, first: 0, count, key }.coefficients(&mut out).map(|()| out)
    }

    #[test]
    fn the_first_parity_is_a_plain_sum_and_no_coefficient_is_zero() {
        assert_eq!(row(Coefficients::Cauchy, 255, 0).unwrap(), [1; 255]);
        for key in 0..200 {
            assert!(row(Coefficients::Cauchy, 50, key).unwrap().iter().all(|&it| it != 0));
            assert!(row(Coefficients::Random, 50, key).unwrap().iter().all(|&it| it != 0));
        }
        assert_eq!(row(Coefficients::Cauchy, 250, 6), Err(TooLarge));
        assert_ne!(row(Coefficients::Random, 50, 1), row(Coefficients::Random, 50, 2));
    }
}
