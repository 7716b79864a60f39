use super::counter::distance;
use super::intervals::{LossInterval, N, discounted_mean, general_discount};
use braidcast_core::Instant;
use core::time::Duration;
use std::collections::VecDeque;

/// Packets with higher numbers that must arrive before a missing one counts as lost (NDUPACK, RFC 5348 §5.1).
const DUP_ACKS: usize = 3;

/// How the receiver finds which losses belong to one round trip.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stamp {
    /// The sender's window counter, 0..=15 (RFC 4342 §8.1, §10.2).
    Counter(u8),
    /// The sender's estimate of the round trip, if it has one; losses are placed by arrival times (RFC 5348 §5.2).
    Rtt(Option<Duration>),
}

/// A packet that arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// Its sequence number, unwrapped; below 2^63.
    pub seq: u64,
    /// Bytes of application data.
    pub size: usize,
    /// `true` if it carries data; packets that don't are left out of loss intervals' lengths (RFC 4342 §6.1.1).
    pub data: bool,
    /// How many packets right before it are known to carry no data (DCCP's NDP Count); 0 if not known.
    pub ndp: u64,
    /// `true` if the network marked it (ECN congestion experienced), which counts as a loss.
    pub marked: bool,
    /// Where in the sender's round trips it stands. A connection uses one kind throughout.
    pub stamp: Stamp,
}

/// A packet's place: sequence number, and position on the time line that separates loss events.
#[derive(Clone, Copy, Debug)]
struct Place {
    seq: u64,
    /// Quarter round trips (window counter) or nanoseconds of arrival.
    at: u64,
    /// How many packets right before it carry no data.
    ndp: u64,
}

/// What was lost, and which packets are still only missing; the loss event rate (RFC 5348 §5, RFC 4828 §3).
///
/// Bounded: two packets beyond a hole and nine intervals; constant work per packet. A packet that comes after it was
/// declared lost is not taken back: the connection's reordering buffer is for that.
#[derive(Clone, Debug)]
pub struct LossHistory {
    small_packets: bool,
    dup_acks: usize,
    /// `true` if positions are window counters.
    counted: bool,
    /// How far two losses of one event may be apart, in units of `Place::at`.
    round: u64,
    /// All packets up to here arrived or are lost.
    edge: Option<Place>,
    /// Packets beyond the first hole, by number; fewer than `dup_acks` between calls.
    beyond: Vec<Place>,
    newest: Place,
    counter: u8,
    /// Packets without data so far.
    without_data: u64,
    current: Option<Current>,
    /// Newest first, at most [`N`].
    closed: VecDeque<LossInterval>,
    /// Turns of the one loop whose length depends on what the network does.
    #[cfg(test)]
    turns: u64,
}

/// The interval that is not closed yet.
#[derive(Clone, Copy, Debug)]
struct Current {
    start: Place,
    last_loss: u64,
    losses: u64,
    without_data_before: u64,
}

impl LossHistory {
    /// An empty history; `small_packets` counts losses in short intervals as TFRC-SP does (RFC 4828 §3).
    pub fn new(small_packets: bool) -> Self {
        Self {
            small_packets,
            dup_acks: DUP_ACKS,
            counted: false,
            round: 0,
            edge: None,
            beyond: Vec::with_capacity(DUP_ACKS),
            newest: Place { seq: 0, at: 0, ndp: 0 },
            counter: 0,
            without_data: 0,
            current: None,
            closed: VecDeque::with_capacity(N + 1),
            #[cfg(test)]
            turns: 0,
        }
    }

    /// Takes a missing packet for lost after this number of later ones, 1 to 3, in place of three.
    #[must_use]
    pub fn losing_after(self, packets: usize) -> Self {
        Self { dup_acks: packets.clamp(1, DUP_ACKS), ..self }
    }

