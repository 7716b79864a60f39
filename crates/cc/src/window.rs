use crate::{Decrease, Growth};
use core::time::Duration;

/// The congestion window of one path, Reno with appropriate byte counting, as RFC 9260 §7.2 has it.
///
/// All sizes are bytes of payload plus chunk headers, whatever the caller counts as in flight.
#[derive(Clone, Debug)]
pub struct Window {
    initial: usize,
    cwnd: usize,
    ssthresh: usize,
    partial_bytes_acked: usize,
    /// What a timeout took away, should it prove spurious.
    before_timeout: Option<(usize, usize)>,
    /// Bytes that got through since the last loss, and between the two before it.
    delivered: (u64, u64),
}

impl Window {
    /// A window in slow start. It begins with `initial` bytes, or `None`: with `min(4·MTU, max(2·MTU, 4404))` (RFC 9260
    /// §7.2.1).
    pub fn new(mtu: usize, initial: Option<usize>) -> Self {
        let initial = initial.unwrap_or_else(|| (4 * mtu).min((2 * mtu).max(4404)));
        Self {
            initial,
            cwnd: initial,
            ssthresh: usize::MAX,
            partial_bytes_acked: 0,
            before_timeout: None,
            delivered: (0, 0),
        }
    }

    /// Slow start ends at `ssthresh` bytes, even before the first loss.
    pub const fn limit_slow_start(&mut self, ssthresh: usize) {
        self.ssthresh = ssthresh;
    }

    /// Bytes that may be in flight.
    pub const fn cwnd(&self) -> usize {
        self.cwnd
    }

    /// Whether less may be in flight than at the beginning.
    pub const fn is_below_initial(&self) -> bool {
        self.cwnd < self.initial
    }

    /// Slow start threshold; `usize::MAX` until the first loss.
    pub const fn ssthresh(&self) -> usize {
        self.ssthresh
    }

    /// Whether the window grows exponentially.
    pub const fn in_slow_start(&self) -> bool {
        self.cwnd <= self.ssthresh
    }

    /// Bytes that got through since the last loss or between the two before it, whichever is more: how good the path is
    /// (`l_r` of OLIA, draft-khalili-mptcp-congestion-control-05).
    pub fn between_losses(&self) -> u64 {
        self.delivered.0.max(self.delivered.1)
    }

    /// `bytes` were newly acknowledged, whether or not the window may grow.
    pub const fn on_delivered(&mut self, bytes: usize) {
        self.delivered.0 = self.delivered.0.saturating_add(bytes as u64);
    }

    /// `acked` bytes were newly acknowledged outside recovery.
    ///
    /// `was_full`: as much was in flight as the window allowed before they were; a window that the application
    /// does not fill does not grow. Slow start adds at most one `mtu` (L = 1, RFC 9260 §7.2.1); congestion
    /// avoidance one `mtu` for each window (§7.2.2); both times what a coupled rule makes of it.
    pub fn on_ack(&mut self, acked: usize, was_full: bool, mtu: usize, growth: Growth) {
        if self.cwnd < self.ssthresh || (self.cwnd == self.ssthresh && growth.slow_start_at_threshold) {
            if was_full {
                self.cwnd = self.cwnd.saturating_add((acked.min(mtu) as f64 * growth.slow_start).ceil() as usize);
            }
            return;
        }
        self.partial_bytes_acked = self.partial_bytes_acked.saturating_add(acked);
        if self.partial_bytes_acked >= self.cwnd {
            if was_full {
                self.partial_bytes_acked -= self.cwnd;
                let step = (growth.avoidance * mtu as f64).ceil() as isize;
                // A rule that moves the window elsewhere leaves a packet, and slow start does not take it back.
                self.cwnd = self.cwnd.saturating_add_signed(step).max(self.cwnd.min(mtu));
                self.ssthresh = self.ssthresh.min(self.cwnd.saturating_sub(1));
            } else {
                self.partial_bytes_acked = self.cwnd;
            }
        }
    }

    /// Nothing is in flight any more: partial credit lapses (RFC 9260 §7.2.2).
    pub fn on_all_acked(&mut self) {
        self.partial_bytes_acked = 0;
    }

