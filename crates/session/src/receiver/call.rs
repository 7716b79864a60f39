//! A receiver that dials: it calls a sender that listens, and calls again when that is lost.

use super::Receiver;
use crate::attempts::Attempts;
use crate::event::Event;
use crate::options::{self, ReceiverOptions};
use crate::start_error::StartError;
use braidcast_core::{Instant, Rng, Route};
use braidcast_sctp::{AssociationId, CloseReason, JoinError};

/// Events that are kept until a sender answers.
const MOST_EARLY: usize = 16;

/// The calls of a receiver that dials.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) attempts: Attempts,
    id: Option<AssociationId>,
    /// There was a sender.
    answered: bool,
    /// The call before was refused over its keys.
    refused: bool,
    /// What happened before the sender answered.
    early: Vec<Event>,
}

impl Receiver {
    /// A receiver that calls the sender that [listens](crate::Sender::listen) at the other end of
    /// `routes`; `remote_port` is its SCTP port. Nobody can call it. Without routes it waits for the
    /// first one that [joins](Self::join).
    ///
    /// # Errors
    /// [`StartError`]: there are too many routes, the port is 0, or the options cannot work.
    pub fn call(
        now: Instant,
        options: ReceiverOptions,
        rng: Rng,
        remote_port: u16,
        routes: &[Route],
    ) -> Result<Self, StartError> {
        let mut transport = options.transport();
        options::knock(&mut transport);
        let mut receiver = Self::with_transport(options, transport, rng)?;
        receiver.endpoint.stop_listening();
        let id = match routes {
            [] => None,
            routes => Some(receiver.endpoint.connect(now, remote_port, routes)?),
        };
        let attempts = Attempts::new(now, remote_port, routes);
        receiver.call = Some(Call { attempts, id, answered: false, refused: false, early: Vec::new() });
        Ok(receiver)
    }

    /// Adds a path. One that cannot join now is used for the next call. Ignored if senders call.
    ///
    /// # Errors
    /// [`JoinError`]: no more paths can join, or not now.
    pub fn join(&mut self, now: Instant, route: Route) -> Result<(), JoinError> {
        let Some(call) = &mut self.call else { return Ok(()) };
        call.attempts.add(now, route, call.id.is_none());
        let is_up = call.attempts.is_up();
        match call.id.and_then(|id| self.endpoint.association_mut(id)).map(|it| it.join(now, route)) {
            Some(Err(error)) if is_up => Err(error),
            _ => Ok(()),
        }
    }

    /// Takes a path away. Ignored if senders call.
    pub fn leave(&mut self, now: Instant, route: Route) {
        let Some(call) = &mut self.call else { return };
        call.attempts.remove(route);
        if let Some(association) = call.id.and_then(|id| self.endpoint.association_mut(id)) {
            association.leave(now, route);
        }
    }

    /// Makes the call that is due.
    pub(super) fn dial(&mut self, now: Instant) {
        let Some(call) = self.call.as_mut().filter(|it| it.attempts.due().is_some_and(|at| at <= now)) else { return };
        if let Some(association) = call.id.and_then(|id| self.endpoint.association(id)) {
            let heard = association.paths().map(|path| path.received_packets).sum();
            if call.attempts.goes_on(now, heard) {
                return;
            }
        }
        if let Some(association) = call.id.take().and_then(|id| self.endpoint.association_mut(id)) {
            // A handshake that led nowhere. Its end is of no interest.
            association.abort(now, "begun anew");
            return call.attempts.defer(now);
        }
        let Some((port, routes)) = call.attempts.begin(now) else { return };
        call.early.clear();
        match self.endpoint.connect(now, port, &routes) {
            Ok(id) => call.id = Some(id),
            Err(error) => call.attempts.postpone(now, &error),
        }
    }

    /// A sender answers. Returns what happened to its paths before.
    pub(super) fn call_is_up(&mut self, now: Instant, id: AssociationId) -> Vec<Event> {
        let Some(call) = self.call.as_mut().filter(|it| it.id == Some(id)) else { return Vec::new() };
        if let Some(association) = self.endpoint.association_mut(id) {
            // One that has no room stays out until the next call.
            call.attempts.others().into_iter().for_each(|route| _ = association.join(now, route));
        }
        call.attempts.up(now);
        call.answered = true;
        core::mem::take(&mut call.early)
    }

    /// Something happened to a path of a call that no sender has answered yet.
    pub(super) fn note_of_call(&mut self, id: AssociationId, event: Event) {
        if let Some(call) = self.call.as_mut().filter(|it| it.id == Some(id) && it.early.len() < MOST_EARLY) {
            call.early.push(event);
        }
    }

    /// An association is over. If it was the call's, the next one is made: unless there is nothing to
    /// call for any more, or the keys were refused twice in a row, and over each of several networks,
    /// before there ever was a sender (a refusal comes in clear, and anybody who sees packets can send
    /// one).
    pub(super) fn call_is_over(&mut self, now: Instant, id: AssociationId, reason: &CloseReason) {
        let Some(call) = self.call.as_mut().filter(|it| it.id == Some(id)) else { return };
        call.id = None;
        call.attempts.ended(reason);
        call.attempts.lost(now);
        let refused = matches!(reason, CloseReason::Insecure(_)) && !call.answered;
        if refused && core::mem::replace(&mut call.refused, refused) && call.attempts.believes() {
            call.attempts.stop();
            self.events.push_back((None, Event::Ended { complete: false, reason: reason.clone() }));
        } else {
            call.refused = refused;
            if !matches!(reason, CloseReason::Shutdown) {
                self.events.push_back((None, Event::Lost(reason.clone())));
            }
        }
    }

    /// There is nothing to call for any more.
    pub(super) fn hang_up(&mut self) {
        self.call.iter_mut().for_each(|call| call.attempts.stop());
    }
}
