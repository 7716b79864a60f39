//! A recorded stream that is played at the speed of its own clock.

use braidcast_core::Instant;
use braidcast_media::{Pacer, Timing, Unit};
use std::collections::BTreeMap;
use std::time::Duration;

/// Time that a recording is read ahead of its clock. So a frame is complete at the time of its
/// first byte, as from an encoder, instead of trickling in at the recording's rate. Memory: one
/// second of the recording.
pub(super) const AHEAD: Duration = Duration::from_secs(1);

/// A recorded stream, and what is due next.
#[derive(Default)]
pub(super) struct Recording {
    /// Set at the start; before, nothing is due.
    pub(super) pacer: Option<Pacer>,
    pub(super) due: Option<Instant>,
    pub(super) packets: Vec<u8>,
    /// What was read before the start.
    pub(super) head: Vec<u8>,
    /// From one packet to the next.
    pub(super) packet_bytes: usize,
    pub(super) timing: Timing,
    /// Whole units, in the order in which they began and were completed.
    pub(super) ahead: BTreeMap<(Instant, u64), Unit>,
    /// How many there were.
    pub(super) count: u64,
    /// Everything was read, and is in `ahead`.
    pub(super) finished: bool,
}

impl Recording {
    /// Takes a whole unit, which may be due later.
    pub(super) fn add(&mut self, unit: Unit) {
        self.ahead.insert((unit.first_captured, self.count), unit);
        self.count += 1;
    }

    /// The next unit that has begun by `now`.
    pub(super) fn take(&mut self, now: Instant) -> Option<Unit> {
        let first = self.ahead.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }

    /// When there is something to do next.
    pub(super) fn next(&self) -> Option<Instant> {
        let unit = self.ahead.first_key_value().map(|((at, _), _)| *at);
        [unit, self.due.map(|at| at - AHEAD / 2)].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braidcast_media::Kind;

    fn unit(kind: Kind, began: u64, ended: u64) -> Unit {
        let (first_captured, last_captured) = (Instant::from_millis(began), Instant::from_millis(ended));
        let (pid, runs, bytes) = (256, Vec::new(), Vec::new());
        let (continues, more) = (false, false);
        Unit {
            kind,
            reference: true,
            continues,
            more,
            pid,
            runs,
            bytes,
            first_captured,
            last_captured,
            pts: None,
            dts: None,
        }
    }

    #[test]
    fn a_recorded_frame_goes_when_it_begins_and_audio_within_it_holds_it_up_no_longer() {
        let mut recording = Recording::default();
        // In the order in which they are completed.
        for (kind, began, ended) in [(Kind::Audio, 30, 30), (Kind::I, 0, 70), (Kind::P, 80, 90)] {
            recording.add(unit(kind, began, ended));
        }
        let mut at = |ms| std::iter::from_fn(|| recording.take(Instant::from_millis(ms))).map(|it| it.kind).collect();
        let gone: [Vec<Kind>; 4] = [0, 29, 30, 80].map(&mut at);
        assert_eq!(gone, [vec![Kind::I], vec![], vec![Kind::Audio], vec![Kind::P]]);
        assert_eq!(recording.next(), None);
    }
}
