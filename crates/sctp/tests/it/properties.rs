//! What must hold over any links and for any messages.

use crate::common;
use crate::common::{Pair, ms, pattern};
use braidcast_core::{Instant, Rng};
use braidcast_sctp::{
    Abandonment, Algorithm, Artx, ArtxFrom, BufferSplit, CloseReason, Code, Congestion, CwndUnit, CwndUpdate, Endpoint,
    Event, FecLosses, FecWindow, Limits, LossDetection, MarkResponse, MessagePriority, Method, Options, QueueScope,
    Reliability, RetransmissionPolicy, RtoBounds, RttSamples, SackPath, SackPolicy, SchedulerKind, SendError,
    SendOptions, StreamOrder,
};
use braidcast_sim::Duplex;
use braidcast_sim::link::{LinkModel, Loss, Outage, Rate, Reorder, ReorderHow};
use braidcast_sim::testing::{cases, digest};
use braidcast_testing::nanos;
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
    (policies(), sizes(), times(), queues(), redundancy()).prop_map(|(policies, sizes, times, queue, redundancy)| {
        let mut options = Options::live();
        [policies, sizes, times, redundancy].iter().for_each(|change| change.0(&mut options));
        (options.queue.method, options.queue.limits, options.queue.scope) = queue;
        options
    })
}

/// What changes options.
struct Change(Box<dyn Fn(&mut Options)>);

impl std::fmt::Debug for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a change")
    }
}

/// Choices by name, and switches.
fn policies() -> impl Strategy<Value = Change> {
    let scheduling = (of(&SchedulerKind::ALL), of(&RetransmissionPolicy::ALL), any::<bool>(), of(&StreamOrder::ALL));
    let losses = (of(&LossDetection::ALL), of(&CwndUpdate::ALL), of(&Abandonment::ALL), any::<bool>());
    let returns = (of(&SackPath::ALL), of(&RttSamples::ALL), of(&SackPolicy::ALL), any::<bool>());
    let sharing = (of(&Congestion::ALL), of(&BufferSplit::ALL), any::<bool>(), any::<bool>());
    let windows = (of(&Algorithm::ALL), of(&MarkResponse::ALL), any::<bool>(), of(&CwndUnit::ALL), any::<bool>());
    (scheduling, losses, returns, sharing, windows).prop_map(|(scheduling, losses, returns, sharing, windows)| {
        let change = move |it: &mut Options| {
            (it.paths.scheduler, it.papers.retransmission, it.paths.concurrent, it.queue.stream_order) = scheduling;
            (it.papers.loss_detection, it.papers.cwnd_update, it.papers.abandonment, it.paths.probe) = losses;
            let (path, rtt_samples, sack, nr_sack) = returns;
            it.sack = sack.into();
            (it.sack.path, it.sack.delay) = (path, ms(20));
            (it.papers.rtt_samples, it.papers.nr_sack) = (rtt_samples, nr_sack);
            (it.congestion.coupling, it.papers.buffer_split, it.interleaving, it.congestion.pacing) = sharing;
            let (loss, mark, ecn, unit, grows) = windows;
            (it.congestion.algorithm, it.congestion.mark_response, it.congestion.ecn) = (loss, mark, ecn);
            (it.papers.cwnd_unit, it.papers.growth_in_recovery) = (unit, grows);
        };
        Change(Box::new(change))
    })
}

/// Buffers that hold any of the messages, in a queue too; packets, windows.
fn sizes() -> impl Strategy<Value = Change> {
    let buffers = (150_000_usize..600_000, 20_000_usize..600_000, 9000_usize..20_000);
    let packets = (508_usize..1473, 0_usize..1600, 1_usize..=64, 3_usize..=32);
    let windows = (prop::option::of(1_usize..30), prop::option::of(1000_usize..100_000), 1_usize..8);
    let bursts = prop::option::of(1_u32..6);
    (buffers, packets, windows, bursts).prop_map(|(buffers, packets, windows, max_burst)| {
        let change = move |it: &mut Options| {
            (it.limits.send_buffer, it.limits.receive_buffer, it.limits.max_message) = buffers;
            let (base, more, segments, paths) = packets;
            (it.paths.base_mtu, it.paths.max_mtu) = (base, base + more);
            (it.limits.max_segments, it.paths.max_paths) = (segments, paths);
            (it.congestion.initial_window, it.papers.initial_ssthresh, it.papers.min_ssthresh) = windows;
            it.papers.max_burst = max_burst;
        };
        Change(Box::new(change))
    })
}

