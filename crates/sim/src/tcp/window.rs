/// The congestion window of Reno (RFC 5681), in bytes of payload.
#[derive(Clone, Debug)]
pub struct RenoWindow {
    mss: u64,
    cwnd: u64,
    ssthresh: u64,
}

impl RenoWindow {
    /// A window of `initial` segments of `mss` bytes, in slow start.
    pub fn new(mss: u64, initial: u64) -> Self {
        Self { mss, cwnd: mss * initial.max(1), ssthresh: u64::MAX }
    }

    /// Bytes that may be in the network.
    pub const fn cwnd(&self) -> u64 {
        self.cwnd
    }

    /// Slow start threshold; `u64::MAX` until the first loss.
    pub const fn ssthresh(&self) -> u64 {
        self.ssthresh
    }

    /// An acknowledgement of `acked` new bytes: up to a segment more in slow start (RFC 5681 eq. 2), else a segment
    /// for a window of acknowledgements (eq. 3).
    pub fn on_ack(&mut self, acked: u64) {
        self.cwnd +=
            if self.cwnd < self.ssthresh { acked.min(self.mss) } else { (self.mss * self.mss / self.cwnd).max(1) };
    }

    /// Loss or a congestion mark, with `flight` bytes not acknowledged: half of it is left, two segments at least (RFC 5681
    /// eq. 4, RFC 3168 §6.1.2).
    pub fn on_congestion(&mut self, flight: u64) {
        self.ssthresh = (flight / 2).max(2 * self.mss);
        self.cwnd = self.ssthresh;
    }

    /// The retransmission timer expired with `flight` bytes not acknowledged: back to one segment. When it expires again for
    /// the same data, the threshold stays (RFC 5681 §3.1).
    pub fn on_timeout(&mut self, flight: u64, again: bool) {
        if !again {
            self.ssthresh = (flight / 2).max(2 * self.mss);
        }
        self.cwnd = self.mss;
    }

    /// The SYN was lost: begins with one segment (RFC 5681 §3.1).
    pub fn on_syn_lost(&mut self) {
        self.cwnd = self.mss;
    }

    /// Nothing was sent for a whole RTO: back to `initial` segments (RFC 5681 §4.1).
    pub fn on_idle(&mut self, initial: u64) {
        self.cwnd = self.cwnd.min(self.mss * initial.max(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behaviour_of_reno() {
        let mut window = RenoWindow::new(1000, 2);
        (0..8).for_each(|_| window.on_ack(2000));
        assert_eq!(window.cwnd(), 10_000, "a segment for an acknowledgement, however much it covers");
        window.on_congestion(10_000);
        assert_eq!((window.cwnd(), window.ssthresh()), (5000, 5000));
        (0..5).for_each(|_| window.on_ack(1000));
        assert_eq!(window.cwnd(), 5000 + 200 + 192 + 185 + 179 + 173, "about a segment for a window");
        window.on_timeout(5000, false);
        window.on_timeout(1000, true);
        assert_eq!((window.cwnd(), window.ssthresh()), (1000, 2500));
        window.on_congestion(1000);
        assert_eq!(window.cwnd(), 2000, "never below two segments");
    }
}
