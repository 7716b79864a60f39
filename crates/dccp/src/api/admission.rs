use crate::ccid::{Ccid, CcidReport};
use braidcast_core::Instant;
use core::time::Duration;
use std::collections::BTreeMap;

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

/// Which calls are carried: one that begins is refused while none more fits besides those that there are (THESIS §4.9).
///
/// At most one call a second is let in: the allowed rate is up to twice what arrives, and only what a call does to it tells whether the next
/// one fits. A call is known by a key of the caller's. It is over, and its place free, after ten seconds without a datagram; one that was
/// refused and goes on is asked about again each second. Memory: the calls that fit, and 1,024 that were refused.
#[derive(Clone, Debug)]
pub struct Admission<K> {
    call: Call,
    /// Calls that are carried, and when each sent last.
    carried: BTreeMap<K, Instant>,
    /// Calls that were refused, and when they are asked about again.
    refused: BTreeMap<K, Instant>,
    /// No call is let in before.
    next: Instant,
}

/// What becomes of a datagram of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Its call is carried.
    Carried,
    /// Its call was refused before, and still is.
    Refused,
    /// Its call is refused from now on.
    NewlyRefused,
}

impl<K: Ord> Admission<K> {
    /// A call that sends nothing for so long is over.
    const OVER: Duration = Duration::from_secs(10);
    /// After one that was let in the next one waits so long, and one that was refused is asked about again.
    const AGAIN: Duration = Duration::from_secs(1);
    /// Refused calls that are remembered.
    const MAX_REFUSED: usize = 1024;

    /// Nobody calls yet; all calls are like `call`.
    pub const fn new(call: Call) -> Self {
        Self { call, carried: BTreeMap::new(), refused: BTreeMap::new(), next: Instant::ZERO }
    }

    /// A datagram of the call `key`. Where that is not carried yet, `more` says how many calls fit besides so many that are
    /// ([`Call::more_that_fit`]); `None`, where nobody knows, refuses none.
    pub fn take(&mut self, now: Instant, key: K, more: impl FnOnce(&Call, u32) -> Option<u32>) -> Verdict {
        if let Some(last) = self.carried.get_mut(&key).filter(|last| now.since(**last) < Self::OVER) {
            *last = now;
            return Verdict::Carried;
        }
        if self.refused.get(&key).is_some_and(|again| now < *again) {
            return Verdict::Refused;
        }
        self.carried.retain(|_, last| now.since(*last) < Self::OVER);
        self.refused.retain(|_, again| now.since(*again) < Self::OVER);
        let carried = u32::try_from(self.carried.len()).unwrap_or(u32::MAX);
        if now >= self.next && more(&self.call, carried).is_none_or(|more| more > 0) {
            self.next = now + Self::AGAIN;
            self.refused.remove(&key);
            self.carried.insert(key, now);
            return Verdict::Carried;
        }
        if self.refused.len() >= Self::MAX_REFUSED && !self.refused.contains_key(&key) {
            return Verdict::Refused;
        }
        let before = self.refused.insert(key, now + Self::AGAIN);
        if before.is_some() { Verdict::Refused } else { Verdict::NewlyRefused }
    }

    /// Calls that are carried, those that ended within the last ten seconds among them.
    pub fn carried(&self) -> usize {
        self.carried.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_does_not_fit_is_refused_until_another_one_is_over() {
        let mut admission = Admission::new(CALL);
        let at = Instant::from_millis;
        // Two fit, and of those that are there none is asked about again.
        let two = |_: &Call, carried: u32| Some(2_u32.saturating_sub(carried));
        let never = |_: &Call, _| panic!("it was asked");
        assert_eq!(admission.take(at(0), 'a', two), Verdict::Carried);
        assert_eq!(admission.take(at(5), 'b', never), Verdict::NewlyRefused, "what the first one does is not seen yet");
        assert_eq!(admission.take(at(1005), 'b', two), Verdict::Carried);
        assert_eq!(admission.take(at(2010), 'c', two), Verdict::NewlyRefused);
        assert_eq!(admission.take(at(2020), 'a', never), Verdict::Carried);
        assert_eq!(admission.take(at(3009), 'c', never), Verdict::Refused);
        assert_eq!(admission.take(at(3010), 'c', two), Verdict::Refused, "asked about again, and still none fits");
        assert_eq!(admission.take(at(9_000), 'b', never), Verdict::Carried);
        assert_eq!(admission.take(at(12_021), 'c', two), Verdict::Carried, "a is over");
        assert_eq!((admission.carried(), admission.take(at(13_022), 'a', two)), (2, Verdict::NewlyRefused));
        assert_eq!(admission.take(at(13_023), 'd', |_, _| None), Verdict::Carried, "there is no rate");
        for key in (0..5000).filter_map(|n| char::from_u32(0x4e00 + n)) {
            assert_ne!(admission.take(at(14_030), key, two), Verdict::Carried);
        }
        assert_eq!(admission.refused.len(), Admission::<char>::MAX_REFUSED);
    }

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