/// Timers, and how often they may run out.
fn times() -> impl Strategy<Value = Change> {
    let rto = (100_u64..1000, 0_u64..500, 1500_u64..5000);
    let paths = (100_u64..5000, 1_u32..8, prop::option::of(0_u32..3), prop::option::of(5_u64..200));
    (rto, paths).prop_map(|((initial, min, max), (heartbeat, retrans, quick_failover, queueing))| {
        let change = move |it: &mut Options| {
            it.timers.rto = RtoBounds::new(ms(initial), ms(min.max(20)), ms(max));
            (it.paths.heartbeat_interval, it.paths.path_max_retrans) = (ms(heartbeat), retrans);
            (it.paths.quick_failover, it.congestion.queueing_limit) = (quick_failover, queueing.map(ms));
        };
        Change(Box::new(change))
    })
}

/// None, or by a short code; or what the peer sends is taken.
fn redundancy() -> impl Strategy<Value = Change> {
    let code = prop::sample::select(vec!["block:5,3", "convolutional:4,3,8", "tetrys:3,2,40"]);
    let code = prop::option::of(code.prop_map(|name| name.parse::<Code>().unwrap()));
    let artx = (prop::option::of(of(&Artx::ALL)), of(&ArtxFrom::ALL));
    (code, of(&FecWindow::ALL), of(&FecLosses::ALL), artx, any::<(bool, bool)>()).prop_map(
        |(fec, fec_window, fec_losses, (artx, artx_from), (fec_receive, reinject))| {
            let change = move |it: &mut Options| {
                let its = &mut it.redundancy;
                (its.fec, its.fec_window, its.fec_losses) = (fec, fec_window, fec_losses);
                (its.artx, its.fec_receive, its.reinject) = (artx, fec_receive, reinject);
                it.papers.artx_from = artx_from;
            };
            Change(Box::new(change))
        },
    )
}

/// An option that is a number or a time, and a value for it, at the ends of what it may be and beyond.
fn extreme() -> impl Strategy<Value = (usize, u64)> {
    let ends = vec![0_u64, 1, 2, 507, 508, 1499, 1500, 65_507, 65_508, 1 << 30, u64::MAX / 2, u64::MAX];
    (0..NUMBERS.len(), braidcast_testing::extreme(ends))
}

