use super::config::{Config, ISN};
use super::payload;
use super::segment::{Flags, Options, SackBlocks, Segment};
use crate::traffic::Series;
use braidcast_core::{Ecn, Instant, Serial, Unwrapper};
use std::collections::BTreeMap;

/// Ranges whose age is remembered, to report the latest first.
const RECENT: usize = 16;

/// The receiving end of a connection: puts the stream in order and counts it, and acknowledges (RFC
/// 5681 §4.2, RFC 2018 §4).
#[derive(Debug)]
pub struct Receiver {
    config: Config,
    /// The wire's number of the first byte of the stream.
    first: u64,
    unwrapper: Unwrapper<32>,
    /// Bytes of the stream that are delivered, which is where the next one stands.
    next: u64,
    /// What is held beyond that: start and end of each range.
    held: BTreeMap<u64, u64>,
    /// Starts of held ranges, the one that grew last first.
    recent: Vec<u64>,
    sack: bool,
    ecn: bool,
    syn_ack_due: bool,
    ack_due: bool,
    /// Segments that wait for an acknowledgement.
    unacknowledged: u32,
    ack_at: Option<Instant>,
    /// A mark was seen that the sender has not answered (RFC 3168 §6.1.3).
    echo: bool,
    series: Series,
    duplicates: u64,
    wrong: u64,
}

impl Receiver {
    /// Answers a SYN.
    pub(super) fn accept(config: Config, syn: &Segment<'_>) -> Self {
        let unwrapper = Unwrapper::new(u64::from(syn.sequence.wrapping_add(1)));
        Self {
            config,
            first: unwrapper.highest(),
            unwrapper,
            next: 0,
            held: BTreeMap::new(),
            recent: Vec::new(),
            sack: syn.options.sack_permitted,
            // An ECN-setup SYN has both bits (RFC 3168 §6.1.1).
            ecn: config.ecn && syn.flags.has(Flags::ECE | Flags::CWR),
            syn_ack_due: true,
            ack_due: false,
            unacknowledged: 0,
            ack_at: None,
            echo: false,
            series: Series::default(),
            duplicates: 0,
            wrong: 0,
        }
    }

    pub(super) fn handle(&mut self, now: Instant, segment: &Segment<'_>, ecn: Ecn) {
        if segment.flags.has(Flags::SYN) {
            self.syn_ack_due = true;
            return;
        }
        if segment.payload.is_empty() {
            return;
        }
        if self.ecn {
            self.echo = (self.echo && !segment.flags.has(Flags::CWR)) || ecn == Ecn::Ce;
        }
        let Some(start) = self.unwrapper.peek(u64::from(segment.sequence)).checked_sub(self.first) else { return };
        let end = start + segment.payload.len() as u64;
        if end > self.next + self.config.receive_window {
            return;
        }
        self.unwrapper.unwrap(u64::from(segment.sequence));
        if segment.payload != payload::at(start, segment.payload.len()) {
            self.wrong += segment.payload.len() as u64;
        }
        let in_order = start <= self.next && end > self.next && self.held.is_empty();
        self.take(now, start, end);
        self.unacknowledged += 1;
        if !in_order || self.unacknowledged >= 2 || self.config.delayed_ack.is_zero() {
            self.ack_due = true;
        } else {
            self.ack_at = Some(now + self.config.delayed_ack);
        }
    }

    /// `start..end` arrived.
    fn take(&mut self, now: Instant, start: u64, end: u64) {
        if end <= self.next || self.held.range(..=start).next_back().is_some_and(|(_, held)| *held >= end) {
            self.duplicates += 1;
            return;
        }
        let (mut start, mut end) = (start, end);
        // Joins with what touches it.
        while let Some((&from, &to)) = self.held.range(..=end).next_back().filter(|(_, to)| **to >= start) {
            self.held.remove(&from);
            self.recent.retain(|known| *known != from);
            (start, end) = (start.min(from), end.max(to));
        }
        if start <= self.next {
            self.series.add(now, (end - self.next) as usize);
            self.next = end;
        } else {
            self.held.insert(start, end);
            self.recent.insert(0, start);
            self.recent.truncate(RECENT);
        }
    }

    pub(super) const fn timeout(&self) -> Option<Instant> {
        self.ack_at
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if self.ack_at.is_some_and(|at| at <= now) {
            self.ack_at = None;
            self.ack_due = true;
        }
    }