    /// Takes a packet; `true` if it shows a new loss event.
    ///
    /// `first` gives the length of the interval before the first loss event, in packets (RFC 5348 §6.3.1).
    pub fn on_packet(&mut self, now: Instant, packet: &Arrival, first: impl FnOnce() -> f64) -> bool {
        let place = Place { seq: packet.seq, at: self.position(now, packet), ndp: packet.ndp };
        let Some(edge) = self.edge else {
            self.edge = Some(place);
            self.newest = place;
            self.without_data = u64::from(!packet.data);
            return packet.marked && self.on_loss(place, place.seq, 1, first);
        };
        if place.seq <= edge.seq || self.beyond.iter().any(|it| it.seq == place.seq) {
            return false;
        }
        self.without_data += u64::from(!packet.data);
        if place.seq > self.newest.seq {
            self.newest = place;
        }
        let at = self.beyond.partition_point(|it| it.seq < place.seq);
        self.beyond.insert(at, place);

        let mut first = Some(first);
        let mut first = || first.take().map_or(1.0, |f| f());
        let mut new = false;
        // A mark is a congestion event at once, and so is a hole before it (RFC 5348 §5.1).
        while self.beyond.len() >= self.dup_acks
            || (packet.marked && self.beyond.first().is_some_and(|it| it.seq <= place.seq))
        {
            new |= self.close_hole(&mut first);
        }
        if packet.marked {
            new |= self.on_loss(place, place.seq, 1, &mut first);
        }
        self.absorb();
        new
    }

    /// Where on the line of loss events `packet` stands.
    fn position(&mut self, now: Instant, packet: &Arrival) -> u64 {
        match packet.stamp {
            Stamp::Rtt(rtt) => {
                self.round = rtt.map_or(self.round, |it| u64::try_from(it.as_nanos()).unwrap_or(u64::MAX));
                now.as_nanos()
            }
            Stamp::Counter(value) => {
                (self.counted, self.round) = (true, 4);
                let value = value % 16;
                if self.edge.is_some() && packet.seq < self.newest.seq {
                    return self.newest.at.saturating_sub(distance(value, self.counter).into());
                }
                let steps = if self.edge.is_some() { distance(self.counter, value) } else { value };
                self.counter = value;
                self.newest.at + u64::from(steps)
            }
        }
    }

    /// Moves the edge over packets that follow it without a hole.
    fn absorb(&mut self) {
        let Some(mut edge) = self.edge else { return };
        let whole = self.beyond.iter().zip(edge.seq + 1..).take_while(|(it, seq)| it.seq == *seq).count();
        if let Some(last) = self.beyond.drain(..whole).next_back() {
            edge = last;
        }
        self.edge = Some(edge);
    }

    /// Declares lost what is missing before the first packet beyond the edge, and moves the edge there.
    fn close_hole(&mut self, first: &mut impl FnMut() -> f64) -> bool {
        let (Some(before), false) = (self.edge, self.beyond.is_empty()) else { return false };
        let after = self.beyond.remove(0);
        self.edge = Some(after);
        let known = after.ndp.min(after.seq - before.seq - 1);
        self.without_data += known;
        let end = after.seq - known;
        let mut new = false;
        let mut seq = before.seq + 1;
        // The packets from one loss event to the next are as many throughout the hole, since places are interpolated;
        // so intervals that the mean will have forgotten by the end of the hole can be skipped.
        let per_event = self.per_event(before, after);
        if (end.saturating_sub(seq)) / per_event > N as u64 + 1 {
            seq = end - (N as u64 + 1) * per_event;
        }
        while seq < end {
            #[cfg(test)]
            {
                self.turns += 1;
            }
            let place = self.interpolate(before, after, seq);
            let in_event = match self.current {
                Some(it) if place.at <= it.start.at.saturating_add(self.round) => {
                    self.left_in_event(it, before, after, seq)
                }
                _ => per_event,
            };
            let count = in_event.clamp(1, end - seq);
            new |= self.on_loss(place, seq + count - 1, count, &mut *first);
            seq += count;
        }
        new
    }

    /// How many lost packets in a row between two that arrived make one loss event.
    fn per_event(&self, before: Place, after: Place) -> u64 {
        let (packets, span) = (after.seq - before.seq, after.at.saturating_sub(before.at));
        if self.counted || span == 0 { packets } else { share(packets, self.round, span).saturating_add(1) }
    }

    /// How many of the packets from `seq` on still belong to the event of `current`.
    fn left_in_event(&self, current: Current, before: Place, after: Place, seq: u64) -> u64 {
        let (packets, span) = (after.seq - before.seq, after.at.saturating_sub(before.at));
        if self.counted || span == 0 {
            return packets;
        }
        let until = current.start.at.saturating_add(self.round).saturating_sub(before.at);
        (before.seq + share(packets, until, span)).saturating_sub(seq).saturating_add(1)
    }

