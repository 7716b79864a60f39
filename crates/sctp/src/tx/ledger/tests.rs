//! Stories of single chunks, and any verbs in any order: after each one the ledger recounts itself.

use super::*;
use crate::api::{Reliability, SendOptions};
use crate::tx::Prospect;
use crate::wire::Entries;
use braidcast_core::Instant;
use core::time::Duration;
use proptest::prelude::*;

const FIRST: u32 = 100;

/// A ledger beside the queue that its chunks come from.
struct Desk {
    ledger: Ledger,
    queue: SendQueue,
    journal: Journal,
    report: AckReport,
    now: Instant,
    window: u32,
}

impl Desk {
    fn new(abandonment: Abandonment) -> Self {
        let mut options = Options::default();
        options.papers.abandonment = abandonment;
        let mut queue = SendQueue::new(options.queue.stream_order, abandonment);
        queue.settle(true, true, false);
        let ledger = Ledger::new(&options, FIRST, 1 << 20);
        let now = Instant::from_millis(1);
        Self { ledger, queue, journal: Journal::default(), report: AckReport::default(), now, window: 1 << 20 }
    }

    fn books(&mut self) -> (&mut Ledger, Books<'_>) {
        (&mut self.ledger, Books { queue: &mut self.queue, journal: &mut self.journal })
    }

    /// Sends a message of `len` bytes over `path`, in pieces of 1000.
    fn send(&mut self, path: usize, len: usize, reliability: Reliability) {
        let how = SendOptions { unordered: true, reliability, ..SendOptions::default() };
        self.queue.push(self.now, &vec![7; len], how);
        while let Some(piece) = self.queue.cut(1000) {
            let leave = self.leave(path);
            let (ledger, books) = self.books();
            ledger.send(books, leave, piece);
        }
    }

    /// Acknowledges all before FIRST + `count`, and the `gaps` behind it.
    fn acknowledge(&mut self, count: u32, gaps: &[(u16, u16)], kept: bool) -> bool {
        let blocks: Vec<u8> =
            gaps.iter().flat_map(|(start, end)| [start.to_be_bytes(), end.to_be_bytes()].concat()).collect();
        let (none, blocks) = (Entries::EMPTY, Entries::new(&blocks));
        let (gaps, kept) = if kept { (none, blocks) } else { (blocks, none) };
        let ack = Ack { cumulative: FIRST + count - 1, window: self.window, gaps, kept };
        let mut report = core::mem::take(&mut self.report);
        let (ledger, books) = self.books();
        let news = ledger.acknowledge(books, &ack, &mut report);
        self.report = report;
        news
    }

    /// Acknowledges all before FIRST + `count`, and the `gaps` behind it, with a window.
    fn tell(&mut self, count: u32, gaps: &[(u16, u16)], window: u32) -> bool {
        self.window = window;
        let news = self.acknowledge(count, gaps, false);
        self.window = 1 << 20;
        news
    }

    fn leave(&self, path: usize) -> Leave {
        Leave { now: self.now, path: PathIndex::new(path), stamp: braidcast_cc::Stamp::default() }
    }

    fn prospect(&self) -> Prospect {
        Prospect { now: self.now, soonest: self.now, rate: None }
    }

    fn repeat(&mut self, path: usize) {
        let next = self.ledger.repeats().min_by_key(|&(_, priority, tsn)| (priority, tsn));
        if let Some(repeat) = next {
            let leave = self.leave(path);
            let (ledger, books) = self.books();
            ledger.repeat(books, leave, repeat);
        }
    }

    fn lose(&mut self, nth: u64, cause: LossCause) {
        let (tsn, prospect) = (self.ledger.base() + nth, self.prospect());
        let (ledger, books) = self.books();
        ledger.lose(books, prospect, tsn, cause);
    }

    fn lose_all(&mut self, path: usize) -> u64 {
        let prospect = self.prospect();
        let (ledger, books) = self.books();
        ledger.lose_all(books, prospect, PathIndex::new(path), LossCause::Timeout)
    }
}

