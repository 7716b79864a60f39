//! Two endpoints that meet without a network, for tests of what one of them has inside.

use super::Open;
use super::association::{Association, Life};
use crate::{AssociationId, Endpoint, Options};
use braidcast_core::{Datagram, Ecn, Instant, Machine, Rng, Route, SocketId};
use core::time::Duration;

pub(super) struct Pair {
    pub(super) now: Instant,
    pub(super) ends: [Endpoint; 2],
    pub(super) client: AssociationId,
}

/// The way from the end `from` to the other one over its socket `path`; both ends' sockets are numbered alike.
pub(super) fn route(from: usize, path: u8) -> Route {
    Route::new(SocketId(path.into()), format!("10.{path}.0.{}:9", 2 - from).parse().unwrap())
}

impl Pair {
    /// Connected over `paths` paths.
    pub(super) fn over(paths: u8) -> Self {
        Self::with(Options::default(), paths)
    }

    /// The same with `options`.
    pub(super) fn with(options: Options, paths: u8) -> Self {
        let options = options.with(|it| it.key = b"key".to_vec());
        let [mut client, mut server] = [1, 2].map(|seed| Endpoint::new(options.clone(), Rng::from_seed(seed)).unwrap());
        server.listen();
        let routes: Vec<Route> = (0..paths).map(|path| route(0, path)).collect();
        let now = Instant::from_millis(1);
        let id = client.connect(now, options.local_port, &routes).unwrap();
        let mut pair = Self { now, ends: [client, server], client: id };
        pair.settle();
        pair
    }

    /// Carries what both ends send to the other one, a millisecond in each direction, until nothing more comes.
    pub(super) fn settle(&mut self) {
        while self.exchange(0) + self.exchange(1) > 0 {}
    }

    /// Carries what the end `from` sends. Returns how many packets that were.
    pub(super) fn exchange(&mut self, from: usize) -> usize {
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

    pub(super) fn association(&mut self) -> &mut Association {
        self.ends[0].association_mut(self.client).unwrap()
    }

    pub(super) fn open(&mut self) -> &mut Open {
        match &mut self.association().life {
            Life::Open(open) => open,
            Life::Opening(opening) => panic!("{opening:?}"),
        }
    }
}
