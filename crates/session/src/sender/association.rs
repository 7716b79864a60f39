//! The association under a session: dialed or taken, and the next one after it.

use super::given_up::GivenUp;
use super::recent::Recent;
use super::transmit::Named;
use super::{Phase, Sender};
use crate::event::Event;
use crate::farewell::Farewell;
use crate::mapping::{self, STREAMS};
use crate::report::SecurityReport;
use crate::wire::Ask;
use braidcast_core::{Instant, Route};
use braidcast_rate::RateGuide;
use braidcast_sctp::{Association, AssociationId, CloseReason, ConnectError, Event as Sctp, JoinError};
use core::time::Duration;

/// A receiver that was not heard for this long gives way to another one that calls. What it hears of
/// every fifth of a second, it acknowledges.
const SILENT: Duration = Duration::from_secs(1);

impl Sender {
    /// Begins an association over `routes`.
    pub(super) fn dial(&mut self, now: Instant, port: u16, routes: &[Route]) -> Result<(), ConnectError> {
        let id = self.endpoint.connect(now, port, routes)?;
        self.phase = Phase::Connecting;
        self.take_up(now, id);
        Ok(())
    }

    /// The session goes on over this association.
    fn take_up(&mut self, now: Instant, id: AssociationId) {
        self.id = Some(id);
        self.paths.restart();
        self.guide.iter_mut().for_each(RateGuide::restart);
        if let Some(association) = self.endpoint.association_mut(id) {
            self.limits.iter().for_each(|&(route, limit)| association.set_limit(route, Some(limit)));
        }
        self.open(now);
    }

    /// Something happened to an association that is not the present one.
    pub(super) fn take_call(&mut self, id: AssociationId, event: Sctp) {
        match event {
            Sctp::Connected => self.called(id),
            Sctp::Closed(reason @ CloseReason::Insecure(_)) => self.events.push_back(Event::Insecure(reason)),
            _ => {}
        }
    }

    /// A receiver has called. The one that is there is served on, unless it is silent.
    fn called(&mut self, id: AssociationId) {
        let now = self.now;
        let refused = match self.phase {
            Phase::Closing | Phase::Closed => Some(Farewell::SenderStopped),
            Phase::Up if now.since(self.heard.1) < SILENT => Some(Farewell::Served),
            _ => None,
        };
        if let Some(why) = refused {
            if let Some(association) = self.endpoint.association_mut(id) {
                association.abort(now, why);
            }
            return;
        }
        if self.phase == Phase::Up {
            self.lost(CloseReason::PathsFailed);
            if let Some(old) = self.id.and_then(|id| self.endpoint.association_mut(id)) {
                old.abort(now, Farewell::Succeeded);
            }
        }
        self.take_up(now, id);
        self.connected();
    }

    /// A receiver that called says which stream it wants. Without a name, it takes any.
    pub(super) fn asked(&mut self, now: Instant, ask: Ask) {
        if !self.attempts.is_called() || ask.name.is_empty() || ask.name == self.options.name {
            return;
        }
        let why = Farewell::NoSuchStream;
        self.events.push_back(Event::Refused { name: ask.name, why });
        self.lost(CloseReason::Aborted);
        if let Some(association) = self.id.and_then(|id| self.endpoint.association_mut(id)) {
            association.abort(now, why);
        }
    }

    /// The receiver that was there began anew over the same addresses.
    pub(super) fn restarted(&mut self) {
        self.lost(CloseReason::PeerRestarted);
        self.open(self.now);
        self.connected();
    }

    /// The association is over, and the session is not.
    pub(super) fn lost(&mut self, reason: CloseReason) {
        if self.is_open() {
            self.events.push_back(Event::Lost(reason.clone()));
        }
        self.phase = Phase::Waiting;
        self.attempts.lost(self.now);
        self.last_reason = Some(reason);
    }

