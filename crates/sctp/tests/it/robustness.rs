//! Bad packets and bad clocks: no panic, and the association carries on or ends with a clear word.

use crate::common;
use crate::common::{CLIENT, Pair, Recording, SERVER, link, ms, pattern, raw_packet, route, tag, transfer};
use braidcast_core::{Datagram, Instant, Machine, Rng, Transmit};
use braidcast_sctp::wire::seal;
use braidcast_sctp::{AssociationId, Endpoint, Event, Options, SendError, SendOptions};
use braidcast_sim::link::{LinkModel, Loss};
use braidcast_sim::{Duplex, Network, NodeId};
use core::time::Duration;

fn two_links() -> Vec<Duplex> {
    vec![Duplex::both(link(10, 5)), Duplex::both(link(10, 10))]
}

/// An association that has seen a bit of everything, and all its packets.
fn recorded(options: &Options) -> (Pair, Recording) {
    let lossy = LinkModel { loss: "5%".parse().unwrap(), ..link(10, 5) };
    let mut pair = Pair::new(options, vec![Duplex::both(lossy), Duplex::both(link(10, 10))]);
    let recording = pair.record();
    pair.connect();
    for n in 0..30_u64 {
        let reliability = match n % 3 {
            0 => braidcast_sctp::Reliability::Lifetime(ms(12)),
            _ => braidcast_sctp::Reliability::Reliable,
        };
        let how = SendOptions { unordered: n % 2 == 0, ..common::on((n % 4) as u16, reliability) };
        pair.client_send(&pattern(200 + 150 * n as usize, n), how);
        let payload = pattern(300, n);
        pair.on_server(|association, now| association.send(now, &payload, how)).unwrap();
        pair.run(ms(3));
    }
    pair.until(ms(10_000), "acknowledgements", |pair| {
        pair.on_client(|association, _| association.buffered()) == 0
            && pair.on_server(|association, _| association.buffered()) == 0
    });
    pair.server_recv();
    pair.client_recv();
    (pair, recording)
}

/// Data still gets through.
fn works(pair: &mut Pair) {
    pair.run(ms(100));
    pair.server_recv();
    transfer(pair, 100_000, 3000);
    assert_eq!(pair.net.node(pair.server).associations().count(), 1);
    for events in [&pair.client_events, &pair.server_events] {
        assert!(!events.iter().any(|event| matches!(event, Event::Closed(_) | Event::Restarted)), "{events:?}");
    }
}

#[test]
fn links_that_flip_bits_only_cost_time() {
    let flips = LinkModel { corrupt: 0.1, ..link(10, 10) };
    let mut pair = Pair::new(&Options::live(), vec![Duplex::both(flips.clone()), Duplex::both(flips)]);
    transfer(&mut pair, 500_000, 20_000);
}

#[test]
fn truncated_oversized_and_altered_packets_with_a_wrong_checksum_are_dropped() {
    let (mut pair, recording) = recorded(&Options::live());
    for (n, seen) in recording.all().into_iter().enumerate().step_by(5) {
        let (mut longer, mut flipped) = (seen.bytes.clone(), seen.bytes.clone());
        longer.resize(longer.len() + n % 70_000, n as u8);
        let bit = n * 31 % (8 * flipped.len());
        flipped[bit / 8] ^= 1 << (bit % 8);
        let cuts = (0..seen.bytes.len()).step_by(13).map(|len| seen.bytes[..len].to_vec());
        for bytes in cuts.chain([flipped, longer].into_iter().filter(|bytes| *bytes != seen.bytes)) {
            if seen.is_from(&CLIENT) {
                pair.inject_server(0, CLIENT[0], &bytes);
            } else {
                pair.inject_client(0, SERVER[0], &bytes);
            }
        }
    }
    works(&mut pair);
}

/// Feeds altered packets with right checksums to both ends. Returns how many associations it cost.
fn altered(interleaving: bool, mut alter: impl FnMut(&mut Vec<u8>, &mut Rng)) -> usize {
    let options = Options::live().with(|it| it.interleaving = interleaving);
    let (mut pair, mut recording) = recorded(&options);
    let mut rng = Rng::from_seed(5);
    let mut deaths = 0;
    for round in 0..800 {
        let packets = recording.all();
        let seen = &packets[rng.below(packets.len() as u64) as usize];
        let mut bytes = seen.bytes.clone();
        alter(&mut bytes, &mut rng);
        if bytes.len() >= 12 {
            seal(&mut bytes);
        }
        let i = (round % 2) as usize;
        if seen.is_from(&CLIENT) {
            pair.inject_server(i as u16, CLIENT[i], &bytes);
        } else {
            pair.inject_client(i as u16, SERVER[i], &bytes);
        }
        pair.run(ms(2));
        if pair.server_exists() {
            pair.server_recv();
        }
        let ended = [&pair.client_events, &pair.server_events]
            .iter()
            .any(|events| events.iter().any(|event| matches!(event, Event::Closed(_) | Event::Restarted)));
        if ended {
            deaths += 1;
            (pair, recording) = recorded(&options);
        } else if pair.net.node(pair.server).associations().count() > 1 {
            // The cookie of a handshake with another tag or TSN is genuine.
            (pair, recording) = recorded(&options);
        }
    }
    deaths
}