/// Every option that is a number or a time.
const NUMBERS: [fn(&mut Options, u64); 37] = [
    |it, n| it.local_port = n as u16,
    |it, n| it.local_addresses = vec![[10, 0, 0, 1].into(); n.min(20) as usize],
    |it, n| it.paths.max_paths = n as usize,
    |it, n| it.paths.base_mtu = n as usize,
    |it, n| it.paths.max_mtu = n as usize,
    |it, n| (it.paths.base_mtu, it.paths.max_mtu) = (n as usize, n as usize),
    |it, n| it.paths.heartbeat_interval = nanos(n),
    |it, n| it.paths.path_max_retrans = n as u32,
    |it, n| it.paths.quick_failover = Some(n as u32),
    |it, n| it.limits.send_buffer = n as usize,
    |it, n| it.limits.receive_buffer = n as usize,
    |it, n| it.limits.max_message = n as usize,
    |it, n| it.limits.streams = n as u16,
    |it, n| it.limits.max_segments = n as usize,
    |it, n| it.limits.max_associations = n as usize,
    |it, n| it.timers.rto.initial = nanos(n),
    |it, n| it.timers.rto.min = nanos(n),
    |it, n| it.timers.rto.max = nanos(n),
    |it, n| it.timers.association_max_retrans = Some(n as u32),
    |it, n| it.timers.give_up = Some(nanos(n)),
    |it, n| it.paths.longest_silence = Some(nanos(n)),
    |it, n| it.paths.silent_interval = Some(nanos(n)),
    |it, n| it.timers.max_init_retransmits = n as u32,
    |it, n| it.timers.open_over_all = Some(nanos(n)),
    |it, n| it.timers.cookie_life = nanos(n),
    |it, n| it.sack.every = n as u32,
    |it, n| it.sack.delay = nanos(n),
    |it, n| it.congestion.initial_window = Some(n as usize),
    |it, n| it.congestion.queueing_limit = Some(nanos(n)),
    |it, n| it.queue.limits.messages = n as usize,
    |it, n| it.queue.limits.bytes = n as usize,
    |it, n| {
        let (n, k, m) = (n as u16, (n >> 16) as u16, (n >> 32) as u16);
        it.redundancy.fec = Some(Code::Tetrys { n, k, m });
    },
    |it, n| it.redundancy.fec = Some(Code::Block { n: n as u16, k: (n >> 1) as u16 }),
    |it, n| it.redundancy.spared_in_a_crowd = n.min(255) as u8,
    |it, n| it.papers.initial_ssthresh = Some(n as usize),
    |it, n| it.papers.min_ssthresh = n as usize,
    |it, n| it.papers.max_burst = Some(n as u32),
];

/// The message number `n`, which says so.
fn payload(n: usize, len: usize) -> Vec<u8> {
    let mut bytes = pattern(len, n as u64);
    bytes[..8].copy_from_slice(&(n as u64).to_be_bytes());
    bytes
}

/// Bytes in flight and chunks sent again so far, by path, at both ends.
type InFlight = BTreeMap<(bool, u16), (usize, u64)>;

/// What is in flight grows only within the window.
fn check_windows(pair: &Pair, max_mtu: usize, before: &mut InFlight) {
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
            let limit = cwnd + max_mtu;
            // What was lost may take one packet beyond (RFC 9260 §6.3.3 E3, §7.2.4 3).
            let limit = if again > before { limit.max(earlier) + max_mtu } else { limit };
            assert!(in_flight <= earlier || in_flight <= limit, "{in_flight} in flight, window {cwnd}");
        }
    }
}

/// Runs until `until`, looking at the windows after each step.
fn run(pair: &mut Pair, until: Instant, max_mtu: usize, before: &mut InFlight) {
    loop {
        let mut asked = 0;
        let stepped = pair.net.wait_for(until, |_| {
            asked += 1;
            asked > 1
        });
        check_windows(pair, max_mtu, before);
        if !stepped {
            break;
        }
    }
    pair.run(ms(0));
}

