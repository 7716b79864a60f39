//! The receiver knows how old a message is and if it came in time, without a clock in common (decision 39).

use crate::common::{CLIENT, Pair, SERVER, link, ms};
use braidcast_core::Instant;
use braidcast_sctp::wire::chunk::kind;
use braidcast_sctp::{Method, Options, Received, SendOptions};
use braidcast_sim::Duplex;
use braidcast_sim::link::{LinkModel, Loss, Rate, Schedule, Shape};
use core::time::Duration;

/// Time that each message has.
const DEADLINE: Duration = ms(200);

fn told() -> Options {
    Options::live().with(|it| it.timed_messages = true)
}

/// A message that holds when it was given.
fn send(pair: &mut Pair, len: usize) {
    let now = pair.now();
    let mut payload = vec![7; len];
    payload[..8].copy_from_slice(&now.as_nanos().to_be_bytes());
    let how = SendOptions { unordered: true, deadline: Some(now + DEADLINE), ..SendOptions::default() };
    pair.client_send(&payload, how);
}

/// When a message was given, which came whole.
fn given(len: usize, message: &[u8]) -> Instant {
    assert_eq!((message.len(), message.get(8)), (len, Some(&7)));
    Instant::from_nanos(u64::from_be_bytes(message[..8].try_into().expect("eight bytes")))
}

/// What came of messages.
#[derive(Default, Debug)]
struct Outcome {
    came: usize,
    unknown: usize,
    late: usize,
    marked: usize,
    /// The largest error in a lateness, and the largest uncertainty.
    error: Duration,
    uncertainty: Duration,
}

impl Outcome {
    fn count(&mut self, received: Received, given: Instant) {
        self.came += 1;
        let (age, late) = (received.whole - given, (received.whole - given).saturating_sub(DEADLINE));
        self.late += usize::from(late > Duration::ZERO);
        let Some(timing) = received.timing else {
            self.unknown += 1;
            return;
        };
        self.marked += usize::from(timing.is_late());
        let error = timing.late.abs_diff(late).max(timing.age.abs_diff(age));
        // Microseconds are cut off three times.
        assert!(error <= timing.uncertainty + Duration::from_micros(3), "{timing:?}, but {age:?} and {late:?}");
        self.error = self.error.max(error);
        self.uncertainty = self.uncertainty.max(timing.uncertainty);
    }
}

/// A message of `len` bytes each 10 ms for `duration`.
fn stream(pair: &mut Pair, len: usize, duration: Duration) -> Outcome {
    let mut outcome = Outcome::default();
    let end = pair.now() + duration;
    while pair.now() < end + ms(3000) {
        if pair.now() < end {
            send(pair, len);
        }
        pair.run(ms(10));
        for (received, message) in pair.server_recv() {
            outcome.count(received, given(len, &message));
        }
    }
    outcome
}

/// 2 Mbit/s that fall to 300 kbit/s twice, `there` to the receiver and `back` from it.
fn falling(there: u64, back: u64) -> Duplex {
    let second = Duration::from_secs;
    let rates = [(second(0), 2_000_000), (second(6), 300_000), (second(9), 2_000_000), (second(14), 300_000)];
    let rate = Rate::Schedule(Schedule::new(&rates, Shape::Steps, None).expect("times rise"));
    Duplex::new(LinkModel { rate, ..link(1, there) }, link(2, back))
}

#[test]
fn where_the_rate_falls_what_is_late_is_marked_and_nothing_else() {
    for (there, back) in [(20, 20), (5, 60), (60, 5)] {
        let mut pair = Pair::connected(&told(), vec![falling(there, back)]);
        let outcome = stream(&mut pair, 1200, Duration::from_secs(20));
        assert!(outcome.came > 900 && outcome.unknown == 0, "{outcome:?}");
        assert!(outcome.late > 0 && outcome.marked > 0, "{there} and {back} ms: {outcome:?}");
        // Half a round trip of the path at rest, 200 ppm of 40 s, and the time that a heartbeat takes to leave.
        let most = ms((there + back) / 2 + 8 + 5);
        assert!(outcome.uncertainty <= most, "{there} and {back} ms: {outcome:?}");
        if there == back {
            assert!(outcome.error <= ms(2), "{outcome:?}");
        }
    }
}

#[test]
fn over_two_paths_with_losses_all_is_told_too() {
    let lossy = |delay| Duplex::both(LinkModel { loss: Loss::Uniform(0.05), ..link(2, delay) });
    for code in [None, Some("tetrys:10,9,200")] {
        let options = told().with(|it| it.redundancy.fec = code.map(|it| it.parse().expect("a code")));
        let mut pair = Pair::connected(&options, vec![lossy(20), lossy(70)]);
        let outcome = stream(&mut pair, 3000, Duration::from_secs(5));
        assert!(outcome.came > 400 && outcome.unknown == 0, "{outcome:?}");
        assert!(outcome.uncertainty <= ms(35), "the quickest path is the measure: {outcome:?}");
        let recovered = pair.on_server(|it, _| it.stats().recovered_chunks);
        assert_eq!(recovered > 0, code.is_some(), "what redundancy makes up for has its times");
    }
}

