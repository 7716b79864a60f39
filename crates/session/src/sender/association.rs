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
/// Receivers that may wait until the application has said something about them. As many as a receiver has guests.
const MAX_CALLERS: usize = 32;

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
            Sctp::Connected => match self.refusal() {
                Some(why) => self.refuse(id, why),
                None if self.options.ask => self.ask_for(id),
                None => self.let_in(id),
            },
            Sctp::Closed(reason) => {
                self.callers.retain(|caller| *caller != id);
                if matches!(reason, CloseReason::Insecure(_)) {
                    self.events.push_back(Event::Insecure(reason));
                }
            }
            _ => {}
        }
    }

    /// A receiver has called, and the application says if it may come in.
    fn ask_for(&mut self, id: AssociationId) {
        let Some(association) = self.endpoint.association(id) else { return };
        let remotes = association.paths().map(|path| path.route.remote).collect();
        let security = association.standing().as_ref().map(SecurityReport::from);
        self.callers.push(id);
        self.events.push_back(Event::Calling { id, remotes, security });
    }

    /// The answer to [`Event::Calling`]: takes the receiver, or sends it away with the reason why not.
    /// Ignored if it has gone. One that is there is served on, and a second one is turned away in any
    /// case.
    pub fn admit(&mut self, now: Instant, id: AssociationId, why_not: Option<Farewell>) {
        self.now = self.now.max(now);
        let Some(place) = self.callers.iter().position(|caller| *caller == id) else { return };
        self.callers.swap_remove(place);
        match why_not.or_else(|| self.refusal()) {
            Some(why) => self.refuse(id, why),
            None => self.let_in(id),
        }
        self.pump(now);
    }

    /// Ends the present receiver's part with this reason, for example as it may have the stream no
    /// longer. The session goes on with the next one.
    pub fn dismiss(&mut self, now: Instant, why: Farewell) {
        self.now = self.now.max(now);
        if let Some(id) = self.id.filter(|_| self.is_open()) {
            self.lost(CloseReason::Aborted);
            self.send_away(id, why);
        }
    }

    fn refuse(&mut self, id: AssociationId, why: Farewell) {
        self.events.push_back(Event::Refused { name: String::new(), why });
        self.send_away(id, why);
    }

    fn send_away(&mut self, id: AssociationId, why: Farewell) {
        if let Some(association) = self.endpoint.association_mut(id) {
            association.abort(self.now, why);
        }
    }

    /// Why no other receiver can come in. The one that is there is served on, unless it is silent.
    fn refusal(&self) -> Option<Farewell> {
        match self.phase {
            Phase::Closing | Phase::Closed => Some(Farewell::SenderStopped),
            Phase::Up if self.now.since(self.heard.1) < SILENT => Some(Farewell::Served),
            _ if self.callers.len() >= MAX_CALLERS => Some(Farewell::Served),
            _ => None,
        }
    }

    /// A receiver that called is sent to from now on.
    fn let_in(&mut self, id: AssociationId) {
        if self.phase == Phase::Up {
            self.lost(CloseReason::PathsFailed);
            if let Some(old) = self.id {
                self.send_away(old, Farewell::Succeeded);
            }
        }
        self.take_up(self.now, id);
        self.connected();
    }

    /// A receiver that called says which stream it wants. Without a name, it takes any.
    pub(super) fn asked(&mut self, now: Instant, ask: Ask) {
        if !self.attempts.is_called() || ask.name.is_empty() || ask.name == self.options.name {
            return;
        }
        let why = Farewell::NoSuchStream;
        self.events.push_back(Event::Refused { name: ask.name, why });
        self.dismiss(now, why);
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
