//! What has come of a stream, what is missing, and when it is due.

use super::clock::Clock;
use super::rtt::Rtt;
use braidcast_core::{Instant, Unwrapper};
use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};

/// Missing packets are asked for again after a round trip and this much, as the other end may not answer at once
/// (draft-sharabayko-srt §4.8.2 has half of that, and at least 20 ms).
const MARGIN: Duration = Duration::from_millis(10);
/// Ranges in one request: a packet full of them.
pub(crate) const RANGES: usize = 180;
/// How fast a tolerance of reordering that is not needed any more shrinks.
const DECAY: Duration = Duration::from_secs(1);

/// What is known of a packet.
enum Slot {
    Missing,
    /// Its sender will not send it again.
    Abandoned,
    Here {
        due: Instant,
        payload: Vec<u8>,
        /// Since when it was missing, if it was.
        missed: Option<Instant>,
    },
}

/// Packets in a row that are missing.
struct Loss {
    last: u64,
    noticed: Instant,
    asked: Option<Instant>,
}

/// Counts of the receiving half.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Received {
    /// Packets that came, each counted once.
    pub packets: u64,
    /// Their payloads' bytes.
    pub bytes: u64,
    /// Packets that were missing when a later one came, those included that came out of order.
    pub missing: u64,
    /// Of these, packets that came in time after all.
    pub recovered: u64,
    /// Packets that were not there when they were due.
    pub skipped: u64,
    /// Packets that came twice, or after they had been skipped.
    pub useless: u64,
    /// Packets for which there was no room.
    pub overflow: u64,
    /// Packets that could not be decrypted, or came in clear where they must not.
    pub undecrypted: u64,
    /// Times that packets were asked for again.
    pub asked: u64,
    /// Times that the sender's clock jumped.
    pub clock_jumps: u64,
}

/// The receiving half of a connection whose packets have numbers of `BITS` bits.
pub(crate) struct Receive<const BITS: u32> {
    numbers: Unwrapper<BITS>,
    /// The first packet that is neither delivered nor skipped; `slots` begins with it.
    next: u64,
    slots: VecDeque<Slot>,
    /// All before it have come, or are not waited for.
    contiguous: u64,
    losses: BTreeMap<u64, Loss>,
    /// When to look through `losses`.
    ask_at: Option<Instant>,
    clock: Clock,
    latency: Duration,
    /// How long a packet may be overtaken before it is asked for.
    tolerance: Duration,
    least_tolerance: Duration,
    decayed: Instant,
    limit: usize,
    spare: Vec<Vec<u8>>,
    pub(crate) counts: Received,
}

impl<const BITS: u32> Receive<BITS> {
    /// Nothing has come; the first packet has the number `first`. `limit`: packets that are kept, at most half of all
    /// numbers.
    pub(crate) fn new(
        now: Instant,
        first: u32,
        clock: Clock,
        latency: Duration,
        tolerance: Duration,
        limit: usize,
    ) -> Self {
        let numbers = Unwrapper::new(first.into());
        let next = numbers.highest();
        Self {
            numbers,
            next,
            slots: VecDeque::new(),
            contiguous: next,
            losses: BTreeMap::new(),
            ask_at: None,
            clock,
            latency,
            tolerance,
            least_tolerance: tolerance,
            decayed: now,
            limit,
            spare: Vec::new(),
            counts: Received::default(),
        }
    }

    fn end(&self) -> u64 {
        self.next + self.slots.len() as u64
    }

    /// The number behind all that have come, as it is acknowledged.
    pub(crate) const fn acknowledged(&self) -> u64 {
        self.contiguous
    }

    /// The highest number that came.
    pub(crate) const fn highest(&self) -> u64 {
        self.numbers.highest()
    }

    /// Packets that there is room for.
    pub(crate) fn room(&self) -> usize {
        self.limit - self.slots.len().min(self.limit)
    }

    /// Returns `true` if a packet of this number that came at `now` is new and has a place. If not, it is counted.
    /// `repeated`: it was sent before.
    pub(crate) fn wants(&mut self, now: Instant, sequence: u32, repeated: bool) -> bool {
        let number = self.numbers.peek(sequence.into());
        if self.slots.is_empty() && number >= self.next + self.limit as u64 {
            // Nothing is left of before a gap that no buffer spans: it begins anew.
            self.counts.missing += number - self.next;
            self.counts.skipped += number - self.next;
            (self.next, self.contiguous) = (number, number);
        }
        if number < self.next {
            self.counts.useless += 1;
            return false;
        }
        let at = number - self.next;
        if at >= self.limit as u64 {
            self.counts.overflow += 1;
            return false;
        }
        let slot = self.slots.get(at as usize);
        let is_here = matches!(slot, Some(Slot::Here { .. } | Slot::Abandoned));
        if let Some(Slot::Here { missed: Some(missed), .. }) = slot
            && !repeated
        {
            // The repeat was quicker than the packet itself, which was not lost either.
            self.be_patient(now - *missed);
        }
        self.counts.useless += u64::from(is_here);
        !is_here
    }

