//! Plans without bytes: two endpoints meet, and then one is asked what it would send.

use super::*;
use crate::assoc::association::{Association, Life};
use crate::{AssociationId, Endpoint, Event, Options, Reliability, SendOptions};
use braidcast_core::{Datagram, Ecn, Machine, Rng, Route, SocketId};
use core::time::Duration;

struct Pair {
    now: Instant,
    ends: [Endpoint; 2],
    client: AssociationId,
}

/// The way from the end `from` to the other one over its socket `path`; both ends' sockets are numbered alike.
fn route(from: usize, path: u8) -> Route {
    Route::new(SocketId(path.into()), format!("10.{path}.0.{}:9", 2 - from).parse().unwrap())
}

impl Pair {
    /// Connected over `paths` paths.
    fn over(paths: u8) -> Self {
        let options = Options::default().with(|it| it.key = b"key".to_vec());
        let [mut client, mut server] = [1, 2].map(|seed| Endpoint::new(options.clone(), Rng::from_seed(seed)).unwrap());
        server.listen();
        let routes: Vec<Route> = (0..paths).map(|path| route(0, path)).collect();
        let now = Instant::from_millis(1);
        let id = client.connect(now, options.local_port, &routes).unwrap();
        let mut pair = Self { now, ends: [client, server], client: id };
        pair.settle();
        pair
    }

    /// Carries what both ends send to the other one, a millisecond each way, until nothing more comes.
    fn settle(&mut self) {
        while self.exchange(0) + self.exchange(1) > 0 {}
    }

    /// Carries what the end `from` sends. Returns how many packets that were.
    fn exchange(&mut self, from: usize) -> usize {
        let (mut buf, mut carried) = (Vec::new(), Vec::new());
        if self.ends[from].poll_timeout().is_some_and(|at| at <= self.now) {
            self.ends[from].handle_timeout(self.now);
        }
        while let Some(transmit) = self.ends[from].poll_transmit(self.now, &mut buf) {
            let size = transmit.segment_size.unwrap_or(buf.len().max(1));
            carried.extend(buf.chunks(size).map(|packet| (transmit.route.socket, packet.to_vec())));
        }
        self.now += Duration::from_millis(1);
        for (socket, packet) in &carried {
            let back = route(1 - from, socket.0 as u8);
            let datagram = Datagram { route: back, ecn: Ecn::NotEct, payload: packet };
            self.ends[1 - from].handle_datagram(self.now, datagram);
        }
        carried.len()
    }

    fn association(&mut self) -> &mut Association {
        self.ends[0].association_mut(self.client).unwrap()
    }

    fn open(&mut self) -> &mut Open {
        match &mut self.association().life {
            Life::Open(open) => open,
            Life::Opening(opening) => panic!("{opening:?}"),
        }
    }

    fn plan(&mut self) -> Option<(usize, What)> {
        let now = self.now;
        let plan = self.open().plan(now, true);
        plan.map(|plan| (plan.path.get(), plan.what))
    }

    fn send(&mut self, len: usize) {
        let (now, how) = (self.now, SendOptions { reliability: Reliability::Reliable, ..SendOptions::default() });
        self.association().send(now, &vec![1; len], how).unwrap();
    }
}

#[test]
fn nothing_to_say_is_no_plan() {
    let mut pair = Pair::over(1);
    assert_eq!(pair.plan(), None);
    assert!(pair.ends[0].poll_event().is_some_and(|(_, event)| event == Event::Connected));
}

#[test]
fn new_data_goes_after_control_and_announcements_and_what_was_lost_before_it() {
    let mut pair = Pair::over(1);
    pair.send(100_000);
    assert_eq!(pair.plan(), Some((0, What::New)));
    let now = pair.now;
    let path = pair.open().paths.at(0).unwrap();
    // Nobody carries the first window: T3 takes it for lost.
    while pair.association().poll_transmit(now, &mut Vec::new()).is_some() {}
    assert_eq!(pair.plan(), None, "the window is full");
    pair.now += Duration::from_secs(2);
    let now = pair.now;
    pair.association().handle_timeout(now);
    assert_eq!(pair.plan(), Some((0, What::Announcement)), "a heartbeat asks whether the path answers");
    pair.open().paths[path].take_pending();
    assert_eq!(pair.plan(), Some((0, What::Repeat)));
    pair.association().abort(now, "enough");
    assert_eq!(pair.plan(), Some((0, What::Control)));
}

#[test]
fn a_copy_goes_over_another_path_than_the_chunk_did() {
    let mut pair = Pair::over(2);
    pair.association().set_copied(0, true);
    pair.send(100);
    let Some((first, What::New)) = pair.plan() else { panic!("data goes first") };
    let now = pair.now;
    assert!(pair.association().poll_transmit(now, &mut Vec::new()).is_some());
    assert_eq!(pair.plan(), Some((1 - first, What::Copy)));
}

#[test]
fn asking_twice_changes_nothing() {
    let mut pair = Pair::over(2);
    pair.send(50_000);
    let plans = [pair.plan(), pair.plan(), pair.plan()];
    assert!(plans[0].is_some() && plans.iter().all(|plan| *plan == plans[0]), "{plans:?}");
}
