//! CUBIC: what CCID 2 leaves of a long fat path, and what it must not take from others; other windows under CCID 2.

use crate::common::*;
use braidcast_core::{Instant, Rng, Route, SocketId};
use braidcast_dccp::wire::ResetCode;
use braidcast_dccp::{Algorithm, Ccid, CloseReason, ConnectionId, Endpoint, Event, Options, SendOptions};
use braidcast_sim::link::{LinkModel, QueueLimit};
use braidcast_sim::testing::{Seed, seed_from_env};
use braidcast_sim::{Duplex, Network, NodeId};
use core::time::Duration;

const LEN: usize = 1200;

fn only(ccid: Ccid) -> Options {
    Options { ccids: vec![ccid], ..Options::default() }
}

fn bottleneck(mbit: u64, delay: u64, packets: usize, loss: &str) -> LinkModel {
    LinkModel { queue: QueueLimit::Packets(packets).into(), ..lossy(mbit, delay, loss) }
}

/// Greedy senders that share a link to one receiver, each with a congestion control of its own.
struct Shared {
    net: Network<Endpoint>,
    server: NodeId,
    senders: Vec<(NodeId, ConnectionId)>,
    _seed: Seed,
}

impl Shared {
    fn new(options: &[Options], there: LinkModel, back: LinkModel) -> Self {
        let seed = seed_from_env(1);
        let rng = Rng::from_seed(seed.get());
        let mut net = Network::new(seed.get());
        // The server takes whatever a client insists on.
        let all = Options { ccids: Ccid::ALL.map(|(_, ccid)| ccid).to_vec(), ..Options::default() };
        let server = net.add(Endpoint::new(all, rng.stream("server")).unwrap(), [SERVER]);
        net.with(server, |endpoint, _| endpoint.listen(PORT, SERVICE).unwrap());
        let (there, back) = (net.add_link(there), net.add_link(back));
        let to: std::net::SocketAddr = SERVER.parse().unwrap();
        let senders = options.iter().zip(1..).map(|(options, n)| {
            let from = format!("10.2.0.{n}:6511");
            let client = net.add(Endpoint::new(options.clone(), rng.stream(&from)).unwrap(), [from.as_str()]);
            let from = from.parse().unwrap();
            net.route((client, 0), to, &[there], (server, 0), from);
            net.route((server, 0), from, &[back], (client, 0), to);
            let route = Route::new(SocketId(0), to);
            (client, net.with(client, |it, now| it.connect(now, route, 0, PORT, SERVICE).unwrap()))
        });
        let senders = senders.collect();
        Self { net, server, senders, _seed: seed }
    }

    /// The first `active` of them send all they may for `duration`; bytes that each got through in it.
    fn run(&mut self, active: usize, duration: Duration) -> Vec<u64> {
        let before = self.received();
        let end = self.net.now() + duration;
        let mut buf = Vec::new();
        while self.net.now() < end {
            for &(node, id) in &self.senders[..active] {
                self.net.with(node, |endpoint, now| {
                    let connection = endpoint.connection_mut(id).unwrap();
                    while connection.send(now, &[0; LEN], SendOptions::default()).is_ok() {}
                });
            }
            self.net.run_for(ms(5));
            self.net.with(self.server, |endpoint, _| {
                let ids: Vec<_> = endpoint.connections().collect();
                for id in ids {
                    while endpoint.connection_mut(id).is_some_and(|it| it.recv(&mut buf)) {}
                }
            });
        }
        self.received().iter().zip(before).map(|(now, before)| (now - before) * LEN as u64).collect()
    }

    /// Messages that the server has of each sender.
    fn received(&self) -> Vec<u64> {
        let server = self.net.node(self.server);
        let of = |port| {
            let mut all = server.connections().filter_map(|id| server.connection(id));
            all.find(|it| it.ports().1 == port).map_or(0, |it| it.report(Instant::ZERO).stats.received_messages)
        };
        let ports = self.senders.iter().map(|&(node, id)| self.net.node(node).connection(id).unwrap().ports().0);
        ports.map(of).collect()
    }
}

/// What a lone flow makes of the link in the last half of `seconds`, of what the link carries.
fn share(options: &Options, mbit: u64, delay: u64, packets: usize, loss: &str, seconds: u64) -> f64 {
    let mut net =
        Shared::new(core::slice::from_ref(options), bottleneck(mbit, delay, packets, loss), link(mbit, delay));
    let half = Duration::from_secs(seconds / 2);
    net.run(1, half);
    let bytes = net.run(1, half)[0];
    bytes as f64 * 8.0 / (mbit as f64 * 1e6 * half.as_secs_f64())
}

