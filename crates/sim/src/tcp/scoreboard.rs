use braidcast_cc::Stamp;
use braidcast_core::Instant;
use std::collections::VecDeque;

/// Segments that must be reported above another before that counts as lost (DupThresh, RFC 6675 §2).
const DUP_THRESH: usize = 3;

/// When a segment left last, and what rate estimation has it keep.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Departure {
    pub(super) at: Instant,
    pub(super) stamp: Stamp,
}

/// A segment that is known to have arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) departure: Departure,
    pub(super) bytes: u64,
    /// It was sent more than once: which of these arrived cannot be told.
    pub(super) ambiguous: bool,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    start: u64,
    end: u64,
    departure: Departure,
    sacked: bool,
    lost: bool,
    /// Since it was last found lost; and at any time.
    resent: bool,
    ambiguous: bool,
}

impl Sent {
    /// The bytes of this segment that are thought to be in the network (SetPipe, RFC 6675 §4).
    const fn pipe(&self) -> u64 {
        let copies = if self.sacked { 0 } else { !self.lost as u64 + self.resent as u64 };
        copies * (self.end - self.start)
    }

    const fn arrival(&self) -> Arrival {
        Arrival { departure: self.departure, bytes: self.end - self.start, ambiguous: self.ambiguous }
    }
}

/// What was sent and not acknowledged cumulatively, segment by segment (RFC 6675 §4).
///
/// A segment is lost when three that were sent after it have been reported. For full segments that
/// is RFC 6675's `IsLost`; for short ones it is a little quicker, since it counts segments, not
/// bytes. Each operation costs a constant or logarithmic time for each segment that changes.
#[derive(Clone, Debug, Default)]
pub(super) struct Scoreboard {
    segments: VecDeque<Sent>,
    pipe: u64,
    /// Segments before this place are judged: reported or lost.
    judged: usize,
    /// Reported segments from `judged` on.
    sacked_above: usize,
    /// No lost segment before this place still waits to be sent again.
    resend_from: usize,
    /// Bytes that duplicate acknowledgements without SACK say have left the network.
    presumed: u64,
    /// Bytes that were found lost since [`take_lost`](Scoreboard::take_lost) asked.
    newly_lost: u64,
}

impl Scoreboard {
    /// Bytes thought to be in the network.
    pub(super) const fn pipe(&self) -> u64 {
        self.pipe.saturating_sub(self.presumed)
    }

    /// Without SACK: a duplicate acknowledgement says that some segment arrived (RFC 5681 §3.2
    /// steps 3 and 4: there the window is inflated, here what is in the network counts for less,
    /// which comes to the same).
    pub(super) fn presume_arrived(&mut self, bytes: u64) {
        self.presumed += bytes;
    }

    /// Without SACK: `acked` bytes were acknowledged in recovery. Those that duplicates spoke of
    /// are among them, but for the first segment, which was sent again (RFC 6582 §3.2 step 3,
    /// "deflate").
    pub(super) fn deflate(&mut self, acked: u64, mss: u64) {
        self.presumed = self.presumed.saturating_sub(acked.saturating_sub(mss));
    }

    /// Without SACK: recovery is over, and duplicates count anew.
    pub(super) fn presume_nothing(&mut self) {
        self.presumed = 0;
    }

    /// Without SACK: the first segment is lost, after three duplicates or a partial acknowledgement.
    pub(super) fn lose_first(&mut self) {
        if let Some(first) = self.segments.front_mut() {
            self.pipe -= first.pipe();
            self.newly_lost += if first.lost { 0 } else { first.end - first.start };
            first.lost = true;
            self.pipe += first.pipe();
            self.judged = self.judged.max(1);
        }
    }

    /// New data was sent.
    pub(super) fn push(&mut self, start: u64, end: u64, departure: Departure) {
        let (sacked, lost, resent, ambiguous) = (false, false, false, false);
        self.segments.push_back(Sent { start, end, departure, sacked, lost, resent, ambiguous });
        self.pipe += end - start;
    }

    /// Everything before `until` is acknowledged. Tells `arrived` of what was not reported before.
    pub(super) fn acknowledge(&mut self, until: u64, mut arrived: impl FnMut(Arrival)) {
        while let Some(first) = self.segments.front().filter(|first| first.end <= until).copied() {
            self.segments.pop_front();
            self.pipe -= first.pipe();
            if !first.sacked {
                arrived(first.arrival());
            }
            if self.judged == 0 && first.sacked {
                self.sacked_above -= 1;
            }
            self.judged = self.judged.saturating_sub(1);
            self.resend_from = self.resend_from.saturating_sub(1);
        }
    }

    /// The receiver holds `start..end`: calls `arrived` for each segment that was not reported
    /// before. Returns `true` if `probe`, the end of a segment, is among them.
    pub(super) fn sack(&mut self, start: u64, end: u64, probe: Option<u64>, mut arrived: impl FnMut(Arrival)) -> bool {
        let mut place = self.segments.partition_point(|segment| segment.start < start);
        let mut found = false;
        while let Some(segment) = self.segments.get_mut(place).filter(|segment| segment.end <= end) {
            if !segment.sacked {
                self.pipe -= segment.pipe();
                segment.sacked = true;
                arrived(segment.arrival());
                found |= probe == Some(segment.end);
                self.sacked_above += usize::from(place >= self.judged);
            }
            place += 1;
        }
        found
    }