#[test]
fn what_waits_for_its_turn_is_as_late_as_its_turn() {
    let mut pair = Pair::connected(&told(), vec![Duplex::both(link(2, 20))]);
    pair.run(ms(500));
    pair.cut(0, true);
    pair.client_send(b"lost at first", SendOptions::default());
    pair.run(ms(2));
    pair.cut(0, false);
    let due = pair.now() + ms(60);
    pair.client_send(b"waits for it", SendOptions { deadline: Some(due), ..SendOptions::default() });
    pair.run(ms(2000));
    let [(first, _), (second, _)] = pair.server_recv()[..] else { panic!("both came") };
    assert_eq!(first.timing, None, "it has no deadline");
    assert!(second.whole < first.whole, "it came sooner");
    assert!(first.whole > due && second.whole < due, "{first:?} {second:?}");
    assert!(second.timing.is_some_and(|it| it.is_late()), "{second:?}");
}

/// Times are agreed on: `[client, server]` offer them.
fn with(offers: [bool; 2], method: Option<Method>) -> Pair {
    let options = |timed| {
        Options::live().with(|it| {
            it.timed_messages = timed;
            it.queue.method = method;
        })
    };
    let [client, server] = offers.map(options);
    Pair::with(client, server, vec![Duplex::both(link(8, 10))])
}

#[test]
fn a_peer_that_does_not_read_times_gets_messages_as_they_are() {
    for method in [None, Some(Method::Fifo), Some(Method::RingSbpn2)] {
        for (offers, told) in [([true, true], true), ([true, false], false), ([false, true], false)] {
            let mut pair = with(offers, method);
            let recording = pair.record();
            let mut outcome = Outcome::default();
            send(&mut pair, 1000); // Before the handshake is done.
            let given_up = |pair: &Pair| pair.client_events.len();
            pair.connect();
            for _ in 0..100 {
                send(&mut pair, 1000);
                pair.run(ms(10));
                for (received, message) in pair.server_recv() {
                    outcome.count(received, given(1000, &message));
                }
            }
            pair.run(ms(100));
            let what = format!("{offers:?} {method:?} {outcome:?} {}", given_up(&pair));
            assert!(outcome.came >= 100, "{what}");
            // The server has measured a round trip by now.
            assert!(if told { outcome.unknown <= 1 } else { outcome.unknown == outcome.came }, "{what}");
            assert_eq!(recording.count(&CLIENT, kind::TIMESTAMP) > 0, told, "{what}");
            assert_eq!(recording.count(&SERVER, kind::TIMESTAMP_ECHO), 0, "nobody measures forward delays");
            assert_eq!(pair.on_client(|it, _| (it.buffered(), it.waiting())), (0, 0), "{what}");
        }
    }
}

#[test]
fn messages_without_a_deadline_cost_nothing_more() {
    let sent = |timed| {
        let mut pair =
            Pair::connected(&Options::live().with(|it| it.timed_messages = timed), vec![Duplex::both(link(8, 10))]);
        let recording = pair.record();
        for _ in 0..100 {
            pair.client_send(&[1; 3000], SendOptions::default());
            pair.run(ms(20));
        }
        assert!(pair.server_recv().iter().all(|(received, _)| received.timing.is_none()));
        assert_eq!(recording.count(&CLIENT, kind::TIMESTAMP), 0);
        recording.sent(&CLIENT).iter().map(|seen| seen.bytes.len()).sum::<usize>()
    };
    assert_eq!(sent(true), sent(false));
}

#[test]
fn a_deadline_of_hours_is_not_told() {
    let mut pair = Pair::connected(&told(), vec![Duplex::both(link(8, 10))]);
    for (hours, known) in [(1, false), (0, true)] {
        let deadline = Some(pair.now() + Duration::from_secs(3600 * hours + 60));
        pair.client_send(&[1; 100], SendOptions { deadline, ..SendOptions::default() });
        pair.run(ms(100));
        let [(received, ref message)] = pair.server_recv()[..] else { panic!("one came") };
        assert_eq!((received.timing.is_some(), message.len()), (known, 100));
    }
}

#[test]
fn the_longest_message_has_room_for_its_times() {
    let options = told().with(|it| it.limits.max_message = 50_000);
    let mut pair = Pair::connected(&options, vec![Duplex::both(link(8, 10))]);
    let deadline = Some(pair.now() + ms(3000));
    pair.client_send(&[1; 50_000], SendOptions { deadline, ..SendOptions::default() });
    pair.run(ms(1000));
    let [(received, ref message)] = pair.server_recv()[..] else { panic!("it came: {:?}", pair.server_events) };
    assert_eq!((message.len(), received.timing.map(|it| it.is_late())), (50_000, Some(false)));
}
