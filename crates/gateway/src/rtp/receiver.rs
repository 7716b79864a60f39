use super::wire::Packet;
use braidcast_core::{Instant, Unwrapper};
use core::time::Duration;
use std::collections::BTreeMap;

/// How long a packet is waited for after a later one has come.
const WAIT: Duration = Duration::from_millis(20);
/// Packets that are held: 20 ms of 800 Mbit/s.
const HELD: usize = 2048;
/// Packets of another source, or far from the numbers that are expected, after which these are what is expected:
/// the sender began anew.
const ANEW: u32 = 4;
/// A number so far from what is expected is another beginning, not a gap.
const FAR: u64 = 3000;

/// What was counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Packets that were taken.
    pub packets: u64,
    /// Packets that came after later ones, in time.
    pub reordered: u64,
    /// Packets that did not come in time.
    pub lost: u64,
    /// Packets that came twice, or too late.
    pub useless: u64,
    /// Datagrams that are not MPEG-TS in RTP.
    pub malformed: u64,
    /// Times that the sender began anew.
    pub restarts: u64,
}

/// Takes one stream of MPEG-TS out of RTP.
#[derive(Debug, Default)]
pub struct Receiver {
    stream: Option<Stream>,
    counts: Counts,
}

#[derive(Debug)]
struct Stream {
    source: u32,
    numbers: Unwrapper<16>,
    /// The number of the next packet.
    next: u64,
    held: BTreeMap<u64, (Instant, Vec<u8>)>,
    /// Packets in a row that do not fit.
    strange: u32,
}

impl Receiver {
    /// Nothing has come.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a datagram that came at `now`.
    pub fn take(&mut self, now: Instant, datagram: &[u8]) {
        let packet = Packet::parse(datagram).filter(|packet| {
            packet.header.may_be_ts() && packet.payload.len() % 188 == 0 && packet.payload.len() >= 188
        });
        let Some(Packet { header, payload }) = packet else {
            self.counts.malformed += 1;
            return;
        };
        let stream = self.stream.get_or_insert_with(|| Stream::new(header.source, header.sequence));
        let number = stream.numbers.peek(header.sequence.into());
        if header.source != stream.source || number.abs_diff(stream.next) > FAR {
            stream.strange += 1;
            if stream.strange < ANEW {
                self.counts.useless += 1;
                return;
            }
            self.counts.restarts += 1;
            *stream = Stream::new(header.source, header.sequence);
        }
        stream.strange = 0;
        let number = stream.numbers.unwrap(header.sequence.into());
        if number < stream.next || stream.held.contains_key(&number) || stream.held.len() >= HELD {
            self.counts.useless += 1;
            return;
        }
        self.counts.packets += 1;
        self.counts.reordered += u64::from(stream.held.last_key_value().is_some_and(|(last, _)| *last > number));
        stream.held.insert(number, (now, payload.to_vec()));
    }

    /// The next payload, into `buf`; returns when it came. A gap is skipped when it is 20 ms old.
    pub fn deliver(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Instant> {
        let stream = self.stream.as_mut()?;
        let (number, _) = stream.first_due().filter(|(_, at)| *at <= now)?;
        let (came, payload) = stream.held.remove(&number)?;
        self.counts.lost += number - stream.next;
        stream.next = number + 1;
        *buf = payload;
        Some(came)
    }

    /// When to [`deliver`](Self::deliver) although nothing more came.
    pub fn timeout(&self) -> Option<Instant> {
        self.stream.as_ref()?.first_due().map(|(_, at)| at)
    }

    /// What was counted.
    pub const fn counts(&self) -> Counts {
        self.counts
    }
}

impl Stream {
    fn new(source: u32, first: u16) -> Self {
        let numbers = Unwrapper::new(first.into());
        Self { source, next: numbers.highest(), numbers, held: BTreeMap::new(), strange: 0 }
    }

