use crate::ccid::{Ccid, CcidReport};

/// A call, or another flow of equal messages, that would go over a connection.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Call {
    /// Bytes in each message.
    pub payload: usize,
    /// Messages per second.
    pub rate: f64,
    /// Loss event rate from which on no further call is taken, 0 to 1.
    pub max_loss: f64,
}

/// Packets per second that CCID 4 lets out at most: one each 10 ms (RFC 5622 §5).
const CCID_4_PACKETS: f64 = 100.0;

impl Call {
    /// How many more such calls fit besides `carried` ones that there are (THESIS §4.9): none while losses are too many,
    /// else as many as the allowed rate carries. `None` where congestion control has no rate.
    ///
    /// In slow start the allowed rate is no more than twice what arrives, so it says what may be added now and asked
    /// again about a round trip later.
    pub fn more_that_fit(&self, sending: Ccid, report: &CcidReport, carried: u32) -> Option<u32> {
        let allowed = report.allowed_rate?;
        if report.loss_event_rate.is_some_and(|p| p > self.max_loss) {
            return Some(0);
        }
        let by_rate = allowed / (self.payload.max(1) as f64 * self.rate);
        let by_packets = if sending == Ccid::Four { CCID_4_PACKETS / self.rate } else { f64::INFINITY };
        let most = by_rate.min(by_packets);
        // Also where `rate` is no sensible number.
        Some((if most >= 0.0 { most as u32 } else { 0 }).saturating_sub(carried))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// G.711 in packets of 20 ms.
    const CALL: Call = Call { payload: 160, rate: 50.0, max_loss: 0.02 };

    #[test]
    fn calls_fit_as_far_as_rate_losses_and_packets_allow() {
        let report =
            |rate, p| CcidReport { allowed_rate: Some(rate), loss_event_rate: Some(p), ..CcidReport::default() };
        let three = |rate, p, carried| CALL.more_that_fit(Ccid::Three, &report(rate, p), carried);
        assert_eq!(
            [three(39_999.0, 0.0, 0), three(40_000.0, 0.01, 2), three(8000.0, 0.0, 9)].map(Option::unwrap),
            [4, 3, 0]
        );
        assert_eq!(three(40_000.0, 0.021, 2), Some(0), "too many losses");
        assert_eq!(CALL.more_that_fit(Ccid::Four, &report(1e6, 0.0), 0), Some(2), "a packet each 10 ms");
        assert_eq!(CALL.more_that_fit(Ccid::Two, &CcidReport::default(), 0), None);
    }
}
