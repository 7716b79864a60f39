//! Who is let in, who waits, and who is sent away.

use super::channel::{Channel, ChannelId};
use super::guest::Guest;
use super::stream::Stream;
use super::{MAX_GUESTS, Receiver};
use crate::event::{Event, Offer};
use crate::farewell::Farewell;
use crate::options::Admission;
use crate::report::SecurityReport;
use crate::wire::{self, Hello, SESSION_VERSION, Welcome};
use braidcast_core::{Instant, Prefix};
use braidcast_sctp::{Association, AssociationId, CloseReason, Fingerprint, KeyKind};
use core::time::Duration;

/// A sender that was silent for this long makes room for another; one that lives reports its clock five times a second.
pub(super) const SILENT: Duration = Duration::from_secs(3);
/// The same for one from the same address, which is most likely the same one started anew.
const SILENT_NEARBY: Duration = Duration::from_secs(1);
/// If a sender is heard this long after another one came, it lives: what was in flight when it
/// crashed has arrived by then.
const ALIVE: Duration = Duration::from_secs(1);
/// The same where the other one is most likely the same one started anew: by its address, or by its file.
const ALIVE_NEARBY: Duration = Duration::from_secs(2);
const ALIVE_SAME: Duration = Duration::from_secs(4);
/// An association that has said nothing of ours by now is none of ours. A cookie or a hello that gets lost three times
/// is sent again after 0.5, 1 and 2 s.
const NO_HELLO: Duration = Duration::from_secs(6);
/// The same of one that has, whose hello got lost, perhaps more than once, and of one that looks at the network: the
/// search for the largest packet takes some round trips.
const HELLO_COMES: Duration = Duration::from_secs(15);

/// Guests that wait in line for one name.
const MAX_IN_LINE: usize = 4;

/// Whom a guest is counted for.
#[derive(PartialEq, Eq, Debug)]
enum Holder {
    Key(Option<Fingerprint>),
    Host(Option<Prefix>),
}

/// What becomes of a guest.
enum Decision {
    /// It has said nothing yet, or time will tell.
    Later,
    /// Its turn has come.
    Begin,
    /// The stream that there is is its own.
    GoOn,
    /// The one before it has to go first, and does now.
    Displace,
    /// It waits for its turn.
    Line,
    Refuse(Farewell),
}

impl Receiver {
    /// An association is up, or its peer started over: it has to say whose it is.
    pub(super) fn welcome_guest(&mut self, now: Instant, guest: Guest) {
        self.guests.push(guest);
        if self.guests.len() <= MAX_GUESTS {
            return;
        }
        // The holder with most places loses one: of a guest that says nothing, the oldest; else the
        // newest.
        let holders: Vec<_> = self.guests.iter().map(|guest| self.holder(guest.id)).collect();
        let count = |place: &usize| holders.iter().filter(|holder| **holder == holders[*place]).count();
        let most = (0..holders.len()).map(|place| count(&place)).max().unwrap_or_default();
        let crowd = (0..holders.len()).filter(|place| count(place) == most);
        let goes = crowd.max_by_key(|&place| {
            let silent = self.guests[place].hello.is_none();
            (silent, if silent { usize::MAX - place } else { place })
        });
        let Some(goes) = goes.map(|place| self.guests.remove(place)) else { return };
        self.send_away(now, &goes, if goes.hello.is_none() { Farewell::NoHello } else { Farewell::Full });
    }

    /// Whom a guest is counted for: its key, where this end knows it and no other sender has it,
    /// else its host.
    fn holder(&self, id: AssociationId) -> Holder {
        let association = self.endpoint.association(id);
        let standing = association.and_then(Association::standing);
        let own = standing.filter(|it| it.peer.authenticated && it.shows != Some(KeyKind::Shared));
        let host = association.and_then(|it| it.paths().next()).map(|path| path.route.remote.ip());
        own.map_or(Holder::Host(host.map(Prefix::of)), |it| Holder::Key(it.peer.fingerprint))
    }

    /// The key that the peer of an association proved, if it is one that this end knows.
    pub(super) fn key_of(&self, id: AssociationId) -> Option<Fingerprint> {
        let peer = self.endpoint.association(id).and_then(Association::standing)?.peer;
        peer.fingerprint.filter(|_| peer.authenticated)
    }

    /// Returns `true` if the guest waits already, or few others do for the same name.
    fn has_room_in_line(&self, guest: &Guest, hello: &Hello) -> bool {
        let waits = |it: &&Guest| it.in_line && it.hello.as_ref().is_some_and(|it| it.name == hello.name);
        guest.in_line || self.guests.iter().filter(waits).count() < MAX_IN_LINE
    }