#[test]
fn what_is_lost_takes_no_room_and_is_sent_again_over_another_path() {
    let mut desk = Desk::new(Abandonment::default());
    desk.send(0, 3000, Reliability::Reliable);
    let room = desk.ledger.peer_room();
    assert_eq!(desk.ledger.in_flight_over(PathIndex::new(0)), 3000);
    assert_eq!(desk.lose_all(0), 3);
    assert_eq!((desk.ledger.in_flight(), desk.ledger.peer_room()), (0, room + 3000));
    desk.repeat(1);
    assert_eq!(desk.ledger.in_flight_over(PathIndex::new(1)), 1000);
    assert!(desk.ledger.was_sent_again(Tsn::new(desk.ledger.base().get())));
    assert!(desk.acknowledge(3, &[], false), "all of it, as two were only late");
    assert!(desk.ledger.is_empty() && desk.ledger.has_no_repeats());
    assert_eq!(desk.journal.stats.acked_bytes, 3000);
}

#[test]
fn no_more_chunks_are_out_than_a_sack_can_report() {
    let mut desk = Desk::new(Abandonment::default());
    for _ in 1..65_535 {
        desk.send(0, 1, Reliability::Reliable);
    }
    assert!(!desk.ledger.is_full());
    desk.send(0, 1, Reliability::Reliable);
    assert!(desk.ledger.is_full());
    // All but the first are there, which makes no room.
    assert!(desk.acknowledge(0, &[(2, 65_535)], false));
    assert!(desk.ledger.is_full());
    assert!(desk.acknowledge(1, &[], false));
    assert!(!desk.ledger.is_full());
}

#[test]
fn a_message_not_worth_repeating_is_given_up_when_it_is_lost_and_not_before() {
    let mut desk = Desk::new(Abandonment::Delayed);
    desk.send(0, 2000, Reliability::Lifetime(Duration::from_millis(10)));
    desk.send(0, 1000, Reliability::Reliable);
    desk.now += Duration::from_millis(20);
    assert!(!desk.ledger.wants_forward());
    desk.lose(1, LossCause::Reported);
    assert!(!desk.ledger.wants_forward(), "its first chunk may still arrive");
    assert!(desk.acknowledge(0, &[(1, 1)], false));
    assert!(desk.ledger.take_forward_news() && desk.ledger.wants_forward());
    assert_eq!(desk.ledger.forward_point(), Some(desk.ledger.base() + 1));
    assert!(desk.acknowledge(2, &[], false));
    assert!(!desk.ledger.is_forwarding() && !desk.ledger.wants_forward());
    assert_eq!(desk.journal.stats.abandoned_sent, 1);
}

#[test]
fn what_a_path_owes_goes_over_the_others_when_it_leaves() {
    let mut desk = Desk::new(Abandonment::default());
    desk.send(0, 2000, Reliability::Reliable);
    let prospect = desk.prospect();
    let (ledger, books) = desk.books();
    ledger.reroute(books, prospect, PathIndex::new(0));
    assert!(desk.ledger.repeats().all(|(origin, ..)| origin.path.is_none()));
    assert_eq!(desk.ledger.next_order(PathIndex::new(0)), Order::FIRST, "whoever takes its place begins anew");
    desk.repeat(0);
    desk.repeat(0);
    assert_eq!(desk.ledger.in_flight_over(PathIndex::new(0)), 2000);
}

#[test]
fn an_acknowledgement_of_what_was_never_sent_or_long_known_is_no_news() {
    let mut desk = Desk::new(Abandonment::default());
    desk.send(0, 3000, Reliability::Reliable);
    assert!(!desk.acknowledge(4, &[], false), "never sent");
    assert!(desk.acknowledge(2, &[], false));
    assert!(!desk.acknowledge(0, &[], false), "overtaken");
    assert_eq!(desk.journal.stats.overtaken_sacks, 1);
    assert_eq!(desk.ledger.iter().count(), 1);
}

#[test]
fn a_window_that_was_overtaken_on_another_way_back_is_not_believed() {
    let mut desk = Desk::new(Abandonment::default());
    desk.send(0, 6000, Reliability::Reliable);
    assert!(desk.tell(1, &[(2, 2), (4, 4)], 9000));
    assert_eq!(desk.ledger.peer_room(), 9000 - 3000);
    desk.tell(1, &[(2, 2)], 50_000);
    assert_eq!(desk.ledger.peer_room(), 9000 - 3000, "it does not know of the fourth behind the first");
    desk.tell(1, &[], 50_000);
    assert_eq!(desk.ledger.peer_room(), 9000 - 3000);
    assert!(desk.tell(1, &[(2, 4)], 9000));
    desk.tell(1, &[(2, 2), (4, 4)], 50_000);
    assert_eq!(desk.ledger.peer_room(), 9000 - 2000, "nor of the third");
    desk.tell(1, &[(2, 4)], 20_000);
    assert_eq!(desk.ledger.peer_room(), 20_000 - 2000, "the application has read: a newer one");
    desk.tell(2, &[(1, 3)], 8000);
    assert_eq!(desk.ledger.peer_room(), 8000 - 1000, "it goes on");
}

