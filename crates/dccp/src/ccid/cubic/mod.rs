//! CCID "CUBIC": the window of RFC 9438 on the machinery of CCID 2. For long fat paths, which CCID 2 does not fill, as SBPN
//! §8.4.3 asks for. It is an experiment: its number is one of those that RFC 4340 §19.5 keeps for such, and
//! what RFC 4341 says of Ack Vectors, Ack Ratio, ECN, idleness and Data Dropped holds for it too.

use super::ccid2::{self, Acked, Window};
use braidcast_cc::Cubic;
use braidcast_core::Instant;
use core::time::Duration;

pub(super) use ccid2::Receiver;

/// The data sender.
pub(super) type Sender = ccid2::Sender<Cubic>;

impl Window for Cubic {
    fn new(initial: u32) -> Self {
        Self::new(initial)
    }

    fn cwnd(&self) -> u32 {
        self.cwnd()
    }

    fn ssthresh(&self) -> u32 {
        self.ssthresh()
    }

    fn on_rtt(&mut self, rtt: Duration, round_is_over: bool) {
        self.on_rtt(rtt, round_is_over);
    }

    fn on_ack(&mut self, now: Instant, ack: &Acked) {
        self.on_ack(now, ack.packets, ack.may_grow, ack.srtt);
    }

    fn on_congestion(&mut self) {
        self.on_congestion();
    }

    fn on_timeout(&mut self) {
        self.on_timeout();
    }

    fn on_idle(&mut self, initial: u32) {
        self.on_idle(initial);
    }

    fn leave_slow_start(&mut self) {
        self.leave_slow_start();
    }

    fn shrink(&mut self) {
        self.shrink();
    }
}
