//! Who may have which stream.

use super::client::Order;
use super::{Server, ServerEvent};
use crate::farewell::Farewell;
use crate::receiver::ChannelId;
use crate::wire::{Ask, SESSION_VERSION};
use braidcast_core::Instant;
use braidcast_sctp::{Association, AssociationId, Fingerprint};
use std::collections::BTreeMap;

/// Bytes of names that a receiver is told of: with the number and the 57 around them they fit into the text of an ABORT
/// (`CloseReason::MAX_TEXT`, 256), so that no name is cut.
const NAMES: usize = 190;

/// What a receiver with a known key may have.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Entitled {
    /// Streams, by their names; none: all.
    pub streams: Vec<String>,
}

impl Entitled {
    fn to(&self, name: &str) -> bool {
        self.streams.is_empty() || self.streams.iter().any(|it| it == name)
    }
}

impl Server {
    /// Other receivers are served from now on. Those that no longer may have what they get are told.
    pub fn set_permits(&mut self, now: Instant, permits: BTreeMap<Fingerprint, Entitled>) {
        self.options.permits = Some(permits);
        for client in &self.clients {
            let Some(order) = &client.order else { continue };
            if !self.may_have(client.id, order.channel)
                && let Some(association) = self.endpoint.association_mut(client.id)
            {
                association.abort(now, Farewell::NotForYou);
            }
        }
        self.pump(now);
    }

    /// Returns `true` if the peer of an association may have a stream.
    fn may_have(&self, id: AssociationId, channel: ChannelId) -> bool {
        let Some(permits) = &self.options.permits else { return true };
        let Some(entitled) = self.listed(id).and_then(|key| permits.get(&key)) else { return false };
        self.feeds.get(&channel).is_some_and(|feed| entitled.to(&feed.name) || entitled.to(&feed.title))
    }

    /// Who is at `place` among the clients asks for a stream. Returns `false` if it was sent away.
    pub(super) fn asked(&mut self, now: Instant, place: usize, ask: &Ask) -> bool {
        let id = self.clients[place].id;
        let known =
            self.options.permits.as_ref().is_none_or(|it| self.listed(id).is_some_and(|key| it.contains_key(&key)));
        if ask.session != SESSION_VERSION || !known {
            let why = if known { Farewell::Version } else { Farewell::NotForYou };
            self.refuse(now, place, &ask.name, why, None);
            return false;
        }
        let mut may = self.feeds.iter().filter(|(channel, _)| self.may_have(id, **channel));
        let found = if ask.name.is_empty() {
            let only = may.next().map(|(channel, _)| *channel);
            only.filter(|_| may.next().is_none())
        } else {
            may.find(|(_, feed)| feed.name == ask.name || feed.title == ask.name).map(|(channel, _)| *channel)
        };
        let Some(channel) = found else {
            let names = self.names_for(id);
            self.refuse(now, place, &ask.name, Farewell::NoSuchStream, names);
            return false;
        };
        let extra = ask.latency.unwrap_or(self.options.sending.latency).min(self.options.longest);
        let resumes = ask.identity.is_some() && self.feeds.get(&channel).map(|feed| feed.identity) == ask.identity;
        let redundant = self.is_redundant();
        let client = &mut self.clients[place];
        client.place(Order::new(now, channel, extra, resumes), redundant);
        self.events.push_back(ServerEvent::Joined(client.number));
        if let (Some(feed), Some(association)) = (self.feeds.get_mut(&channel), self.endpoint.association_mut(id)) {
            let mut buf = Vec::new();
            client.begin(now, association, feed, &mut buf);
        }
        true
    }

    /// The streams that the peer of an association may have, in words; `None` if there are none, or if it has not
    /// proved who it is: that is no stranger's business.
    fn names_for(&self, id: AssociationId) -> Option<String> {
        let proved =
            self.endpoint.association(id).and_then(Association::standing).is_some_and(|it| it.peer.authenticated);
        if !proved {
            return None;
        }
        let may = self.feeds.iter().filter(|(channel, _)| self.may_have(id, **channel));
        let names = may.map(|(_, feed)| if feed.name.is_empty() { &feed.title } else { &feed.name });
        let mut told = String::new();
        for name in names.filter(|name| !name.is_empty()) {
            if told.len() + name.len() > NAMES {
                told.push_str(" and others");
                break;
            }
            if !told.is_empty() {
                told.push_str(", ");
            }
            told.push_str(name);
        }
        (!told.is_empty()).then_some(told)
    }
}
