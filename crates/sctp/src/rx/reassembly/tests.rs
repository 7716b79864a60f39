use super::*;
use crate::rx::{Arrival, Tracker};
use proptest::prelude::*;
use std::collections::BTreeSet;

const NOW: Instant = Instant::ZERO;
const LIMITS: Limits = Limits { streams: 4, interleaving: false, max_message: 1 << 16 };
const INTERLEAVED: Limits = Limits { interleaving: true, ..LIMITS };

fn data(tsn: u64, stream: u16, ssn: u16, first: bool, last: bool, payload: &[u8]) -> Fragment<'_> {
    Fragment {
        tsn: Tsn::new(tsn),
        stream,
        unordered: false,
        first,
        last,
        timed: false,
        ppid: 5,
        key: Key::Ssn(ssn),
        payload,
        path: PathId(1),
        arrived: NOW,
    }
}

fn unordered(fragment: Fragment<'_>) -> Fragment<'_> {
    Fragment { unordered: true, ..fragment }
}

fn idata(stream: u16, mid: u32, fsn: u32, last: bool, payload: &[u8]) -> Fragment<'_> {
    let key = Key::Mid { mid, fsn };
    let (first, ppid) = (fsn == 0, if fsn == 0 { 5 } else { 0 });
    Fragment {
        tsn: Tsn::new(0),
        stream,
        unordered: false,
        first,
        last,
        timed: false,
        ppid,
        key,
        payload,
        path: PathId(1),
        arrived: NOW,
    }
}

fn drain(reassembly: &mut Reassembly) -> Vec<Vec<u8>> {
    let mut buf = Vec::new();
    let mut all = Vec::new();
    while reassembly.recv(&mut buf).is_some() {
        all.push(buf.clone());
    }
    all
}

#[test]
fn the_path_is_that_of_the_last_fragment_and_the_ppid_that_of_the_first() {
    let mut reassembly = Reassembly::new(INTERLEAVED);
    reassembly.insert(idata(3, 0, 1, true, b"b")).unwrap();
    reassembly.insert(Fragment { path: PathId(7), ..idata(3, 0, 0, false, b"a") }).unwrap();
    assert_eq!(reassembly.buffered(), 2 + 2 * Fragment::OVERHEAD);
    let mut buf = Vec::new();
    let received = Received { stream: 3, ppid: 5, unordered: false, path: PathId(7), whole: NOW, timing: None };
    assert_eq!(reassembly.recv(&mut buf), Some(received));
    assert_eq!((buf.as_slice(), reassembly.buffered()), (&b"ab"[..], 0));
}

#[test]
fn a_message_given_up_halfway_makes_room_for_the_next() {
    let mut dut = Reassembly::new(LIMITS);
    dut.insert(data(10, 0, 0, true, false, b"a")).unwrap();
    dut.insert(data(11, 1, 0, true, true, b"b")).unwrap();
    assert_eq!(drain(&mut dut), [b"b"]);
    assert_eq!(dut.buffered(), 0);
    // The other way round: the next one came first.
    dut.insert(data(22, 1, 1, true, false, b"c")).unwrap();
    dut.insert(data(20, 0, 1, true, false, b"x")).unwrap();
    dut.insert(data(21, 0, 1, false, false, b"x")).unwrap();
    assert_eq!(dut.buffered(), 1 + Fragment::OVERHEAD);
    dut.insert(data(23, 1, 1, false, true, b"d")).unwrap();
    assert_eq!(drain(&mut dut), [b"cd"]);
}