#[test]
fn cut_packets_with_a_right_checksum_do_not_panic() {
    for interleaving in [true, false] {
        altered(interleaving, |bytes, rng| bytes.truncate(rng.below(bytes.len() as u64 + 1) as usize));
    }
}

#[test]
fn flipped_packets_with_a_right_checksum_do_not_panic() {
    for interleaving in [true, false] {
        altered(interleaving, |bytes, rng| {
            for _ in 0..=rng.below(4) {
                // Ports and tag stay, or the packet goes nowhere.
                let at = 12 + rng.below(bytes.len().saturating_sub(12).max(1) as u64) as usize;
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << rng.below(8);
                }
            }
        });
    }
}

#[test]
fn numbers_at_their_limits_do_not_panic() {
    for interleaving in [true, false] {
        altered(interleaving, |bytes, rng| {
            let at = 16 + 4 * rng.below((bytes.len() as u64).saturating_sub(20).max(4) / 4) as usize;
            let word = [0, 1, 0x7fff_ffff, 0x8000_0000, u32::MAX][rng.below(5) as usize];
            if let Some(field) = bytes.get_mut(at..at + 4) {
                field.copy_from_slice(&word.to_be_bytes());
            }
        });
    }
}

#[test]
fn replayed_packets_change_nothing() {
    for interleaving in [true, false] {
        let options = Options::live().with(|it| it.interleaving = interleaving);
        let (mut pair, recording) = recorded(&options);
        let mut packets = recording.all();
        for _ in 0..2 {
            packets.reverse();
            for (n, seen) in packets.iter().enumerate() {
                let i = if seen.is_from(&[CLIENT[1], SERVER[1]]) { 1 } else { 0 };
                if seen.is_from(&CLIENT) {
                    pair.inject_server(i as u16, CLIENT[i], &seen.bytes);
                } else {
                    pair.inject_client(i as u16, SERVER[i], &seen.bytes);
                }
                if n % 7 == 0 || seen.kinds().contains(&braidcast_sctp::wire::chunk::kind::COOKIE_ECHO) {
                    pair.inject_server(0, "192.0.2.1:9899", &seen.bytes);
                }
            }
            pair.run(ms(50));
            let count = pair.server_recv().len() + pair.client_recv().len();
            assert_eq!(count, 0, "a message came twice");
        }
        assert_eq!(pair.on_server(|association, _| association.paths().count()), 2);
        works(&mut pair);
    }
}

#[test]
fn garbage_is_dropped() {
    let mut pair = Pair::connected(&Options::live(), two_links());
    let mut rng = Rng::from_seed(3);
    for _ in 0..3000 {
        let mut bytes = vec![0; rng.below(1600) as usize];
        rng.fill(&mut bytes);
        pair.inject_server(0, CLIENT[0], &bytes);
        if bytes.len() >= 12 {
            // Right ports and checksum, but nobody's tag.
            let bytes = raw_packet(rng.u32(), &bytes[12..]);
            pair.inject_server(0, CLIENT[0], &bytes);
            pair.inject_client(0, SERVER[0], &bytes);
        }
    }
    works(&mut pair);
}

#[test]
fn garbage_with_the_right_tag_does_not_panic() {
    let mut rng = Rng::from_seed(4);
    for interleaving in [true, false] {
        let options = Options::live().with(|it| it.interleaving = interleaving);
        for _ in 0..100 {
            let mut pair = Pair::connected(&options, vec![Duplex::both(link(10, 5))]);
            let recording = pair.record();
            pair.client_send(b"x", SendOptions::default());
            pair.run(ms(20));
            let tag = tag(&recording.sent(&CLIENT)[0].bytes);
            for _ in 0..20 {
                let mut chunks = vec![0; 4 + 4 * rng.below(40) as usize];
                rng.fill(&mut chunks);
                // A type that is known, and a length that fits.
                let known = [0, 3, 4, 5, 9, 14, 64, 128, 132, 192, 193, 194];
                chunks[0] = known[rng.below(known.len() as u64) as usize];
                let len = chunks.len() as u16;
                chunks[2..4].copy_from_slice(&len.to_be_bytes());
                pair.inject_server(0, CLIENT[0], &raw_packet(tag, &chunks));
            }
            pair.run(ms(3000));
        }
    }
}

