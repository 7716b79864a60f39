use crate::ccid::{Ccid, CcidReport};
use braidcast_core::Instant;
use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};

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
    /// How many more such calls fit besides `carried` ones that there are (THESIS §4.9): none while
    /// losses are too many, else as many as the allowed rate carries. `None` where congestion
    /// control has no rate.
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

    /// Returns `true` if `carried` such calls are too many: losses are, or the allowed rate carries fewer.
    /// Before the first loss event nobody knows, as the rate then follows what is sent.
    pub fn are_too_many(&self, sending: Ccid, report: &CcidReport, carried: u32) -> bool {
        let has_lost = report.loss_event_rate.is_some_and(|p| p > 0.0);
        has_lost && self.more_that_fit(sending, report, carried.saturating_sub(1)) == Some(0)
    }
}

/// Which calls are carried: one that begins is refused while none more fits besides those that there are (THESIS §4.9).
///
/// The allowed rate is up to twice what arrives until something is lost, so only the effect of a
/// call on the path shows whether it fits. So each call is on trial for its first ten seconds: if the
/// allowed rate no longer carries all calls then, or losses are too many, the newest one that is on
/// trial is turned out, and nobody else. At most one call a second is let in; once one was turned
/// out, one at a time is on trial, and after each that is turned out the next one waits twice as
/// long, 64 s at most, until one stays or a call is over.
///
/// A call is known by a key of the caller's. It is over, and its place free, after ten seconds
/// without a datagram; one that was refused and goes on is asked about again each second. Memory:
/// the calls that fit, and 1,024 that were refused.
#[derive(Clone, Debug)]
pub struct Admission<K> {
    call: Call,
    /// Calls that are carried, and when each sent last.
    carried: BTreeMap<K, Instant>,
    /// Those of them that are on trial, the newest last, and until when.
    on_trial: VecDeque<(K, Instant)>,
    /// Calls that were refused.
    refused: BTreeMap<K, Waiting>,
    /// No call is let in before.
    next: Instant,
    /// Those on trial are not looked at before.
    look: Instant,
    /// How long nobody is let in after the next one that is turned out; none before the first.
    pause: Option<Duration>,
    turned_out: u64,
}

/// A call that was refused.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    /// When it is asked about again.
    again: Instant,
    /// The caller was told that it is refused.
    told: bool,
}

/// What becomes of a datagram of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Its call is carried.
    Carried,
    /// Its call was refused before, and still is.
    Refused,
    /// Its call is refused from now on; it may have been carried until now, on trial.
    NewlyRefused,
}

impl<K: Ord + Clone> Admission<K> {
    /// A call that sends nothing for this long is over.
    const OVER: Duration = Duration::from_secs(10);
    /// After one that was let in the next one waits so long, and one that was refused is asked about again.
    const AGAIN: Duration = Duration::from_secs(1);
    /// How long a call is on trial: an excess of a quarter of a G.711 call fills a queue of 50 packets in 4 s.
    const TRIAL: Duration = Duration::from_secs(10);
    /// How often the path is looked at while calls are on trial.
    const LOOK: Duration = Duration::from_millis(200);
    /// So long it takes until one that was turned out is no longer felt: queues drain, and TFRC's rate comes back.
    const SETTLE: Duration = Duration::from_secs(4);
    /// The longest pause after a call that was turned out.
    const LONGEST_PAUSE: Duration = Duration::from_secs(64);
    /// Refused calls that are remembered.
    const MAX_REFUSED: usize = 1024;

    /// Nobody calls yet; all calls are like `call`.
    pub const fn new(call: Call) -> Self {
        Self {
            call,
            carried: BTreeMap::new(),
            on_trial: VecDeque::new(),
            refused: BTreeMap::new(),
            next: Instant::ZERO,
            look: Instant::ZERO,
            pause: None,
            turned_out: 0,
        }
    }