#[test]
fn what_is_asked_for_by_its_ppid_comes_out_of_turn_and_all_else_in_turn() {
    const OURS: u32 = 7;
    let mut dut = Reassembly::new(LIMITS);
    let insert = |dut: &mut Reassembly, ssn: u16, ppid, payload| {
        dut.insert(Fragment { ppid, ..data(ssn.into(), 0, ssn, true, true, payload) }).unwrap();
    };
    insert(&mut dut, 0, 0, b"a");
    insert(&mut dut, 1, 0, b"b");
    assert_eq!(dut.take(OURS), None);
    insert(&mut dut, 2, OURS, b"first");
    insert(&mut dut, 3, 0, b"c");
    insert(&mut dut, 4, OURS, b"second");
    let mut buf = Vec::new();
    assert!(dut.recv(&mut buf).is_some() && buf == b"a");
    assert_eq!(dut.take(OURS).as_deref(), Some(&b"first"[..]));
    assert!(dut.recv(&mut buf).is_some() && buf == b"b");
    assert_eq!(dut.take(OURS).as_deref(), Some(&b"second"[..]));
    assert_eq!(dut.take(OURS), None);
    assert_eq!(drain(&mut dut), [b"c"]);
    assert_eq!((dut.take(OURS), dut.buffered()), (None, 0));
    insert(&mut dut, 5, OURS, b"third");
    dut.forget_all();
    insert(&mut dut, 6, OURS, b"fourth");
    assert_eq!(dut.take(OURS).as_deref(), Some(&b"fourth"[..]));
}

#[test]
fn what_is_wanted_comes_out_of_turn_beside_what_is_asked_for_by_its_ppid() {
    const OURS: u32 = 7;
    let mut dut = Reassembly::new(LIMITS);
    let insert = |dut: &mut Reassembly, ssn: u16, ppid, payload| {
        dut.insert(Fragment { ppid, ..data(ssn.into(), 0, ssn, true, true, payload) }).unwrap();
    };
    let mut buf = Vec::new();
    let hello = |bytes: &[u8]| bytes.starts_with(b"hello");
    for (ssn, payload) in [&b"a"[..], b"b", b"c"].into_iter().enumerate() {
        insert(&mut dut, ssn as u16, 0, payload);
    }
    assert!(dut.recv_where(hello, &mut buf).is_none());
    insert(&mut dut, 3, OURS, b"key");
    insert(&mut dut, 4, 0, b"hello");
    insert(&mut dut, 5, 0, b"d");
    assert!(dut.recv(&mut buf).is_some() && buf == b"a");
    assert_eq!(dut.take(OURS).as_deref(), Some(&b"key"[..]));
    assert!(dut.recv_where(hello, &mut buf).is_some() && buf == b"hello");
    assert!(dut.recv_where(hello, &mut buf).is_none());
    insert(&mut dut, 6, OURS, b"key");
    assert_eq!(dut.take(OURS).as_deref(), Some(&b"key"[..]));
    assert_eq!(drain(&mut dut), [b"b", b"c", b"d"]);
    assert_eq!(dut.buffered(), 0);
    insert(&mut dut, 7, 0, b"hello again");
    assert!(dut.recv_where(hello, &mut buf).is_some());
}

#[test]
fn violations_are_named_and_leave_the_rest_untouched() {
    use ReassemblyError::*;
    let mut dut = Reassembly::new(LIMITS);
    assert_eq!(dut.insert(data(1, 4, 0, true, true, b"x")), Err(InvalidStream(4)));
    assert_eq!(dut.insert(idata(0, 0, 0, true, b"x")), Err(WrongKind));
    dut.insert(data(10, 0, 0, true, false, b"a")).unwrap();
    assert_eq!(dut.insert(data(11, 1, 0, false, true, b"x")), Err(Mismatch));
    assert_eq!(dut.insert(data(10, 0, 0, true, false, b"x")), Err(Repeated));
    dut.insert(data(12, 0, 0, false, true, b"c")).unwrap();
    assert_eq!(dut.insert(data(13, 0, 0, false, false, b"x")), Err(PastLast));
    assert_eq!(dut.insert(data(11, 0, 0, false, true, b"x")), Err(PastLast));
    assert_eq!(dut.insert(data(11, 0, 0, false, false, &[0; 70_000])), Err(TooLong { limit: 1 << 16 }));
    dut.insert(data(11, 0, 0, false, false, b"b")).unwrap();
    dut.insert(data(20, 0, 2, true, true, b"x")).unwrap();
    assert_eq!(dut.insert(data(21, 0, 2, true, true, b"x")), Err(RepeatedMessage));
    assert_eq!(drain(&mut dut), [b"abc"]);

    let mut dut = Reassembly::new(INTERLEAVED);
    assert_eq!(dut.insert(data(1, 0, 0, true, true, b"x")), Err(WrongKind));
    assert_eq!(dut.insert(Fragment { first: true, ..idata(0, 0, 1, false, b"x") }), Err(FirstFsn));
    assert_eq!(dut.insert(Fragment { first: false, ..idata(0, 0, 0, false, b"x") }), Err(FirstFsn));
    dut.insert(idata(0, 0, 4, true, b"x")).unwrap();
    assert_eq!(dut.insert(idata(0, 0, 9, false, b"x")), Err(PastLast));
    assert_eq!(dut.insert(idata(0, 0, 2, true, b"x")), Err(PastLast));
    assert_eq!(dut.insert(idata(0, 0, 4, true, b"x")), Err(Repeated));
}

