//! Coupled windows (LIA, OLIA, CMT/RPv2): fair at a shared bottleneck, at home on disjoint links.

use crate::common::{Pair, link, ms};
use braidcast_core::{Instant, Rng};
use braidcast_sctp::{AssociationId, Congestion, Endpoint, Options, SchedulerKind, SendError, SendOptions};
use braidcast_sim::link::{LinkModel, QueueLimit};
use braidcast_sim::{Duplex, LinkId, Network, NodeId};
use core::time::Duration;

/// A bulk sender and its receiver.
struct Flow {
    client: NodeId,
    server: NodeId,
    id: AssociationId,
    received: u64,
}

impl Flow {
    /// A flow over `paths` subpaths, all of which use `bottleneck` and come back over `back`. It
    /// starts within a second.
    fn new(
        net: &mut Network<Endpoint>,
        seed: u64,
        number: u8,
        paths: usize,
        congestion: Congestion,
        (bottleneck, back): (LinkId, LinkId),
    ) -> Self {
        let options = Options::default().with(|it| {
            it.congestion.coupling = congestion;
            it.paths.scheduler = SchedulerKind::RoundRobin;
            it.limits.send_buffer = 1 << 18;
            it.limits.max_message = 1 << 18;
        });
        let mut rng = Rng::from_seed(seed + 1000 * u64::from(number));
        let address = |side: u8, path: usize| format!("10.{number}.{path}.{side}:9899");
        let (ours, theirs): (Vec<_>, Vec<_>) = (0..paths).map(|path| (address(1, path), address(2, path))).unzip();
        let client =
            net.add(Endpoint::new(options.clone(), rng.stream("client")).unwrap(), ours.iter().map(String::as_str));
        let server =
            net.add(Endpoint::new(options.clone(), rng.stream("server")).unwrap(), theirs.iter().map(String::as_str));
        let mut routes = Vec::new();
        for path in 0..paths {
            let (a, b) = ((client, path as u16), (server, path as u16));
            let (from, to) = (net.address(a), net.address(b));
            // Before the bottleneck up to 5 ms, so that no two paths march in step.
            let access =
                net.add_link(LinkModel { delay: Duration::from_micros(rng.below(5000)), ..LinkModel::default() });
            net.route(a, to, &[access, bottleneck], b, from);
            net.route(b, from, &[back], a, to);
            routes.push(braidcast_core::Route::new(braidcast_core::SocketId(path as u16), to));
        }
        net.with(server, |endpoint, _| endpoint.listen());
        net.run_for(Duration::from_micros(rng.below(1_000_000)));
        let id = net.with(client, |endpoint, now| endpoint.connect(now, options.local_port, &routes).unwrap());
        Self { client, server, id, received: 0 }
    }

    /// Fills the send buffer and takes what arrived.
    fn pump(&mut self, net: &mut Network<Endpoint>, buf: &mut Vec<u8>) {
        let id = self.id;
        net.with(self.client, |endpoint, now| {
            let association = endpoint.association_mut(id).expect("association");
            while association.send_room() >= 1200 {
                match association.send(now, &[7; 1200], SendOptions::default()) {
                    Ok(()) => {}
                    Err(SendError::BufferFull { .. }) => break,
                    Err(error) => panic!("{error}"),
                }
            }
        });
        let Some(id) = net.node(self.server).associations().next() else { return };
        net.with(self.server, |endpoint, now| {
            let association = endpoint.association_mut(id).expect("association");
            while association.recv(now, buf).is_some() {
                self.received += buf.len() as u64;
            }
        });
    }
}

/// What the two-path flow and the single one get of a bottleneck of 4 Mbit/s, 40 ms and 25 packets,
/// in bytes after the first 20 of 100 seconds.
fn share(congestion: Congestion, seed: u64) -> (f64, f64) {
    let mut net = Network::new(seed);
    let model = LinkModel { queue: QueueLimit::Packets(25).into(), ..link(4, 20) };
    let links = (net.add_link(model), net.add_link(link(100, 20)));
    let mut flows = [
        Flow::new(&mut net, seed, 1, 2, congestion, links),
        Flow::new(&mut net, seed, 2, 1, Congestion::PerPath, links),
    ];
    let mut buf = Vec::new();
    let mut run = |net: &mut Network<Endpoint>, flows: &mut [Flow; 2], until: Instant| {
        while net.now() < until {
            net.run_for(ms(25));
            flows.iter_mut().for_each(|flow| flow.pump(net, &mut buf));
        }
    };
    run(&mut net, &mut flows, Instant::ZERO + Duration::from_secs(20));
    flows.iter_mut().for_each(|flow| flow.received = 0);
    run(&mut net, &mut flows, Instant::ZERO + Duration::from_secs(100));
    (flows[0].received as f64, flows[1].received as f64)
}