    /// The next acknowledgement, but for its ports.
    pub(super) fn poll(&mut self) -> Option<Segment<'static>> {
        let mut options = Options::default();
        let (shift, window) = self.config.scaled_window();
        if self.syn_ack_due {
            self.syn_ack_due = false;
            options.mss = Some(self.config.mss);
            options.window_scale = Some(shift);
            options.sack_permitted = self.sack;
            let flags = (Flags::SYN | Flags::ACK).with(Flags::ECE, self.ecn);
            return Some(self.segment(ISN, flags, self.config.receive_window.min(0xffff) as u16, options));
        }
        if !self.ack_due {
            return None;
        }
        self.ack_due = false;
        self.ack_at = None;
        self.unacknowledged = 0;
        if self.sack {
            options.sack = self.blocks();
        }
        Some(self.segment(ISN.wrapping_add(1), Flags::ACK.with(Flags::ECE, self.echo), window, options))
    }

    fn segment(&self, sequence: u32, flags: Flags, window: u16, options: Options) -> Segment<'static> {
        let acknowledgement = self.wire(self.next);
        Segment { sequence, acknowledgement, flags, window, options, ..Segment::default() }
    }

    fn wire(&self, offset: u64) -> u32 {
        Serial::<32>::new(self.first + offset).get() as u32
    }

    fn blocks(&self) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        let recent = self.recent.iter().filter_map(|start| Some((*start, *self.held.get(start)?)));
        recent.for_each(|(start, end)| blocks.push(self.wire(start), self.wire(end)));
        blocks
    }

    /// Bytes delivered in order, over time.
    pub const fn delivered(&self) -> &Series {
        &self.series
    }

    /// Segments that brought nothing new.
    pub const fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Bytes that were not those that belong to their place in the stream; anything but 0 is a fault.
    pub const fn wrong(&self) -> u64 {
        self.wrong
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;
    use proptest::prelude::*;

    fn receiver() -> Receiver {
        let options = Options { sack_permitted: true, ..Options::default() };
        let syn = Segment { sequence: ISN, flags: Flags::SYN, options, ..Segment::default() };
        let mut receiver = Receiver::accept(Config::default(), &syn);
        assert!(receiver.poll().is_some_and(|answer| answer.flags.has(Flags::SYN | Flags::ACK)));
        receiver
    }

    fn data(receiver: &mut Receiver, millis: u64, start: u64, len: usize) -> Option<Segment<'static>> {
        let sequence = ISN.wrapping_add(1).wrapping_add(start as u32);
        let segment = Segment { sequence, flags: Flags::ACK, payload: payload::at(start, len), ..Segment::default() };
        receiver.handle(Instant::from_millis(millis), &segment, Ecn::NotEct);
        receiver.poll()
    }

    fn acked(receiver: &Receiver, segment: Option<Segment<'_>>) -> Option<(u64, Vec<(u64, u64)>)> {
        let place = |wire: u32| u64::from(wire.wrapping_sub(receiver.wire(0)));
        segment.map(|s| (place(s.acknowledgement), s.options.sack.iter().map(|(l, r)| (place(l), place(r))).collect()))
    }

    #[test]
    fn every_second_segment_is_acknowledged_or_the_first_after_a_while() {
        let mut receiver = receiver();
        assert_eq!(data(&mut receiver, 0, 0, 100), None);
        let second = data(&mut receiver, 1, 100, 100);
        assert_eq!(acked(&receiver, second), Some((200, vec![])));
        assert_eq!(data(&mut receiver, 10, 200, 100), None);
        let at = receiver.timeout();
        assert_eq!(at, Some(Instant::from_millis(10) + Config::default().delayed_ack));
        receiver.handle_timeout(Instant::from_millis(10) + Duration::from_secs(1));
        let late = receiver.poll();
        assert_eq!((acked(&receiver, late), receiver.timeout()), (Some((300, vec![])), None));
    }

    #[test]
    fn gaps_are_reported_at_once_the_latest_block_first() {
        let mut receiver = receiver();
        let mut step = |start| {
            let segment = data(&mut receiver, 0, start, 100);
            acked(&receiver, segment)
        };
        assert_eq!(step(100), Some((0, vec![(100, 200)])));
        assert_eq!(step(500), Some((0, vec![(500, 600), (100, 200)])));
        assert_eq!(step(300), Some((0, vec![(300, 400), (500, 600), (100, 200)])));
        assert_eq!(step(200), Some((0, vec![(100, 400), (500, 600)])));
        assert_eq!(step(0), Some((400, vec![(500, 600)])));
        assert_eq!(step(0), Some((400, vec![(500, 600)])), "a duplicate is acknowledged at once");
        assert_eq!(step(400), Some((600, vec![])));
        assert_eq!((receiver.delivered().total(), receiver.duplicates(), receiver.wrong()), (600, 1, 0));
    }

    #[test]
    fn bytes_in_the_wrong_place_are_noticed() {
        let mut receiver = receiver();
        let segment = Segment { sequence: ISN.wrapping_add(1), payload: payload::at(100, 50), ..Segment::default() };
        receiver.handle(Instant::ZERO, &segment, Ecn::NotEct);
        assert_eq!(receiver.wrong(), 50);
    }

    proptest! {
        #[test]
        fn whatever_the_order_the_stream_is_delivered_once_up_to_the_first_gap(
            pieces in prop::collection::vec((0_usize..40, 1_usize..6), 1..200),
        ) {
            let (mut receiver, mut have) = (receiver(), [false; 48]);
            for (start, len) in pieces {
                let answer = data(&mut receiver, 0, start as u64 * 100, len * 100);
                have[start..start + len].fill(true);
                let prefix = have.iter().take_while(|have| **have).count() as u64 * 100;
                prop_assert_eq!(receiver.delivered().total(), prefix);
                for (left, right) in acked(&receiver, answer).map_or(vec![], |(_, blocks)| blocks) {
                    let block = &have[left as usize / 100..right as usize / 100];
                    prop_assert!(left > prefix && block.iter().all(|have| *have));
                }
            }
            prop_assert_eq!(receiver.wrong(), 0);
        }
    }
}
