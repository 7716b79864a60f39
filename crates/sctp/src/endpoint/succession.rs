//! Two protected associations with one peer: when the newer takes the place of the older.
//!
//! Nothing in clear ends or replaces a protected association. A newcomer at its peer's address
//! stands beside it. Once its key handshake has proved that it is the same peer, it is asked in a
//! record if its end has the older one. It takes its place if that says no, and the older one's own
//! peer then sends no record either ([`Doubt`](braidcast_secure::Doubt)).

use super::{AssociationId, Endpoint, Entry};
use crate::api::CloseReason;
use crate::assoc::Association;
use braidcast_core::Instant;
use braidcast_secure::{Inquiry, Standing};
use std::sync::Arc;

impl Endpoint {
    /// After the association has been polled dry: what follows for others from what has become of
    /// it.
    pub(super) fn tend_succession(&mut self, now: Instant, id: AssociationId) {
        let Some(entry) = self.roster.get_mut(id) else { return };
        let newly_proved = !entry.proved && entry.association.is_protected();
        entry.proved |= newly_proved;
        let (asks_now, looks_around) = (entry.association.take_question(now), entry.association.look_around());
        let (asks_for, asked_by) = (entry.asks_for, entry.asked_by);
        if newly_proved {
            let alias = self.association(id).and_then(Association::alias);
            alias.into_iter().for_each(|alias| _ = self.by_alias.insert(alias, id));
            self.succeed(now, id);
            if self.strangers.leave(id) {
                self.take_in(now, id);
            }
        }
        while let Some(inquiry) = self.roster.get_mut(id).and_then(|entry| entry.association.take_inquiry()) {
            self.handle_inquiry(now, id, inquiry);
        }
        if looks_around {
            self.ask_another(now, id);
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

    /// The newcomer `id` has proved who it is: its end is asked if it has the older associations of
    /// the same peer at its addresses.
    fn succeed(&mut self, now: Instant, id: AssociationId) {
        // What only asks leaves as soon as there is an answer.
        let lasting = self.roster.get(id).is_some_and(|entry| entry.asks_for.is_none());
        for other in self.beside(id) {
            let Some(entry) = self.roster.get_mut(other).filter(|entry| entry.asks_for.is_none()) else { continue };
            entry.association.succeed(now, lasting);
            entry.succeeded_by.get_or_insert(id);
            self.inquire(now, id, other);
        }
    }

    /// A word in clear says that the peer of `id` lost its state. If there is another association
    /// with it, that is asked.
    fn ask_another(&mut self, now: Instant, id: AssociationId) {
        let lasts = |it: &AssociationId| self.roster.get(*it).is_some_and(|entry| entry.asks_for.is_none());
        let Some(other) = self.beside(id).into_iter().find(lasts) else { return };
        self.roster.get_mut(id).into_iter().for_each(|entry| entry.association.succeed(now, false));
        self.inquire(now, other, id);
    }

    /// Asks the peer of `id` if it has the association `about` as well.
    fn inquire(&mut self, now: Instant, id: AssociationId, about: AssociationId) {
        let alias = self.association(about).and_then(Association::alias);
        if let (Some(alias), Some(entry)) = (alias, self.roster.get_mut(id)) {
            entry.association.inquire(now, Inquiry::Question(alias));
        }
        self.settle(about);
        self.settle(id);
    }

    /// All others with the peer of `id`, at its addresses, that have proved it; oldest first.
    fn beside(&self, id: AssociationId) -> Vec<AssociationId> {
        let Some(it) = self.association(id) else { return Vec::new() };
        let (standing, port) = (it.standing(), it.peer_port());
        let mut there: Vec<_> = it.paths().flat_map(|path| self.at(path.route, port).iter().copied()).collect();
        there.sort_unstable();
        there.dedup();
        there.retain(|&other| {
            let entry = self.roster.get(other).filter(|entry| other != id && entry.proved);
            entry.is_some_and(|entry| is_same(standing.as_ref(), entry.association.standing().as_ref()))
        });
        there
    }

    /// The peer of `id` asks, or answers, about another association with it.
    fn handle_inquiry(&mut self, now: Instant, id: AssociationId, inquiry: Inquiry) {
        let (Inquiry::Question(alias) | Inquiry::Answer(alias, _)) = inquiry;
        let standing = self.association(id).and_then(Association::standing);
        let is_of_peer = |other: &AssociationId| {
            let other = self.association(*other).filter(|it| !it.is_closed());
            other.is_some_and(|it| is_same(standing.as_ref(), it.standing().as_ref()))
        };
        let about = self.by_alias.get(&alias).copied().filter(is_of_peer);
        let to_tell = if matches!(inquiry, Inquiry::Question(_)) { Some(id) } else { about };
        let Some(entry) = to_tell.and_then(|it| self.roster.get_mut(it)) else { return };
        match inquiry {
            Inquiry::Question(_) => entry.association.inquire(now, Inquiry::Answer(alias, about.is_some())),
            Inquiry::Answer(_, true) => entry.association.trust(),
            Inquiry::Answer(_, false) => entry.association.deny(now),
        }
        to_tell.into_iter().for_each(|it| self.settle(it));
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
        let mut entry = Entry::new(Association::ask(now, options, rng, port, &routes), None);
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