    /// Lets in whose turn it is.
    pub(super) fn admit(&mut self, now: Instant) {
        if self.options.permits.is_some() {
            self.name_guests();
        }
        let mut place = 0;
        while place < self.guests.len() {
            let guest = &self.guests[place];
            let decision = match self.decide(now, guest) {
                // Else it would end as if it had been played. A hello that got lost may come after the end.
                Decision::Later | Decision::Line if guest.ended && guest.hello.is_some() => {
                    Decision::Refuse(Farewell::Busy)
                }
                decision => decision,
            };
            match decision {
                Decision::Later => place += 1,
                Decision::Line => {
                    self.line_up(now, place);
                    place += 1;
                }
                Decision::Displace => {
                    self.displace(now, place);
                    place += 1;
                }
                Decision::Refuse(why) => {
                    let guest = self.guests.remove(place);
                    self.send_away(now, &guest, why);
                    if guest.hello.is_some() || guest.foreign.is_some() {
                        let name = guest.hello.map_or_else(String::new, |hello| hello.name);
                        self.events.push_back((None, Event::Refused { name, why }));
                    }
                }
                Decision::Begin | Decision::GoOn => {
                    let guest = self.guests.remove(place);
                    self.let_in(now, guest);
                }
            }
        }
    }

    fn decide(&self, now: Instant, guest: &Guest) -> Decision {
        let Some(hello) = &guest.hello else {
            if let Some(why) = guest.foreign {
                return Decision::Refuse(why);
            }
            let late = now.since(guest.since) >= if guest.is_ours() { HELLO_COMES } else { NO_HELLO };
            return if late { Decision::Refuse(Farewell::NoHello) } else { Decision::Later };
        };
        if hello.session != SESSION_VERSION {
            return Decision::Refuse(Farewell::Version);
        }
        if self.options.permits.is_some() {
            match self.permit(guest.id) {
                None => return Decision::Refuse(Farewell::NotPermitted),
                Some(permit) if !permit.fits(&hello.name) => return Decision::Refuse(Farewell::UnknownName),
                Some(_) => {}
            }
        }
        let channel = match self.find_channel(&hello.name) {
            Ok(id) => self.channels.get(&id),
            Err(farewell) => return Decision::Refuse(farewell),
        };
        if channel.is_some_and(|channel| channel.elsewhere) {
            let may_wait = self.options.keep && self.has_room_in_line(guest, hello);
            return if may_wait { Decision::Line } else { Decision::Refuse(Farewell::Busy) };
        }
        let stream = channel.and_then(|channel| channel.stream.as_ref());
        let Some(stream) = stream else { return Decision::Begin };
        let silence = now.since(stream.heard_at());
        let gone = stream.id.is_none();
        // What a stream is called, and what is in it, others may know: it is the key that goes on
        // with it.
        let same_key = stream.key == self.key_of(guest.id);
        if same_key && stream.identity == hello.identity {
            let same_process = stream.incarnation == hello.incarnation;
            return match () {
                () if same_process || gone || silence >= SILENT_NEARBY => Decision::GoOn,
                () if stream.heard_at() >= guest.asked_at + ALIVE_SAME => Decision::Refuse(Farewell::Busy),
                () => Decision::Later,
            };
        }
        let nearby = stream.is_from(&guest.addresses);
        // The same camera, started anew: there is no gap to wait for.
        let succeeds = nearby && same_key && !stream.reliable && !hello.reliable && (!gone || stream.is_lost());
        let (limit, alive) = if nearby { (SILENT_NEARBY, ALIVE_NEARBY) } else { (SILENT, ALIVE) };
        let held = self.options.hold && stream.reliable && !stream.is_done();
        match () {
            () if held && now.since(guest.asked_at) >= alive => Decision::Refuse(Farewell::Busy),
            () if held => Decision::Later,
            () if succeeds && (gone || silence >= limit) => Decision::GoOn,
            // What is over is played to its end; what broke has no better claim than who is there.
            () if gone || silence >= limit => Decision::Displace,
            () if stream.heard_at() < guest.asked_at + alive => Decision::Later,
            () if self.options.keep && self.has_room_in_line(guest, hello) => Decision::Line,
            () => Decision::Refuse(Farewell::Busy),
        }
    }

