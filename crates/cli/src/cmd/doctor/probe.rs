//! Associations, and questions to relays, over the same sockets.

use braidcast_core::{Datagram, Ecn, Instant, Machine, Route, Transmit};
use braidcast_relay::{Client, ClientEvent, Control, Reason};
use braidcast_sctp::Endpoint;
use std::net::SocketAddr;
use std::time::Duration;

/// Who answers at an address is found out by asking as a sender and as a client of a relay does: neither takes the
/// other's packets for its own.
pub(super) struct Probe {
    pub(super) endpoint: Endpoint,
    pub(super) relays: Vec<Asked>,
}

/// A relay that may be there.
pub(super) struct Asked {
    pub(super) route: Route,
    pub(super) client: Client,
    /// When the last question left.
    sent: Option<Instant>,
    /// From the question to the first answer.
    pub(super) rtt: Option<Duration>,
    /// The address of the socket as the relay sees it, once it has said so.
    pub(super) seen_as: Option<SocketAddr>,
    pub(super) refused: Option<Reason>,
}

impl Asked {
    pub(super) const fn new(route: Route, client: Client) -> Self {
        Self { route, client, sent: None, rtt: None, seen_as: None, refused: None }
    }

    /// Takes in what the relay has said.
    pub(super) fn listen(&mut self) {
        while let Some(event) = self.client.poll_event() {
            match event {
                ClientEvent::Registered(observed) => self.seen_as = Some(observed.0),
                ClientEvent::Refused(why) => self.refused = Some(why),
                _ => {}
            }
        }
    }
}

impl Machine for Probe {
    type Event = <Endpoint as Machine>::Event;

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        let asked = self.relays.iter_mut().find(|asked| asked.route == datagram.route);
        match asked.filter(|_| Control::read(datagram.payload).is_ok()) {
            Some(asked) => {
                asked.rtt = asked.rtt.or_else(|| asked.sent.map(|sent| now.since(sent)));
                asked.client.handle(now, datagram.payload);
            }
            None => self.endpoint.handle_datagram(now, datagram),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.relays.iter_mut().for_each(|asked| asked.client.handle_timeout(now));
        if self.endpoint.poll_timeout().is_some_and(|at| at <= now) {
            self.endpoint.handle_timeout(now);
        }
    }

    fn poll_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        for asked in &mut self.relays {
            if let Some(bytes) = asked.client.poll() {
                asked.sent = Some(now);
                buf.clear();
                buf.extend_from_slice(&bytes);
                return Some(Transmit { route: asked.route, ecn: Ecn::NotEct, segment_size: None });
            }
        }
        self.endpoint.poll_transmit(now, buf)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        // A question is due at a time of its own, whatever time it is.
        let relays = self.relays.iter().map(|asked| asked.client.next(Instant::ZERO));
        relays.chain(self.endpoint.poll_timeout()).min()
    }

    fn poll_event(&mut self) -> Option<Self::Event> {
        Machine::poll_event(&mut self.endpoint)
    }
}