/// Returns `true` if what was sent first on an ordered stream, and does not differ otherwise for the
/// queue, is delivered first.
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
struct Outcomes {
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
    outcomes: &Outcomes,
) {
    let Outcomes { given_up, discarded, refused } = outcomes;
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
        let outcomes = [seen.contains(&n), discarded.contains(&n), refused.contains(&n)];
        assert!(outcomes.iter().filter(|it| **it).count() <= 1, "{n}: came, discarded, refused: {outcomes:?}");
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

fn outcomes(events: &[Event], refused: &BTreeSet<u64>) -> Outcomes {
    let mut outcomes = Outcomes { refused: refused.clone(), ..Outcomes::default() };
    for event in events {
        if let Event::Abandoned { context, why, .. } = event {
            assert!(outcomes.given_up.insert(*context), "{context} abandoned twice");
            if why.is_some() {
                outcomes.discarded.insert(*context);
            }
        }
    }
    outcomes
}

/// Returns `true` if the server gave its association up before the peer had answered once: it may have
/// been a recorded cookie (`Path::is_disproved`), so nothing was promised yet. What it had taken is
/// told.
fn never_began(pair: &Pair, messages: &[Message], refused: &BTreeSet<u64>) -> bool {
    let told = &pair.server_events;
    let Some(end) = told.iter().position(|it| *it == Event::Closed(CloseReason::PathsFailed)) else { return false };
    assert!(!told[..end].iter().any(|it| matches!(it, Event::PathUp(..))), "it ended once it had begun: {told:?}");
    let mut of_server: BTreeSet<u64> =
        (0..).zip(messages).filter(|(_, it)| !it.by_client).map(|(n, _)| n).filter(|n| !refused.contains(n)).collect();
    for event in &told[..end] {
        match event {
            Event::Abandoned { context, .. } => _ = of_server.remove(context),
            Event::Unsettled(contexts) => of_server.retain(|n| !contexts.contains(n)),
            _ => {}
        }
    }
    assert_eq!(of_server, BTreeSet::new(), "was taken, and nothing is told of it");
    true
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
    let wire = digest(&mut pair.net);
    let (mut at_server, mut at_client, mut windows) = (Vec::new(), Vec::new(), InFlight::new());
    let (mut refused, max_mtu) = (BTreeSet::new(), options.paths.max_mtu);
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
            Err(SendError::BufferFull { .. }) => _ = refused.insert(n as u64),
            Err(error) => panic!("{error}"),
        }
        check_windows(&pair, max_mtu, &mut windows);
        let until = pair.now() + ms(message.pause);
        run(&mut pair, until, max_mtu, &mut windows);
        if never_began(&pair, &messages[..=n], &refused) {
            return wire.get();
        }
        at_server.extend(pair.server_recv());
        at_client.extend(pair.client_recv());
    }
    let limit = pair.now() + ms(120_000);
    while pair.on_client(|association, _| association.buffered()) > 0
        || pair.on_server(|association, _| association.buffered()) > 0
    {
        assert!(pair.now() < limit, "not all was sent within 120 s: {}", left(&mut pair));
        let until = pair.now() + ms(20);
        run(&mut pair, until, max_mtu, &mut windows);
        if never_began(&pair, messages, &refused) {
            return wire.get();
        }
        at_server.extend(pair.server_recv());
        at_client.extend(pair.client_recv());
    }
    pair.run(ms(500));
    at_server.extend(pair.server_recv());
    at_client.extend(pair.client_recv());
    check(options, messages, &at_server, true, &outcomes(&pair.client_events, &refused));
    check(options, messages, &at_client, false, &outcomes(&pair.server_events, &refused));
    for path in pair.on_client(|association, _| association.paths().collect::<Vec<_>>()) {
        assert_eq!(path.in_flight, 0);
    }
    wire.get()
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

/// Tries an association by `options`: it sends what it can for a few seconds, and nothing is expected of it but that.
fn attempt(options: &Options, mut links: Vec<Duplex>, messages: &[Message]) {
    if let Err(misuse) = options.check() {
        assert_eq!(Endpoint::new(options.clone(), Rng::from_seed(1)).err(), Some(misuse));
        return;
    }
    links.truncate(options.paths.max_paths);
    let mut pair = Pair::new(options, links);
    for (n, message) in messages.iter().enumerate() {
        let bytes = payload(n, message.len);
        let ends =
            [(pair.client, Some(pair.client_id)), (pair.server, pair.net.node(pair.server).associations().next())];
        let (node, id) = ends[usize::from(!message.by_client)];
        let send = |endpoint: &mut Endpoint, now| {
            let association = id.and_then(|id| endpoint.association_mut(id))?;
            let mut buf = Vec::new();
            while association.recv(now, &mut buf).is_some() {}
            Some(association.send(now, &bytes, message.how))
        };
        let _sent = pair.net.with(node, send);
        pair.run(ms(message.pause * 4));
    }
    pair.run(ms(3000));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(400), max_shrink_iters: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn options_are_refused_or_work(
        options in options(), extremes in prop::collection::vec(extreme(), 1..4), links in links(), messages in messages()
    ) {
        let options = extremes.iter().fold(options, |options, &(at, number)| options.with(|it| NUMBERS[at](it, number)));
        attempt(&options, links, &messages);
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