    /// The nominal place of a lost packet (RFC 5348 §5.2); by window counters, that of the packet before (RFC 4342
    /// §10.2).
    fn interpolate(&self, before: Place, after: Place, seq: u64) -> Place {
        let span = after.at.saturating_sub(before.at);
        let part = if self.counted { 0 } else { share(span, seq - before.seq, after.seq - before.seq) };
        Place { seq, at: before.at + part, ndp: 0 }
    }

    /// `count` packets from `place` to `last` are lost or marked; `true` if that starts a loss event.
    fn on_loss(&mut self, place: Place, last: u64, count: u64, first: impl FnOnce() -> f64) -> bool {
        if let Some(current) = &mut self.current
            && place.at <= current.start.at.saturating_add(self.round)
        {
            current.last_loss = last;
            current.losses += count;
            return false;
        }
        let closed = match self.current {
            Some(current) => {
                let closed = self.close(current, place);
                let discount = general_discount(closed.length, self.closed.make_contiguous(), false);
                self.closed.iter_mut().for_each(|it| it.discount *= discount);
                closed
            }
            None => {
                let length = first().max(1.0);
                LossInterval { start: 0, lossy: 0, sequence: 0, losses: 0, data: length as u64, length, discount: 1.0 }
            }
        };
        self.closed.push_front(closed);
        self.closed.truncate(N);
        self.current =
            Some(Current { start: place, last_loss: last, losses: count, without_data_before: self.without_data });
        true
    }

    /// The interval `current`, ended by a loss event at `next`.
    fn close(&self, current: Current, next: Place) -> LossInterval {
        let sequence = next.seq - current.start.seq;
        let data = self.data(current, sequence);
        let short = self.small_packets && next.at <= current.start.at.saturating_add(self.round.saturating_mul(2));
        LossInterval {
            start: current.start.seq,
            lossy: current.last_loss + 1 - current.start.seq,
            sequence,
            losses: current.losses,
            data,
            length: if short { data as f64 / current.losses as f64 } else { data as f64 },
            discount: 1.0,
        }
    }

    /// Returns `true` if the current interval has lasted two round trips at most, which matters to
    /// TFRC-SP only (RFC 4828 §3).
    fn is_short(&self) -> bool {
        self.small_packets
            && self.current.is_some_and(|it| self.newest.at <= it.start.at.saturating_add(self.round.saturating_mul(2)))
    }

    /// Data packets among the `sequence` packets of `current`: all that are not known to carry none (RFC 4342 §6.1.1).
    fn data(&self, current: Current, sequence: u64) -> u64 {
        sequence.saturating_sub(self.without_data - current.without_data_before).max(current.losses)
    }

    fn current_length(&self) -> f64 {
        self.current().map_or(0.0, |it| it.length)
    }

    /// The interval since the newest loss event (I_0); its length is never divided by losses, as short ones don't
    /// count.
    pub fn current(&self) -> Option<LossInterval> {
        let current = self.current?;
        let sequence = self.newest.seq.max(current.last_loss) + 1 - current.start.seq;
        let data = self.data(current, sequence);
        Some(LossInterval {
            start: current.start.seq,
            lossy: current.last_loss + 1 - current.start.seq,
            sequence,
            losses: current.losses,
            data,
            length: data as f64,
            discount: 1.0,
        })
    }

    /// All packets up to this number came or are lost; what is beyond may be missing for a while only.
    pub fn edge(&self) -> Option<u64> {
        self.edge.map(|it| it.seq)
    }

    /// Closed intervals, newest first: at most eight. The one before the first loss event has a made-up length and no
    /// sequence numbers.
    pub fn closed(&self) -> impl ExactSizeIterator<Item = &LossInterval> {
        self.closed.iter()
    }

    /// p, in 0.0..=1.0; zero before the first loss event.
    pub fn loss_event_rate(&mut self) -> f64 {
        let (current, short) = (self.current_length(), self.is_short());
        discounted_mean(current, self.closed.make_contiguous(), short).map_or(0.0, |mean| (1.0 / mean).min(1.0))
    }
}

