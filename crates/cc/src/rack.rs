use braidcast_core::Instant;
use core::time::Duration;

/// Time-based loss detection of one path, in the spirit of RACK (RFC 8985 §6).
///
/// A packet counts as lost when one sent later *on the same path* has arrived and the packet itself
/// is overdue by more than a reordering window. Packets of other paths do not enter, so reordering
/// between paths never looks like loss.
#[derive(Clone, Debug, Default)]
pub struct Rack {
    /// Send time of the most recently sent packet that was delivered, and its place in the path's send order.
    newest: Option<(Instant, u64)>,
    /// Round-trip time of that packet.
    rtt: Duration,
    /// Quarters of the minimum RTT that reordering may take; grows with each spurious retransmission.
    quarters: u32,
    /// How many loss recoveries in a row saw no spurious retransmission.
    clean_recoveries: u32,
}

impl Rack {
    /// After so many recoveries without a spurious retransmission the window shrinks back (RFC 8985 §6.2 step 4).
    const PERSIST: u32 = 16;

    /// A packet with this place in the path's send order, sent at `sent`, was newly acknowledged at `now`.
    ///
    /// `ambiguous`: it was sent more than once; then an acknowledgement sooner than `min_rtt` belongs to an
    /// earlier copy and says nothing (RFC 8985 §6.2 step 1).
    pub fn on_delivered(
        &mut self,
        now: Instant,
        sent: Instant,
        order: u64,
        ambiguous: bool,
        min_rtt: Option<Duration>,
    ) {
        let rtt = now - sent;
        if ambiguous && min_rtt.is_some_and(|min| rtt < min) {
            return;
        }
        if self.newest.is_none_or(|newest| (sent, order) > newest) {
            self.newest = Some((sent, order));
            self.rtt = rtt;
        }
    }

    /// When the packet sent at `sent` as number `order` is to be taken for lost; `None` while nothing sent after
    /// it has arrived.
    pub fn lost_at(
        &self,
        sent: Instant,
        order: u64,
        min_rtt: Option<Duration>,
        srtt: Option<Duration>,
    ) -> Option<Instant> {
        let newest = self.newest?;
        ((sent, order) < newest).then(|| sent + self.rtt + self.reordering_window(min_rtt, srtt))
    }

    /// How long a packet may be overtaken before it counts as lost: a quarter of the minimum RTT, more after
    /// spurious retransmissions, the smoothed RTT at most (RFC 8985 §6.2 step 4).
    pub fn reordering_window(&self, min_rtt: Option<Duration>, srtt: Option<Duration>) -> Duration {
        let quarter = min_rtt.unwrap_or_default() / 4;
        (quarter * (self.quarters + 1)).min(srtt.unwrap_or(Duration::MAX))
    }

    /// The peer reported a duplicate: a retransmission was not needed.
    pub fn on_spurious(&mut self) {
        self.quarters = (self.quarters + 1).min(32);
        self.clean_recoveries = 0;
    }

    /// A recovery ended.
    pub fn on_recovered(&mut self) {
        self.clean_recoveries += 1;
        if self.clean_recoveries >= Self::PERSIST {
            self.quarters = 0;
            self.clean_recoveries = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    const fn at(n: u64) -> Instant {
        Instant::from_millis(n)
    }

    #[test]
    fn a_packet_is_lost_a_quarter_rtt_after_a_later_one_arrived() {
        let mut rack = Rack::default();
        assert_eq!(rack.lost_at(at(0), 0, Some(ms(40)), None), None);
        rack.on_delivered(at(50), at(10), 1, false, Some(ms(40)));
        assert_eq!(rack.lost_at(at(0), 0, Some(ms(40)), Some(ms(40))), Some(at(50)));
        assert_eq!(rack.lost_at(at(10), 0, Some(ms(40)), Some(ms(40))), Some(at(60)), "same burst: order decides");
        assert_eq!(rack.lost_at(at(11), 2, Some(ms(40)), Some(ms(40))), None);
    }

    #[test]
    fn the_acknowledgement_of_an_earlier_copy_says_nothing() {
        let mut rack = Rack::default();
        rack.on_delivered(at(50), at(45), 7, true, Some(ms(40)));
        assert_eq!(rack.lost_at(at(0), 0, Some(ms(40)), None), None);
    }

    #[test]
    fn spurious_retransmissions_widen_the_window_until_it_proves_needless() {
        let mut rack = Rack::default();
        let window = |rack: &Rack| rack.reordering_window(Some(ms(40)), Some(ms(45)));
        assert_eq!(window(&rack), ms(10));
        rack.on_spurious();
        assert_eq!(window(&rack), ms(20));
        (0..9).for_each(|_| rack.on_spurious());
        assert_eq!(window(&rack), ms(45));
        (0..Rack::PERSIST).for_each(|_| rack.on_recovered());
        assert_eq!(window(&rack), ms(10));
    }
}
