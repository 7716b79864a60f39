use crate::api::Priority;
use std::collections::BTreeSet;

/// How a chunk was lost: what a retransmission policy may ask about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Origin {
    /// The slot of the path that lost it.
    pub(crate) slot: u8,
    /// A timer found out, not acknowledgements.
    pub(crate) timed_out: bool,
}

impl Origin {
    /// The slot of chunks whose path is gone.
    pub(crate) const NO_SLOT: u8 = u8::MAX;
}

/// Lost chunks that are to be sent again, by how they were lost; within that the most important first, then the oldest.
///
/// All of one origin go over the same path, so a path that is full holds up no other. O(log n) for each chunk.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    groups: Vec<(Origin, BTreeSet<(Priority, u64)>)>,
}

impl Repeats {
    pub(crate) fn is_empty(&self) -> bool {
        self.groups.iter().all(|(_, chunks)| chunks.is_empty())
    }

    pub(crate) fn insert(&mut self, origin: Origin, priority: Priority, tsn: u64) {
        match self.groups.iter_mut().find(|(it, _)| *it == origin) {
            Some((_, chunks)) => _ = chunks.insert((priority, tsn)),
            None => self.groups.push((origin, BTreeSet::from([(priority, tsn)]))),
        }
    }

    pub(crate) fn remove(&mut self, origin: Origin, priority: Priority, tsn: u64) {
        if let Some((_, chunks)) = self.groups.iter_mut().find(|(it, _)| *it == origin) {
            chunks.remove(&(priority, tsn));
        }
    }

    /// The path in `slot` is gone, and its chunks are known by [`Origin::NO_SLOT`] from now on.
    pub(crate) fn forget_slot(&mut self, slot: u8) {
        let gone = self.groups.extract_if(.., |(origin, _)| origin.slot == slot).collect::<Vec<_>>();
        for (origin, mut chunks) in gone {
            let origin = Origin { slot: Origin::NO_SLOT, ..origin };
            match self.groups.iter_mut().find(|(it, _)| *it == origin) {
                Some((_, others)) => others.append(&mut chunks),
                None => self.groups.push((origin, chunks)),
            }
        }
    }

    /// The first chunk of each origin.
    pub(crate) fn heads(&self) -> impl Iterator<Item = (Origin, Priority, u64)> + '_ {
        let head = |(origin, chunks): &(Origin, BTreeSet<_>)| chunks.first().map(|&(rank, tsn)| (*origin, rank, tsn));
        self.groups.iter().filter_map(head)
    }

    /// Takes all out.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = u64> + use<> {
        core::mem::take(&mut self.groups).into_iter().flat_map(|(_, chunks)| chunks).map(|(_, tsn)| tsn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_origin_has_its_own_order() {
        let mut repeats = Repeats::default();
        let origin = |slot, timed_out| Origin { slot, timed_out };
        for (slot, timed_out, rank, tsn) in [(0, false, 4, 9), (0, false, 1, 12), (1, false, 4, 3), (0, true, 4, 5)] {
            repeats.insert(origin(slot, timed_out), Priority::new(rank), tsn);
        }
        let heads: Vec<_> = repeats.heads().map(|(origin, _, tsn)| (origin, tsn)).collect();
        assert_eq!(heads, [(origin(0, false), 12), (origin(1, false), 3), (origin(0, true), 5)]);
        repeats.remove(origin(0, false), Priority::new(1), 12);
        assert_eq!(repeats.heads().next().map(|(_, _, tsn)| tsn), Some(9));
        // The paths leave one after the other; what they lost can still be found.
        repeats.forget_slot(0);
        repeats.forget_slot(1);
        let gone = |timed_out| origin(Origin::NO_SLOT, timed_out);
        let heads: Vec<_> = repeats.heads().collect();
        assert_eq!(heads, [(gone(false), Priority::new(4), 3), (gone(true), Priority::new(4), 5)]);
        repeats.remove(gone(false), Priority::new(4), 3);
        repeats.insert(gone(false), Priority::new(4), 3);
        let mut all: Vec<_> = repeats.take().collect();
        all.sort_unstable();
        assert_eq!((all, repeats.is_empty()), (vec![3, 5, 9], true));
    }
}
