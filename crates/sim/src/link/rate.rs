use super::outage::Outages;
use super::schedule::Schedule;
use super::trace::{OPPORTUNITY_BYTES, Trace};
use braidcast_core::Instant;
use core::time::Duration;
use std::sync::Arc;

/// How fast packets leave the queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Rate {
    /// At once.
    #[default]
    Unlimited,
    /// A constant rate in bit/s; 0 lets nothing through.
    Bits(u64),
    /// At a bit/s that changes with time.
    Schedule(Schedule),
    /// At the opportunities of a recording, counted from [`Instant::ZERO`].
    ///
    /// As in mahimahi's `link_queue.cc`: one opportunity carries several small packets up to 1500 bytes, a
    /// larger packet takes several opportunities, and what nobody uses is lost.
    Trace(Arc<Trace>),
}

impl Rate {
    /// Mean bit/s over all time; `None` if there is no limit.
    pub fn mean_bits_per_second(&self) -> Option<u64> {
        match self {
            Self::Unlimited => None,
            Self::Bits(rate) => Some(*rate),
            Self::Schedule(schedule) => Some(schedule.mean()),
            Self::Trace(trace) => Some(trace.mean_bits_per_second()),
        }
    }
}

/// Serves one packet at a time. Start times must not go back.
#[derive(Debug)]
pub(super) enum Server {
    Unlimited,
    Bits(Serialiser),
    Schedule(Changing),
    Trace(Replay),
}

impl Server {
    pub(super) fn new(rate: &Rate) -> Self {
        match rate {
            Rate::Unlimited => Self::Unlimited,
            Rate::Bits(rate) => Self::Bits(Serialiser { rate: *rate, carry: 0, free: Instant::ZERO }),
            Rate::Schedule(schedule) => {
                Self::Schedule(Changing { schedule: schedule.clone(), ahead: 0.0, free: Instant::ZERO })
            }
            Rate::Trace(trace) => Self::Trace(Replay::new(trace.clone())),
        }
    }

    /// When the last bit of a packet of `len` bytes that is first in line at `start` has left.
    pub(super) fn finish(&mut self, start: Instant, len: usize, outages: &mut Outages) -> Instant {
        match self {
            Self::Unlimited => outages.released_at(start),
            Self::Bits(serialiser) => serialiser.finish(start, len, outages),
            Self::Schedule(changing) => changing.finish(start, len, outages),
            Self::Trace(replay) => replay.finish(start, len, outages),
        }
    }

    /// Bit/s at `now`, a recording's mean; `None` if there is no limit.
    pub(super) fn bits_per_second(&self, now: Instant) -> Option<u64> {
        match self {
            Self::Unlimited => None,
            Self::Bits(serialiser) => Some(serialiser.rate),
            Self::Schedule(changing) => Some(changing.schedule.value_at(now)),
            Self::Trace(replay) => Some(replay.trace.mean_bits_per_second()),
        }
    }
}

/// A wire of constant bit rate.
#[derive(Debug)]
pub(super) struct Serialiser {
    rate: u64,
    /// Part of a nanosecond left over by the last packet, in units of 1/rate ns, so that rounding never adds up.
    carry: u64,
    free: Instant,
}

impl Serialiser {
    fn finish(&mut self, start: Instant, len: usize, outages: &mut Outages) -> Instant {
        if start > self.free {
            self.carry = 0;
        }
        let bit_nanos = (len as u64).saturating_mul(8_000_000_000).saturating_add(self.carry);
        let Some(nanos) = bit_nanos.checked_div(self.rate) else { return Instant::from_nanos(u64::MAX) };
        self.carry = bit_nanos % self.rate;
        self.free = outages.finish(start, Duration::from_nanos(nanos));
        self.free
    }
}

/// A wire whose bit rate changes, also while a packet is on it.
#[derive(Debug)]
pub(super) struct Changing {
    schedule: Schedule,
    /// Bit-nanoseconds that the last packet left unused, because it ended on a whole one, so that rounding never
    /// adds up.
    ahead: f64,
    free: Instant,
}

impl Changing {
    fn finish(&mut self, start: Instant, len: usize, outages: &mut Outages) -> Instant {
        let ahead = if start > self.free { 0.0 } else { self.ahead };
        let mut rest = (len as f64).mul_add(8e9, -ahead);
        let mut at = outages.released_at(start);
        // A schedule of zeros alone would be searched for ever.
        let end = Instant::from_nanos(u64::MAX);
        while at < end && self.schedule.max() > 0 {
            let piece = self.schedule.piece(at);
            let until = outages.held_from(at).map_or(piece.end, |held| held.min(piece.end));
            let span = piece.span_for(rest);
            if at + span <= until {
                self.ahead = piece.integral(span) - rest;
                self.free = at + span;
                return self.free;
            }
            rest -= piece.integral(until - at);
            at = outages.released_at(until);
        }
        end
    }
}

const NANOS_PER_MILLI: u64 = 1_000_000;