    /// A packet was overtaken for this time, not lost: that much patience pays (libsrt calls it lossmaxttl).
    fn be_patient(&mut self, overtaken: Duration) {
        self.tolerance = self.tolerance.max(overtaken * 5 / 4).min(self.latency / 3);
    }

    /// Returns `true` if a packet of this number is one of those that are delivered or skipped.
    pub(crate) fn is_behind(&self, sequence: u32) -> bool {
        self.numbers.peek(sequence.into()) < self.next
    }

    /// A buffer for a payload.
    pub(crate) fn buffer(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    /// Takes a packet that is [wanted](Self::wants). `repeated`: it was sent before.
    pub(crate) fn take(&mut self, now: Instant, sequence: u32, timestamp: u32, repeated: bool, payload: Vec<u8>) {
        let number = self.numbers.unwrap(sequence.into());
        let due = self.clock.due(now, timestamp, !repeated);
        self.counts.clock_jumps = self.clock.jumps;
        self.counts.packets += 1;
        self.counts.bytes += payload.len() as u64;
        let end = self.end();
        if number >= end {
            if number > end {
                self.counts.missing += number - end;
                self.losses.insert(end, Loss { last: number - 1, noticed: now, asked: None });
                self.ask_by(now + self.tolerance);
            }
            self.slots.resize_with((number - self.next) as usize, || Slot::Missing);
            self.slots.push_back(Slot::Here { due, payload, missed: None });
        } else {
            self.counts.recovered += 1;
            let missed = self.found(number);
            if let Some(missed) = missed.filter(|_| !repeated) {
                self.be_patient(now - missed);
            }
            self.slots[(number - self.next) as usize] = Slot::Here { due, payload, missed };
        }
        self.advance();
        if now - self.decayed >= DECAY {
            self.decayed = now;
            self.tolerance = (self.tolerance * 7 / 8).max(self.least_tolerance);
        }
    }

    /// Takes `number` off what is missing; returns since when it was.
    fn found(&mut self, number: u64) -> Option<Instant> {
        let (&first, loss) = self.losses.range_mut(..=number).next_back()?;
        if loss.last < number {
            return None;
        }
        let (last, noticed, asked) = (loss.last, loss.noticed, loss.asked);
        if first == number {
            self.losses.remove(&first);
        } else {
            loss.last = number - 1;
        }
        if last > number {
            self.losses.insert(number + 1, Loss { last, noticed, asked });
        }
        Some(noticed)
    }

    fn advance(&mut self) {
        self.contiguous = self.contiguous.max(self.next);
        while let Some(Slot::Here { .. } | Slot::Abandoned) = self.slots.get((self.contiguous - self.next) as usize) {
            self.contiguous += 1;
        }
    }

    /// The sender does not have the packets from `first` to `last` any more.
    pub(crate) fn abandon(&mut self, first: u32, last: u32) {
        let (first, last) = (self.numbers.peek(first.into()), self.numbers.peek(last.into()));
        // What was not seen yet may still come.
        for number in first.max(self.next)..(last.saturating_add(1)).min(self.end()) {
            if let Some(slot @ Slot::Missing) = self.slots.get_mut((number - self.next) as usize) {
                *slot = Slot::Abandoned;
                self.found(number);
            }
        }
        self.advance();
    }

    /// The place of the first packet that is there, and when it is due.
    fn first_here(&self) -> Option<(usize, Instant)> {
        // Missing packets in front are one range of losses, so this is quick.
        let mut at = match self.losses.first_key_value() {
            Some((first, loss)) if *first == self.next => (loss.last + 1 - self.next) as usize,
            _ => 0,
        };
        loop {
            match self.slots.get(at)? {
                Slot::Here { due, .. } => return Some((at, *due)),
                _ => at += 1,
            }
        }
    }

    /// When the next payload is due.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.first_here().map(|(_, due)| due)
    }