#[test]
fn ssns_wrap() {
    let mut reassembly = Reassembly::new(LIMITS);
    for n in (0..200_000_u64).step_by(2) {
        reassembly.insert(data(n + 1, 0, (n + 1) as u16, true, true, b"odd")).unwrap();
        assert!(!reassembly.is_readable());
        reassembly.insert(data(n, 0, n as u16, true, true, b"even")).unwrap();
        assert_eq!(drain(&mut reassembly), [&b"even"[..], b"odd"]);
    }
}

#[test]
fn a_skip_as_far_as_possible_passes_the_wrap() {
    let mut reassembly = Reassembly::new(LIMITS);
    for ssn in [0x7fff, 0xffff_u16, 0x7fff] {
        reassembly.skip_ssn(NOW, 0, ssn);
        reassembly.insert(data(1, 0, ssn.wrapping_add(1), true, true, b"x")).unwrap();
        assert_eq!(drain(&mut reassembly).len(), 1);
        reassembly.skip_ssn(NOW, 0, ssn.wrapping_sub(9));
        reassembly.insert(data(1, 0, ssn, true, true, b"x")).unwrap();
        assert_eq!(reassembly.buffered(), 0, "a message that was skipped is ignored");
    }
}

#[test]
fn a_skip_releases_what_waited_and_drops_what_is_incomplete() {
    let mut reassembly = Reassembly::new(INTERLEAVED);
    reassembly.insert(idata(0, 1, 0, true, b"one")).unwrap();
    reassembly.insert(idata(0, 2, 1, false, b"part of two")).unwrap();
    reassembly.insert(idata(0, 4, 0, true, b"four")).unwrap();
    reassembly.insert(unordered(idata(0, 2, 0, false, b"another two"))).unwrap();
    assert_eq!(drain(&mut reassembly).len(), 0);
    reassembly.skip_mid(NOW, 0, false, 3);
    assert_eq!(drain(&mut reassembly), [&b"one"[..], b"four"]);
    assert_eq!(reassembly.buffered(), 11 + Fragment::OVERHEAD);
    reassembly.skip_mid(NOW, 0, true, 2);
    reassembly.insert(unordered(idata(0, 2, 1, true, b"too late"))).unwrap();
    assert_eq!(reassembly.buffered(), 0);
}

#[test]
fn forward_tsn_keeps_a_message_that_misses_nothing_below() {
    let mut reassembly = Reassembly::new(LIMITS);
    reassembly.insert(unordered(data(5, 0, 0, false, true, b"abandoned"))).unwrap();
    reassembly.insert(unordered(data(6, 0, 0, true, false, b"al"))).unwrap();
    reassembly.insert(unordered(data(7, 0, 0, false, false, b"i"))).unwrap();
    reassembly.forward_tsn(Tsn::new(7));
    reassembly.insert(unordered(data(8, 0, 0, false, true, b"ve"))).unwrap();
    assert_eq!(drain(&mut reassembly), [b"alive"]);
    assert_eq!(reassembly.buffered(), 0);
}