/// Jain, Chiu and Hawe, DEC-TR-301, 1984: 1 for equal shares, 1/2 if one of two has all.
fn jain(a: f64, b: f64) -> f64 {
    (a + b).powi(2) / (2.0 * (a * a + b * b))
}

/// Jain's index of the mean shares over seeds, and their ratio.
fn fairness(congestion: Congestion) -> (f64, f64) {
    const SEEDS: u64 = 8;
    let shares: Vec<_> = (1..=SEEDS).map(|seed| share(congestion, seed)).collect();
    let (two, one) = shares.iter().fold((0.0, 0.0), |sum, share| (sum.0 + share.0, sum.1 + share.1));
    println!("{congestion}: Jain's index {:.3}, ratio {:.2}", jain(two, one), two / one);
    (jain(two, one), two / one)
}

#[test]
fn two_subpaths_of_one_bottleneck_take_about_what_one_connection_takes() {
    let (_, ratio) = fairness(Congestion::PerPath);
    assert!(ratio > 1.5, "without coupling each subpath is a connection of its own: {ratio:.2}");
    for rule in [Congestion::Lia, Congestion::Olia, Congestion::RpV2] {
        let (jain, ratio) = fairness(rule);
        assert!(jain > 0.97 && (0.75..1.4).contains(&ratio), "{rule}: Jain's index {jain:.3}, ratio {ratio:.2}");
    }
}

/// Goodput over two links of 4 Mbit/s, 20 ms and up to 5 more, in Mbit/s, and the ratio of what both sent.
fn disjoint(congestion: Congestion, seed: u64) -> (f64, f64) {
    let options = Options::default().with(|it| {
        it.congestion.coupling = congestion;
        it.paths.scheduler = SchedulerKind::RoundRobin;
    });
    let mut rng = Rng::from_seed(seed);
    let links = (0..2).map(|_| {
        let delay = ms(20) + Duration::from_micros(rng.below(5000));
        Duplex::both(LinkModel { delay, queue: QueueLimit::Packets(50).into(), ..link(4, 20) })
    });
    let mut pair = Pair::connected(&options, links.collect());
    let goodput = bulk(&mut pair, Duration::from_secs(10), Duration::from_secs(40));
    let sent = [0, 1].map(|i| pair.client_path(i).unwrap().sent_bytes as f64);
    (goodput, sent[0] / sent[1])
}

#[test]
fn over_disjoint_links_all_rules_use_both() {
    for (_, congestion) in Congestion::ALL {
        let count = if congestion == Congestion::RpV2 { 10 } else { 3 };
        let runs: Vec<_> = (1..=count).map(|seed| disjoint(congestion, seed)).collect();
        let mean = runs.iter().map(|run| run.0).sum::<f64>() / count as f64;
        println!("{congestion}: {mean:.2} Mbit/s");
        // CMT/RPv2 takes half of both windows off the one path that had a loss, here down to a
        // packet; so two links that lose by themselves are not quite filled. Over 20 such runs:
        // 6.69 Mbit/s with a standard deviation of 0.39, the others 7.61 with 0.01.
        let (least, unlike) = if congestion == Congestion::RpV2 { (6.2, 1.4) } else { (7.5, 1.05) };
        assert!(mean > least, "{congestion}: {runs:?}");
        assert!(runs.iter().all(|run| (1.0 / unlike..unlike).contains(&run.1)), "{congestion}: {runs:?}");
    }
}

/// Goodput in Mbit/s of a bulk transfer, after `warm_up`, over `measured`.
fn bulk(pair: &mut Pair, warm_up: Duration, measured: Duration) -> f64 {
    let (start, mut bytes) = (pair.now() + warm_up, 0);
    while pair.now() < start + measured {
        pair.on_client(|association, now| {
            while association.send_room() >= 1200 && association.send(now, &[7; 1200], SendOptions::default()).is_ok() {
            }
        });
        pair.run(ms(25));
        let late = pair.now() > start;
        bytes += pair.server_recv().iter().filter(|_| late).map(|(_, message)| message.len()).sum::<usize>();
    }
    bytes as f64 * 8e-6 / measured.as_secs_f64()
}
