use crate::api::CwndUpdate;
use crate::number::Tsn;
use std::collections::BTreeSet;

/// What must be acknowledged for one path's window to grow: its own cumulative acknowledgement, as
/// the association's moves only when the slowest path lets it (Iyengar, Amer, Stewart, IEEE/ACM
/// Transactions on Networking 14(5), 2006, fig. 4 for CUC, §V-B for CUCv2).
#[derive(Debug, Default)]
pub(crate) struct PseudoCumack {
    /// The lowest TSN that was out on the path when it was looked for; `None`: look for it.
    first: Option<Tsn>,
    /// The same among those sent again (CUCv2).
    repeat: Option<Tsn>,
    /// Chunks that are in flight on the path and were sent again.
    repeats: BTreeSet<Tsn>,
}

impl PseudoCumack {
    /// Before a SACK is looked at. `lowest_new`: the lowest TSN in flight on the path that was sent once.
    pub(crate) fn find(&mut self, rule: CwndUpdate, lowest_new: impl FnOnce() -> Option<Tsn>) {
        let lowest_repeat = self.repeats.first().copied();
        match rule {
            CwndUpdate::Plain => {}
            CwndUpdate::Cuc if self.first.is_none() => {
                self.first = lowest_new().into_iter().chain(lowest_repeat).min();
            }
            CwndUpdate::Cuc => {}
            CwndUpdate::Cucv2 => {
                self.first = self.first.or_else(lowest_new);
                self.repeat = self.repeat.or(lowest_repeat);
            }
        }
    }

    /// The chunk `tsn` went over the path once more.
    pub(crate) fn on_repeat(&mut self, tsn: Tsn) {
        self.repeats.insert(tsn);
    }

    /// The chunk `tsn`, in flight on the path, was acknowledged, `cumulative`: not by a gap block.
    /// Returns `true` if the window may grow.
    pub(crate) fn on_acked(&mut self, tsn: Tsn, cumulative: bool) -> bool {
        self.repeats.remove(&tsn);
        let first = self.first == Some(tsn);
        let repeat = self.repeat == Some(tsn);
        if first || cumulative {
            self.first = None;
        }
        if repeat || cumulative {
            self.repeat = None;
        }
        first || repeat || cumulative
    }

    /// The chunk `tsn` is no longer in flight on the path, without having been acknowledged. CUC
    /// still waits for it, wherever it is sent again; CUCv2 looks for the next one.
    pub(crate) fn on_lost(&mut self, rule: CwndUpdate, tsn: Tsn) {
        self.repeats.remove(&tsn);
        if rule == CwndUpdate::Cucv2 {
            self.first.take_if(|first| *first == tsn);
            self.repeat.take_if(|repeat| *repeat == tsn);
        }
    }

    /// Nothing is out any more.
    pub(crate) fn clear(&mut self) {
        (self.first, self.repeat) = (None, None);
        self.repeats.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TSNs 1, 3, 5 and 7 went over this path, 2, 4, 6 over another one. 1 is lost and sent again
    /// over the other one, then 3 and 5 are acknowledged by gap blocks, then the cumulative
    /// acknowledgement reaches 7.
    fn story(rule: CwndUpdate) -> [bool; 3] {
        let mut here = PseudoCumack::default();
        here.find(rule, || Some(Tsn::new(1)));
        here.on_lost(rule, Tsn::new(1));
        here.find(rule, || Some(Tsn::new(3)));
        let three = here.on_acked(Tsn::new(3), false);
        here.find(rule, || Some(Tsn::new(5)));
        let five = here.on_acked(Tsn::new(5), false);
        here.find(rule, || Some(Tsn::new(7)));
        [three, five, here.on_acked(Tsn::new(7), true)]
    }

    #[test]
    fn a_chunk_sent_again_elsewhere_holds_up_cuc_but_not_cucv2() {
        assert_eq!(story(CwndUpdate::Cuc), [false, false, true]);
        assert_eq!(story(CwndUpdate::Cucv2), [true, true, true]);
    }

    #[test]
    fn cucv2_counts_repeats_apart() {
        let mut path = PseudoCumack::default();
        path.on_repeat(Tsn::new(1));
        path.on_repeat(Tsn::new(2));
        path.find(CwndUpdate::Cucv2, || Some(Tsn::new(8)));
        assert!(
            !path.on_acked(Tsn::new(2), false) && !path.on_acked(Tsn::new(9), false),
            "neither is the lowest of its kind"
        );
        assert!(path.on_acked(Tsn::new(1), false) && path.on_acked(Tsn::new(8), false));
        path.find(CwndUpdate::Cucv2, || None);
        assert!(!path.on_acked(Tsn::new(10), false), "nothing was found to wait for");
    }
}
