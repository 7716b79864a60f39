use crate::RateSample;
use braidcast_core::Instant;
use core::time::Duration;

/// A measurement of a full path weighs as much as the time since the one before in this.
const MEMORY: Duration = Duration::from_secs(1);
/// And no more than this, however long the path was not full.
const MOST: f64 = 0.25;

/// What a path could carry, for people and for the choice of an encoder's rate: bytes of data per
/// second that it delivers when the application gives it enough. No decision of a transport rests
/// on it.
///
/// Rates of flights that the application did not fill say only that the path carries at least so much (the same rule as
/// draft-cheng-iccrg-delivery-rate-estimation-02 §3.3): they raise the estimate and never lower it.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Capacity {
    rate: Option<f64>,
    full_at: Option<Instant>,
}

impl Capacity {
    /// An acknowledgement said how fast the path delivered.
    pub fn on_sample(&mut self, now: Instant, sample: &RateSample) {
        let latest = sample.rate();
        let Some(rate) = self.rate else {
            self.full_at = (!sample.app_limited).then_some(now);
            self.rate = Some(latest);
            return;
        };
        if sample.app_limited {
            self.rate = Some(rate.max(latest));
            return;
        }
        // The first flight that fills the path says more than all before that did not.
        let weight = self.full_at.map_or(1.0, |at| (now.since(at).as_secs_f64() / MEMORY.as_secs_f64()).min(MOST));
        self.rate = Some(rate + (latest - rate) * weight);
        self.full_at = Some(now);
    }

    /// Bytes of data per second; `None` before anything was acknowledged.
    pub const fn rate(&self) -> Option<f64> {
        self.rate
    }

    /// When the path was last full, so that it was measured. `None`: never, and it may carry any amount more.
    pub const fn full_at(&self) -> Option<Instant> {
        self.full_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(rate: u64, app_limited: bool) -> RateSample {
        RateSample { delivered: rate / 10, interval: Duration::from_millis(100), prior_delivered: 0, app_limited }
    }

    #[test]
    fn what_the_application_did_not_fill_only_raises_it() {
        let mut capacity = Capacity::default();
        let at = Instant::from_millis;
        capacity.on_sample(at(100), &sample(50_000, true));
        capacity.on_sample(at(200), &sample(20_000, true));
        assert_eq!((capacity.rate(), capacity.full_at()), (Some(50_000.0), None));
        // The first full flight is believed at once, the next ones by and by.
        capacity.on_sample(at(300), &sample(200_000, false));
        assert_eq!((capacity.rate(), capacity.full_at()), (Some(200_000.0), Some(at(300))));
        capacity.on_sample(at(400), &sample(100_000, false));
        assert_eq!(capacity.rate(), Some(190_000.0));
        capacity.on_sample(at(60_000), &sample(10_000, true));
        assert_eq!((capacity.rate(), capacity.full_at()), (Some(190_000.0), Some(at(400))));
        capacity.on_sample(at(70_000), &sample(110_000, false));
        assert_eq!(capacity.rate(), Some(170_000.0));
    }
}