    /// A loss was detected by acknowledgements: keeps what `decrease` says, half and four packets in RFC 9260 §7.2.3
    /// ([`LossResponse`](crate::LossResponse), [`Congestion`](crate::Congestion)). Call once for each round of losses.
    pub fn on_loss(&mut self, mtu: usize, decrease: Decrease) {
        self.before_timeout = None;
        self.lower_threshold(mtu, decrease);
        self.cwnd = self.ssthresh;
    }

    /// The retransmission timer expired: back to one packet (RFC 9260 §7.2.3).
    pub fn on_timeout(&mut self, mtu: usize, decrease: Decrease) {
        self.before_timeout.get_or_insert((self.cwnd, self.ssthresh));
        self.lower_threshold(mtu, decrease);
        self.cwnd = mtu;
    }

    fn lower_threshold(&mut self, mtu: usize, decrease: Decrease) {
        self.ssthresh = ((self.cwnd as f64 * decrease.kept) as usize).max(decrease.floor * mtu);
        self.partial_bytes_acked = 0;
        self.delivered = (0, self.delivered.0);
    }

    /// The timeout was spurious: the path stood still for a while and lost nothing. Gives back what it took (RFC 4015 §3).
    pub fn undo_timeout(&mut self) {
        if let Some((cwnd, ssthresh)) = self.before_timeout.take() {
            self.cwnd = self.cwnd.max(cwnd);
            self.ssthresh = self.ssthresh.max(ssthresh);
        }
    }

    /// Packets stood in a queue for `queueing`, which is more than `limit`, in a round trip that takes `base` without: shrinks
    /// to what would have kept the limit at the rate of that round, `cwnd / (base + queueing)`.
    pub fn on_queueing(&mut self, queueing: Duration, limit: Duration, base: Duration, mtu: usize) {
        let share = (base + limit).as_secs_f64() / (base + queueing).as_secs_f64();
        let target = (self.cwnd as f64 * share) as usize;
        self.cwnd = self.cwnd.min(target.max(4 * mtu));
        self.ssthresh = self.cwnd;
        self.partial_bytes_acked = 0;
    }

    /// The path carried nothing, and did not answer: what it can carry now is as unknown as at the beginning. Back to the window that
    /// it had then, at most (RFC 9260 has no rule; the restart window of RFC 5681 §4.1, one of the two choices of RFC 7829 app. B).
    pub fn on_silence(&mut self, mtu: usize) {
        self.cwnd = self.cwnd.min(self.initial.max(4 * mtu));
    }

