//! The sending half of a connection: what waits, what is out, and what is to be sent again.

use super::cipher::Cipher;
use super::wire::KeySlot;
use crate::reception::Rtt;
use braidcast_core::{Instant, Unwrapper};
use core::time::Duration;
use std::collections::{BTreeSet, VecDeque};

/// A packet is kept for a second at least, and a quarter longer than the latency (draft-sharabayko-srt §4.6).
const LEAST_KEPT: Duration = Duration::from_secs(1);
/// Packets without an answer that are sent again at once if nothing is heard of them.
const TAIL: u64 = 16;

/// A packet that is sent and not acknowledged, or not sent yet.
struct Packet {
    payload: Vec<u8>,
    key: KeySlot,
    pushed: Instant,
    sent: Option<Instant>,
    again: bool,
}

/// Counts of the sending half.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sent {
    /// Packets that were sent, each counted once.
    pub packets: u64,
    /// Their payloads' bytes.
    pub bytes: u64,
    /// Packets that were sent again.
    pub repeated: u64,
    /// Packets that the other end asked for.
    pub asked: u64,
    /// Packets that were dropped before they were acknowledged: too late, or no room. With RIST, those that were asked
    /// for when they were not kept any more, and those that came before anybody had answered.
    pub dropped: u64,
}

/// A packet to write.
pub(super) struct Outgoing<'a> {
    pub(super) sequence: u32,
    pub(super) message: u32,
    pub(super) key: KeySlot,
    pub(super) repeated: bool,
    pub(super) pushed: Instant,
    pub(super) payload: &'a [u8],
}

pub(super) struct Send {
    numbers: Unwrapper<31>,
    /// Number of the first packet in `packets`.
    first: u64,
    packets: VecDeque<Packet>,
    /// The first packet that was never sent.
    unsent: u64,
    lost: BTreeSet<u64>,
    /// All before it are acknowledged.
    acknowledged: u64,
    /// When the other end last said what it has, or was last sent something new, which has it say that.
    heard: Instant,
    /// Packets that the other end has room for, beginning with `acknowledged`.
    window: u64,
    kept: Duration,
    limit: usize,
    spare: Vec<Vec<u8>>,
    start: u64,
    pub(super) counts: Sent,
}

impl Send {
    /// Nothing is sent; the first packet has the number `first`. `window`: packets that may be out.
    pub(super) fn new(now: Instant, first: u32, latency: Duration, window: u32, limit: usize) -> Self {
        let numbers = Unwrapper::new(first.into());
        let first = numbers.highest();
        Self {
            numbers,
            first,
            packets: VecDeque::new(),
            unsent: first,
            lost: BTreeSet::new(),
            acknowledged: first,
            heard: now,
            window: window.max(16).into(),
            kept: (latency * 5 / 4).max(LEAST_KEPT),
            limit,
            spare: Vec::new(),
            start: first,
            counts: Sent::default(),
        }
    }

    /// Takes a payload.
    pub(super) fn push(&mut self, now: Instant, payload: &[u8]) {
        if self.packets.len() >= self.limit {
            self.drop_first();
        }
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.extend_from_slice(payload);
        if self.unsent == self.acknowledged {
            self.heard = now;
        }
        self.packets.push_back(Packet { payload: buffer, key: KeySlot::Clear, pushed: now, sent: None, again: false });
    }

    fn drop_first(&mut self) {
        if self.packets.front().is_some() {
            self.counts.dropped += 1;
            self.pop();
        }
    }

    fn pop(&mut self) {
        let Some(mut packet) = self.packets.pop_front() else { return };
        self.lost.remove(&self.first);
        self.first += 1;
        self.unsent = self.unsent.max(self.first);
        packet.payload.clear();
        if self.spare.len() < 64 {
            self.spare.push(packet.payload);
        }
    }

    /// Drops what would come too late, and sends again what nothing is heard of.
    pub(super) fn tend(&mut self, now: Instant, rtt: &Rtt) {
        while self.packets.front().is_some_and(|packet| now - packet.pushed > self.kept) {
            self.drop_first();
        }
        if self.lost.is_empty() && self.unsent > self.first && now - self.heard > self.silence(rtt) {
            // The last packets of a burst are missed by nobody who could ask for them.
            self.heard = now;
            self.lost.extend(self.first..self.unsent.min(self.first + TAIL));
        }
    }

    fn silence(&self, rtt: &Rtt) -> Duration {
        rtt.patience() + Duration::from_millis(20)
    }

    /// When to call [`tend`](Self::tend).
    pub(super) fn tend_at(&self, rtt: &Rtt) -> Option<Instant> {
        let oldest = self.packets.front()?.pushed + self.kept + Duration::from_millis(1);
        let silent = self.heard + self.silence(rtt) + Duration::from_millis(1);
        Some(if self.unsent > self.first && self.lost.is_empty() { oldest.min(silent) } else { oldest })
    }

    /// All before `next` have come; there is room for `room` more. An acknowledgement of what was not sent is
    /// forged, and is not heeded.
    pub(super) fn acknowledge(&mut self, now: Instant, next: u32, room: Option<u32>) -> bool {
        let next = self.numbers.peek(next.into());
        if next > self.unsent || next < self.acknowledged {
            return next <= self.unsent;
        }
        if next > self.acknowledged {
            self.heard = now;
        }
        self.acknowledged = next;
        while self.first < next && !self.packets.is_empty() {
            self.pop();
        }
        if let Some(room) = room {
            self.window = u64::from(room).max(2);
        }
        true
    }

