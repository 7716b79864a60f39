//! Forward delays by timestamps from a peer whose clock drifts, or who lies in them (THESIS §7.1.3, decision 21).

use crate::common::{CLIENT, SERVER, link, ms, pattern, route};
use braidcast_core::{Datagram, Instant, Machine, Rng, Route, Transmit};
use braidcast_sctp::wire::chunk::{StampArrival, TimestampEcho};
use braidcast_sctp::wire::{Header, seal};
use braidcast_sctp::{AssociationId, Endpoint, Event, Options, SchedulerKind, SendError, SendOptions};
use braidcast_sim::link::LinkModel;
use braidcast_sim::{Duplex, Network, NodeId};

/// What a peer says of an arrival, by the number of what it says.
type Lie = fn(&mut StampArrival, u64);

/// An endpoint whose clock is off by some parts in a million, and who reports any arrivals it likes.
struct Odd {
    inner: Endpoint,
    ppm: u64,
    lie: Option<Lie>,
    said: u64,
}

impl Odd {
    fn own(&self, now: Instant) -> Instant {
        Instant::from_nanos((u128::from(now.as_nanos()) * u128::from(1_000_000 + self.ppm) / 1_000_000) as u64)
    }

    /// Alters each arrival that a datagram reports.
    fn alter(&mut self, datagram: &mut [u8]) {
        let Some(lie) = self.lie else { return };
        let mut at = Header::LEN;
        while let Some(&[kind, _, l0, l1]) = datagram.get(at..at + 4).and_then(|it| <&[u8; 4]>::try_from(it).ok()) {
            let len = usize::from(u16::from_be_bytes([l0, l1])).max(4);
            if kind == TimestampEcho::KIND {
                for entry in datagram[at + TimestampEcho::HEADER..at + len].chunks_exact_mut(16) {
                    let word = |at: usize| u32::from_be_bytes(entry[at..at + 4].try_into().unwrap());
                    let path = u16::from_be_bytes([entry[0], entry[1]]);
                    let mut told = StampArrival { path, sent: word(4), arrived: word(8), elapsed: word(12) };
                    lie(&mut told, self.said);
                    self.said += 1;
                    entry[8..12].copy_from_slice(&told.arrived.to_be_bytes());
                    entry[12..16].copy_from_slice(&told.elapsed.to_be_bytes());
                }
            }
            at += len.next_multiple_of(4);
        }
        seal(datagram);
    }
}

impl Machine for Odd {
    type Event = (AssociationId, Event);

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        self.inner.handle_datagram(self.own(now), datagram);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.inner.handle_timeout(self.own(now));
    }

    fn poll_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        let transmit = self.inner.poll_transmit(self.own(now), buf)?;
        let size = transmit.segment_size.unwrap_or(buf.len()).max(1);
        buf.chunks_mut(size).for_each(|datagram| self.alter(datagram));
        Some(transmit)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        // The next nanosecond by the other clock: never too early.
        let at = self.inner.poll_timeout()?.as_nanos();
        Some(Instant::from_nanos((u128::from(at) * 1_000_000 / u128::from(1_000_000 + self.ppm)) as u64 + 1))
    }

    fn poll_event(&mut self) -> Option<Self::Event> {
        self.inner.poll_event()
    }
}

/// Wi-Fi and 3G of THESIS §7.1.
fn wifi_and_3g() -> [LinkModel; 2] {
    let thin = |kbit: u64, delay| LinkModel { rate: format!("{kbit}kbit").parse().unwrap(), ..link(1, delay) };
    [thin(1600, 10), thin(400, 100)]
}

fn options(scheduler: SchedulerKind) -> Options {
    Options::prompt().with(|it| {
        it.paths.scheduler = scheduler;
        it.paths.forward_delay = true;
        (it.limits.receive_buffer, it.limits.max_message) = (65_536, 32_768);
    })
}

/// What the second path carried of the chunks, and all that came of messages of 1000 bytes, in 20 s
/// after 3 s, sent to a peer like that.
struct Outcome {
    messages: usize,
    share: f64,
}

