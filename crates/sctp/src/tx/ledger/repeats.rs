use crate::api::Priority;
use crate::number::Tsn;
use crate::path::PathIndex;
use std::collections::BTreeSet;

/// How a chunk was lost: what a retransmission policy may ask about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Origin {
    /// The path that lost it; `None`: that path is gone.
    pub(crate) path: Option<PathIndex>,
    /// A timer found out, not acknowledgements.
    pub(crate) timed_out: bool,
}

/// A lost chunk that is to be sent again: how it was lost, how urgent it is, and which it is.
pub(crate) type Repeat = (Origin, Priority, Tsn);

/// Lost chunks that are to be sent again, by how they were lost; within that the most important first, then the oldest.
///
/// All of one origin go over the same path, so a path that is full holds up no other. O(log n) for each chunk.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    groups: Vec<(Origin, BTreeSet<(Priority, Tsn)>)>,
}

impl Repeats {
    pub(crate) fn is_empty(&self) -> bool {
        self.groups.iter().all(|(_, chunks)| chunks.is_empty())
    }

    /// Chunks that wait.
    #[cfg(debug_assertions)]
    pub(crate) fn len(&self) -> usize {
        self.groups.iter().map(|(_, chunks)| chunks.len()).sum()
    }

    /// Returns `true` if the chunk `tsn` waits in its place.
    #[cfg(debug_assertions)]
    pub(crate) fn has(&self, origin: Origin, priority: Priority, tsn: Tsn) -> bool {
        self.groups.iter().any(|(it, chunks)| *it == origin && chunks.contains(&(priority, tsn)))
    }

    pub(crate) fn insert(&mut self, origin: Origin, priority: Priority, tsn: Tsn) {
        match self.groups.iter_mut().find(|(it, _)| *it == origin) {
            Some((_, chunks)) => _ = chunks.insert((priority, tsn)),
            None => self.groups.push((origin, BTreeSet::from([(priority, tsn)]))),
        }
    }

    pub(crate) fn remove(&mut self, origin: Origin, priority: Priority, tsn: Tsn) {
        if let Some((_, chunks)) = self.groups.iter_mut().find(|(it, _)| *it == origin) {
            chunks.remove(&(priority, tsn));
        }
    }

    /// The path `path` is gone: its chunks were lost by none from now on.
    pub(crate) fn forget_path(&mut self, path: PathIndex) {
        let gone = self.groups.extract_if(.., |(origin, _)| origin.path == Some(path)).collect::<Vec<_>>();
        for (origin, mut chunks) in gone {
            let origin = Origin { path: None, ..origin };
            match self.groups.iter_mut().find(|(it, _)| *it == origin) {
                Some((_, others)) => others.append(&mut chunks),
                None => self.groups.push((origin, chunks)),
            }
        }
    }

    /// The first chunk of each origin.
    pub(crate) fn heads(&self) -> impl Iterator<Item = Repeat> + '_ {
        let head = |(origin, chunks): &(Origin, BTreeSet<_>)| chunks.first().map(|&(rank, tsn)| (*origin, rank, tsn));
        self.groups.iter().filter_map(head)
    }

    /// Takes all out.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Tsn> + use<> {
        core::mem::take(&mut self.groups).into_iter().flat_map(|(_, chunks)| chunks).map(|(_, tsn)| tsn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_origin_has_its_own_order() {
        let mut repeats = Repeats::default();
        let origin = |path, timed_out| Origin { path: Some(PathIndex::new(path)), timed_out };
        for (path, timed_out, rank, tsn) in [(0, false, 4, 9), (0, false, 1, 12), (1, false, 4, 3), (0, true, 4, 5)] {
            repeats.insert(origin(path, timed_out), Priority::new(rank), Tsn::new(tsn));
        }
        let heads: Vec<_> = repeats.heads().map(|(origin, _, tsn)| (origin, tsn.get())).collect();
        assert_eq!(heads, [(origin(0, false), 12), (origin(1, false), 3), (origin(0, true), 5)]);
        repeats.remove(origin(0, false), Priority::new(1), Tsn::new(12));
        assert_eq!(repeats.heads().next().map(|(_, _, tsn)| tsn.get()), Some(9));
        // The paths leave one after the other; what they lost can still be found.
        repeats.forget_path(PathIndex::new(0));
        repeats.forget_path(PathIndex::new(1));
        let gone = |timed_out| Origin { path: None, timed_out };
        let three = Tsn::new(3);
        let heads: Vec<_> = repeats.heads().collect();
        assert_eq!(heads, [(gone(false), Priority::new(4), three), (gone(true), Priority::new(4), Tsn::new(5))]);
        repeats.remove(gone(false), Priority::new(4), three);
        repeats.insert(gone(false), Priority::new(4), three);
        let mut all: Vec<_> = repeats.take().map(Tsn::get).collect();
        all.sort_unstable();
        assert_eq!((all, repeats.is_empty()), (vec![3, 5, 9], true));
    }
}
