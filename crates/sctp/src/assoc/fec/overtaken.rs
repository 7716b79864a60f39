use crate::assoc::Open;
use crate::number::Tsn;
use crate::path::PathIndex;
use braidcast_core::PathId;
use std::collections::VecDeque;

/// Chunks that redundancy seems to have made up for, each with its path. Over a quicker path it
/// often comes before the chunk itself, which is not lost then: the peer reports it as a duplicate
/// (RFC 9260 §6.2) when it arrives. Counted as losses, such chunks ask for more redundancy, which
/// overtakes more of them: a path of 180 ms that lost nothing was held to lose a third.
#[derive(Debug, Default)]
pub(super) struct Overtaken(VecDeque<(Tsn, PathId, bool)>);

impl Overtaken {
    /// Chunks that are remembered: half a second of 16 Mbit/s.
    const MOST: usize = 1024;

    fn add(&mut self, tsn: Tsn, path: PathId, counts: bool) {
        if self.0.len() == Self::MOST {
            self.0.pop_front();
        }
        self.0.push_back((tsn, path, counts));
    }

    /// The path of the chunk `tsn`, which is forgotten, and whether it counts as a loss.
    fn take(&mut self, tsn: Tsn) -> Option<(PathId, bool)> {
        let at = self.0.iter().position(|(it, ..)| *it == tsn)?;
        self.0.remove(at).map(|(_, path, counts)| (path, counts))
    }
}

impl Open {
    /// Redundancy seems to have made up for the chunk `tsn`, which went over the path `index` and
    /// `counts` as lost there.
    pub(in crate::assoc) fn note_made_up_for(&mut self, tsn: Tsn, index: PathIndex, counts: bool) {
        let path = self.paths[index].id();
        if let Some(fec) = &mut self.fec {
            fec.overtaken.add(tsn, path, counts);
        }
    }

    /// The peer has the chunk `tsn` twice, which was sent once: it was not lost if redundancy made
    /// up for it.
    pub(in crate::assoc) fn note_overtaken(&mut self, tsn: Tsn) {
        let Some((path, counted)) = self.fec.as_mut().and_then(|fec| fec.overtaken.take(tsn)) else { return };
        if let Some(index) = self.paths.by_id(path) {
            self.paths[index].on_late_arrival(counted);
        }
    }
}
