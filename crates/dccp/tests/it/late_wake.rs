//! A process that is not scheduled for a while, or a machine that sleeps: the network is not to blame.

use braidcast_core::{Datagram, Ecn, Instant, Machine, Rng, Route, SocketId};
use braidcast_dccp::{Ccid, CcidReport, ConnectionId, Endpoint, Event, Options, SendOptions, ServiceCode};
use core::time::Duration;

const PORT: u16 = 5001;
const SERVICE: ServiceCode = ServiceCode(0x7465_7374);
const CLIENT: &str = "10.1.0.1:6511";
const SERVER: &str = "10.1.0.2:6511";

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Two endpoints without a network: the test carries each packet by hand.
struct Hand {
    client: Endpoint,
    server: Endpoint,
    id: ConnectionId,
    now: Instant,
}

impl Hand {
    fn new(ccid: Ccid) -> Self {
        let options = Options { ccids: vec![ccid], ..Options::default() };
        let [mut client, mut server] = [1, 2].map(|seed| Endpoint::new(options.clone(), Rng::from_seed(seed)).unwrap());
        server.listen(PORT, SERVICE).unwrap();
        let now = Instant::from_millis(1000);
        let route = Route::new(SocketId(0), SERVER.parse().unwrap());
        let id = client.connect(now, route, 4001, PORT, SERVICE).unwrap();
        Self { client, server, id, now }
    }

    /// All that an end sends now.
    fn sent(end: &mut Endpoint, now: Instant) -> Vec<Vec<u8>> {
        if end.poll_timeout().is_some_and(|at| at <= now) {
            end.handle_timeout(now);
        }
        let (mut sent, mut buf) = (Vec::new(), Vec::new());
        while let Some(transmit) = end.poll_transmit(now, &mut buf) {
            sent.extend(transmit.datagrams(&buf).map(<[u8]>::to_vec));
        }
        sent
    }

    fn give(end: &mut Endpoint, now: Instant, from: &str, packets: &[Vec<u8>]) {
        let route = Route::new(SocketId(0), from.parse().unwrap());
        packets.iter().for_each(|payload| end.handle_datagram(now, Datagram { route, ecn: Ecn::NotEct, payload }));
    }

    /// For a second the client sends something each 10 ms, over 20 ms in each direction.
    fn talk(&mut self) {
        let mut under_way: Vec<(Instant, bool, Vec<Vec<u8>>)> = Vec::new();
        for millis in 0..1000 {
            self.now += ms(1);
            let now = self.now;
            for (_, forth, packets) in under_way.extract_if(.., |(at, ..)| *at <= now) {
                let (end, from) = if forth { (&mut self.server, CLIENT) } else { (&mut self.client, SERVER) };
                Self::give(end, now, from, &packets);
            }
            if millis % 10 == 0 && millis > 100 {
                self.say();
            }
            under_way.push((now + ms(20), true, Self::sent(&mut self.client, now)));
            under_way.push((now + ms(20), false, Self::sent(&mut self.server, now)));
        }
    }

    fn say(&mut self) {
        let now = self.now;
        let connection = self.client.connection_mut(self.id).expect("connection");
        connection.send(now, &[7; 200], SendOptions::default()).expect("room");
    }

    fn report(&self) -> CcidReport {
        self.client.connection(self.id).expect("connection").report(self.now).ccid
    }
}

/// What congestion control allows may not have fallen, for nothing was lost.
fn assert_unharmed(before: &CcidReport, after: &CcidReport, case: &str) {
    assert_eq!((after.timeouts, after.lost), (before.timeouts, before.lost), "{case}");
    assert!(after.srtt <= before.srtt.map(|srtt| srtt + ms(5)), "{case}: {:?} after {:?}", after.srtt, before.srtt);
    assert!(after.cwnd >= before.cwnd, "{case}: {:?} after {:?}", after.cwnd, before.cwnd);
    let rates = (after.allowed_rate, before.allowed_rate);
    assert!(rates.0.zip(rates.1).is_none_or(|(after, before)| after >= 0.99 * before), "{case}: {rates:?}");
}

#[test]
fn whoever_sleeps_finds_the_answers_that_came_meanwhile_and_blames_nobody() {
    for (ccid, name) in Ccid::ALL.iter().map(|&(name, ccid)| (ccid, name)) {
        for (slept, timers_first) in [(500, true), (500, false), (10_000, true), (10_000, false), (3_600_000, true)] {
            let case = format!("{name}, {slept} ms, timers first: {timers_first}");
            let mut hand = Hand::new(ccid);
            hand.talk();
            hand.now += ms(20); // CCID 4 sends at most every 10 ms.
            hand.say();
            let packets = Hand::sent(&mut hand.client, hand.now);
            hand.now += ms(20);
            Hand::give(&mut hand.server, hand.now, CLIENT, &packets);
            hand.now += ms(200); // However long an acknowledgement is held back.
            let answers = Hand::sent(&mut hand.server, hand.now);
            assert!(!packets.is_empty() && !answers.is_empty(), "{case}");
            let before = hand.report();
            hand.now += ms(slept);
            if timers_first {
                hand.client.handle_timeout(hand.now);
            }
            Hand::give(&mut hand.client, hand.now, SERVER, &answers);
            Hand::sent(&mut hand.client, hand.now);
            assert_unharmed(&before, &hand.report(), &case);
        }
    }
}

#[test]
fn a_network_that_is_dead_when_one_wakes_is_noticed_as_ever() {
    for (ccid, name) in Ccid::ALL.iter().map(|&(name, ccid)| (ccid, name)) {
        let mut hand = Hand::new(ccid);
        hand.talk();
        hand.now += ms(10_000);
        let (woke, before) = (hand.now, hand.report().timeouts);
        while hand.report().timeouts == before {
            assert!(hand.now - woke < ms(3000), "{name}");
            hand.now += ms(10);
            if (hand.now - woke).as_millis().is_multiple_of(100) {
                hand.say();
            }
            Hand::sent(&mut hand.client, hand.now);
        }
    }
}

#[test]
fn a_handshake_waits_for_its_peer_as_long_as_we_are_awake() {
    let mut hand = Hand::new(Ccid::Two);
    let request = Hand::sent(&mut hand.client, hand.now);
    Hand::give(&mut hand.server, hand.now, CLIENT, &request);
    let response = Hand::sent(&mut hand.server, hand.now);
    hand.now += ms(3_600_000);
    hand.client.handle_timeout(hand.now);
    Hand::give(&mut hand.client, hand.now, SERVER, &response);
    Hand::sent(&mut hand.client, hand.now);
    let events: Vec<Event> = core::iter::from_fn(|| hand.client.poll_event()).map(|(_, event)| event).collect();
    assert!(events.contains(&Event::Connected), "{events:?}");
}