    /// A datagram of the call `key`. If that is not carried yet, or calls are on trial, `report`
    /// says what the sending CCID allows; without a rate none is refused.
    pub fn take(&mut self, now: Instant, key: K, report: impl Fn() -> Option<(Ccid, CcidReport)>) -> Verdict {
        self.judge(now, &report);
        if let Some(last) = self.carried.get_mut(&key).filter(|last| now.since(**last) < Self::OVER) {
            *last = now;
            return Verdict::Carried;
        }
        if let Some(waiting) = self.refused.get_mut(&key).filter(|it| now < it.again) {
            let told = core::mem::replace(&mut waiting.told, true);
            return if told { Verdict::Refused } else { Verdict::NewlyRefused };
        }
        self.forget(now);
        let one_more_fits = || {
            let more = report().and_then(|(sending, report)| self.call.more_that_fit(sending, &report, self.count()));
            more.is_none_or(|more| more > 0)
        };
        if now >= self.next && (self.pause.is_none() || self.on_trial.is_empty()) && one_more_fits() {
            self.next = now + Self::AGAIN;
            self.refused.remove(&key);
            self.on_trial.push_back((key.clone(), now + Self::TRIAL));
            self.carried.insert(key, now);
            return Verdict::Carried;
        }
        if self.refused.len() >= Self::MAX_REFUSED && !self.refused.contains_key(&key) {
            return Verdict::Refused;
        }
        let before = self.refused.insert(key, Waiting { again: now + Self::AGAIN, told: true });
        if before.is_some_and(|it| it.told) { Verdict::Refused } else { Verdict::NewlyRefused }
    }

    /// Forgets calls that are over: their places are free at once.
    fn forget(&mut self, now: Instant) {
        let before = self.carried.len();
        self.carried.retain(|_, last| now.since(*last) < Self::OVER);
        self.refused.retain(|_, it| now.since(it.again) < Self::OVER);
        if self.carried.len() < before {
            self.on_trial.retain(|(key, _)| self.carried.contains_key(key));
            self.pause = self.pause.map(|_| Self::AGAIN);
            self.next = self.next.min(now + Self::AGAIN);
        }
    }

    /// Turns the newest call that is on trial out if not all fit.
    fn judge(&mut self, now: Instant, report: &impl Fn() -> Option<(Ccid, CcidReport)>) {
        if self.on_trial.is_empty() || now < self.look {
            return;
        }
        self.look = now + Self::LOOK;
        while self.on_trial.front().is_some_and(|(_, until)| *until <= now) {
            self.on_trial.pop_front();
            self.pause = self.pause.map(|_| Self::AGAIN);
        }
        if !report().is_some_and(|(sending, report)| self.call.are_too_many(sending, &report, self.count())) {
            return;
        }
        let Some((key, _)) = self.on_trial.pop_back() else { return };
        self.carried.remove(&key);
        self.turned_out += 1;
        let pause = self.pause.map_or(Self::SETTLE, |pause| (pause * 2).max(Self::SETTLE)).min(Self::LONGEST_PAUSE);
        self.pause = Some(pause);
        self.look = now + Self::SETTLE;
        self.next = now + pause;
        if self.refused.len() < Self::MAX_REFUSED {
            self.refused.insert(key, Waiting { again: now + Self::AGAIN, told: false });
        }
    }

    fn count(&self) -> u32 {
        u32::try_from(self.carried.len()).unwrap_or(u32::MAX)
    }

    /// Calls that are carried, those that ended within the last ten seconds among them.
    pub fn carried(&self) -> usize {
        self.carried.len()
    }

    /// Returns `true` if the call `key` is carried.
    pub fn is_carried(&self, key: &K) -> bool {
        self.carried.contains_key(key)
    }

