use crate::number::Order;

/// `true` if a path carries packets that say ECT. Some firewalls drop them, which looks like a path
/// that stopped answering, so a timeout while they are under way casts doubt on them (RFC 9000
/// §13.4.2, appendix A.4; RFC 3168 §6.1.1.1).
///
/// After it, packets say Not-ECT until one of them is acknowledged, so that an outage costs one trial, however long it
/// lasts; then ECT is tried again, [`Ect::TRIALS`] times in a row without one such packet acknowledged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ect {
    on: bool,
    /// The place in the send order from which on that is so.
    since: Order,
    /// Trials that failed since something that said ECT was acknowledged.
    failed: u8,
}

impl Default for Ect {
    fn default() -> Self {
        Self { on: true, since: Order::FIRST, failed: 0 }
    }
}

impl Ect {
    /// As many timeouts end the trial in RFC 9000 appendix A.4.
    const TRIALS: u8 = 3;

    /// Returns `true` if packets that leave now may say ECT.
    pub(crate) const fn is_on(&self) -> bool {
        self.on
    }

    /// Nothing was acknowledged until a timeout; `next` is the place in the order that the next chunk gets.
    pub(crate) fn on_timeout(&mut self, next: Order) {
        if self.on && next > self.since {
            self.failed += 1;
            self.on = false;
            self.since = next;
        }
    }

    /// What went as number `order` over the path has arrived.
    pub(crate) fn on_acked(&mut self, order: Order, next: Order) {
        if order < self.since {
            return; // It may have said either.
        }
        if self.on {
            self.failed = 0;
        } else if self.failed < Self::TRIALS {
            self.on = true;
            self.since = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Ect {
        fn timeout(&mut self, next: u64) {
            self.on_timeout(Order::new(next));
        }

        fn acked(&mut self, order: u64, next: u64) {
            self.on_acked(Order::new(order), Order::new(next));
        }
    }

    #[test]
    fn three_trials_in_a_row_that_time_out_are_the_last() {
        let mut ect = Ect::default();
        for trial in 1..=3 {
            let sent = trial * 10;
            assert!(ect.is_on());
            ect.timeout(sent);
            assert!(!ect.is_on());
            ect.timeout(sent + 1); // The path is slow as well: no trial of ECT.
            ect.acked(sent - 1, sent + 2);
            assert!(!ect.is_on(), "sent before the timeout");
            ect.acked(sent, sent + 2);
        }
        assert!(!ect.is_on());
        ect.acked(99, 100);
        assert!(!ect.is_on(), "for good");
    }

    #[test]
    fn what_arrives_with_ect_makes_good_for_all_outages_before() {
        let mut ect = Ect::default();
        for outage in 1..100 {
            ect.timeout(outage * 10);
            ect.acked(outage * 10, outage * 10 + 1);
            ect.acked(outage * 10 + 1, outage * 10 + 2);
            assert!(ect.is_on());
        }
    }

    #[test]
    fn a_timeout_of_what_said_not_ect_is_no_trial() {
        let mut ect = Ect::default();
        ect.timeout(0);
        assert!(ect.is_on(), "nothing was sent");
        ect.timeout(5);
        ect.acked(6, 8);
        ect.timeout(8);
        assert!(ect.is_on(), "only what was sent before is out");
    }
}