    /// The first packet that is held, and when it need wait no longer.
    fn first_due(&self) -> Option<(u64, Instant)> {
        let (number, (came, _)) = self.held.first_key_value()?;
        Some((*number, if *number == self.next { *came } else { *came + WAIT }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Header, Sender};
    use super::*;
    use braidcast_core::Rng;

    fn ms(n: u64) -> Instant {
        Instant::from_millis(n)
    }

    fn packet(sequence: u16, source: u32, mark: u8) -> Vec<u8> {
        let mut bytes = Vec::new();
        Header::of_ts(sequence, 0, source).write(&mut bytes);
        bytes.extend([mark; 188]);
        bytes
    }

    fn all(rx: &mut Receiver, now: u64) -> Vec<u8> {
        let mut buf = Vec::new();
        std::iter::from_fn(|| rx.deliver(ms(now), &mut buf).map(|_| buf[0])).collect()
    }

    #[test]
    fn packets_are_in_order_again_and_a_gap_is_waited_for_20_ms() {
        let mut rx = Receiver::new();
        for (n, sequence) in [65_534, 65_535, 1, 0, 2, 2].into_iter().enumerate() {
            rx.take(ms(n as u64), &packet(sequence, 5, sequence as u8));
        }
        assert_eq!(all(&mut rx, 5), [254, 255, 0, 1, 2]);
        rx.take(ms(10), &packet(5, 5, 5));
        rx.take(ms(12), &packet(4, 5, 4));
        assert_eq!((all(&mut rx, 29), rx.timeout()), (vec![], Some(ms(32))));
        assert_eq!(all(&mut rx, 32), [4, 5]);
        rx.take(ms(33), &packet(3, 5, 3));
        let counts = rx.counts();
        assert_eq!((counts.lost, counts.reordered, counts.useless, all(&mut rx, 99)), (1, 2, 2, vec![]));
    }

    #[test]
    fn the_same_stream_over_two_networks_comes_out_once() {
        let mut rx = Receiver::new();
        let mut got = Vec::new();
        for n in 0..210_u16 {
            // Each network loses its own.
            for (loses, late) in [(7, 0), (11, 3)] {
                if let Some(sent) = n.checked_sub(late).filter(|sent| *sent < 200 && sent % loses != 1) {
                    rx.take(ms(n.into()), &packet(sent, 5, sent as u8));
                }
            }
            got.extend(all(&mut rx, n.into()));
        }
        got.extend(all(&mut rx, 500));
        // 1, 78 and 155: what both lose.
        assert_eq!((got.len(), rx.counts().lost), (197, 3));
        assert!(got.is_sorted());
    }

    #[test]
    fn a_sender_that_begins_anew_is_followed_and_a_stranger_is_not() {
        let mut rx = Receiver::new();
        (0..5).for_each(|n| rx.take(ms(n.into()), &packet(n, 5, 1)));
        rx.take(ms(6), &packet(9, 6, 9));
        rx.take(ms(7), &packet(5, 5, 1));
        assert_eq!(all(&mut rx, 7), [1; 6]);
        (0..6).for_each(|n| rx.take(ms(8 + u64::from(n)), &packet(40_000 + n, 6, 2)));
        assert_eq!((all(&mut rx, 20), rx.counts().restarts), (vec![2; 3], 1));
        rx.take(ms(21), &[0x47; 1316]);
        rx.take(ms(21), &packet(1, 6, 1)[..100]);
        assert_eq!(rx.counts().malformed, 2);
    }

    #[test]
    fn of_packets_that_are_held_there_are_2048_at_most_and_none_for_longer_than_20_ms() {
        let mut rx = Receiver::new();
        // The first of all is missing; those behind it come as far ahead as any may.
        rx.take(ms(0), &packet(100, 7, 0));
        assert_eq!(all(&mut rx, 0), [0]);
        for n in 0..30_000_u16 {
            rx.take(ms(0), &packet(102 + n % 2900, 7, 1));
        }
        assert_eq!(rx.stream.as_ref().map(|it| it.held.len()), Some(HELD));
        assert_eq!(all(&mut rx, 20).len(), HELD);
    }

    #[test]
    fn what_is_sent_is_taken() {
        let (mut tx, mut rx) = (Sender::new(&mut Rng::from_seed(3)), Receiver::new());
        let mut buf = Vec::new();
        for n in 0..100 {
            buf.clear();
            tx.write(ms(n), &[n as u8; 7 * 188], &mut buf);
            rx.take(ms(n), &buf);
        }
        assert!(all(&mut rx, 100).into_iter().eq(0..100));
    }
}