    /// Marks what is lost by now.
    pub(super) fn detect_losses(&mut self) {
        while let Some(segment) = self.segments.get_mut(self.judged) {
            if self.sacked_above - usize::from(segment.sacked) < DUP_THRESH {
                break;
            }
            self.sacked_above -= usize::from(segment.sacked);
            if !segment.sacked {
                self.pipe -= segment.pipe();
                self.newly_lost += if segment.lost { 0 } else { segment.end - segment.start };
                segment.lost = true;
                self.pipe += segment.pipe();
            }
            self.judged += 1;
        }
    }

    /// Bytes that were found lost since the last call, those by timeout left out.
    pub(super) const fn take_lost(&mut self) -> u64 {
        core::mem::replace(&mut self.newly_lost, 0)
    }

    /// Returns `true` if the first segment is lost, and nobody sent it again yet.
    pub(super) fn first_is_lost(&self) -> bool {
        self.segments.front().is_some_and(|first| first.lost && !first.resent && !first.sacked)
    }

    /// The timer expired: all that was not reported is lost. What was reported stays so (RFC 6675
    /// §5.1), as our receiver takes nothing back.
    pub(super) fn on_timeout(&mut self) {
        for segment in &mut self.segments {
            segment.lost = true;
            segment.resent = false;
        }
        self.pipe = 0;
        self.presumed = 0;
        self.judged = self.segments.len();
        self.sacked_above = 0;
        self.resend_from = 0;
    }

    /// The first lost segment that is to be sent again.
    pub(super) fn next_lost(&mut self) -> Option<(u64, u64)> {
        while let Some(segment) = self.segments.get(self.resend_from).filter(|segment| segment.lost || segment.sacked) {
            if segment.lost && !segment.resent && !segment.sacked {
                return Some((segment.start, segment.end));
            }
            self.resend_from += 1;
        }
        None
    }

    /// The segment that [`next_lost`](Self::next_lost) gave was sent again.
    pub(super) fn resent(&mut self, departure: Departure) {
        if let Some(segment) = self.segments.get_mut(self.resend_from) {
            (segment.resent, segment.ambiguous, segment.departure) = (true, true, departure);
            self.pipe += segment.end - segment.start;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sent(count: u64) -> Scoreboard {
        let mut board = Scoreboard::default();
        (0..count).for_each(|n| board.push(n * 100, (n + 1) * 100, Departure::default()));
        board
    }

    #[test]
    fn three_reports_above_make_a_loss() {
        let mut board = sent(10);
        assert!(!board.sack(200, 400, None, |_| {}));
        board.detect_losses();
        assert_eq!((board.pipe(), board.next_lost()), (800, None));
        assert!(board.sack(200, 500, Some(500), |_| {}));
        board.detect_losses();
        assert_eq!((board.pipe(), board.next_lost(), board.first_is_lost()), (500, Some((0, 100)), true));
        board.resent(Departure::default());
        assert_eq!((board.pipe(), board.next_lost(), board.first_is_lost()), (600, Some((100, 200)), false));
        board.acknowledge(100, |_| {});
        assert_eq!((board.pipe(), board.next_lost()), (500, Some((100, 200))));
    }

    #[test]
    fn a_timeout_loses_all_but_what_was_reported() {
        let mut board = sent(4);
        board.sack(100, 200, None, |_| {});
        board.on_timeout();
        assert_eq!((board.pipe(), board.next_lost()), (0, Some((0, 100))));
        board.resent(Departure::default());
        assert_eq!((board.pipe(), board.next_lost()), (100, Some((200, 300))));
    }

    #[test]
    fn each_segment_arrives_once_and_a_repeat_is_ambiguous() {
        let mut board = sent(6);
        let mut seen = vec![];
        board.sack(200, 600, None, |it| seen.push((it.bytes, it.ambiguous)));
        board.detect_losses();
        assert_eq!((board.take_lost(), board.take_lost()), (200, 0));
        assert_eq!(board.next_lost(), Some((0, 100)));
        board.resent(Departure::default());
        board.acknowledge(200, |it| seen.push((it.bytes, it.ambiguous)));
        board.acknowledge(600, |it| seen.push((it.bytes, it.ambiguous)));
        assert_eq!(seen, [(100, false), (100, false), (100, false), (100, false), (100, true), (100, false)]);
    }

    proptest! {
        #[test]
        fn running_sums_agree_with_counting_anew(
            steps in prop::collection::vec((0_u8..6, 0_u64..40, 1_u64..6), 1..200),
        ) {
            let (mut board, mut end, mut una) = (Scoreboard::default(), 0, 0);
            for (what, a, b) in steps {
                match what {
                    0 | 1 => {
                        (0..b).for_each(|n| board.push(end + n * 100, end + (n + 1) * 100, Departure::default()));
                        end += b * 100;
                    }
                    2 => {
                        una = end.min(una + b * 100);
                        board.acknowledge(una, |_| {});
                    }
                    3 => {
                        let start = una + (a + 1) * 100;
                        board.sack(start, end.min(start + b * 100), None, |_| {});
                        board.detect_losses();
                    }
                    4 if board.next_lost().is_some() => board.resent(Departure::default()),
                    5 if a == 0 => board.on_timeout(),
                    _ => {}
                }
                prop_assert_eq!(board.pipe, board.segments.iter().map(Sent::pipe).sum::<u64>());
                let above = board.segments.iter().skip(board.judged).filter(|s| s.sacked).count();
                prop_assert_eq!(board.sacked_above, above);
                let waiting = board.segments.iter().find(|s| s.lost && !s.resent && !s.sacked).map(|s| (s.start, s.end));
                prop_assert_eq!(board.next_lost(), waiting);
            }
        }
    }
}