#[test]
fn the_end_of_a_message_whose_beginning_was_abandoned_is_dropped_whenever_it_comes() {
    let mut reassembly = Reassembly::new(LIMITS);
    reassembly.insert(unordered(data(13, 0, 0, false, false, b"x"))).unwrap();
    reassembly.forward_tsn(Tsn::new(11));
    reassembly.insert(unordered(data(12, 0, 0, false, false, b"x"))).unwrap();
    assert_eq!(reassembly.buffered(), 0);
    reassembly.insert(unordered(data(14, 0, 0, false, true, b"x"))).unwrap();
    reassembly.insert(unordered(data(15, 0, 0, true, true, b"next"))).unwrap();
    assert_eq!(drain(&mut reassembly), [b"next"]);
    assert_eq!(reassembly.buffered(), 0);
}

#[test]
fn a_message_given_up_before_its_end_had_a_tsn_makes_way_for_the_next() {
    let mut reassembly = Reassembly::new(LIMITS);
    reassembly.insert(unordered(data(10, 0, 0, true, false, b"x"))).unwrap();
    reassembly.forward_tsn(Tsn::new(10));
    reassembly.insert(unordered(data(11, 0, 0, true, true, b"next"))).unwrap();
    assert_eq!(drain(&mut reassembly), [b"next"]);
    assert_eq!(reassembly.buffered(), 0);
}

#[test]
fn a_skipped_ordered_message_goes_though_it_misses_nothing_below() {
    let mut reassembly = Reassembly::new(LIMITS);
    reassembly.insert(data(10, 0, 0, true, false, b"x")).unwrap();
    reassembly.insert(data(12, 0, 2, true, true, b"waits for the one before")).unwrap();
    reassembly.skip_ssn(NOW, 0, 0);
    reassembly.forward_tsn(Tsn::new(10));
    assert_eq!(reassembly.buffered(), 24 + Fragment::OVERHEAD);
    reassembly.insert(data(11, 0, 1, true, true, b"next")).unwrap();
    assert_eq!(drain(&mut reassembly), [&b"next"[..], b"waits for the one before"]);
    assert_eq!(reassembly.buffered(), 0);
}

#[test]
fn a_restart_delivers_what_was_complete_and_forgets_the_rest() {
    let mut reassembly = Reassembly::new(LIMITS);
    reassembly.insert(data(1, 0, 0, true, true, b"complete")).unwrap();
    reassembly.insert(data(3, 0, 2, true, true, b"waits")).unwrap();
    reassembly.insert(data(5, 1, 0, true, false, b"part")).unwrap();
    reassembly.reset(INTERLEAVED);
    reassembly.insert(idata(0, 0, 0, true, b"new")).unwrap();
    assert_eq!(drain(&mut reassembly), [&b"complete"[..], b"new"]);
    assert_eq!(reassembly.buffered(), 0);
}

#[test]
fn a_message_that_arrives_backwards_is_put_together() {
    let mut reassembly = Reassembly::new(LIMITS);
    let content: Vec<u8> = (0..30_000_u32).map(|n| (n % 251) as u8).collect();
    for (n, payload) in content.chunks(100).enumerate().rev() {
        reassembly.insert(data(n as u64, 0, 0, n == 0, n == 299, payload)).unwrap();
    }
    assert_eq!(drain(&mut reassembly), [content]);
}

#[test]
fn an_idle_receiving_half_takes_less_than_a_kilobyte() {
    let mut reassembly = Reassembly::new(LIMITS);
    reassembly.insert(data(0, 3, 0, true, true, b"x")).unwrap();
    let streams = 4 * size_of::<crate::rx::streams::Stream>();
    assert_eq!(streams, 4 * 32);
    assert!(size_of::<Reassembly>() + size_of::<Tracker>() + size_of::<crate::rx::AckTimer>() + streams < 1024);
}

#[test]
fn in_the_steady_state_storage_goes_round() {
    let mut reassembly = Reassembly::new(LIMITS);
    let mut buf = Vec::new();
    let mut storage = BTreeSet::new();
    let mut tsn = 0;
    for ssn in 0..300 {
        for fragment in 0..4 {
            // Four-fragment messages on stream 0 between whole ones on stream 1.
            reassembly.insert(data(tsn, 0, ssn, fragment == 0, fragment == 3, &[0; 1000])).unwrap();
            tsn += 1;
        }
        reassembly.insert(data(tsn, 1, ssn, true, true, &[0; 1000])).unwrap();
        tsn += 1;
        while reassembly.recv(&mut buf).is_some() {
            storage.insert(buf.as_ptr() as usize);
        }
    }
    assert!(storage.len() <= 8, "{} buffers for 600 messages", storage.len());
}

