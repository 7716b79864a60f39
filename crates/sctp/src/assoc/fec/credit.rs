use braidcast_core::Instant;
use core::time::Duration;

/// When redundancy is due that is not sent in rounds: each chunk owes some, and what is owed is
/// paid when a burst is over. A repair in the middle of a frame covers what went before it only,
/// one behind it covers all of it.
#[derive(Debug, Default)]
pub(super) struct Credit {
    /// Repairs that are owed; below zero if one was sent in advance.
    owed: f64,
    /// When the first chunk was sent that no repair covers.
    since: Option<Instant>,
    /// A burst that lasts longer than this is paid for in parts.
    pub(super) hold: Duration,
}

impl Credit {
    /// A chunk that was sent at `now` owes so many repairs.
    pub(super) fn on_source(&mut self, now: Instant, owed: f64) {
        self.owed += owed;
        self.since.get_or_insert(now);
    }

    /// How many repairs are due. In a `pause` what is owed is rounded up, so that the last chunks
    /// of a burst are covered too.
    pub(super) fn take(&mut self, now: Instant, pause: bool) -> usize {
        let Some(since) = self.since else { return 0 };
        let due = if pause {
            self.owed.ceil()
        } else if now - since >= self.hold {
            self.owed.floor()
        } else {
            0.0
        };
        if due < 1.0 {
            return 0;
        }
        self.owed -= due;
        self.since = None;
        due as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOLD: Duration = Duration::from_millis(50);

    #[test]
    fn a_burst_is_paid_for_at_its_end_and_a_long_one_in_parts() {
        let mut credit = Credit { hold: HOLD, ..Credit::default() };
        let at = Instant::from_millis;
        let mut due = Vec::new();
        for n in 0..40 {
            credit.on_source(at(2 * n), 0.125);
            due.push(credit.take(at(2 * n), n == 39));
        }
        assert_eq!(due.iter().sum::<usize>(), 5);
        assert_eq!((due[25], due[39]), (3, 2));
    }

    #[test]
    fn what_was_paid_in_advance_is_owed_no_more() {
        let mut credit = Credit { hold: HOLD, ..Credit::default() };
        let paid: usize = (0..1000)
            .map(|n| {
                credit.on_source(Instant::from_millis(40 * n), 1.0 / 32.0);
                credit.take(Instant::from_millis(40 * n), true)
            })
            .sum();
        assert_eq!(paid, 32, "of 31.25");
        assert_eq!(credit.take(Instant::from_millis(40_000), true), 0, "nothing new");
    }

    #[test]
    fn what_is_owed_nothing_is_paid_nothing() {
        let mut credit = Credit::default();
        let paid = (0..1000).map(|n| {
            credit.on_source(Instant::from_millis(n), 0.0);
            credit.take(Instant::from_millis(n), n % 2 == 0)
        });
        assert_eq!(paid.sum::<usize>(), 0);
    }
}
