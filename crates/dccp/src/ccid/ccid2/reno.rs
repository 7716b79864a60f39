use super::window::{Acked, Window};
use braidcast_core::Instant;

/// The window of CCID 2, as TCP's: halved by losses, a packet more for each round trip without (RFC 4341 §5).
#[derive(Debug)]
pub(in crate::ccid) struct Reno {
    pub(super) cwnd: u32,
    ssthresh: u32,
    /// Unmarked data packets acknowledged since the window last grew.
    credit: u32,
}

impl Window for Reno {
    fn new(initial: u32) -> Self {
        Self { cwnd: initial, ssthresh: u32::MAX, credit: 0 }
    }

    fn cwnd(&self) -> u32 {
        self.cwnd
    }

    fn ssthresh(&self) -> u32 {
        self.ssthresh
    }

    /// §5: slow start by half of what is acknowledged, then one packet for each window.
    fn on_ack(&mut self, _: Instant, ack: &Acked) {
        if !ack.may_grow {
            return;
        }
        self.credit += ack.packets;
        if self.cwnd < self.ssthresh {
            let most = u32::from(ack.ack_ratio / 2).max(1);
            let growth = (self.credit / 2).min(most).min(self.ssthresh - self.cwnd);
            self.credit = if growth == most { 0 } else { self.credit % 2 };
            self.cwnd += growth;
        } else if self.credit >= self.cwnd {
            self.credit -= self.cwnd;
            self.cwnd += 1;
        }
    }

    fn on_congestion(&mut self) {
        self.cwnd = (self.cwnd / 2).max(1);
        self.ssthresh = self.cwnd.max(2);
        self.credit = 0;
    }

    fn on_timeout(&mut self) {
        self.ssthresh = (self.cwnd / 2).max(2);
        self.cwnd = 1;
        self.credit = 0;
    }

    fn on_idle(&mut self, initial: u32) {
        self.cwnd = self.cwnd.min(initial);
        self.credit = 0;
    }

    fn leave_slow_start(&mut self) {
        self.ssthresh = self.ssthresh.min(self.cwnd.max(2));
    }

    fn shrink(&mut self) {
        self.cwnd = (self.cwnd - 1).max(1);
    }
}
