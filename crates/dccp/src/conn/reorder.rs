use crate::api::{ReorderOptions, ReorderReport};
use crate::ccid::Arrival;
use crate::seq::Seq;
use crate::wire::option::DropCode;
use braidcast_core::Instant;
use std::collections::VecDeque;

/// A packet that waits for those before it.
#[derive(Debug)]
pub(super) struct Held {
    /// When it came.
    pub(super) at: Instant,
    pub(super) arrival: Arrival,
    /// Its data, and why that must be dropped if it must.
    pub(super) data: Option<(Vec<u8>, Option<DropCode>)>,
}

/// The reordering buffer (THESIS ch. 5): packets behind a hole wait until it is filled, so that
/// neither loss detection nor the application sees that they came out of order.
///
/// They wait for at most D_max, and at most Q = X · D_max bytes of them (eq. 5.2): then the hole is
/// abandoned. As in THESIS fig. 5.1 packets in order pass at once; its §5.1.2 would keep the buffer
/// full at all times, which delays every packet by D_max and adds nothing for loss detection.
#[derive(Debug)]
pub(super) struct ReorderBuffer {
    options: ReorderOptions,
    /// The number that is to be released next.
    next: Option<Seq>,
    /// By number.
    held: VecDeque<Held>,
    /// The same by time of arrival; numbers below `next` have left.
    order: VecDeque<(Instant, Seq)>,
    bytes: usize,
    /// Q, in bytes; none while X is not known.
    limit: Option<usize>,
    spare: Vec<Vec<u8>>,
    report: ReorderReport,
}

impl ReorderBuffer {
    /// Packets that are held whatever Q would allow.
    const MAX: usize = 4096;
    /// Buffers that are kept.
    const SPARE: usize = 64;

    pub(super) fn new(options: ReorderOptions) -> Self {
        Self {
            options,
            next: None,
            held: VecDeque::new(),
            order: VecDeque::new(),
            bytes: 0,
            limit: None,
            spare: Vec::new(),
            report: ReorderReport::default(),
        }
    }

    /// X as it is now, in bytes per second.
    pub(super) fn resize(&mut self, rate: Option<f64>) {
        self.limit = rate.map(|rate| (rate * self.options.max_delay.as_secs_f64()) as usize);
    }

    /// Returns `true` if packet `seq` need not wait: it is the next one, or its hole was abandoned.
    pub(super) fn passes(&mut self, seq: Seq) -> bool {
        let Some(next) = self.next else {
            self.next = Some(seq.plus(1));
            return true;
        };
        if seq < next {
            self.report.late += 1;
            return true;
        }
        let is_next = seq == next;
        if is_next {
            self.report.filled += u64::from(!self.held.is_empty());
            self.next = Some(seq.plus(1));
        }
        is_next
    }

    /// Keeps a packet that must wait.
    pub(super) fn push(&mut self, at: Instant, arrival: Arrival, data: Option<(&[u8], Option<DropCode>)>) {
        let data = data.map(|(payload, verdict)| {
            let mut bytes = self.spare.pop().unwrap_or_default();
            bytes.extend_from_slice(payload);
            (bytes, verdict)
        });
        self.bytes += arrival.payload;
        self.report.most_bytes = self.report.most_bytes.max(self.bytes);
        let place = self.held.partition_point(|it| it.arrival.seq < arrival.seq);
        self.held.insert(place, Held { at, arrival, data });
        self.order.push_back((at, arrival.seq));
    }

    /// The next packet that may go on at `now`, in order.
    pub(super) fn pop(&mut self, now: Instant) -> Option<Held> {
        let front = self.held.front()?.arrival.seq;
        let is_next = self.next == Some(front);
        if !is_next && !self.is_full() && self.due().is_none_or(|at| at > now) {
            return None;
        }
        self.report.given_up += u64::from(!is_next);
        self.take(now)
    }

    /// The next packet, whatever is missing before it.
    pub(super) fn take(&mut self, now: Instant) -> Option<Held> {
        let held = self.held.pop_front()?;
        self.bytes -= held.arrival.payload;
        let next = held.arrival.seq.plus(1);
        self.next = Some(next);
        while self.order.front().is_some_and(|&(_, seq)| seq < next) {
            self.order.pop_front();
        }
        self.report.longest_delay = self.report.longest_delay.max(now.since(held.at));
        Some(held)
    }

    /// Takes a packet's buffer back for reuse.
    pub(super) fn recycle(&mut self, mut bytes: Vec<u8>) {
        if self.spare.len() < Self::SPARE {
            bytes.clear();
            self.spare.push(bytes);
        }
    }

