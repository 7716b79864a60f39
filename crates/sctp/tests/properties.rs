//! What must hold over any links and for any messages.

mod common;

use braidcast_core::Instant;
use braidcast_sctp::{
    Abandonment, Artx, BufferSplit, Code, Congestion, CwndUpdate, Event, FecLosses, FecWindow, Limits, LossDetection,
    MessagePriority, Method, Options, QueueScope, Reliability, RetransmissionPolicy, RttSamples, SackOptions, SackPath,
    SackPolicy, Scheduler, SendError, SendOptions, StreamOrder,
};
use braidcast_sim::Duplex;
use braidcast_sim::link::{LinkModel, Loss, Outage, Rate, Reorder, ReorderHow};
use braidcast_sim::testing::{cases, digest};
use common::{Pair, ms, pattern};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

fn models() -> impl Strategy<Value = LinkModel> {
    let outage = prop::option::of((0_u64..2000, 1_u64..1500));
    let wire = (500_000_u64..20_000_000, 1_u64..80);
    (wire, 0.0..0.15_f64, 0.0..0.1_f64, 1_u64..60, 0.0..0.1_f64, outage).prop_map(
        |((rate, delay), loss, reorder, late, duplicate, outage)| LinkModel {
            rate: Rate::Bits(rate),
            delay: ms(delay),
            loss: Loss::Uniform(loss),
            reorder: Reorder { share: reorder, how: ReorderHow::Late(ms(late)) },
            duplicate,
            outages: outage
                .map(|(from, length)| Outage::window(Instant::from_millis(from), Instant::from_millis(from + length)))
                .into_iter()
                .collect(),
            ..LinkModel::default()
        },
    )
}

fn links() -> impl Strategy<Value = Vec<Duplex>> {
    let duplex = (models(), models()).prop_map(|(there, back)| Duplex::new(there, back));
    prop::collection::vec(duplex, 1..=3)
}

#[derive(Clone, Debug)]
struct Message {
    by_client: bool,
    how: SendOptions,
    /// How long after it is handed over it must be there.
    within: Option<u64>,
    len: usize,
    pause: u64,
}

fn messages() -> impl Strategy<Value = Vec<Message>> {
    let reliability = prop_oneof![
        3 => Just(Reliability::Reliable),
        1 => (1_u64..800).prop_map(|life| Reliability::Lifetime(ms(life))),
        1 => (0_u16..3).prop_map(Reliability::Retransmissions),
    ];
    let within = prop_oneof![3 => Just(None), 1 => (0_u64..800).prop_map(Some)];
    let message = (any::<bool>(), 0_u16..4, any::<bool>(), reliability, 8_usize..9000, 0_u64..25, 0_u8..8, within);
    let message = message.prop_map(|(by_client, stream, unordered, reliability, len, pause, level, within)| {
        let priority = MessagePriority::new(level).unwrap();
        let how = SendOptions { stream, unordered, reliability, priority, ..SendOptions::default() };
        Message { by_client, how, within, len, pause }
    });
    prop::collection::vec(message, 1..60)
}