    /// Nothing was sent for a whole RTO: the window loses its warranty by half, down to the initial one or
    /// four packets (RFC 9260 §7.2.1).
    pub fn on_idle(&mut self, mtu: usize) {
        let floor = self.initial.max(4 * mtu);
        self.cwnd = self.cwnd.min((self.cwnd / 2).max(floor));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MTU: usize = 1200;
    const HALF: Decrease = Decrease::alone(0.5);

    #[test]
    fn starts_with_4404_bytes_and_doubles_each_round_trip() {
        let mut w = Window::new(MTU, None);
        assert_eq!(w.cwnd(), 4404);
        let packets = w.cwnd() / MTU;
        (0..packets).for_each(|_| w.on_ack(MTU, true, MTU, Growth::default()));
        assert_eq!(w.cwnd(), 4404 + packets * MTU);
        w.on_ack(10 * MTU, true, MTU, Growth::default());
        assert_eq!(w.cwnd(), 4404 + (packets + 1) * MTU, "one MTU at most for one acknowledgement");
    }

    #[test]
    fn avoidance_adds_one_packet_for_each_window() {
        let mut w = Window::new(MTU, None);
        (0..100).for_each(|_| w.on_ack(MTU, true, MTU, Growth::default()));
        w.on_loss(MTU, HALF);
        let start = w.cwnd();
        assert_eq!(w.ssthresh(), start);
        w.on_ack(1, true, MTU, Growth::default()); // At the threshold RFC 9260 still counts as slow start.
        let start = start + 1;
        assert_eq!(w.cwnd(), start);
        let mut acked = 0;
        while w.cwnd() == start {
            w.on_ack(MTU, true, MTU, Growth::default());
            acked += MTU;
        }
        assert!(acked >= start && acked < start + MTU);
        assert_eq!(w.cwnd(), start + MTU);
    }

    #[test]
    fn a_window_that_is_not_filled_does_not_grow() {
        let mut w = Window::new(MTU, None);
        w.on_ack(MTU, false, MTU, Growth::default());
        assert_eq!(w.cwnd(), 4404);
        w.on_loss(MTU, HALF);
        (0..50).for_each(|_| w.on_ack(MTU, false, MTU, Growth::default()));
        assert_eq!(w.cwnd(), 4 * MTU);
    }

    #[test]
    fn a_standing_queue_shrinks_the_window_to_what_the_limit_allows() {
        let mut w = Window::new(MTU, None);
        (0..40).for_each(|_| w.on_ack(MTU, true, MTU, Growth::default()));
        let before = w.cwnd();
        let ms = Duration::from_millis;
        w.on_queueing(ms(160), ms(60), ms(40), MTU);
        assert_eq!(w.cwnd(), before / 2);
        w.on_queueing(ms(5000), ms(60), ms(40), MTU);
        assert_eq!((w.cwnd(), w.ssthresh()), (4 * MTU, 4 * MTU), "never below four packets");
    }

    #[test]
    fn silence_leaves_what_a_path_begins_with() {
        let mut w = Window::new(MTU, Some(10 * MTU));
        w.on_silence(MTU);
        assert_eq!((w.cwnd(), w.ssthresh()), (10 * MTU, usize::MAX));
        (0..20).for_each(|_| w.on_ack(MTU, true, MTU, Growth::default()));
        w.on_silence(MTU);
        assert_eq!(w.cwnd(), 10 * MTU);
        w.on_timeout(MTU, HALF);
        w.on_silence(MTU);
        assert_eq!(w.cwnd(), MTU, "silence never raises a window");
    }

    #[test]
    fn a_timeout_leaves_one_packet_and_idleness_half() {
        let mut w = Window::new(MTU, None);
        (0..20).for_each(|_| w.on_ack(MTU, true, MTU, Growth::default()));
        let before = w.cwnd();
        w.on_idle(MTU);
        assert_eq!(w.cwnd(), before / 2);
        w.on_timeout(MTU, HALF);
        assert_eq!((w.cwnd(), w.ssthresh()), (MTU, (before / 4).max(4 * MTU)));
        w.on_idle(MTU);
        assert_eq!(w.cwnd(), MTU, "idleness never raises a window");
        w.on_timeout(MTU, HALF);
        w.undo_timeout();
        assert_eq!((w.cwnd(), w.ssthresh()), (before / 2, usize::MAX), "as before the first of the timeouts");
        w.undo_timeout();
        assert_eq!(w.cwnd(), before / 2, "only once");
    }

    #[test]
    fn a_coupled_rule_scales_growth_and_may_shrink_down_to_a_packet() {
        let mut w = Window::new(MTU, Some(2 * MTU));
        w.on_ack(MTU, true, MTU, Growth { slow_start: 0.25, ..Growth::default() });
        assert_eq!(w.cwnd(), 2 * MTU + MTU / 4);
        w.on_loss(MTU, Decrease { kept: 0.0, floor: 1 });
        assert_eq!((w.cwnd(), w.ssthresh()), (MTU, MTU));
        let growth = |avoidance| Growth { avoidance, slow_start_at_threshold: false, ..Growth::default() };
        w.on_ack(2 * MTU, true, MTU, growth(0.5));
        assert_eq!(w.cwnd(), MTU + MTU / 2);
        (0..9).for_each(|_| w.on_ack(2 * MTU, true, MTU, growth(-0.3)));
        assert_eq!(w.cwnd(), MTU);
    }

    #[test]
    fn what_got_through_between_losses_is_remembered_once() {
        let mut w = Window::new(MTU, None);
        w.on_delivered(700);
        w.on_loss(MTU, HALF);
        w.on_delivered(300);
        assert_eq!(w.between_losses(), 700);
        w.on_timeout(MTU, HALF);
        assert_eq!(w.between_losses(), 300);
    }
}