/// A message of the properties below.
#[derive(Clone, Debug)]
struct Sent {
    stream: u16,
    unordered: bool,
    /// The payload lengths of its fragments.
    fragments: Vec<usize>,
    /// The sender abandons it at some point.
    abandoned: bool,
}

fn messages() -> impl Strategy<Value = Vec<Sent>> {
    let lens = prop_oneof![2 => prop::collection::vec(1_usize..50, 1), 3 => prop::collection::vec(1_usize..50, 1..7)];
    let message = (0_u16..4, any::<bool>(), lens, prop::bool::weighted(0.3))
        .prop_map(|(stream, unordered, fragments, abandoned)| Sent { stream, unordered, fragments, abandoned });
    prop::collection::vec(message, 1..30)
}

/// One chunk in flight.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    message: usize,
    fragment: usize,
    tsn: u32,
    /// SSN or MID.
    number: u32,
}

/// Sender, network and receiver.
struct Run {
    sent: Vec<Sent>,
    chunks: Vec<Chunk>,
    tracker: Tracker,
    reassembly: Reassembly,
    interleaving: bool,
    /// Which messages came out, in order.
    delivered: Vec<usize>,
    buf: Vec<u8>,
}

impl Run {
    fn new(sent: Vec<Sent>, interleaving: bool, initial_tsn: u32) -> Self {
        let mut numbers = [[0_u32; 2]; 4];
        let mut chunks = Vec::new();
        for (message, Sent { stream, unordered, fragments, .. }) in sent.iter().enumerate() {
            let counter = &mut numbers[usize::from(*stream)][usize::from(*unordered)];
            chunks.extend((0..fragments.len()).map(|fragment| Chunk { message, fragment, tsn: 0, number: *counter }));
            *counter += u32::from(interleaving || !unordered);
        }
        if interleaving {
            // Streams take turns fragment by fragment.
            chunks.sort_by_key(|chunk| {
                let earlier = &sent[..chunk.message];
                let same = earlier.iter().filter(|other| other.stream == sent[chunk.message].stream);
                chunk.fragment + same.map(|other| other.fragments.len()).sum::<usize>()
            });
        }
        for (offset, chunk) in (0..).zip(&mut chunks) {
            chunk.tsn = initial_tsn.wrapping_add(offset);
        }
        let reassembly = Reassembly::new(Limits { interleaving, ..LIMITS });
        let tracker = Tracker::new(initial_tsn);
        Self { sent, chunks, tracker, reassembly, interleaving, delivered: Vec::new(), buf: Vec::new() }
    }

    fn content(&self, message: usize) -> Vec<u8> {
        let len: usize = self.sent[message].fragments.iter().sum();
        (0..len).map(|n| (message * 37 + n) as u8).collect()
    }

    fn arrive(&mut self, chunk: Chunk) {
        let tsn = self.tracker.unwrap(chunk.tsn);
        if !matches!(self.tracker.observe(tsn), Arrival::New { .. }) {
            return;
        }
        let sent = &self.sent[chunk.message];
        let start: usize = sent.fragments[..chunk.fragment].iter().sum();
        let content = self.content(chunk.message);
        let first = chunk.fragment == 0;
        let fragment = Fragment {
            tsn,
            stream: sent.stream,
            unordered: sent.unordered,
            first,
            last: chunk.fragment + 1 == sent.fragments.len(),
            timed: false,
            ppid: if first || !self.interleaving { chunk.message as u32 } else { 0 },
            key: if self.interleaving {
                Key::Mid { mid: chunk.number, fsn: chunk.fragment as u32 }
            } else {
                Key::Ssn(chunk.number as u16)
            },
            payload: &content[start..start + sent.fragments[chunk.fragment]],
            path: PathId(0),
            arrived: NOW,
        };
        self.reassembly.insert(fragment).expect("the sender keeps to the protocol");
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(received) = self.reassembly.recv(&mut self.buf) {
            let message = received.ppid as usize;
            assert_eq!(self.buf, self.content(message));
            let sent = &self.sent[message];
            assert_eq!((received.stream, received.unordered), (sent.stream, sent.unordered));
            self.delivered.push(message);
        }
    }