/// A recording that is played again and again.
#[derive(Debug)]
pub(super) struct Replay {
    trace: Arc<Trace>,
    /// When the present round began, in milliseconds.
    round: u64,
    /// The opportunity in use, by its place in the trace.
    index: usize,
    /// Bytes that it can still carry.
    left: usize,
}

impl Replay {
    fn new(trace: Arc<Trace>) -> Self {
        Self { trace, round: 0, index: 0, left: OPPORTUNITY_BYTES }
    }

    /// When the present opportunity is, in milliseconds.
    fn millis(&self) -> u64 {
        self.round.saturating_add(u64::from(self.trace.millis()[self.index]))
    }

    /// Goes to the next opportunity.
    fn advance(&mut self) {
        self.left = OPPORTUNITY_BYTES;
        self.index += 1;
        if self.index == self.trace.millis().len() {
            self.index = 0;
            self.round = self.round.saturating_add(self.trace.period_millis());
        }
    }

    /// Goes to the first opportunity at or after `millis`, unless the present one is.
    fn seek(&mut self, millis: u64) {
        if self.millis() >= millis {
            return;
        }
        self.left = OPPORTUNITY_BYTES;
        // The last opportunity of a round falls on the start of the next one: stop a millisecond short of it.
        let rounds = (millis - self.round).saturating_sub(1) / self.trace.period_millis();
        if rounds > 0 {
            self.round += rounds * self.trace.period_millis();
            self.index = 0;
        }
        let target = millis - self.round;
        self.index += self.trace.millis()[self.index..].partition_point(|at| u64::from(*at) < target);
    }

    fn finish(&mut self, start: Instant, len: usize, outages: &mut Outages) -> Instant {
        let (mut earliest, mut rest) = (start, len);
        loop {
            self.seek(earliest.as_nanos().div_ceil(NANOS_PER_MILLI));
            let at = Instant::from_millis(self.millis());
            let released = outages.released_at(at);
            if released > at {
                earliest = released;
                continue;
            }
            if self.left == 0 {
                self.advance();
                continue;
            }
            let taken = rest.min(self.left);
            self.left -= taken;
            rest -= taken;
            if rest == 0 {
                return at;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::outage::Outage;
    use braidcast_core::Rng;

    fn no_outages() -> Outages {
        Outages::new(&[], &Rng::from_seed(0))
    }

    fn replay(millis: &[u32]) -> Server {
        Server::new(&Rate::Trace(Arc::new(Trace::from_millis(millis.to_vec()).unwrap())))
    }

    #[test]
    fn rounding_never_adds_up() {
        for rate in [Rate::Bits(7_000_000_000), Rate::Schedule(Schedule::constant(7_000_000_000))] {
            let mut server = Server::new(&rate);
            let mut at = Instant::ZERO;
            for _ in 0..7_000 {
                at = server.finish(at, 125, &mut no_outages());
            }
            assert_eq!(at, Instant::from_millis(1));
        }
    }

    #[test]
    fn a_rate_of_zero_lets_nothing_through() {
        for rate in [Rate::Bits(0), Rate::Schedule(Schedule::constant(0))] {
            let end = Server::new(&rate).finish(Instant::ZERO, 1, &mut no_outages());
            assert_eq!(end, Instant::from_nanos(u64::MAX));
        }
    }

    #[test]
    fn small_packets_share_an_opportunity_and_large_ones_take_several() {
        let mut server = replay(&[0, 10, 10, 20]);
        let sizes = [700, 700, 700, 1500, 3000];
        let mut at = Instant::ZERO;
        let ends = sizes.map(|len| {
            at = server.finish(at, len, &mut no_outages());
            at.as_micros() / 1_000
        });
        // 0: 700+700+100; 10: 600+900; 10: 600+900; 20: 1500; 20 (next round): 600 and the rest is spare.
        assert_eq!(ends, [0, 0, 10, 10, 20]);
    }

    #[test]
    fn unused_opportunities_are_lost_and_the_trace_repeats() {
        let mut server = replay(&[0, 10, 20]);
        let mut end = |micros| server.finish(Instant::from_micros(micros), 1500, &mut no_outages()).as_micros();
        assert_eq!(end(5_000), 10_000);
        assert_eq!(end(10_001), 20_000);
        assert_eq!(end(20_000), 20_000);
        assert_eq!(end(20_000), 30_000);
        assert_eq!(end(1_000_000_001), 1_000_010_000);
        assert_eq!(end(2_000_000_000), 2_000_000_000);
        assert_eq!(end(2_000_000_000), 2_000_000_000);
        assert_eq!(end(2_000_000_000), 2_000_010_000);
    }

    #[test]
    fn opportunities_within_a_hold_are_lost() {
        let list = [Outage::window(Instant::from_millis(5), Instant::from_millis(15)).holding()];
        let mut outages = Outages::new(&list, &Rng::from_seed(0));
        assert_eq!(replay(&[0, 10, 20]).finish(Instant::from_millis(1), 10, &mut outages), Instant::from_millis(20));
    }
}
