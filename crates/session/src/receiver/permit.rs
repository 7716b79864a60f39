//! Senders that are known by their keys, and what each may do.

use super::channel::ChannelId;
use super::{Receiver, TICK};
use crate::farewell::Farewell;
use braidcast_core::Instant;
use braidcast_sctp::{Association, AssociationId, Fingerprint};
use core::time::Duration;
use std::collections::BTreeMap;

/// A sender that exceeds its rate for this long, in rates over a second each, is sent away.
const TOO_LONG: Duration = Duration::from_secs(2);
/// What rates may be above the limit: redundancy's bursts and what was waiting.
const TOLERANCE: f64 = 1.1;

/// What a sender with a known key may do.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Permit {
    /// What its stream is called; it may say no other name, and need say none. `None`: as it says.
    pub name: Option<String>,
    /// Highest rate that it may send, packets' headers included, in bit/s; `None`: no limit.
    pub max_rate: Option<u64>,
}

impl Permit {
    /// For a stream of this name.
    #[must_use]
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), max_rate: None }
    }

    /// The same with this [`max_rate`](Self::max_rate).
    #[must_use]
    pub const fn at_most(mut self, max_rate: u64) -> Self {
        self.max_rate = Some(max_rate);
        self
    }

    /// Returns `true` if a stream may be called `name`.
    pub(super) fn fits(&self, name: &str) -> bool {
        self.name.as_ref().is_none_or(|it| it == name)
    }
}

impl Receiver {
    /// Other senders are let in from now on. Streams of those that no longer are, or under another
    /// name, end; their senders are told.
    pub fn set_permits(&mut self, now: Instant, permits: BTreeMap<Fingerprint, Permit>) {
        self.options.permits = Some(permits);
        let may_stay = |id: &AssociationId, name: &str| self.permit(*id).is_some_and(|permit| permit.fits(name));
        let has_to_go: Vec<ChannelId> = self
            .channels
            .iter()
            .filter_map(|(id, channel)| Some((id, channel, channel.stream.as_ref()?.id?)))
            .filter(|(_, channel, association)| !may_stay(association, &channel.name))
            .map(|(id, ..)| *id)
            .collect();
        has_to_go.into_iter().for_each(|id| self.refuse(now, id, Farewell::NotPermitted));
        self.admit(now);
    }

    /// What the sender at the other end of an association may do.
    pub(super) fn permit(&self, id: AssociationId) -> Option<&Permit> {
        let peer = self.endpoint.association(id).and_then(Association::standing)?.peer;
        self.options.permits.as_ref()?.get(&peer.listed.filter(|_| peer.authenticated)?)
    }

    /// Names guests that say no name by their key.
    pub(super) fn name_guests(&mut self) {
        for place in 0..self.guests.len() {
            let nameless = self.guests[place].hello.as_ref().is_some_and(|hello| hello.name.is_empty());
            let name = self.permit(self.guests[place].id).filter(|_| nameless).and_then(|permit| permit.name.clone());
            if let (Some(hello), Some(name)) = (&mut self.guests[place].hello, name) {
                hello.name = name;
            }
        }
    }

    /// Sends away who has sent too much for too long; called at each tick.
    pub(super) fn check_rates(&mut self, now: Instant) {
        if self.options.permits.is_none() {
            return;
        }
        let ids: Vec<ChannelId> = self.channels.keys().copied().collect();
        for id in ids {
            let stream = self.channels.get(&id).and_then(|channel| channel.stream.as_ref());
            let Some(stream) = stream else { continue };
            let limit = stream.id.and_then(|id| self.permit(id)).and_then(|permit| permit.max_rate);
            let rate: f64 = limit.map_or(0.0, |_| stream.paths.reports().iter().map(|path| path.receive_rate).sum());
            let over = limit.is_some_and(|limit| rate > limit as f64 * TOLERANCE);
            let Some(channel) = self.channels.get_mut(&id) else { continue };
            channel.too_much = if over { channel.too_much + TICK } else { Duration::ZERO };
            if channel.too_much >= TOO_LONG {
                channel.too_much = Duration::ZERO;
                self.refuse(now, id, Farewell::TooMuch);
            }
        }
    }
}
