//! Two protected associations with one peer: whether the newer takes the place of the older.
//!
//! Nothing in clear ends or replaces a protected association. A newcomer at its peer's address
//! stands beside it. It takes its place once its key handshake has proved that it is the same peer
//! and the older one has had time to send a record, and has not.

use super::{AssociationId, Endpoint, Entry};
use crate::api::CloseReason;
use crate::assoc::Association;
use braidcast_core::Instant;
use braidcast_secure::Standing;
use std::sync::Arc;

impl Endpoint {
    /// After the association has been polled dry: what follows for others from what has become of
    /// it.
    pub(super) fn tend_succession(&mut self, now: Instant, id: AssociationId) {
        let Some(entry) = self.roster.get_mut(id) else { return };
        let newly_proved = !entry.proved && entry.association.is_protected();
        entry.proved |= newly_proved;
        let asks_now = entry.association.take_question(now);
        let (asks_for, asked_by) = (entry.asks_for, entry.asked_by);
        if newly_proved {
            self.succeed(now, id);
            if self.strangers.leave(id) {
                self.take_in(now, id);
            }
        }
        if asks_now {
            self.ask(now, id);
        }
        let answered = |it: AssociationId| !self.association(it).is_some_and(Association::is_doubted);
        let over = match (asks_for, asked_by) {
            (Some(other), _) if answered(other) => Some(id),
            (_, Some(other)) if answered(id) => Some(other),
            _ => None,
        };
        if let Some(over) = over {
            self.stop_asking(now, over);
        }
    }

    /// The newcomer `id` has proved who it is: the older associations of the same peer at its
    /// addresses have to show that they live.
    fn succeed(&mut self, now: Instant, id: AssociationId) {
        let Some(newcomer) = self.roster.get(id) else { return };
        // What only asks leaves as soon as there is an answer.
        let lasting = newcomer.asks_for.is_none();
        let newcomer = &newcomer.association;
        let (standing, port) = (newcomer.standing(), newcomer.peer_port());
        let mut older: Vec<_> = newcomer.paths().flat_map(|path| self.at(path.route, port).iter().copied()).collect();
        older.sort_unstable();
        older.dedup();
        for other in older {
            let Some(entry) = self.roster.get_mut(other).filter(|entry| other != id && entry.proved) else { continue };
            if entry.asks_for.is_none() && is_same(standing.as_ref(), entry.association.standing().as_ref()) {
                entry.association.succeed(now, lasting);
                entry.succeeded_by = Some(id);
                self.settle(other);
            }
        }
    }

    /// `id` is over: whom it was to succeed is doubted no more.
    pub(super) fn release(&mut self, id: AssociationId) {
        let succeeded = |it: &AssociationId| self.roster.get(*it).is_some_and(|entry| entry.succeeded_by == Some(id));
        let older: Vec<_> = self.roster.ids().filter(succeeded).collect();
        for other in older {
            if let Some(entry) = self.roster.get_mut(other) {
                entry.succeeded_by = None;
                entry.association.trust();
                self.settle(other);
            }
        }
    }

    /// Begins an association beside `id`, with the same peer and over the same routes, to find out
    /// whether that still has its state.
    fn ask(&mut self, now: Instant, id: AssociationId) {
        if let Some(before) = self.roster.get_mut(id).and_then(|entry| entry.asked_by.take()) {
            self.stop_asking(now, before);
        }
        let Some(doubted) = self.association(id) else { return };
        let (port, routes) = (doubted.peer_port(), doubted.paths().map(|path| path.route).collect::<Vec<_>>());
        let (options, rng) = (Arc::clone(&self.options), self.rng.fork());
        let mut entry = Entry::new(Association::connect(now, options, rng, port, &routes), None);
        entry.asks_for = Some(id);
        let question = self.insert(entry);
        self.roster.get_mut(id).into_iter().for_each(|entry| entry.asked_by = Some(question));
    }

    fn stop_asking(&mut self, now: Instant, question: AssociationId) {
        if let Some(entry) = self.roster.get_mut(question).filter(|entry| !entry.association.is_closed()) {
            entry.association.abort(now, CloseReason::ASKED);
            self.settle(question);
        }
    }

    /// `id` is over, which asked for one and by another was asked for.
    pub(super) fn end_question(
        &mut self,
        now: Instant,
        id: AssociationId,
        (asks_for, asked_by): (Option<AssociationId>, Option<AssociationId>),
    ) {
        if let Some(question) = asked_by {
            self.stop_asking(now, question);
        }
        let Some(other) = asks_for.and_then(|other| self.roster.get_mut(other)) else { return };
        if other.asked_by == Some(id) {
            other.asked_by = None;
            other.association.ask_again(now);
            asks_for.into_iter().for_each(|other| self.settle(other));
        }
    }
}

/// Returns `true` if two key handshakes proved the same peer. Without keys anybody may be there,
/// and who is, is believed.
fn is_same(newer: Option<&Standing>, older: Option<&Standing>) -> bool {
    let (Some(newer), Some(older)) = (newer.map(|it| it.peer), older.map(|it| it.peer)) else { return false };
    newer.fingerprint == older.fingerprint || (!newer.authenticated && !older.authenticated)
}