    /// The channel that a stream belongs to; it may not be there yet.
    pub(super) fn find_channel(&self, name: &str) -> Result<ChannelId, Farewell> {
        let by_name = || self.channels.iter().find(|(_, channel)| channel.name == name).map(|(id, _)| *id);
        match &self.options.admission {
            Admission::One => Ok(ChannelId(0)),
            Admission::Named(_) => by_name().ok_or(Farewell::UnknownName),
            Admission::Each(_) if name.is_empty() => Err(Farewell::UnknownName),
            Admission::Each(most) => match by_name() {
                Some(id) => Ok(id),
                None if self.channels.values().filter(|channel| !channel.is_free()).count() >= *most => {
                    Err(Farewell::Full)
                }
                None => Ok(ChannelId(self.next_channel)),
            },
        }
    }

    /// Makes the channel, in place of one that is not in use if there are too many.
    pub(super) fn make_channel(&mut self, id: ChannelId, name: &str) {
        if self.channels.contains_key(&id) {
            return;
        }
        if let Admission::Each(most) = self.options.admission
            && self.channels.len() >= most
            && let Some(unused) = self.channels.iter().find(|(_, channel)| channel.is_free()).map(|(id, _)| *id)
        {
            self.channels.remove(&unused);
        }
        self.next_channel += 1;
        self.channels.insert(id, Channel::new(name));
    }

    fn let_in(&mut self, now: Instant, mut guest: Guest) {
        let Some(hello) = guest.hello.take() else { return };
        let Ok(id) = self.find_channel(&hello.name) else { return };
        self.make_channel(id, &hello.name);
        let standing = self.endpoint.association(guest.id).and_then(Association::standing);
        let key = self.key_of(guest.id);
        let Some(channel) = self.channels.get_mut(&id) else { return };
        channel.security = standing.as_ref().map(SecurityReport::from);
        let how = (self.options.early, self.options.slice);
        let back = match &mut channel.stream {
            Some(stream) if stream.identity != hello.identity || stream.key != key => {
                let old = stream.id.filter(|old| *old != guest.id);
                let counts = stream.succeed(Stream::new(now, guest.id, &hello, key, how));
                channel.restart(&counts);
                if let Some(association) = old.and_then(|old| self.endpoint.association_mut(old)) {
                    association.abort(now, Farewell::Silent);
                }
                let Hello { identity, name, reliable, size, .. } = hello;
                self.events.push_back((Some(id), Event::Offered(Offer { identity, name, reliable, size, key })));
                self.events.push_back((Some(id), Event::Restarted));
                false
            }
            Some(stream) => {
                let old = stream.id.replace(guest.id).filter(|old| *old != guest.id);
                let association = old.and_then(|old| self.endpoint.association_mut(old));
                let restarted = stream.rebind(now, guest.id, &hello);
                if let Some(association) = association {
                    // Its own sender has left it, or is the one before.
                    association.abort(now, Farewell::Replaced);
                }
                let event = if let Some(counts) = restarted {
                    channel.restart(&counts);
                    Event::Restarted
                } else {
                    Event::Back
                };
                self.events.push_back((Some(id), event));
                true
            }
            None => {
                channel.begin(now, Stream::new(now, guest.id, &hello, key, how));
                let Hello { identity, name, reliable, size, .. } = hello;
                self.events.push_back((Some(id), Event::Offered(Offer { identity, name, reliable, size, key })));
                self.events.push_back((Some(id), Event::Connected));
                false
            }
        };
        self.next_tick = now;
        self.events.extend(guest.events.drain(..).map(|event| (Some(id), event)));
        for (at, path, message) in guest.take_early() {
            self.take(at, id, path, &message);
        }
        if back {
            self.tell_progress(now, id);
        }
    }

    /// The stream that is in the way of the guest ends; what is left of it is handed out first.
    fn displace(&mut self, now: Instant, place: usize) {
        let Some(hello) = &self.guests[place].hello else { return };
        let Ok(id) = self.find_channel(&hello.name) else { return };
        self.displace_stream(now, id);
    }

    /// A channel's stream ends as one that another takes the place of.
    pub(super) fn displace_stream(&mut self, now: Instant, id: ChannelId) {
        let Some(channel) = self.channels.get_mut(&id) else { return };
        let Some(stream) = &mut channel.stream else { return };
        stream.give_up();
        if let Some(old) = stream.id {
            stream.close(now, CloseReason::Aborted);
            channel.restarts += 1;
            if let Some(association) = self.endpoint.association_mut(old) {
                association.abort(now, Farewell::Silent);
            }
        }
    }

    fn line_up(&mut self, now: Instant, place: usize) {
        if !self.guests[place].in_line {
            self.guests[place].line_up();
            wire::write_welcome(&mut self.message, &Welcome::Wait);
            self.send_message(now, self.guests[place].id);
        }
    }

    fn send_away(&mut self, now: Instant, guest: &Guest, why: Farewell) {
        if let Some(association) = self.endpoint.association_mut(guest.id) {
            association.abort(now, why);
        }
    }
}