    /// Adds a path. One that cannot join now is used for the next association; one that comes
    /// during a handshake takes part in it.
    ///
    /// # Errors
    /// [`JoinError`]: no more paths can join, or not now.
    pub fn join(&mut self, now: Instant, route: Route) -> Result<(), JoinError> {
        self.attempts.add(now, route, self.phase == Phase::Waiting);
        let is_open = self.is_open();
        let Some(association) = self.id.and_then(|id| self.endpoint.association_mut(id)) else {
            return if is_open { Err(JoinError::Closing) } else { Ok(()) };
        };
        match (association.join(now, route), is_open) {
            (Err(error), true) => Err(error),
            _ => Ok(()),
        }
    }

    /// Sends no more than `limit` over `route` whenever it is a path: bits per second with the headers
    /// of IP and UDP ([`Association::set_limit`]). `None`, as at first: as much as it carries.
    pub fn set_limit(&mut self, route: Route, limit: Option<u64>) {
        self.limits.retain(|(limited, _)| *limited != route);
        self.limits.extend(limit.map(|limit| (route, limit)));
        if let Some(association) = self.id.and_then(|id| self.endpoint.association_mut(id)) {
            association.set_limit(route, limit);
        }
    }

    /// Takes a path away.
    pub fn leave(&mut self, now: Instant, route: Route) {
        self.attempts.remove(route);
        // Sockets have new numbers each time: the association would collect limits.
        self.set_limit(route, None);
        if let Some(association) = self.id.and_then(|id| self.endpoint.association_mut(id)) {
            association.leave(now, route);
        }
    }

    /// Begins the next association, in place of one that does not come up.
    pub(super) fn attempt(&mut self, now: Instant) {
        if self.phase == Phase::Connecting
            && let Some(association) = self.id.and_then(|id| self.endpoint.association_mut(id))
        {
            let heard = association.paths().map(|path| path.received_packets).sum();
            if self.attempts.goes_on(now, heard) {
                return;
            }
            association.abort(now, "begun anew");
            // Its end is of no interest.
            self.phase = Phase::Waiting;
            return self.attempts.defer(now);
        }
        let Some((port, routes)) = self.attempts.begin(now) else { return };
        if let Err(error) = self.dial(now, port, &routes) {
            self.attempts.postpone(now, &error);
        }
    }

    /// A new association: says who is there, and sends again what is still of use.
    fn open(&mut self, now: Instant) {
        if let Some(association) = self.id.and_then(|id| self.endpoint.association_mut(id)) {
            for stream in 0..STREAMS {
                association.set_priority(stream, mapping::priority(stream));
                association.set_copied(stream, !self.options.reliable && mapping::copied(stream));
            }
        }
        self.heard = (0, now);
        self.given_up = GivenUp::default();
        self.packs = false;
        self.send_hello(now);
        self.transfer.ask();
        let latency = self.options.latency;
        for recent in self.newest.take() {
            let Recent { sequence, place, handed, ref unit } = recent;
            let of_use = unit.first_captured + latency > now;
            let (parts, named) = (mapping::parts(unit), Named { sequence, place: Some(place) });
            let taken = of_use && self.transmit(now, unit, parts.as_deref(), named, handed).is_ok();
            self.keep(now, Recent { handed: handed || taken, ..recent });
        }
    }

    pub(super) fn connected(&mut self) {
        self.phase = Phase::Up;
        if let Some(association) = self.id.and_then(|id| self.endpoint.association_mut(id)) {
            // One that has no room stays out until the next association.
            self.attempts.others().into_iter().for_each(|route| _ = association.join(self.now, route));
        }
        self.attempts.up(self.now);
        self.account.on_association();
        self.heard.1 = self.now;
        if self.connected_at.is_some() {
            self.reconnections += 1;
        }
        self.connected_at.get_or_insert(self.now);
        let standing = self.id.and_then(|id| self.endpoint.association(id)).and_then(Association::standing);
        self.security = standing.as_ref().map(SecurityReport::from);
        self.next_tick = self.now;
        self.events.push_back(Event::Connected);
    }
}
