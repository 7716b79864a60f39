//! Our end of SCTP.

use crate::host::Host;
use braidcast_core::{Instant, Rng, Route, SocketId};
use braidcast_driver::{Bind, entropy};
use braidcast_sctp::{Association, AssociationId, CloseReason, Endpoint, Event, Options};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// An SCTP endpoint with sockets and a driver of its own.
pub type Ours = Host<Endpoint>;

impl Host<Endpoint> {
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
        let rng = Rng::from_entropy(entropy().expect("randomness"));
        Self::run(Endpoint::new(options, rng).expect("options that work"), binds)
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
        self.machine.listen();
    }

    /// An association with SCTP port `sctp` behind UDP port `udp` of the loopback, once it is up.
    ///
    /// # Panics
    /// As [`connect_to`](Self::connect_to).
    pub fn connect(&mut self, udp: u16, sctp: u16) -> AssociationId {
        self.connect_to(sctp, &[SocketAddr::from((Ipv4Addr::LOCALHOST, udp))])
    }

    /// An association with SCTP port `sctp`, over a path from each socket to the remote in the same
    /// place, once it is up. usrsctp aborts what comes before its server listens, hence several
    /// attempts.
    ///
    /// # Panics
    /// If it does not come up within 5 s, or there is one already.
    pub fn connect_to(&mut self, sctp: u16, remotes: &[SocketAddr]) -> AssociationId {
        let routes: Vec<_> = (0..).map(SocketId).zip(remotes).map(|(id, &remote)| Route::new(id, remote)).collect();
        let end = self.driver.now() + Duration::from_secs(5);
        loop {
            let id = self.machine.connect(self.driver.now(), sctp, &routes).expect("nothing is connected yet");
            while self.closed(id).is_none() {
                if self.machine.association(id).is_some_and(Association::is_established) {
                    return id;
                }
                assert!(self.driver.now() < end, "not connected within 5 s; events {:?}", self.events);
                self.turn();
            }
            self.events.clear();
        }
    }

    /// Calls `action` on an association with the present time; `None` if it is gone.
    pub fn with<R>(&mut self, id: AssociationId, action: impl FnOnce(&mut Association, Instant) -> R) -> Option<R> {
        let now = self.driver.now();
        self.machine.association_mut(id).map(|association| action(association, now))
    }

    /// The association that came first, once there is one.
    pub fn first(&self) -> Option<AssociationId> {
        self.machine.associations().next()
    }

    /// Why `id` ended, once it has.
    pub fn closed(&self, id: AssociationId) -> Option<&CloseReason> {
        self.events.iter().find_map(|(of, event)| match event {
            Event::Closed(reason) if *of == id => Some(reason),
            _ => None,
        })
    }
}