/// 30 Mbit/s over a satellite, with three packets in 100,000 lost by the radio: RFC 9438 §5.2's
/// equation gives CUBIC 1770 packets in a round trip, which is the whole link; Reno gets some 200.
#[test]
fn a_long_fat_path_is_filled_where_ccid_2_does_not() {
    let [two, cubic] = [Ccid::Two, Ccid::Cubic].map(|ccid| share(&only(ccid), 30, 300, 900, "0.003%", 240));
    assert!(cubic > 0.75 && cubic > 2.0 * two, "of the link, CCID 2 {two:.3}, CUBIC {cubic:.3}");
}

#[test]
fn the_window_of_ccid_2_may_be_another_ones() {
    let two = |cc| share(&Options { cc, ..only(Ccid::Two) }, 10, 20, 60, "0.2%", 30);
    let cubic = share(&only(Ccid::Cubic), 10, 20, 60, "0.2%", 30);
    assert_eq!((two(None), two(Some(Algorithm::Cubic))), (two(Some(Algorithm::Reno)), cubic));
    let (reno, veno) = (two(None), two(Some(Algorithm::Veno)));
    assert!(veno > 1.1 * reno, "losses of a radio: Reno {reno:.3}, Veno {veno:.3}");
}

#[test]
fn at_a_short_round_trip_it_does_no_worse_than_ccid_2() {
    let [two, cubic] = [Ccid::Two, Ccid::Cubic].map(|ccid| share(&only(ccid), 10, 5, 20, "0%", 30));
    assert!(cubic > 0.9 && cubic > 0.98 * two, "of the link, CCID 2 {two:.3}, CUBIC {cubic:.3}");
    let [two, cubic] = [Ccid::Two, Ccid::Cubic].map(|ccid| share(&only(ccid), 10, 10, 40, "1%", 60));
    assert!(cubic > 0.95 * two, "with losses: CCID 2 {two:.3}, CUBIC {cubic:.3}");
}

#[test]
fn two_cubic_flows_share_a_link_though_one_was_there_first() {
    let mut net = Shared::new(&[only(Ccid::Cubic), only(Ccid::Cubic)], bottleneck(10, 30, 50, "0%"), link(10, 30));
    net.run(1, Duration::from_secs(20));
    net.run(2, Duration::from_secs(40));
    let bytes = net.run(2, Duration::from_secs(120));
    let (a, b) = (bytes[0] as f64, bytes[1] as f64);
    let jain = (a + b).powi(2) / (2.0 * (a * a + b * b));
    assert!(jain > 0.95, "{bytes:?}: Jain's index {jain:.3}");
    assert!(a + b > 0.85 * 10e6 / 8.0 * 120.0, "{bytes:?}");
}

/// RFC 9438 §5.1: where Reno does well, CUBIC takes no more than Reno would.
#[test]
fn beside_ccid_2_at_a_short_round_trip_both_live() {
    let mut net = Shared::new(&[only(Ccid::Two), only(Ccid::Cubic)], bottleneck(10, 10, 40, "0%"), link(10, 10));
    net.run(2, Duration::from_secs(20));
    let bytes = net.run(2, Duration::from_secs(120));
    let ratio = bytes[1] as f64 / bytes[0] as f64;
    assert!(ratio > 0.5 && ratio < 2.0, "{bytes:?}");
}

#[test]
fn it_is_negotiated_and_who_does_not_know_it_gets_ccid_2() {
    let agreed = |client: &[Ccid], server: &[Ccid]| {
        let options = |ccids: &[Ccid]| Options { ccids: ccids.to_vec(), ..Options::default() };
        let mut pair = Pair::with(options(client), options(server), Duplex::both(link(10, 10)));
        pair.connect();
        pair.run(ms(200));
        pair.client_send(b"there").unwrap();
        pair.server_send(b"and back").unwrap();
        pair.run(ms(500));
        assert_eq!((pair.server_recv().len(), pair.client_recv().len()), (1, 1));
        let report = pair.on_client(|it, now| it.report(now));
        (report.sending, report.receiving)
    };
    use Ccid::{Cubic, Two};
    assert_eq!(agreed(&[Cubic, Two], &[Cubic, Two]), (Cubic, Cubic));
    assert_eq!(agreed(&[Cubic, Two], &[Two]), (Two, Two));
    assert_eq!(agreed(&[Two], &[Cubic, Two]), (Two, Two));
    let mut pair = Pair::with(only(Cubic), only(Two), Duplex::both(link(10, 10)));
    pair.run(ms(200));
    let refused = |event: &Event| matches!(event, Event::Closed(CloseReason::Reset(reset, _)) if reset.code == ResetCode::MANDATORY_ERROR);
    assert!(pair.client_events.iter().any(refused), "{:?}", pair.client_events);
}