    /// The packets from `first` to `last` are missing there. Returns those that are not kept any more.
    pub(super) fn ask(&mut self, now: Instant, first: u32, last: u32) -> Option<(u32, u32)> {
        let (first, last) = (self.numbers.peek(first.into()), self.numbers.peek(last.into()));
        if last >= self.unsent || first > last || last < self.acknowledged {
            return None;
        }
        self.heard = now;
        let here = first.max(self.first);
        for number in here..=last {
            self.counts.asked += 1;
            self.lost.insert(number);
        }
        let gone = first.max(self.acknowledged);
        (gone < self.first).then(|| (gone as u32 & 0x7fff_ffff, (last.min(self.first - 1)) as u32 & 0x7fff_ffff))
    }

    /// The next packet to write: what is lost goes before what is new (§4.8.2).
    pub(super) fn next(&mut self, now: Instant, cipher: Option<&mut Cipher>) -> Option<Outgoing<'_>> {
        let number = match self.lost.pop_first() {
            Some(number) => number,
            None if self.unsent < (self.acknowledged.max(self.first)).saturating_add(self.window) => self.unsent,
            None => return None,
        };
        let packet = self.packets.get_mut(usize::try_from(number.checked_sub(self.first)?).ok()?)?;
        let sequence = number as u32 & 0x7fff_ffff;
        if packet.sent.is_none() {
            if let Some(cipher) = cipher {
                packet.key = cipher.seal(sequence, &mut packet.payload);
            }
            // Whoever gets it can ask for what is missing before it.
            self.heard = now;
            self.unsent = number + 1;
            self.numbers.unwrap(sequence.into());
            self.counts.packets += 1;
            self.counts.bytes += packet.payload.len() as u64;
        } else {
            packet.again = true;
            self.counts.repeated += 1;
        }
        packet.sent = Some(now);
        Some(Outgoing {
            sequence,
            // Each packet is a message; their numbers begin with 1.
            message: ((number - self.start + 1) & 0x03ff_ffff) as u32,
            key: packet.key,
            repeated: packet.again,
            pushed: packet.pushed,
            payload: &packet.payload,
        })
    }

    /// Returns `true` if all that was pushed is acknowledged or dropped.
    pub(super) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Instant {
        Instant::from_millis(n)
    }

    fn send(n: u64, limit: usize) -> Send {
        let mut tx = Send::new(ms(0), 0x7fff_fffe, Duration::from_millis(120), 8192, limit);
        (0..n).for_each(|n| tx.push(ms(n), &[n as u8; 4]));
        tx
    }

    fn out(tx: &mut Send, now: u64) -> Vec<(u8, bool)> {
        std::iter::from_fn(|| tx.next(ms(now), None).map(|packet| (packet.payload[0], packet.repeated))).collect()
    }

    #[test]
    fn what_is_asked_for_goes_first_and_what_is_acknowledged_is_forgotten() {
        let mut tx = send(4, 100);
        assert_eq!(out(&mut tx, 4), [(0, false), (1, false), (2, false), (3, false)]);
        tx.push(ms(5), &[4; 4]);
        assert_eq!(tx.ask(ms(5), 0x7fff_ffff, 0), None);
        assert_eq!(out(&mut tx, 5), [(1, true), (2, true), (4, false)]);
        assert!(tx.acknowledge(ms(6), 1, Some(100)));
        assert_eq!((tx.packets.len(), tx.ask(ms(6), 0x7fff_fffe, 0x7fff_ffff)), (2, None));
        assert_eq!(out(&mut tx, 6), []);
    }

    #[test]
    fn what_nobody_sent_is_neither_acknowledged_nor_asked_for() {
        let mut tx = send(3, 100);
        out(&mut tx, 3);
        assert!(!tx.acknowledge(ms(4), 2, None));
        assert_eq!((tx.ask(ms(4), 0, 50), tx.ask(ms(4), 0, 0x7fff_fff0)), (None, None));
        assert_eq!((out(&mut tx, 4), tx.packets.len()), (vec![], 3));
    }

    #[test]
    fn what_is_too_late_is_dropped_and_the_other_end_told_if_it_asks() {
        let mut tx = send(3, 100);
        out(&mut tx, 3);
        tx.tend(ms(1002), &Rtt::new());
        assert_eq!((tx.packets.len(), tx.counts.dropped), (1, 2));
        assert_eq!(tx.ask(ms(1002), 0x7fff_fffe, 0), Some((0x7fff_fffe, 0x7fff_ffff)));
        assert_eq!(out(&mut tx, 1002), [(2, true)]);
    }

    #[test]
    fn the_end_of_a_burst_is_sent_again_if_nothing_is_heard() {
        let mut tx = send(2, 100);
        out(&mut tx, 2);
        assert_eq!(tx.tend_at(&Rtt::new()), Some(ms(323)));
        tx.tend(ms(323), &Rtt::new());
        assert_eq!(out(&mut tx, 323), [(0, true), (1, true)]);
    }

    #[test]
    fn while_a_burst_goes_on_nothing_is_sent_again_without_a_word() {
        let mut tx = send(1, 1000);
        for now in 1..1000 {
            tx.push(ms(now), &[1; 4]);
            assert_eq!(out(&mut tx, now).iter().filter(|(_, again)| *again).count(), 0);
            tx.tend(ms(now), &Rtt::new());
        }
    }

    #[test]
    fn a_window_and_a_limit_are_kept_to() {
        let mut tx = send(50, 40);
        assert_eq!(tx.counts.dropped, 10);
        tx.window = 16;
        assert_eq!(out(&mut tx, 50).len(), 16);
        assert!(tx.acknowledge(ms(51), 20, Some(8)));
        assert_eq!(out(&mut tx, 51).len(), 4);
    }
}
