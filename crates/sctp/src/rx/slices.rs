use crate::number::Tsn;
use crate::wire::chunk::Slice;
use std::collections::VecDeque;

/// Chunks that come in slices ([`Slice`]), until they are whole. Memory:
/// [`MAX_BYTES`](Self::MAX_BYTES), whatever the peer sends.
#[derive(Debug, Default)]
pub(crate) struct Slices {
    /// In the order in which they began.
    partial: VecDeque<Partial>,
    /// Bytes of chunks that are not whole.
    bytes: usize,
}

/// A chunk of which some bytes are there.
#[derive(Debug)]
struct Partial {
    tsn: Tsn,
    bytes: Vec<u8>,
    /// What is there, from and up to, in no order; overlaps are merged.
    there: Vec<(usize, usize)>,
}

impl Slices {
    /// Bytes of unfinished chunks that are kept at most; beyond that the oldest ones go, and the peer sends them again.
    const MAX_BYTES: usize = 128 * 1024;

    /// Takes in a slice of the chunk `tsn`. Returns the chunk once it is whole.
    pub(crate) fn insert(&mut self, tsn: Tsn, slice: &Slice<'_>) -> Option<Vec<u8>> {
        let total = usize::from(slice.total);
        let (from, to) = (usize::from(slice.offset), usize::from(slice.offset) + slice.bytes.len());
        let known = self.partial.iter().position(|it| it.tsn == tsn && it.bytes.len() == total);
        let at = known.unwrap_or_else(|| {
            self.remove(|it| it.tsn == tsn);
            self.begin(tsn, total)
        });
        let partial = self.partial.get_mut(at)?;
        partial.bytes.get_mut(from..to)?.copy_from_slice(slice.bytes);
        partial.note(from, to);
        if partial.there != [(0, total)] {
            return None;
        }
        self.bytes -= total;
        self.partial.remove(at).map(|whole| whole.bytes)
    }

    /// What is up to the cumulative TSN is not needed any more.
    pub(crate) fn settle(&mut self, cumulative: Tsn) {
        if !self.partial.is_empty() {
            self.remove(|it| it.tsn <= cumulative);
        }
    }

    fn begin(&mut self, tsn: Tsn, total: usize) -> usize {
        while self.bytes + total > Self::MAX_BYTES
            && let Some(oldest) = self.partial.pop_front()
        {
            self.bytes -= oldest.bytes.len();
        }
        self.bytes += total;
        self.partial.push_back(Partial { tsn, bytes: vec![0; total], there: Vec::new() });
        self.partial.len() - 1
    }

    fn remove(&mut self, gone: impl Fn(&Partial) -> bool) {
        self.partial.retain(|it| !gone(it));
        self.bytes = self.partial.iter().map(|it| it.bytes.len()).sum();
    }
}

impl Partial {
    /// Slices of a chunk at most that touch no other: more of them make no sense, and the first ones are forgotten.
    const MAX_RUNS: usize = 256;

    fn note(&mut self, mut from: usize, mut to: usize) {
        self.there.retain(|&(other_from, other_to)| {
            let apart = other_to < from || other_from > to;
            if !apart {
                (from, to) = (from.min(other_from), to.max(other_to));
            }
            apart
        });
        if self.there.len() == Self::MAX_RUNS {
            self.there.remove(0);
        }
        self.there.push((from, to));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braidcast_core::Rng;

    fn slice(bytes: &[u8], from: usize, to: usize) -> Slice<'_> {
        Slice { tsn: 0, total: bytes.len() as u16, offset: from as u16, bytes: &bytes[from..to] }
    }

    #[test]
    fn slices_in_any_order_and_size_come_out_as_the_chunk() {
        let mut rng = Rng::from_seed(1);
        for _ in 0..200 {
            let chunk: Vec<u8> = (0..20 + rng.u64() % 1500).map(|n| n as u8).collect();
            let (mut slices, mut there) = (Slices::default(), vec![false; chunk.len()]);
            let whole = loop {
                let from = (rng.u64() % chunk.len() as u64) as usize;
                let to = (from + 1 + (rng.u64() % 500) as usize).min(chunk.len());
                there[from..to].fill(true);
                let whole = slices.insert(Tsn::new(7), &slice(&chunk, from, to));
                assert_eq!(whole.is_some(), there.iter().all(|it| *it));
                if let Some(whole) = whole {
                    break whole;
                }
            };
            assert_eq!(whole, chunk);
            assert_eq!((slices.bytes, slices.partial.len()), (0, 0));
        }
    }

    #[test]
    fn what_is_kept_is_bounded_and_the_oldest_goes_first() {
        let chunk = vec![1; 1460];
        let mut slices = Slices::default();
        for tsn in 0..10_000 {
            assert_eq!(slices.insert(Tsn::new(tsn), &slice(&chunk, 0, 700)), None);
            assert!(slices.bytes <= Slices::MAX_BYTES);
        }
        assert_eq!(slices.insert(Tsn::new(0), &slice(&chunk, 700, 1460)), None, "its first half is forgotten");
        assert!(slices.insert(Tsn::new(9_999), &slice(&chunk, 700, 1460)).is_some());
        slices.settle(Tsn::new(9_998));
        assert_eq!((slices.bytes, slices.partial.len()), (0, 0));
    }

    #[test]
    fn a_chunk_of_another_length_begins_anew() {
        let (short, long) = (vec![1; 100], vec![2; 200]);
        let mut slices = Slices::default();
        assert_eq!(slices.insert(Tsn::new(5), &slice(&short, 0, 50)), None);
        assert_eq!(slices.insert(Tsn::new(5), &slice(&long, 0, 150)), None);
        assert_eq!(slices.insert(Tsn::new(5), &slice(&long, 150, 200)), Some(long));
        assert_eq!(slices.bytes, 0);
    }
}
