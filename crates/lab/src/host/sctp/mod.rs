//! SCTP with traffic on top: a sender that keeps its association supplied, a receiver that takes everything at once.

mod message;
mod receiver;
mod sender;

pub use message::Header;
pub use receiver::{Arrival, Delivered, SctpReceiver};
pub use sender::{SctpSender, Snapshot};

use super::window::Window;
use crate::scenario::FlowSpec;
use braidcast_core::{Datagram, Instant, Machine, Rng, Route, Transmit};
use braidcast_sctp::{Association, AssociationId, Endpoint, Event};
use core::fmt;
use core::time::Duration;

/// An SCTP endpoint and the part of it that sends or receives.
pub struct SctpHost<P> {
    endpoint: Endpoint,
    association: Option<AssociationId>,
    window: Window,
    part: P,
}

impl<P: fmt::Debug> fmt::Debug for SctpHost<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SctpHost({:?}, {:?})", self.window, self.part)
    }
}

/// What a part of a host does whenever something may have changed.
pub trait Part {
    /// `true` if it waits for the other end to call.
    const LISTENS: bool;

    /// Its routes.
    fn open(&mut self, routes: &[Route]);

    /// Begins the association if it is time to.
    fn connect(&mut self, now: Instant, endpoint: &mut Endpoint) -> Option<AssociationId>;

    /// Handles an event of the association.
    fn on_event(&mut self, now: Instant, event: &Event);

    /// The association can be used.
    fn work(&mut self, now: Instant, association: &mut Association, window: &mut Window);

    /// Returns `true` if it has taken all its measures.
    fn is_finished(&self) -> bool;

    /// When it wants to work next.
    fn next(&self) -> Option<Instant>;
}

impl<P: Part> SctpHost<P> {
    fn new(flow: &FlowSpec, duration: Duration, rng: Rng, part: P) -> Self {
        let mut endpoint = Endpoint::new(flow.sctp.clone(), rng).expect("scenarios check their options");
        if P::LISTENS {
            endpoint.listen();
        }
        Self { endpoint, association: None, window: Window::new(flow.traffic.warmup, duration), part }
    }

    /// Sets the host's routes.
    pub(super) fn open(&mut self, routes: &[Route]) {
        self.part.open(routes);
    }

    /// Returns `true` if it has taken all its measures.
    pub(super) fn is_finished(&self) -> bool {
        self.part.is_finished()
    }

    /// When it counts.
    pub(super) const fn window(&self) -> &Window {
        &self.window
    }

    /// What it does.
    pub const fn part(&self) -> &P {
        &self.part
    }

    fn work(&mut self, now: Instant) {
        while let Some((id, event)) = self.endpoint.poll_event() {
            if event == Event::Connected {
                self.association = Some(id);
            }
            self.part.on_event(now, &event);
        }
        if self.association.is_none() {
            // A connection that was begun counts from its `Connected` on.
            let _ = self.part.connect(now, &mut self.endpoint);
        } else if let Some(association) = self.association.and_then(|id| self.endpoint.association_mut(id)) {
            self.part.work(now, association, &mut self.window);
        }
    }
}

impl<P: Part> Machine for SctpHost<P> {
    type Event = core::convert::Infallible;

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        self.endpoint.handle_datagram(now, datagram);
        self.work(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.endpoint.poll_timeout().is_some_and(|at| at <= now) {
            self.endpoint.handle_timeout(now);
        }
        self.work(now);
    }

    fn poll_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        self.endpoint.poll_transmit(now, buf)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Instant::first_of([self.endpoint.poll_timeout(), self.part.next()])
    }

    fn poll_event(&mut self) -> Option<Self::Event> {
        None
    }
}