    /// Sends a FORWARD-TSN over whatever was abandoned, with `skip`, once the receiver's state is known.
    fn forward(&mut self) {
        let mut new_cumulative = self.tracker.cumulative();
        let mut passed = Vec::new();
        for chunk in &self.chunks {
            let tsn = self.tracker.unwrap(chunk.tsn);
            if tsn <= new_cumulative {
                continue;
            }
            let mut probe = Vec::new();
            self.tracker.gaps(&mut probe, usize::MAX);
            let offset = tsn - self.tracker.cumulative();
            let acked = probe.chunks(4).any(|block| {
                let at = |n: usize| u64::from(u16::from_be_bytes([block[n], block[n + 1]]));
                (at(0)..=at(2)).contains(&offset)
            });
            if !acked && !self.sent[chunk.message].abandoned {
                break;
            }
            new_cumulative = tsn;
            if self.sent[chunk.message].abandoned {
                passed.push(*chunk);
            }
        }
        for chunk in passed {
            let sent = &self.sent[chunk.message];
            if self.interleaving {
                self.reassembly.skip_mid(NOW, sent.stream, sent.unordered, chunk.number);
            } else if !sent.unordered {
                self.reassembly.skip_ssn(NOW, sent.stream, chunk.number as u16);
            }
        }
        if new_cumulative > self.tracker.cumulative() {
            self.reassembly.forward_tsn(new_cumulative);
            self.tracker.forward(new_cumulative);
        }
        self.drain();
    }

    /// Delivered at most once, and in order where order was asked for.
    fn check(&self, complete: impl Fn(&Sent) -> bool) {
        let unique: BTreeSet<usize> = self.delivered.iter().copied().collect();
        assert_eq!(unique.len(), self.delivered.len(), "delivered twice");
        for (message, sent) in self.sent.iter().enumerate() {
            assert!(unique.contains(&message) || !complete(sent), "message {message} is missing");
        }
        for stream in 0..4 {
            let ordered = |message: &&usize| self.sent[**message].stream == stream && !self.sent[**message].unordered;
            assert!(self.delivered.iter().filter(ordered).is_sorted());
        }
        assert_eq!(self.reassembly.buffered(), 0);
    }
}

/// An order of arrival for up to 180 chunks, with repetitions.
fn arrivals() -> impl Strategy<Value = Vec<usize>> {
    let spread = prop_oneof![Just(3_usize), Just(30), Just(400)];
    (spread, prop::collection::vec((0_usize..400, prop::bool::weighted(0.1)), 180)).prop_map(|(spread, draws)| {
        let mut order: Vec<(usize, usize)> = Vec::new();
        for (chunk, (draw, twice)) in draws.into_iter().enumerate() {
            order.push((chunk + draw % spread, chunk));
            if twice {
                order.push((chunk + draw * 7 % spread, chunk));
            }
        }
        order.sort_unstable();
        order.into_iter().map(|(_, chunk)| chunk).collect()
    })
}

/// `message` and its times in fragments, all of which have the T bit: that of the last counts.
fn timed(message: &[u8], cut: usize) -> Vec<Fragment<'_>> {
    let count = message.len().div_ceil(cut);
    let fragment = |(n, payload)| Fragment { timed: true, ..idata(0, 0, n as u32, n + 1 == count, payload) };
    message.chunks(cut).enumerate().map(fragment).collect()
}

