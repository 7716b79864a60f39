use braidcast_core::Instant;
use core::time::Duration;

/// TFRC Faster Restart: after an idle or data-limited time, the rate may quadruple each round trip until it is where
/// the path is known to have carried it (Kohler, Floyd and Sathiaseelan, draft-ietf-dccp-tfrc-faster-restart; SBPN
/// §6.2).
///
/// Written from THESIS §4.8 and SBPN's account, without the draft's text at hand; the times over which the known rate
/// fades want checking against it.
#[derive(Clone, Debug, Default)]
pub(super) struct FasterRestart {
    /// Receive rate of the last active time (X_active_recv), and when it was reported.
    active: Option<(f64, Instant)>,
}

impl FasterRestart {
    /// Growth per round trip below the known rate.
    pub(super) const FACTOR: f64 = 4.0;
    /// The known rate holds for so long ...
    const FRESH: Duration = Duration::from_secs(600);
    /// ... and fades to nothing by then.
    const STALE: Duration = Duration::from_secs(1800);

    /// A report of `rate`, and whether of a new loss event: then half of it is taken for safe.
    pub(super) fn on_feedback(&mut self, now: Instant, rate: f64, loss: bool) {
        if loss {
            self.active = Some((rate / 2.0, now));
        } else if rate >= self.limit(now) {
            self.active = Some((rate, now));
        }
    }

    /// Up to which rate quadrupling is safe (X_fast_max), in bytes per second; 0 if nothing is known.
    pub(super) fn limit(&self, now: Instant) -> f64 {
        let Some((rate, at)) = self.active else { return 0.0 };
        let faded = (now - at).saturating_sub(Self::FRESH).as_secs_f64() / (Self::STALE - Self::FRESH).as_secs_f64();
        rate * (1.0 - faded).max(0.0)
    }

    /// W of the rate to which idling may lower the sender, in bytes: eight small packets, four full ones (THESIS §4.8).
    pub(super) fn recover_window(s: f64) -> f64 {
        (8.0 * s).min((4.0 * s).max(4380.0))
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
        assert_eq!(restart.limit(at(601)), 8000.0);
        assert_eq!(restart.limit(at(1201)), 4000.0);
        assert_eq!(restart.limit(at(1801)), 0.0);
        restart.on_feedback(at(3), 6000.0, true);
        assert_eq!(restart.limit(at(4)), 3000.0);
    }

    #[test]
    fn eight_small_packets_or_four_full_ones() {
        assert_eq!([160.0, 1000.0, 1460.0].map(FasterRestart::recover_window), [1280.0, 4380.0, 5840.0]);
    }
}