    fn is_full(&self) -> bool {
        let beyond = match self.options.packets {
            Some(packets) => self.held.len() > packets,
            None => self.limit.is_some_and(|limit| self.bytes > limit),
        };
        beyond || self.held.len() > Self::MAX
    }

    /// When the packet that waits longest has waited enough.
    pub(super) fn due(&self) -> Option<Instant> {
        self.order.front().map(|&(at, _)| at + self.options.max_delay)
    }

    pub(super) fn report(&self) -> ReorderReport {
        ReorderReport { held: self.held.len(), limit: self.limit, ..self.report }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braidcast_core::Ecn;
    use core::time::Duration;
    use proptest::prelude::*;

    const D_MAX: Duration = Duration::from_millis(100);

    fn packet(seq: u64) -> Arrival {
        let seq = Seq::new(seq);
        Arrival { seq, is_data: true, payload: 1000, ccval: 0, ecn: Ecn::NotEct, ndp_count: None, rtt: None }
    }

    /// Packets by arrival time in ms, each with its number; what goes on, when and in which order.
    fn run(
        packets: Option<usize>,
        rate: Option<f64>,
        mut arrivals: Vec<(u64, u64)>,
    ) -> (Vec<(u64, u64)>, ReorderReport) {
        let mut buffer = ReorderBuffer::new(ReorderOptions { max_delay: D_MAX, packets });
        buffer.resize(rate);
        let mut out = Vec::new();
        arrivals.reverse();
        for ms in 0..5000 {
            let now = Instant::from_millis(ms);
            while let Some((_, seq)) = arrivals.pop_if(|it| it.0 <= ms) {
                if buffer.passes(Seq::new(seq)) {
                    out.push((ms, seq));
                } else {
                    buffer.push(now, packet(seq), None);
                }
            }
            while let Some(held) = buffer.pop(now) {
                out.push((ms, held.arrival.seq.get()));
            }
        }
        (out, buffer.report())
    }

    #[test]
    fn packets_behind_a_hole_wait_until_it_is_filled() {
        // THESIS fig. 5.1: 3 is late.
        let (out, report) = run(None, None, vec![(1, 1), (2, 2), (3, 4), (4, 5), (5, 3), (6, 6)]);
        assert_eq!(out, [(1, 1), (2, 2), (5, 3), (5, 4), (5, 5), (6, 6)]);
        assert_eq!((report.filled, report.given_up, report.longest_delay), (1, 0, Duration::from_millis(2)));
    }

    #[test]
    fn a_hole_is_given_up_after_d_max_or_beyond_q() {
        let (out, report) = run(None, None, vec![(1, 1), (10, 3), (50, 4), (120, 2)]);
        assert_eq!(out, [(1, 1), (110, 3), (110, 4), (120, 2)]);
        assert_eq!((report.given_up, report.late, report.longest_delay), (1, 1, D_MAX));
        assert_eq!(report.most_bytes, 2000);
        // 20,000 bytes/s for 100 ms are two packets.
        let (out, report) = run(None, Some(20_000.0), vec![(1, 1), (10, 3), (20, 4), (30, 5), (40, 6)]);
        assert_eq!(out, [(1, 1), (30, 3), (30, 4), (30, 5), (40, 6)]);
        assert_eq!(report.limit, Some(2000));
        assert_eq!(run(Some(1), None, vec![(1, 1), (10, 3), (20, 4)]).0, [(1, 1), (20, 3), (20, 4)]);
    }

    proptest! {
        /// Whatever comes in whatever order: all goes on, once, within D_max, and in order but for what was late.
        #[test]
        fn all_go_on_within_d_max(delays in prop::collection::vec(0_u64..300, 1..120), rate in 0.0..1e6) {
            let mut arrivals: Vec<_> = delays.iter().zip(0..).map(|(&delay, seq)| (seq * 7 + delay, seq)).collect();
            arrivals.sort_unstable();
            let came: std::collections::HashMap<u64, u64> = arrivals.iter().map(|&(at, seq)| (seq, at)).collect();
            let (out, report) = run(None, Some(rate), arrivals);
            prop_assert_eq!(out.len(), delays.len());
            prop_assert!(out.iter().all(|(at, seq)| at - came[seq] <= 100));
            let descents = out.windows(2).filter(|pair| pair[0].1 > pair[1].1).count() as u64;
            prop_assert!(descents <= report.late && report.held == 0 && report.longest_delay <= D_MAX);
        }
    }
}