/// An endpoint whose clock is off.
struct Skewed {
    inner: Endpoint,
    ahead: Duration,
}

impl Machine for Skewed {
    type Event = (AssociationId, Event);

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        self.inner.handle_datagram(now + self.ahead, datagram);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.inner.handle_timeout(now + self.ahead);
    }

    fn poll_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        self.inner.poll_transmit(now + self.ahead, buf)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.inner.poll_timeout().map(|at| at - self.ahead)
    }

    fn poll_event(&mut self) -> Option<Self::Event> {
        self.inner.poll_event()
    }
}

/// Sends 2 MB while the clock of one end jumps from 10 h to `to`. Returns the time until all arrived,
/// or how it ended.
fn jump(by_client: bool, to: Duration, lossy: bool) -> Result<Duration, Vec<Event>> {
    let hours = Duration::from_secs(36_000);
    let rng = Rng::from_seed(1);
    let mut net = Network::new(1);
    let skewed = |name: &str| Skewed { inner: Endpoint::new(Options::live(), rng.stream(name)).unwrap(), ahead: hours };
    let client: NodeId = net.add(skewed("client"), CLIENT[..2].iter().copied());
    let server: NodeId = net.add(skewed("server"), SERVER[..2].iter().copied());
    let loss: Loss = if lossy { "2%" } else { "0%" }.parse().unwrap();
    for i in 0..2 {
        net.connect((client, i), (server, i), Duplex::both(LinkModel { loss: loss.clone(), ..link(10, 10) }));
    }
    net.with(server, |machine, _| machine.inner.listen());
    let id = net
        .with(client, |machine, now| machine.inner.connect(now + machine.ahead, 9899, &[route(0), route(1)]).unwrap());
    net.run_for(ms(500));
    let data = pattern(2_000_000, 1);
    let (mut at, mut got, mut buf) = (0, Vec::new(), Vec::new());
    let start = net.now();
    while net.now() - start < Duration::from_secs(120) {
        if net.now() - start == ms(300) {
            net.with(if by_client { client } else { server }, |machine, _| machine.ahead = to);
        }
        net.with(client, |machine, now| {
            let now = now + machine.ahead;
            let Some(association) = machine.inner.association_mut(id) else { return };
            while at < data.len() {
                match association.send(now, &data[at..at + 1000], SendOptions::default()) {
                    Ok(()) => at += 1000,
                    Err(SendError::BufferFull { .. } | SendError::Closing) => break,
                    Err(error) => panic!("{error}"),
                }
            }
        });
        net.run_for(ms(1));
        net.with(server, |machine, now| {
            let now = now + machine.ahead;
            let Some(id) = machine.inner.associations().next() else { return };
            let Some(association) = machine.inner.association_mut(id) else { return };
            while association.recv(now, &mut buf).is_some() {
                got.extend_from_slice(&buf);
            }
        });
        if got.len() == data.len() {
            assert!(got == data);
            return Ok(net.now() - start);
        }
    }
    Err(core::iter::from_fn(|| net.poll_event(client)).map(|(_, event)| event).collect())
}

#[test]
fn a_clock_that_jumps_ahead_costs_a_moment() {
    for by_client in [true, false] {
        for lossy in [false, true] {
            let took = jump(by_client, Duration::from_secs(39_600), lossy);
            assert!(took.as_ref().is_ok_and(|took| *took < Duration::from_secs(10)), "{by_client} {lossy}: {took:?}");
        }
    }
}

#[test]
fn a_clock_that_jumps_back_costs_no_more_than_it_takes_to_catch_up() {
    for by_client in [true, false] {
        for lossy in [false, true] {
            let took = jump(by_client, Duration::from_secs(36_000 - 20), lossy);
            assert!(took.as_ref().is_ok_and(|took| *took < Duration::from_secs(30)), "{by_client} {lossy}: {took:?}");
        }
    }
}

#[test]
fn timeouts_at_odd_times_do_no_harm() {
    let mut pair = Pair::connected(&Options::live(), two_links());
    for payload in pattern(50_000, 1).chunks(1000) {
        pair.client_send(payload, SendOptions::default());
    }
    for n in 0..200 {
        let at = if n % 2 == 0 { Instant::ZERO } else { pair.now() };
        for node in [pair.client, pair.server] {
            pair.net.with(node, |endpoint, _| endpoint.handle_timeout(at));
        }
        pair.run(ms(1));
    }
    works(&mut pair);
}