#[test]
fn times_are_taken_off_messages_of_any_fragments_in_any_order() {
    let mut message = b"payload".to_vec();
    Times { given: 5_000_000, due: 5_050_000 }.emit(&mut braidcast_core::Writer::new(&mut message));
    for (cut, backwards) in [(100, false), (10, false), (10, true), (3, false), (3, true), (1, true)] {
        let mut dut = Reassembly::new(INTERLEAVED);
        let at = Instant::from_millis(5_000);
        dut.observe_clock(at, 4_990_000, Some(Duration::from_millis(20)));
        let mut fragments = timed(&message, cut);
        if backwards {
            fragments.reverse();
        }
        for fragment in fragments {
            dut.insert(Fragment { arrived: Instant::from_millis(5_060), ..fragment }).unwrap();
        }
        let mut buf = Vec::new();
        let received = dut.recv(&mut buf).expect("it is whole");
        assert_eq!(buf, b"payload", "{cut} {backwards}");
        let timing = received.timing.expect("the clock is known");
        assert_eq!((timing.age.as_millis(), timing.late.as_millis()), (60, 10));
        assert_eq!(dut.buffered(), 0);
    }
}

#[test]
fn a_message_of_times_alone_is_a_violation() {
    for len in 1..=Times::LEN {
        let mut dut = Reassembly::new(INTERLEAVED);
        let outcomes: Vec<_> = timed(&[1; Times::LEN][..len], 3).into_iter().map(|it| dut.insert(it)).collect();
        assert_eq!(outcomes.last(), Some(&Err(ReassemblyError::NothingButTimes)), "{len}");
        assert_eq!((dut.buffered(), dut.is_readable()), (0, false));
    }
}

proptest! {
    #[test]
    fn every_message_comes_out_once_intact_and_in_order_however_its_fragments_arrive(
        sent in messages(), interleaving: bool, initial_tsn: u32, order in arrivals(),
    ) {
        let mut run = Run::new(sent, interleaving, initial_tsn);
        for chunk in order {
            if let Some(chunk) = run.chunks.get(chunk).copied() {
                run.arrive(chunk);
            }
        }
        run.check(|_| true);
    }

    #[test]
    fn with_abandoned_messages_the_others_come_out_and_nothing_is_left(
        sent in messages(), interleaving: bool, initial_tsn: u32, order in arrivals(),
        outcomes in prop::collection::vec((any::<bool>(), prop::bool::weighted(0.2)), 400),
    ) {
        let mut run = Run::new(sent, interleaving, initial_tsn);
        for (chunk, (lost, forward)) in order.into_iter().zip(outcomes) {
            let chunk = run.chunks.get(chunk).copied();
            if let Some(chunk) = chunk.filter(|chunk| !(lost && run.sent[chunk.message].abandoned)) {
                run.arrive(chunk);
            }
            if forward {
                run.forward();
            }
        }
        run.forward();
        run.check(|sent| !sent.abandoned);
    }

    #[test]
    fn nonsense_neither_panics_nor_loses_count(
        interleaving: bool,
        steps in prop::collection::vec((0..12, 0_u64..12, 0_u16..5, any::<[bool; 3]>(), 0_u32..4, 0_u32..4), 0..200),
    ) {
        let mut dut = Reassembly::new(Limits { interleaving, ..LIMITS });
        for (what, tsn, stream, [unordered, first, last], mid, fsn) in steps {
            let key = if interleaving { Key::Mid { mid, fsn } } else { Key::Ssn(mid as u16) };
            let first = if interleaving { fsn == 0 } else { first };
            match what {
                0 => dut.skip_ssn(NOW, stream, mid as u16),
                1 => dut.skip_mid(NOW, stream, unordered, mid),
                2 => dut.forward_tsn(Tsn::new(tsn)),
                3 => drop(dut.recv(&mut Vec::new())),
                _ => {
                    let payload = &[0; 9][..tsn as usize % 10];
                    let path = PathId(0);
                    let _ = dut.insert(Fragment { tsn: Tsn::new(tsn), stream, unordered, first, last, timed: false, ppid: 0, key, payload, path, arrived: NOW });
                }
            }
        }
        let partial = dut.runs.drop_range(0..=u128::MAX, &mut dut.pool);
        let complete: usize = dut.waiting.values().chain(&dut.ready).map(Message::charge).sum();
        prop_assert_eq!(partial + complete, dut.buffered());
    }
}