#[derive(Clone, Debug)]
enum Verb {
    Send(usize, usize, Option<u64>),
    Acknowledge(u32, Vec<(u16, u16)>, bool),
    Lose(u64),
    LoseAll(usize),
    Repeat(usize),
    Abandon(u64),
    Reroute(usize),
    Withdraw,
    Copy,
    Wait(u64),
}

fn verb() -> impl Strategy<Value = Verb> {
    let gaps = prop::collection::vec((1_u16..12, 0_u16..4).prop_map(|(start, len)| (start, start + len)), 0..3);
    prop_oneof![
        4 => (0_usize..3, 1_usize..5000, prop::option::of(1_u64..50)).prop_map(|(p, l, t)| Verb::Send(p, l, t)),
        4 => (0_u32..4, gaps, any::<bool>()).prop_map(|(n, gaps, kept)| Verb::Acknowledge(n, gaps, kept)),
        3 => (0_u64..12).prop_map(Verb::Lose),
        1 => (0_usize..3).prop_map(Verb::LoseAll),
        3 => (0_usize..3).prop_map(Verb::Repeat),
        1 => (0_u64..12).prop_map(Verb::Abandon),
        1 => (0_usize..3).prop_map(Verb::Reroute),
        1 => Just(Verb::Withdraw),
        1 => Just(Verb::Copy),
        2 => (1_u64..30).prop_map(Verb::Wait),
    ]
}

proptest! {
    /// Whatever happens in whatever order, the sums stay right (`recount` says so), and what is out
    /// can be brought to an end.
    #[test]
    fn any_verbs_leave_the_sums_right(abandonment in prop::sample::select(Abandonment::ALL.map(|it| it.1).to_vec()), verbs in prop::collection::vec(verb(), 0..60)) {
        let mut desk = Desk::new(abandonment);
        for verb in verbs {
            let prospect = desk.prospect();
            match verb {
                Verb::Send(path, len, lifetime) => {
                    let lifetime = lifetime.map(|ms| Reliability::Lifetime(Duration::from_millis(ms)));
                    desk.send(path, len, lifetime.unwrap_or(Reliability::Reliable));
                }
                Verb::Acknowledge(count, gaps, kept) => {
                    let known = (desk.ledger.base().get() - u64::from(FIRST)) as u32;
                    desk.acknowledge(known + count, &gaps, kept);
                }
                Verb::Lose(nth) => desk.lose(nth, LossCause::Reported),
                Verb::LoseAll(path) => _ = desk.lose_all(path),
                Verb::Repeat(path) => desk.repeat(path),
                Verb::Abandon(nth) => {
                    let tsn = desk.ledger.base() + nth;
                    let chunk = desk.ledger.get(tsn).filter(|chunk| !chunk.is_kept());
                    if let Some(key) = chunk.map(|chunk| chunk.piece().message) {
                        let (ledger, books) = desk.books();
                        ledger.abandon(books, key);
                    }
                }
                Verb::Reroute(path) => {
                    let (ledger, books) = desk.books();
                    ledger.reroute(books, prospect, PathIndex::new(path));
                }
                Verb::Withdraw => {
                    if desk.ledger.in_flight() == 0 {
                        let (ledger, books) = desk.books();
                        ledger.withdraw_gap_acks(books, prospect);
                    }
                }
                Verb::Copy => {
                    let other = |path: PathIndex, _: &Chunk| Some(PathIndex::new((path.get() + 1) % 3));
                    if desk.ledger.next_copy(other).is_some() {
                        desk.ledger.copy();
                    }
                }
                Verb::Wait(ms) => desk.now += Duration::from_millis(ms),
            }
            prop_assert!(desk.ledger.forward_point().is_none_or(|point| point < desk.ledger.next_tsn()));
        }
        let all = (desk.ledger.next_tsn().get() - u64::from(FIRST)) as u32;
        desk.acknowledge(all, &[], false);
        prop_assert!(desk.ledger.is_empty() && desk.ledger.in_flight() == 0 && desk.ledger.has_no_repeats());
        prop_assert_eq!(desk.queue.held_bytes(), 0, "no message is left");
    }
}