/// `a` · `b` / `c` without overflow; `c` is not 0.
fn share(a: u64, b: u64, c: u64) -> u64 {
    u64::try_from(u128::from(a) * u128::from(b) / u128::from(c)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    const RTT: Duration = Duration::from_millis(100);

    fn arrival(seq: u64) -> Arrival {
        Arrival { seq, size: 100, data: true, ndp: 0, marked: false, stamp: Stamp::Rtt(Some(RTT)) }
    }

    /// A history that saw `packets`, one each 10 ms by their number, so that ten make a round trip; and the loss
    /// events.
    fn after(small_packets: bool, packets: impl IntoIterator<Item = Arrival>) -> (LossHistory, u32) {
        let mut history = LossHistory::new(small_packets);
        let events = packets.into_iter().filter(|it| history.on_packet(Instant::from_millis(10 * it.seq), it, || 50.0));
        let events = events.count() as u32;
        (history, events)
    }

    fn without(lost: &[u64], last: u64) -> Vec<Arrival> {
        (1..=last).filter(|seq| !lost.contains(seq)).map(arrival).collect()
    }

    #[test]
    fn three_later_packets_make_a_loss() {
        assert_eq!(after(false, without(&[5], 7)).1, 0);
        let (mut history, events) = after(false, without(&[5], 8));
        assert_eq!(events, 1);
        assert_eq!(history.current().map(|it| (it.start, it.sequence)), Some((5, 4)), "S_C - S_A + 1 (§5.3)");
        assert_eq!(history.loss_event_rate(), 1.0 / 50.0);
        let swapped = [1, 2, 3, 5, 6, 4, 7, 8, 9].map(arrival);
        assert_eq!(after(false, swapped).1, 0, "reordering by two is none");
    }

    #[test]
    fn without_patience_reordering_is_loss() {
        let mut history = LossHistory::new(false).losing_after(1);
        let events = [1, 2, 3, 5, 4, 6, 7].map(|seq| history.on_packet(Instant::ZERO, &arrival(seq), || 50.0));
        assert_eq!(events, [false, false, false, true, false, false, false], "5 shows that 4 is missing");
        assert_eq!(history.current().map(|it| (it.start, it.losses)), Some((4, 1)));
    }

    #[test]
    fn losses_within_a_round_trip_are_one_event() {
        let (history, events) = after(false, without(&[20, 25, 30, 31, 60], 100));
        assert_eq!(events, 3, "20, 25 and 30 lie within a round trip of 20; 31 and 60 are on their own");
        let lengths: Vec<f64> = history.closed().map(|it| it.length).collect();
        assert_eq!(lengths, [29.0, 11.0, 50.0]);
        assert_eq!(history.closed().map(|it| (it.lossy, it.losses)).nth(1), Some((11, 3)));
    }

    #[test]
    fn a_mark_counts_at_once_and_takes_the_hole_before_it_along() {
        let marked = |seq| Arrival { marked: true, ..arrival(seq) };
        let (history, events) = after(false, [arrival(1), arrival(2), arrival(4), marked(5)]);
        assert_eq!(events, 1);
        assert_eq!(history.current().map(|it| (it.start, it.lossy, it.losses)), Some((3, 3, 2)), "RFC 5348 §5.1");
        assert_eq!(after(false, [marked(1), arrival(2)]).1, 1);
    }

    #[test]
    fn a_long_outage_is_a_loss_event_each_round_trip() {
        let mut history = after(false, without(&(100..300).collect::<Vec<_>>(), 305)).0;
        // Of the events within the hole, the newest eight fill the history.
        assert_eq!(history.closed().map(|it| it.length).collect::<Vec<_>>(), [11.0; 8]);
        assert_eq!(history.current().map(|it| it.length), Some(17.0));
        assert_eq!(history.loss_event_rate(), 6.0 / (17.0 + 5.0 * 11.0));
    }

    #[test]
    fn small_packets_count_every_loss_of_a_short_interval() {
        // A loss each five packets, ten to a round trip: three in each event of 15.
        let lost: Vec<u64> = (100..500).filter(|seq| seq % 5 == 0).collect();
        let p = |small| after(small, without(&lost, 504)).0.loss_event_rate();
        assert!((p(false) - 1.0 / 15.0).abs() < 1e-9, "{}", p(false));
        assert!((p(true) - 3.0 / 15.0).abs() < 1e-9, "{}", p(true));
    }

    #[test]
    fn the_current_interval_of_small_packets_counts_after_two_round_trips() {
        let current = |last| after(true, without(&[100], last)).0.loss_event_rate();
        assert_eq!((current(119), current(120)), (1.0 / 50.0, 1.0 / 50.0));
        assert_eq!(current(199), 1.0 / 100.0);
    }

    #[test]
    fn window_counters_separate_events_by_more_than_four() {
        let counted = |seq| Arrival { stamp: Stamp::Counter((seq / 5 % 16) as u8), ..arrival(seq) };
        let events = |lost: &[u64]| after(false, (1..200).filter(|it| !lost.contains(it)).map(counted)).1;
        assert_eq!(events(&[51, 70, 74]), 1, "counters 10, 13 and 14");
        assert_eq!(events(&[51, 76]), 2, "counters 10 and 15");
        assert_eq!(events(&[51, 140]), 2, "the counter has wrapped");
    }

    #[test]
    fn packets_without_data_are_left_out() {
        let odd = |seq: u64| Arrival { data: seq % 2 == 1, ndp: u64::from(seq % 2 == 1), ..arrival(seq) };
        let (history, events) = after(false, (1..200).filter(|it| ![50, 101, 151].contains(it)).map(odd));
        assert_eq!(events, 2, "50 carried none, as the next packet's count says");
        assert_eq!(history.closed().map(|it| (it.sequence, it.length)).next(), Some((50, 25.0)));
    }

    /// However long the connection, the history and the holes: a few steps for each packet, and no more memory.
    #[test]
    fn the_work_for_a_packet_does_not_grow() {
        for small_packets in [false, true] {
            let mut history = LossHistory::new(small_packets);
            let (mut seq, mut most) = (0, 0);
            for n in 0..200_000_u64 {
                // No hole, then holes of 1, 2, 4 ... 2^36 packets.
                let hole = if n % 7 == 0 { 1 << (n / 7 % 37) } else { 0 };
                seq += 1 + hole;
                let before = history.turns;
                history.on_packet(Instant::from_micros(10_000 * n), &arrival(seq), || 10.0);
                most = most.max(history.turns - before);
            }
            // Intervals that the mean will have forgotten by the end of a hole are skipped.
            assert!(most <= N as u64 + 3, "{most} turns for one packet");
            assert!(history.turns < 3 * 200_000, "{} turns for 200,000 packets", history.turns);
            assert!(history.closed.capacity() <= 2 * (N + 1) && history.beyond.capacity() <= 2 * DUP_ACKS);
        }
    }

    proptest! {
        /// Whatever comes in, p stays a rate, intervals at least a packet, and memory bounded.
        #[test]
        fn anything_goes(
            packets in vec((0_u64..5000, any::<bool>(), 0_u64..9, 0_u8..40, any::<u32>()), 1..300),
            counters: bool, small: bool,
        ) {
            let mut history = LossHistory::new(small);
            for (seq, flag, ndp, value, at) in packets {
                let rtt = (value > 3).then_some(RTT * value.into());
                let stamp = if counters { Stamp::Counter(value) } else { Stamp::Rtt(rtt) };
                let packet = Arrival { marked: flag && ndp == 1, data: flag, ndp, stamp, ..arrival(seq) };
                history.on_packet(Instant::from_micros(at.into()), &packet, || 0.0);
                prop_assert!((0.0..=1.0).contains(&history.loss_event_rate()));
                prop_assert!(history.beyond.len() < DUP_ACKS && history.closed.len() <= N);
                prop_assert!(history.closed().all(|it| it.length >= 1.0));
            }
        }

        /// One loss each `gap` packets, further apart than a round trip, is a loss event rate of 1/gap.
        #[test]
        fn regular_losses(gap in 11_u64..200) {
            let lost: Vec<u64> = (1..12).map(|i| i * gap).collect();
            let mut history = after(false, without(&lost, 11 * gap + 5)).0;
            prop_assert!((history.loss_event_rate() - 1.0 / gap as f64).abs() < 1e-12);
        }
    }
}