    /// The next payload that is due at `now`, into `buf`; returns when it was due. What was missing before it is
    /// skipped (§4.6).
    pub(crate) fn deliver(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Instant> {
        let (at, due) = self.first_here().filter(|(_, due)| *due <= now)?;
        if at > 0 {
            self.counts.skipped += at as u64;
            self.slots.drain(..at);
            self.next += at as u64;
            self.losses = self.losses.split_off(&self.next);
        }
        let Some(Slot::Here { payload, .. }) = self.slots.pop_front() else { return None };
        self.next += 1;
        self.advance();
        let empty = std::mem::replace(buf, payload);
        self.recycle(empty);
        Some(due)
    }

    fn recycle(&mut self, mut buffer: Vec<u8>) {
        if buffer.capacity() > 0 && self.spare.len() < 64 {
            buffer.clear();
            self.spare.push(buffer);
        }
    }

    fn ask_by(&mut self, at: Instant) {
        self.ask_at = Some(self.ask_at.map_or(at, |other| other.min(at)));
    }

    /// When to call [`ask`](Self::ask).
    pub(crate) const fn ask_at(&self) -> Option<Instant> {
        self.ask_at
    }

    /// Nobody can be asked at `now`: it is tried again soon.
    pub(crate) fn ask_later(&mut self, now: Instant) {
        self.ask_at = self.ask_at.map(|at| at.max(now + MARGIN));
    }

    /// Hands what is to be asked for again at `now` to `write`: the first and the last number of each range, which has
    /// at most 65,536; `most` ranges.
    pub(crate) fn ask(&mut self, now: Instant, rtt: &Rtt, most: usize, mut write: impl FnMut(u32, u32)) {
        if self.ask_at.is_none_or(|at| at > now) {
            return;
        }
        let again = rtt.patience() + MARGIN;
        let (mut next, mut ranges) = (None, 0);
        for (first, loss) in &mut self.losses {
            let mut at = loss.asked.map_or(loss.noticed + self.tolerance, |asked| asked + again);
            if at <= now && ranges < most {
                write(*first as u32, loss.last as u32);
                self.counts.asked += loss.last - first + 1;
                loss.asked = Some(now);
                at = now + again;
                ranges += 1;
            }
            next = Some(next.map_or(at, |other: Instant| other.min(at)));
        }
        self.ask_at = next;
    }

    /// The sender's clock showed `timestamp` in a packet that came at `now`. `rtt`: the round trip, if it is known.
    pub(crate) fn sample_clock(&mut self, now: Instant, timestamp: u32, rtt: Option<&Rtt>) {
        self.clock.sample(now, timestamp, rtt.map(|rtt| rtt.smoothed));
    }

    /// How long a packet may be overtaken before it is asked for.
    pub(crate) const fn tolerance(&self) -> Duration {
        self.tolerance
    }

    /// Packets that wait for their time.
    pub(crate) fn waiting(&self) -> usize {
        self.slots.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LATENCY: Duration = Duration::from_millis(120);
    const FIRST: u32 = 0x7fff_fffe;

    fn ms(n: u64) -> Instant {
        Instant::from_millis(n)
    }

    fn receive(limit: usize) -> Receive<31> {
        let clock = Clock::new(ms(0), 0, LATENCY);
        Receive::new(ms(0), FIRST, clock, LATENCY, Duration::ZERO, limit)
    }

    /// Packet `n` of the stream, sent at `n` ms, comes at `at` ms; returns `true` if it was taken.
    fn come(rx: &mut Receive<31>, n: u32, at: u64, repeated: bool) -> bool {
        let sequence = FIRST.wrapping_add(n) & 0x7fff_ffff;
        let wanted = rx.wants(ms(at), sequence, repeated);
        if wanted {
            rx.take(ms(at), sequence, n * 1000, repeated, vec![n as u8; 10]);
        }
        wanted
    }

    fn delivered(rx: &mut Receive<31>, now: u64) -> Vec<u8> {
        let mut buf = Vec::new();
        std::iter::from_fn(|| rx.deliver(ms(now), &mut buf).map(|_| buf[0])).collect()
    }

    fn asked(rx: &mut Receive<31>, now: u64) -> Vec<(u32, u32)> {
        let mut ranges = Vec::new();
        rx.ask(ms(now), &Rtt::new(), RANGES, |first, last| ranges.push((first & 0x7fff_ffff, last & 0x7fff_ffff)));
        ranges
    }

    #[test]
    fn what_is_missing_is_asked_for_and_skipped_when_the_next_is_due() {
        let mut rx = receive(100);
        for n in [0, 1, 4, 5] {
            assert!(come(&mut rx, n, 10 + u64::from(n), false));
        }
        assert_eq!(asked(&mut rx, 14), [(0, 1)]);
        assert_eq!((asked(&mut rx, 20), rx.acknowledged() as u32 & 0x7fff_ffff), (vec![], 0));
        // A round trip with its variance later again: 100 + 4 * 50 + 10 ms.
        assert_eq!((asked(&mut rx, 323), asked(&mut rx, 324)), (vec![], vec![(0, 1)]));
        assert!(come(&mut rx, 3, 100, true) && !come(&mut rx, 3, 101, true));
        assert_eq!(delivered(&mut rx, 119), [] as [u8; 0]);
        assert_eq!(rx.next_due(), Some(ms(120)));
        assert_eq!(delivered(&mut rx, 122), [0, 1]);
        assert_eq!(delivered(&mut rx, 125), [3, 4, 5]);
        assert!(!come(&mut rx, 2, 126, true));
        let counts = rx.counts;
        assert_eq!((counts.missing, counts.recovered, counts.skipped, counts.useless), (2, 1, 1, 2));
        assert_eq!(rx.acknowledged() as u32 & 0x7fff_ffff, 4);
    }

    #[test]
    fn jitter_makes_patience_and_patience_goes_again() {
        let mut rx = receive(1000);
        come(&mut rx, 0, 0, false);
        // Each second packet takes 20 ms longer.
        for n in 1..=40_u32 {
            come(&mut rx, 2 * n, 20 + u64::from(n), false);
            come(&mut rx, 2 * n - 1, 40 + u64::from(n), false);
        }
        assert_eq!(rx.tolerance(), Duration::from_millis(25));
        come(&mut rx, 100, 100, false);
        assert_eq!(asked(&mut rx, 124), []);
        assert_eq!(asked(&mut rx, 125).len(), 1);
        for second in 2..30_u64 {
            come(&mut rx, 100 + second as u32, second * 1000, false);
        }
        assert!(rx.tolerance() < Duration::from_millis(2));
    }

    #[test]
    fn a_packet_that_its_repeat_overtook_makes_patience() {
        let mut rx = receive(1000);
        come(&mut rx, 0, 0, false);
        come(&mut rx, 2, 2, false);
        assert_eq!(asked(&mut rx, 2), [(FIRST.wrapping_add(1) & 0x7fff_ffff, FIRST.wrapping_add(1) & 0x7fff_ffff)]);
        assert!(come(&mut rx, 1, 12, true) && rx.tolerance() == Duration::ZERO);
        // A second repeat says nothing; the packet itself does.
        assert!(!come(&mut rx, 1, 14, true) && rx.tolerance() == Duration::ZERO);
        assert!(!come(&mut rx, 1, 22, false));
        assert_eq!(rx.tolerance(), Duration::from_millis(25));
        // What was never missing came twice by a network's doing.
        assert!(!come(&mut rx, 2, 62, false));
        assert_eq!((rx.tolerance(), rx.counts.useless), (Duration::from_millis(25), 3));
    }

    #[test]
    fn a_repeat_makes_no_patience_and_an_abandoned_packet_is_not_waited_for() {
        let mut rx = receive(100);
        come(&mut rx, 0, 0, false);
        come(&mut rx, 5, 5, false);
        come(&mut rx, 3, 60, true);
        assert_eq!(rx.tolerance(), Duration::ZERO);
        rx.abandon(0x7fff_fffe, 2);
        assert_eq!((rx.acknowledged() as u32 & 0x7fff_ffff, asked(&mut rx, 5000)), (4, vec![]));
        rx.abandon(0, 0x3fff_fff0);
        assert_eq!(delivered(&mut rx, 1000), [0, 3, 5]);
    }

    #[test]
    fn a_gap_that_no_buffer_spans_begins_anew_and_an_overflow_does_not() {
        let mut rx = receive(10);
        come(&mut rx, 0, 0, false);
        assert!(!come(&mut rx, 10, 10, false));
        assert_eq!((rx.counts.overflow, rx.room()), (1, 9));
        delivered(&mut rx, 500);
        assert!(come(&mut rx, 200, 500, false));
        assert_eq!((delivered(&mut rx, 1000), rx.counts.skipped), (vec![200], 199));
    }

    proptest! {
        /// Whatever order packets come in, and whatever is dropped: what is delivered is in order, once, and nothing
        /// that came in time is missing.
        #[test]
        fn delivery_is_in_order_and_whole(order in prop::collection::vec((0_u32..60, any::<bool>()), 1..200)) {
            let mut rx = receive(64);
            let mut came = std::collections::BTreeSet::new();
            let mut got = Vec::new();
            for (at, (n, repeated)) in order.into_iter().enumerate() {
                let now = at as u64;
                got.extend(delivered(&mut rx, now));
                if come(&mut rx, n, now, repeated) {
                    prop_assert!(came.insert(n as u8));
                }
                asked(&mut rx, now);
            }
            got.extend(delivered(&mut rx, 10_000));
            prop_assert!(got.iter().eq(came.iter()), "{got:?} of {came:?}");
            prop_assert!(rx.losses.is_empty() && rx.slots.is_empty());
        }
    }
}
