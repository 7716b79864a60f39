//! Options that cannot work are refused by name; all others do.

use crate::common::{CLIENT, PORT, SERVER, SERVICE, lossy, ms};
use braidcast_core::{Rng, Route, SocketId};
use braidcast_dccp::{
    Ccid, Endpoint, Limits, Method, Misuse, Options, ReorderOptions, SendOptions, ServiceCode, TfrcOptions,
};
use braidcast_sim::testing::cases;
use braidcast_sim::{Duplex, Network};
use braidcast_testing::nanos;
use proptest::prelude::*;

fn options() -> impl Strategy<Value = Options> {
    let ccids = prop::collection::vec(prop::sample::select(&Ccid::ALL[..]).prop_map(|(_, ccid)| ccid), 1..4);
    let queue = (prop::sample::select(&Method::ALL[..]).prop_map(|(_, method)| method), 1_usize..40);
    let packets = (128_usize..1500, prop::option::of(128_usize..1500), 128_usize..1500, 1_usize..=64);
    let switches = (any::<[bool; 7]>(), 0_u8..=15, prop::option::of(1_u64..200));
    (ccids, queue, packets, switches).prop_map(|(ccids, (queue, messages), packets, (flags, min_coverage, reorder))| {
        let (base_packet, first_packet, max_packet, max_segments) = packets;
        let [short_seqnos, ndp_count, data_checksum, ecn, ecn_nonce, server_holds_time_wait, faster_restart] = flags;
        Options {
            ccids,
            tfrc: TfrcOptions { faster_restart, ..TfrcOptions::default() },
            reorder: reorder.map(|delay| ReorderOptions::new(ms(delay))),
            queue,
            send_queue: Limits::messages(messages),
            base_packet,
            first_packet,
            max_packet,
            max_segments,
            short_seqnos,
            ndp_count,
            min_coverage,
            data_checksum,
            ecn,
            ecn_nonce,
            server_holds_time_wait,
            ..Options::default()
        }
    })
}

/// An option that is a number or a time, and a value for it, at the ends of what it may be and beyond.
fn extreme() -> impl Strategy<Value = (usize, u64)> {
    let ends = vec![0_u64, 1, 2, 15, 16, 127, 128, 9216, 9217, 65_507, 65_508, 1 << 46, u64::MAX / 2, u64::MAX];
    (0..NUMBERS.len(), braidcast_testing::extreme(ends))
}

/// Every option that is a number or a time.
const NUMBERS: [fn(&mut Options, u64); 23] = [
    |it, n| it.ccids = vec![Ccid::Two; n.min(20) as usize],
    |it, n| it.tfrc.dup_acks = n as usize,
    |it, n| it.tfrc.granularity = nanos(n),
    |it, n| it.reorder = Some(ReorderOptions::new(nanos(n))),
    |it, n| it.reorder = Some(ReorderOptions { packets: Some(n as usize), ..ReorderOptions::new(ms(50)) }),
    |it, n| it.send_queue.messages = n as usize,
    |it, n| it.send_queue.bytes = n as usize,
    |it, n| it.padding = Some(vec![1; n.min(100_000) as usize].into()),
    |it, n| it.receive_buffer = n as usize,
    |it, n| it.base_packet = n as usize,
    |it, n| it.first_packet = Some(n as usize),
    |it, n| it.max_packet = n as usize,
    |it, n| (it.base_packet, it.max_packet) = (n as usize, n as usize),
    |it, n| it.max_segments = n as usize,
    |it, n| it.sequence_window = n,
    |it, n| it.min_coverage = n as u8,
    |it, n| it.half_open = n as usize,
    |it, n| it.cookie_life = nanos(n),
    |it, n| it.request_timeout = nanos(n),
    |it, n| it.handshake_timeout = nanos(n),
    |it, n| it.close_timeout = nanos(n),
    |it, n| it.time_wait = nanos(n),
    |it, n| it.max_connections = n as usize,
];

/// Tries a connection by `options`: it sends what it can for a few seconds, and nothing is expected of it but that.
fn attempt(options: &Options) {
    let endpoint = |name: &str| Endpoint::new(options.clone(), Rng::from_seed(1).stream(name));
    if let Err(misuse) = options.check() {
        assert_eq!(endpoint("refused").err(), Some(misuse));
        return;
    }
    let mut net = Network::new(1);
    let client = net.add(endpoint("client").unwrap(), [CLIENT]);
    let server = net.add(endpoint("server").unwrap(), [SERVER]);
    net.connect((client, 0), (server, 0), Duplex::both(lossy(5, 15, "5%")));
    net.with(server, |endpoint, _| endpoint.listen(PORT, SERVICE).unwrap());
    let route = Route::new(SocketId(0), SERVER.parse().unwrap());
    let service: ServiceCode = SERVICE;
    let begin = net.with(client, |endpoint, now| endpoint.connect(now, route, 4001, PORT, service));
    let mut buf = Vec::new();
    for turn in 0..100 {
        let ends = [(client, begin.ok()), (server, net.node(server).connections().next())];
        for (node, id) in ends {
            net.with(node, |endpoint, now| {
                let Some(connection) = id.and_then(|id| endpoint.connection_mut(id)) else { return };
                while connection.recv(&mut buf) {}
                let message = vec![7; connection.max_payload().min(40 * turn)];
                let _full = connection.send(now, &message, SendOptions::default());
            });
        }
        net.run_for(ms(40));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(300), max_shrink_iters: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn options_are_refused_or_work(options in options(), extremes in prop::collection::vec(extreme(), 0..4)) {
        let mut options = options;
        extremes.iter().for_each(|&(at, number)| NUMBERS[at](&mut options, number));
        attempt(&options);
    }
}

#[test]
fn what_cannot_work_is_named_with_its_limit_and_what_to_do() {
    let said = |change: fn(&mut Options)| {
        let mut options = Options::default();
        change(&mut options);
        options.check().map_err(|misuse: Misuse| misuse.to_string())
    };
    type Change = fn(&mut Options);
    let wrong: [(Change, &str); 7] = [
        (|it| it.ccids.clear(), "ccids.len() is 0, and must be 1 to 8: raise ccids.len()"),
        (|it| it.max_packet = 100, "max_packet is 100, and must be 128 to 65507: raise max_packet"),
        (|it| it.max_packet = 20_000, "max_packet is 20000, and must be 128 to 9216: lower max_packet"),
        (|it| it.max_segments = 65, "max_segments is 65, and must be 1 to 64: lower max_segments"),
        (|it| it.min_coverage = 16, "min_coverage is 16, and must be 0 to 15: lower min_coverage"),
        (
            |it| it.sequence_window = 31,
            "sequence_window is 31, and must be 32 to 70368744177663: raise sequence_window",
        ),
        (|it| it.tfrc.dup_acks = 0, "tfrc.dup_acks is 0, and must be 1 to 3: raise tfrc.dup_acks"),
    ];
    for (change, text) in wrong {
        assert_eq!(said(change), Err(text.to_owned()));
    }
    assert_eq!(said(|it| (it.base_packet, it.max_packet) = (20_000, 20_000)), Ok(()), "which is not probed");
}
