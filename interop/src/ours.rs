//! Our end: an endpoint on real sockets.

use braidcast_core::{Instant, Rng, Route, SocketId};
use braidcast_driver::{Bind, Driver, entropy};
use braidcast_sctp::{Association, AssociationId, CloseReason, Endpoint, Event, Options};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// An SCTP endpoint with sockets and a driver of its own.
pub struct Ours {
    driver: Driver,
    endpoint: Endpoint,
    /// Everything that was reported, oldest first.
    pub events: Vec<(AssociationId, Event)>,
}

impl Ours {
    /// An endpoint that neither listens nor is connected, on a UDP port that is free.
    ///
    /// # Panics
    /// If the loopback has no sockets to give.
    pub fn new(options: Options) -> Self {
        Self::on(options, &[Bind::to_addr((Ipv4Addr::LOCALHOST, 0).into())])
    }

    /// The same on these sockets.
    ///
    /// # Panics
    /// If one of them cannot be opened.
    pub fn on(options: Options, binds: &[Bind]) -> Self {
        let mut driver = Driver::new().expect("a driver");
        for bind in binds {
            driver.bind(bind).unwrap_or_else(|error| panic!("{error}"));
        }
        let rng = Rng::from_entropy(entropy().expect("randomness"));
        Self { driver, endpoint: Endpoint::new(options, rng), events: Vec::new() }
    }

    /// The UDP port of the first socket.
    ///
    /// # Panics
    /// Never: the socket stays open.
    pub fn udp_port(&self) -> u16 {
        self.driver.socket(SocketId(0)).expect("the socket stays open").local_addr().port()
    }

    /// Accepts associations.
    pub fn listen(&mut self) {
        self.endpoint.listen();
    }

    /// An association with SCTP port `sctp` behind UDP port `udp` of the loopback, once it is up.
    ///
    /// # Panics
    /// As [`connect_to`](Self::connect_to).
    pub fn connect(&mut self, udp: u16, sctp: u16) -> AssociationId {
        self.connect_to(sctp, &[SocketAddr::from((Ipv4Addr::LOCALHOST, udp))])
    }

    /// An association with SCTP port `sctp`, over a path from each socket to the remote in the same place, once it is up.
    /// usrsctp aborts what comes before its server listens, hence several attempts.
    ///
    /// # Panics
    /// If it does not come up within 5 s, or there is one already.
    pub fn connect_to(&mut self, sctp: u16, remotes: &[SocketAddr]) -> AssociationId {
        let routes: Vec<_> = (0..).map(SocketId).zip(remotes).map(|(id, &remote)| Route::new(id, remote)).collect();
        let end = self.driver.now() + Duration::from_secs(5);
        loop {
            let id = self.endpoint.connect(self.driver.now(), sctp, &routes).expect("nothing is connected yet");
            while self.closed(id).is_none() {
                if self.endpoint.association(id).is_some_and(Association::is_established) {
                    return id;
                }
                assert!(self.driver.now() < end, "not connected within 5 s; events {:?}", self.events);
                self.turn();
            }
            self.events.clear();
        }
    }

    /// Runs for at most 20 ms, or until something came in.
    ///
    /// # Panics
    /// If the system's polling fails.
    pub fn turn(&mut self) {
        use braidcast_core::Machine;
        let until = self.driver.now() + Duration::from_millis(20);
        self.driver.drive(&mut self.endpoint, Some(until)).expect("polling works");
        self.events.extend(core::iter::from_fn(|| self.endpoint.poll_event()));
    }

    /// Turns until `done`, or panics after `limit`.
    ///
    /// # Panics
    /// If `limit` passes first.
    pub fn until(&mut self, limit: Duration, what: &str, mut done: impl FnMut(&mut Self) -> bool) {
        let end = self.driver.now() + limit;
        while !done(self) {
            assert!(self.driver.now() < end, "{what}: not within {limit:?}; events {:?}", self.events);
            self.turn();
        }
    }

    /// Calls `action` on an association with the present time; `None` if it is gone.
    pub fn with<R>(&mut self, id: AssociationId, action: impl FnOnce(&mut Association, Instant) -> R) -> Option<R> {
        let now = self.driver.now();
        self.endpoint.association_mut(id).map(|association| action(association, now))
    }

    /// The association that came first, once there is one.
    pub fn first(&self) -> Option<AssociationId> {
        self.endpoint.associations().next()
    }

    /// Why `id` ended, once it has.
    pub fn closed(&self, id: AssociationId) -> Option<&CloseReason> {
        self.events.iter().find_map(|(of, event)| match event {
            Event::Closed(reason) if *of == id => Some(reason),
            _ => None,
        })
    }
}
