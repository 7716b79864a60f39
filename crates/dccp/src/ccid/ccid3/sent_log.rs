use crate::seq::Seq;
use braidcast_core::Instant;
use std::collections::VecDeque;

/// When a packet left, and with which window counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Departure {
    pub(super) at: Instant,
    pub(super) ccval: u8,
}

/// The packets from the newest acknowledged one on (RFC 4342 §10.1: with these, data needs no timestamps).
#[derive(Debug, Default)]
pub(super) struct SentLog {
    /// By number, from `first` on.
    departures: VecDeque<Departure>,
    first: Seq,
}

impl SentLog {
    /// Packets that are remembered; acknowledgements of older ones tell nothing.
    const MAX: usize = 1 << 16;

    /// Packet `seq` leaves. Numbers that were skipped count as if they left with it.
    pub(super) fn sent(&mut self, seq: Seq, departure: Departure) {
        if self.departures.is_empty() || self.next().distance_to(seq) >= Self::MAX as u64 {
            self.departures.clear();
            self.first = seq;
        }
        for _ in 0..=self.next().distance_to(seq) {
            if self.departures.len() == Self::MAX {
                self.departures.pop_front();
                self.first = self.first.plus(1);
            }
            self.departures.push_back(departure);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.departures.is_empty()
    }

    /// The number after the last.
    pub(super) fn next(&self) -> Seq {
        self.first.plus(self.departures.len() as u64)
    }

    /// Packet `seq` was acknowledged: forgets what is older. `None` if it is forgotten already.
    pub(super) fn acknowledge(&mut self, seq: Seq) -> Option<Departure> {
        let at = usize::try_from(self.first.distance_to(seq)).ok().filter(|&at| at < self.departures.len())?;
        self.departures.drain(..at);
        self.first = seq;
        self.departures.front().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_keeps_what_is_newer_than_the_newest_acknowledgement() {
        let departure = |n| Departure { at: Instant::from_millis(n), ccval: 0 };
        let mut log = SentLog::default();
        (5..10).for_each(|n| log.sent(Seq::new(n), departure(n)));
        log.sent(Seq::new(12), departure(12));
        assert_eq!((log.next().get(), log.acknowledge(Seq::new(13))), (13, None));
        assert_eq!(log.acknowledge(Seq::new(7)), Some(departure(7)));
        assert_eq!(log.acknowledge(Seq::new(7)), Some(departure(7)), "told again");
        assert_eq!((log.acknowledge(Seq::new(6)), log.acknowledge(Seq::new(11))), (None, Some(departure(12))));
    }
}