/// All messages that have come, of which nothing is left.
fn take(net: &mut Network<Odd>, server: NodeId) -> usize {
    net.with(server, |machine, now| {
        let (now, mut buf) = (machine.own(now), Vec::new());
        let id = machine.inner.associations().next().expect("it is up");
        let association = machine.inner.association_mut(id).expect("it is up");
        core::iter::from_fn(|| association.recv(now, &mut buf)).count()
    })
}

fn run(scheduler: SchedulerKind, links: [LinkModel; 2], ppm: u64, lie: Option<Lie>) -> Outcome {
    let rng = Rng::from_seed(1);
    let mut net = Network::new(1);
    let odd = |name: &str, ppm, lie| {
        let inner = Endpoint::new(options(scheduler), rng.stream(name)).unwrap();
        Odd { inner, ppm, lie, said: 0 }
    };
    let client: NodeId = net.add(odd("client", 0, None), CLIENT[..2].iter().copied());
    let server: NodeId = net.add(odd("server", ppm, lie), SERVER[..2].iter().copied());
    for (i, link) in links.into_iter().enumerate() {
        net.connect((client, i as u16), (server, i as u16), Duplex::both(link));
    }
    net.with(server, |machine, _| machine.inner.listen());
    let routes: [Route; 2] = [route(0), route(1)];
    let id = net.with(client, |machine, now| machine.inner.connect(now, 9899, &routes).unwrap());
    net.run_for(ms(2000));
    let message = pattern(1000, 1);
    let (mut came, mut before) = (0, [0; 2]);
    let mut next = net.now();
    let (start, end) = (net.now() + ms(3000), net.now() + ms(23_000));
    while next < end {
        net.with(client, |machine, now| {
            let association = machine.inner.association_mut(id).expect("it is up");
            loop {
                match association.send(now, &message, SendOptions::default()) {
                    Ok(()) => {}
                    Err(SendError::BufferFull { .. }) => break,
                    Err(error) => panic!("{error}"),
                }
            }
            if now <= start {
                before = [0, 1].map(|i| association.paths().nth(i).map_or(0, |path| path.sent_chunks));
            }
        });
        net.run_for(ms(5));
        next = net.now();
        let taken = take(&mut net, server);
        came += if next > start { taken } else { 0 };
    }
    let said = net.with(server, |machine, _| machine.said);
    assert!(lie.is_none() || said > 100, "{said} arrivals were told of");
    let sent = net.with(client, |machine, _| {
        let association = machine.inner.association_mut(id).expect("it is up");
        [0, 1].map(|i| association.paths().nth(i).map_or(0, |path| path.sent_chunks) - before[i])
    });
    Outcome { messages: came, share: sent[1] as f64 / (sent[0] + sent[1]) as f64 }
}

/// Forward delays of 60 and 20 ms, return delays of 10 and 80 ms: only the timestamps show which path
/// is quicker.
#[test]
fn clocks_200_ppm_apart_are_no_difference_between_paths() {
    let way = |delay, back| Duplex::new(link(5, delay), link(5, back));
    let rng = Rng::from_seed(2);
    let mut net = Network::new(2);
    let odd = |name: &str, ppm| {
        let inner = Endpoint::new(options(SchedulerKind::Daps), rng.stream(name)).unwrap();
        Odd { inner, ppm, lie: None, said: 0 }
    };
    let client: NodeId = net.add(odd("client", 0), CLIENT[..2].iter().copied());
    let server: NodeId = net.add(odd("server", 200), SERVER[..2].iter().copied());
    for (i, duplex) in [way(60, 10), way(20, 80)].into_iter().enumerate() {
        net.connect((client, i as u16), (server, i as u16), duplex);
    }
    net.with(server, |machine, _| machine.inner.listen());
    let id = net.with(client, |machine, now| machine.inner.connect(now, 9899, &[route(0), route(1)]).unwrap());
    net.run_for(ms(2000));
    // In ten minutes the clocks come 120 ms apart, three times what the ways there differ.
    let mut minutes = Vec::new();
    for _ in 0..10 {
        let sent = |net: &mut Network<Odd>| {
            net.with(client, |it, _| {
                it.inner.association_mut(id).unwrap().paths().map(|path| path.sent_chunks).collect::<Vec<_>>()
            })
        };
        let before = sent(&mut net);
        for n in 0..600_u64 {
            net.with(client, |it, now| {
                it.inner.association_mut(id).unwrap().send(now, &pattern(300, n), SendOptions::default()).unwrap();
            });
            net.run_for(ms(100));
            take(&mut net, server);
        }
        let after = sent(&mut net);
        minutes.push(after[1] - before[1]);
    }
    assert!(
        minutes.iter().skip(1).all(|second| *second > 550),
        "{minutes:?} of 600 over the way that is quicker there"
    );
}

