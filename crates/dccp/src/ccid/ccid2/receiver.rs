use crate::ccid::{self, Arrival};
use crate::seq::Seq;
use braidcast_core::{Ecn, Instant};
use core::time::Duration;

/// When a CCID 2 receiver acknowledges (RFC 4340 §11.3, RFC 4341 §6).
#[derive(Debug)]
pub(in crate::ccid) struct Receiver {
    ratio: u32,
    /// Data packets since the last acknowledgement.
    unacked: u32,
    due: Option<Instant>,
    newest: Option<Seq>,
    /// The last acknowledgement that a mark or a hole called for.
    hurried: Option<Instant>,
}

/// Longest wait for an acknowledgement (RFC 4340 §11.3: T should be 0.2 s).
const DELAY: Duration = Duration::from_millis(200);
/// Round-trip time where none is known (RFC 4340 §3.4).
const DEFAULT_RTT: Duration = Duration::from_millis(200);

impl Default for Receiver {
    fn default() -> Self {
        Self { ratio: 2, unacked: 0, due: None, newest: None, hurried: None }
    }
}

impl ccid::Receiver for Receiver {
    fn on_arrival(&mut self, now: Instant, arrival: &Arrival) {
        let in_order = self.newest.is_none_or(|newest| arrival.seq == newest.plus(1));
        self.newest = Some(self.newest.map_or(arrival.seq, |newest| crate::seq::later(newest, arrival.seq)));
        if !arrival.is_data {
            return;
        }
        self.unacked += 1;
        // At once for what shows congestion, but for marks at most once in a round trip.
        let rtt = arrival.rtt.unwrap_or(DEFAULT_RTT);
        let marked = arrival.ecn == Ecn::Ce && self.hurried.is_none_or(|at| now.since(at) >= rtt);
        if marked {
            self.hurried = Some(now);
        }
        let due = if self.unacked >= self.ratio.max(1) || !in_order || marked { now } else { now + DELAY };
        self.due = Some(self.due.map_or(due, |old| old.min(due)));
    }

    fn ack_due(&self) -> Option<Instant> {
        self.due
    }

    fn on_ack_sent(&mut self, _: Instant) {
        self.unacked = 0;
        self.due = None;
    }

    fn set_ack_ratio(&mut self, ratio: u16) {
        self.ratio = u32::from(ratio);
    }
}