/// Any row of a table of names.
fn of<T: Copy + std::fmt::Debug + 'static>(all: &'static [(&'static str, T)]) -> impl Strategy<Value = T> {
    prop::sample::select(all).prop_map(|(_, it)| it)
}

/// No queue, or a short one of any method.
fn queues() -> impl Strategy<Value = (Option<Method>, Limits, QueueScope)> {
    let queue = (prop::option::of(of(&Method::ALL)), 1_usize..20, of(&QueueScope::ALL));
    queue.prop_map(|(method, messages, scope)| (method, Limits::messages(messages), scope))
}

fn options() -> impl Strategy<Value = Options> {
    let scheduling = (of(&Scheduler::ALL), of(&RetransmissionPolicy::ALL), any::<bool>(), of(&StreamOrder::ALL));
    let losses = (of(&LossDetection::ALL), of(&CwndUpdate::ALL), of(&Abandonment::ALL), any::<bool>());
    let returns = (of(&SackPath::ALL), of(&RttSamples::ALL), of(&SackPolicy::ALL), any::<bool>());
    let sharing = (of(&Congestion::ALL), of(&BufferSplit::ALL));
    let rest = (any::<bool>(), any::<bool>(), prop::option::of(0_u32..3), prop::option::of(1_u32..6));
    let code = prop::sample::select(vec!["block:5,3", "convolutional:4,3,8", "tetrys:3,2,40"]);
    let code = prop::option::of(code.prop_map(|name| name.parse::<Code>().unwrap()));
    let redundancy = (code, of(&FecWindow::ALL), of(&FecLosses::ALL), prop::option::of(of(&Artx::ALL)));
    (scheduling, losses, returns, sharing, rest, queues(), redundancy).prop_map(
        |(
            (scheduler, retransmission, concurrent, stream_order),
            (loss_detection, cwnd_update, abandonment, probe),
            (path, rtt_samples, sack, nr_sack),
            (congestion, buffer_split),
            (interleaving, pacing, quick_failover, max_burst),
            (queue, send_queue, queue_scope),
            (fec, fec_window, fec_losses, artx),
        )| {
            Options::live().with(|it| {
                it.queue.method = queue;
                it.queue.limits = send_queue;
                it.queue.scope = queue_scope;
                it.paths.scheduler = scheduler;
                it.papers.retransmission = retransmission;
                it.paths.concurrent = concurrent;
                it.papers.stream_order = stream_order;
                it.papers.loss_detection = loss_detection;
                it.papers.cwnd_update = cwnd_update;
                it.papers.abandonment = abandonment;
                it.paths.probe = probe;
                it.papers.rtt_samples = rtt_samples;
                it.papers.nr_sack = nr_sack;
                it.congestion.coupling = congestion;
                it.papers.buffer_split = buffer_split;
                it.interleaving = interleaving;
                it.congestion.pacing = pacing;
                it.paths.quick_failover = quick_failover;
                it.papers.max_burst = max_burst;
                it.redundancy.fec = fec;
                it.redundancy.fec_window = fec_window;
                it.redundancy.fec_losses = fec_losses;
                it.redundancy.artx = artx;
                it.sack = SackOptions { path, delay: ms(20), ..sack.into() };
            })
        },
    )
}

/// The message number `n`, which says so.
fn payload(n: usize, len: usize) -> Vec<u8> {
    let mut bytes = pattern(len, n as u64);
    bytes[..8].copy_from_slice(&(n as u64).to_be_bytes());
    bytes
}

/// Bytes in flight and chunks sent again so far, by path, at both ends.
type InFlight = BTreeMap<(bool, u16), (usize, u64)>;

/// [`Options::max_mtu`].
const MAX_MTU: usize = 1472;

/// What is in flight grows only within the window.
fn check_windows(pair: &Pair, before: &mut InFlight) {
    let ends = [
        (true, pair.client, Some(pair.client_id)),
        (false, pair.server, pair.net.node(pair.server).associations().next()),
    ];
    for (side, node, id) in ends {
        let Some(association) = id.and_then(|id| pair.net.node(node).association(id)) else { continue };
        for path in association.paths() {
            let (in_flight, cwnd, again) = (path.in_flight, path.cwnd, path.retransmitted_chunks);
            let (earlier, before) = before.insert((side, path.id.0), (in_flight, again)).unwrap_or_default();
            // One packet more, which may be as large as the path's MTU was when its chunk was cut.
            let limit = cwnd + MAX_MTU;
            // What was lost may take one packet beyond (RFC 9260 §6.3.3 E3, §7.2.4 3).
            let limit = if again > before { limit.max(earlier) + MAX_MTU } else { limit };
            assert!(in_flight <= earlier || in_flight <= limit, "{in_flight} in flight, window {cwnd}");
        }
    }
}

/// Runs until `until`, looking at the windows after each step.
fn run(pair: &mut Pair, until: Instant, before: &mut InFlight) {
    loop {
        let mut asked = 0;
        let stepped = pair.net.wait_for(until, |_| {
            asked += 1;
            asked > 1
        });
        check_windows(pair, before);
        if !stepped {
            break;
        }
    }
    pair.run(ms(0));
}

/// Whether what was sent first on an ordered stream, and is in no other way different for the queue, is delivered first.
fn keeps_order(options: &Options, earlier: &Message, later: &Message) -> bool {
    match options.queue.method {
        None | Some(Method::Fifo | Method::FifoTimed) => true,
        Some(Method::Ring) => earlier.how.priority == later.how.priority,
        // A slower path may take a later one, for which there is time (`Options::queue`).
        Some(_) => false,
    }
}

/// What became of messages otherwise than by delivery.
#[derive(Default)]
struct Fates {
    given_up: BTreeSet<u64>,
    /// Of those, the ones that the queue discarded.
    discarded: BTreeSet<u64>,
    refused: BTreeSet<u64>,
}

fn check(
    options: &Options,
    messages: &[Message],
    got: &[(braidcast_sctp::Received, Vec<u8>)],
    by_client: bool,
    fates: &Fates,
) {
    let Fates { given_up, discarded, refused } = fates;
    let mut seen = BTreeSet::new();
    let mut last = BTreeMap::new();
    for (info, bytes) in got {
        let n = u64::from_be_bytes(bytes[..8].try_into().unwrap());
        let message = &messages[n as usize];
        assert_eq!(message.by_client, by_client);
        assert!(seen.insert(n), "{n} delivered twice");
        assert!(*bytes == payload(n as usize, message.len), "{n} is not intact");
        assert_eq!((info.stream, info.unordered), (message.how.stream, message.how.unordered));
        if !info.unordered {
            let before: Option<u64> = last.insert(info.stream, n);
            let held = |before: u64| before < n || !keeps_order(options, message, &messages[before as usize]);
            assert!(before.is_none_or(held), "{n} after {before:?}");
        }
    }
    for (n, message) in messages.iter().enumerate().filter(|(_, it)| it.by_client == by_client) {
        let n = n as u64;
        let fates = [seen.contains(&n), discarded.contains(&n), refused.contains(&n)];
        assert!(fates.iter().filter(|it| **it).count() <= 1, "{n}: came, discarded, refused: {fates:?}");
        if refused.contains(&n) {
            assert!(!given_up.contains(&n), "{n} was not taken");
            continue;
        }
        let promised = message.how.reliability == Reliability::Reliable && message.within.is_none();
        let promised = promised && !discarded.contains(&n);
        assert!(!promised || (seen.contains(&n) && !given_up.contains(&n)), "{n} was promised");
        assert!(seen.contains(&n) || given_up.contains(&n), "{n} vanished");
    }
}

fn fates(events: &[Event], refused: &BTreeSet<u64>) -> Fates {
    let mut fates = Fates { refused: refused.clone(), ..Fates::default() };
    for event in events {
        if let Event::Abandoned { context, why, .. } = event {
            assert!(fates.given_up.insert(*context), "{context} given up twice");
            if why.is_some() {
                fates.discarded.insert(*context);
            }
        }
    }
    fates
}

/// What has not been acknowledged, and the paths that should carry it.
fn left(pair: &mut Pair) -> String {
    let end = |association: &mut braidcast_sctp::Association, _| {
        format!("{} bytes, {:#?}", association.buffered(), association.paths().collect::<Vec<_>>())
    };
    format!("client {}\nserver {}", pair.on_client(end), pair.on_server(end))
}

/// Sends all, waits until nothing is left to do, and checks everything.
fn story(options: &Options, links: Vec<Duplex>, messages: &[Message]) -> u64 {
    let mut pair = Pair::new(options, links);
    let bytes = digest(&mut pair.net);
    let (mut at_server, mut at_client, mut windows) = (Vec::new(), Vec::new(), InFlight::new());
    let mut refused = BTreeSet::new();
    pair.until(ms(30_000), "connect", |pair| pair.server_exists());
    for (n, message) in messages.iter().enumerate() {
        let deadline = message.within.map(|within| pair.now() + ms(within));
        let how = SendOptions { context: n as u64, deadline, ..message.how };
        let bytes = payload(n, message.len);
        let outcome = if message.by_client {
            pair.on_client(|association, now| association.send(now, &bytes, how))
        } else {
            pair.on_server(|association, now| association.send(now, &bytes, how))
        };
        match outcome {
            Ok(()) => {}
            Err(SendError::QueueFull { .. }) if options.queue.method.is_some() => _ = refused.insert(n as u64),
            Err(error) => panic!("{error}"),
        }
        check_windows(&pair, &mut windows);
        let until = pair.now() + ms(message.pause);
        run(&mut pair, until, &mut windows);
        at_server.extend(pair.server_recv());
        at_client.extend(pair.client_recv());
    }
    let limit = pair.now() + ms(120_000);
    while pair.on_client(|association, _| association.buffered()) > 0
        || pair.on_server(|association, _| association.buffered()) > 0
    {
        assert!(pair.now() < limit, "not all was sent within 120 s: {}", left(&mut pair));
        let until = pair.now() + ms(20);
        run(&mut pair, until, &mut windows);
        at_server.extend(pair.server_recv());
        at_client.extend(pair.client_recv());
    }
    pair.run(ms(500));
    at_server.extend(pair.server_recv());
    at_client.extend(pair.client_recv());
    check(options, messages, &at_server, true, &fates(&pair.client_events, &refused));
    check(options, messages, &at_client, false, &fates(&pair.server_events, &refused));
    for path in pair.on_client(|association, _| association.paths().collect::<Vec<_>>()) {
        assert_eq!(path.in_flight, 0);
    }
    bytes.get()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(400), max_shrink_iters: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_promised_arrives_once_in_order_and_intact(options in options(), links in links(), messages in messages()) {
        story(&options, links, &messages);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(60), max_shrink_iters: 50, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_same_seed_gives_the_same_bytes(options in options(), links in links(), messages in messages()) {
        let once = story(&options, links.clone(), &messages);
        prop_assert_eq!(once, story(&options, links, &messages));
    }
}

#[test]
fn another_seed_gives_other_bytes() {
    let run = |seed| {
        let mut pair = Pair::seeded(seed, &Options::live(), vec![Duplex::both(common::link(10, 15))]);
        let bytes = digest(&mut pair.net);
        pair.run(ms(500));
        bytes.get()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}