    /// Calls that were let in and turned out while they were on trial.
    pub const fn turned_out(&self) -> u64 {
        self.turned_out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A rate that carries so many calls, at this loss event rate.
    fn carries(calls: f64, p: f64) -> impl Fn() -> Option<(Ccid, CcidReport)> + Copy {
        move || {
            let allowed_rate = Some(calls * 8000.0);
            Some((Ccid::Three, CcidReport { allowed_rate, loss_event_rate: Some(p), ..CcidReport::default() }))
        }
    }

    #[test]
    fn a_call_that_does_not_fit_is_refused_until_another_one_is_over() {
        let mut admission = Admission::new(CALL);
        let at = Instant::from_millis;
        let two = carries(2.5, 0.01);
        let never = || panic!("it was asked");
        assert_eq!(admission.take(at(0), 'a', two), Verdict::Carried);
        assert_eq!(admission.take(at(5), 'b', two), Verdict::NewlyRefused, "what the first one does is not seen yet");
        assert_eq!(admission.take(at(1005), 'b', two), Verdict::Carried);
        assert_eq!(admission.take(at(2010), 'c', two), Verdict::NewlyRefused);
        assert_eq!(admission.take(at(2020), 'a', never), Verdict::Carried, "those on trial were looked at just now");
        assert_eq!(admission.take(at(2200), 'c', never), Verdict::Refused);
        assert_eq!(admission.take(at(3010), 'c', two), Verdict::Refused, "asked about again, and still none fits");
        assert_eq!(admission.take(at(9_000), 'b', two), Verdict::Carried);
        assert_eq!(admission.take(at(12_021), 'c', two), Verdict::Carried, "a is over");
        assert_eq!((admission.carried(), admission.take(at(13_022), 'a', two)), (2, Verdict::NewlyRefused));
        assert_eq!(admission.take(at(13_023), 'd', || None), Verdict::Carried, "there is no rate");
        for key in (0..5000).filter_map(|n| char::from_u32(0x4e00 + n)) {
            assert_ne!(admission.take(at(14_030), key, two), Verdict::Carried);
        }
        assert_eq!(admission.refused.len(), Admission::<char>::MAX_REFUSED);
    }

    #[test]
    fn one_too_many_is_turned_out_while_on_trial_and_nobody_else() {
        let mut admission = Admission::new(CALL);
        // In slow start, nothing lost yet: the rate follows what is sent, and is less than what was let in just now.
        let slow_start = carries(1.2, 0.0);
        assert_eq!(admission.take(Instant::from_millis(0), 'a', slow_start), Verdict::Carried);
        for tenth in 1..120 {
            admission.take(Instant::from_millis(tenth * 100), 'a', carries(0.9, 0.0));
            admission.take(Instant::from_millis(tenth * 100), 'b', carries(4.0, 0.0));
        }
        assert_eq!((admission.carried(), admission.turned_out()), (2, 0));
        assert_eq!(admission.take(Instant::from_millis(12_000), 'c', carries(4.0, 0.0)), Verdict::Carried);
        // Its effect shows: 'b' came a second after 'a', and both have been there for ten.
        let full = carries(2.7, 0.01);
        assert_eq!(admission.take(Instant::from_millis(12_300), 'a', full), Verdict::Carried);
        assert_eq!(admission.take(Instant::from_millis(12_310), 'c', full), Verdict::NewlyRefused);
        assert_eq!(admission.take(Instant::from_millis(12_320), 'c', full), Verdict::Refused);
        assert_eq!((admission.carried(), admission.turned_out()), (2, 1));
        // Who stayed through the trial is never turned out, however bad it gets.
        for second in 13..60 {
            for key in ['a', 'b'] {
                assert_eq!(
                    admission.take(Instant::from_millis(second * 1000), key, carries(0.0, 0.5)),
                    Verdict::Carried
                );
            }
        }
    }

    #[test]
    fn pauses_double_until_a_call_stays_or_is_over() {
        let mut admission = Admission::new(CALL);
        let (mut let_in, mut was) = (Vec::new(), false);
        for tenth in 0..4_000_u64 {
            let now = Instant::from_millis(tenth * 100);
            // Only one fits, which shows half a second after there are two.
            let since = let_in.last().copied().unwrap_or(0);
            let report = carries(if was && tenth >= since + 5 { 1.5 } else { 3.0 }, 0.01);
            admission.take(now, 'a', report);
            admission.take(now, 'b', report);
            let is = admission.is_carried(&'b');
            if is && !was {
                let_in.push(tenth);
            }
            was = is;
        }
        let pauses: Vec<u64> = let_in.windows(2).map(|two| (two[1] - two[0]) / 10).collect();
        // The first time 'a' is on trial as well, until ten seconds have passed.
        assert_eq!(pauses[..7], [9, 4, 8, 16, 32, 64, 64], "{pauses:?}");
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
