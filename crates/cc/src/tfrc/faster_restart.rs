use braidcast_core::Instant;
use core::time::Duration;

/// TFRC Faster Restart: after an idle or data-limited time, the rate may quadruple each round trip
/// until it is where the path is known to have carried it (Kohler, Floyd and Sathiaseelan,
/// draft-ietf-dccp-tfrc-faster-restart-06 §3; SBPN §6.2).
#[derive(Clone, Debug, Default)]
pub(super) struct FasterRestart {
    /// Receive rate of the last active time (X_active_recv), and when it was reported.
    active: Option<(f64, Instant)>,
}

impl FasterRestart {
    /// Growth per round trip below the known rate.
    pub(super) const FACTOR: f64 = 4.0;
    /// The known rate holds for this time (DecayTime) ...
    const FRESH: Duration = Duration::from_secs(120);
    /// ... and fades to nothing by then, three times as long. The draft's text says so twice; its formula divides by
    /// two minutes where only four give a straight line from one to the other.
    const STALE: Duration = Duration::from_secs(360);

    /// A report of `rate`, and whether of a loss or mark. Below the known rate, that makes half of
    /// `rate` the known one; at or above it, nothing was learnt (§3.1, "Update X_active_recv and
    /// X_fast_max").
    pub(super) fn on_feedback(&mut self, now: Instant, rate: f64, loss: bool) {
        let known = self.limit(now);
        if !loss && rate >= known {
            self.active = Some((rate, now));
        } else if loss && rate < known {
            self.active = Some((rate / 2.0, now));
        }
    }

    /// Up to which rate quadrupling is safe (X_fast_max), in bytes per second; 0 if nothing is known.
    pub(super) fn limit(&self, now: Instant) -> f64 {
        let Some((rate, at)) = self.active else { return 0.0 };
        let faded = (now - at).saturating_sub(Self::FRESH).as_secs_f64() / (Self::STALE - Self::FRESH).as_secs_f64();
        rate * (1.0 - faded).max(0.0)
    }

    /// W of the rate to which idling may lower the sender, in bytes: twice the initial one (§3.2). THESIS
    /// §4.8 describes the draft of 2006, with half of this for full packets.
    pub(super) fn recover_window(s: f64) -> f64 {
        (8.0 * s).min((4.0 * s).max(8760.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_known_rate_fades_and_a_loss_halves_it() {
        let at = |secs: u64| Instant::from_millis(1000 * secs);
        let mut restart = FasterRestart::default();
        assert_eq!(restart.limit(at(0)), 0.0);
        restart.on_feedback(at(1), 8000.0, false);
        restart.on_feedback(at(2), 100.0, false);
        assert_eq!(restart.limit(at(121)), 8000.0);
        assert_eq!(restart.limit(at(241)), 4000.0);
        assert_eq!(restart.limit(at(361)), 0.0);
        restart.on_feedback(at(3), 9000.0, true);
        assert_eq!(restart.limit(at(4)), 8000.0, "a loss above what is known says nothing against it");
        restart.on_feedback(at(5), 6000.0, true);
        assert_eq!(restart.limit(at(6)), 3000.0);
    }

    #[test]
    fn twice_the_initial_window() {
        assert_eq!(
            [160.0, 1000.0, 1460.0, 3000.0].map(FasterRestart::recover_window),
            [1280.0, 8000.0, 8760.0, 12000.0]
        );
    }
}