#[test]
fn a_peer_that_lies_in_its_timestamps_costs_no_more_than_round_robin_has() {
    let round_robin = run(SchedulerKind::RoundRobin, wifi_and_3g(), 0, None);
    let honest = run(SchedulerKind::Daps, wifi_and_3g(), 0, None);
    println!("round robin {}, daps {}, honest peer", round_robin.messages, honest.messages);
    let lies: [(&str, Lie); 7] = [
        ("all at once", |it, _| it.arrived = it.sent),
        ("the slow path is quick", |it, _| it.arrived = it.sent.wrapping_add(if it.path == 0 { 50_000 } else { 0 })),
        ("the quick path is slow, as far as it can be", |it, _| {
            it.arrived = it.sent.wrapping_add(if it.path == 0 { 20_000 } else { 1 });
        }),
        ("a clock that runs backwards", |it, n| it.arrived = it.sent.wrapping_sub(1000 * n as u32)),
        ("by turns", |it, n| it.arrived = it.sent.wrapping_add(if n % 2 == 0 { 0 } else { 90_000 })),
        ("noise", |it, n| it.arrived = it.sent.wrapping_add((n as u32).wrapping_mul(2_654_435_761))),
        ("it waited for ever", |it, _| it.elapsed = u32::MAX),
    ];
    for (name, lie) in lies {
        let lied_to = run(SchedulerKind::Daps, wifi_and_3g(), 0, Some(lie));
        println!("{name}: {} messages, {:.2} over the second path", lied_to.messages, lied_to.share);
        assert!(
            lied_to.messages * 100 >= round_robin.messages * 97,
            "{name}: {} {}",
            lied_to.messages,
            round_robin.messages
        );
    }
}

/// The quick path takes ten times as long for 4 s of each 8.
#[test]
fn a_delay_that_jumps_tenfold_stops_nobody() {
    let jumps = || {
        let [wifi, umts] = wifi_and_3g();
        let schedule = braidcast_sim::link::parse::delay_schedule("0s:10ms,4s:100ms,repeat:8s").unwrap();
        [LinkModel { delay_schedule: Some(schedule), ..wifi }, umts]
    };
    let round_robin = run(SchedulerKind::RoundRobin, jumps(), 0, None).messages as f64;
    for (name, scheduler) in SchedulerKind::ALL {
        let outcome = run(scheduler, jumps(), 0, None);
        println!("{name}: {} messages, {:.2} over the second path", outcome.messages, outcome.share);
        // Over all paths goes what one carries; BLEST leaves the slow one alone while the delay of
        // the quick one is taken for short.
        let least = match scheduler {
            SchedulerKind::Redundant => 0.5,
            SchedulerKind::Blest => 0.9,
            _ => 0.95,
        };
        assert!(outcome.messages as f64 > least * round_robin, "{name}: {} {round_robin}", outcome.messages);
    }
}

/// Heartbeats fit the second path and data does not.
#[test]
fn a_path_that_answers_heartbeats_and_loses_data_holds_up_nobody() {
    let links = || {
        let [wifi, _] = wifi_and_3g();
        // An MTU probe of this size is lost as well: what is left is what heartbeats and SACKs take.
        [wifi.clone(), LinkModel { mtu: 300, ..wifi }]
    };
    let alone = 20.0 * 1_600_000.0 / 8.0 / 1052.0;
    for (name, scheduler) in SchedulerKind::ALL {
        let outcome = run(scheduler, links(), 0, None);
        println!("{name}: {} messages, {:.2} over the second path", outcome.messages, outcome.share);
        assert!(
            outcome.messages as f64 > 0.8 * alone,
            "{name}: {} of {alone:.0} over the first path",
            outcome.messages
        );
    }
}
