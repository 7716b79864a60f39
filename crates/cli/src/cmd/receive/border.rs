//! Neighbours that send to `receive` beside senders of ours: into the same rooms, one stream in each at a time.

use super::Session;
use super::cut::marked_entry;
use super::gate::{Caller, Gate, Passage};
use super::guest::{self, Guest};
use super::plan::Plan;
use super::room::Room;
use super::senders::Senders;
use crate::args::ReceiveArgs;
use crate::args::entrances;
use crate::cmd::neighbour::{self, Keys};
use crate::failure::{Failure, Outcome};
use braidcast_core::Instant;
use braidcast_driver::Driver;
use braidcast_gateway::srt::ConnectionId;
use braidcast_media::ts::PACKET;
use braidcast_sctp::CloseReason;
use braidcast_session::wire::check_name;
use braidcast_session::{ChannelId, Farewell, Identity, Offer, SLICE_BYTES};
use std::time::Duration;

/// An encoder that said goodbye is waited for this long before its stream is over: many say it when they only
/// connect anew.
const GOODBYE: Duration = Duration::from_secs(10);
/// Interval at which who waits tries again.
const AGAIN: Duration = Duration::from_millis(100);
/// A neighbour that was silent for this long makes room for one whose stream has the same name: it is most likely the
/// same one that came back.
const SILENT: Duration = Duration::from_secs(1);

/// Where somebody's stream goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// Nowhere yet; to be tried from then on.
    Waits(Instant),
    At(ChannelId),
    /// Nowhere: it was sent away.
    Barred,
}

/// What is wrong with the gates of a command, if something is.
pub(super) fn check(gates: &[entrances::Gate], args: &ReceiveArgs) -> Outcome {
    for gate in gates {
        match gate {
            entrances::Gate::Neighbour(it) => neighbour::check(it, &args.shared)?,
            entrances::Gate::Rtp(it) => neighbour::check_rtp(it, &args.shared)?,
            // Its key is what an encoder is known by.
            entrances::Gate::Rtmp(_) => {}
        }
    }
    Ok(())
}

impl Plan {
    /// Opens the gates.
    pub(super) fn open_gates(
        &self,
        gates: &[entrances::Gate],
        slice: Duration,
        driver: &mut Driver,
    ) -> Outcome<Vec<Gate>> {
        let most = self.most_callers();
        gates.iter().map(|gate| Gate::open(gate, most, self.names(), slice, driver)).collect()
    }

    /// Each stream that comes through a gate must have an output, and the name of no key.
    pub(super) fn check_gates(&self, gates: &[entrances::Gate], list: Option<&Senders>) -> Outcome {
        let is_listed = |name: &str| list.is_some_and(|list| list.lines().iter().any(|line| line.name == name));
        for gate in gates {
            let why = match gate.name() {
                Some(name) if is_listed(name) => format!("'{name}' is the name of a sender with a key in the list"),
                Some(name) if self.needs_names() && self.describe(name).is_empty() => {
                    format!("a stream '{name}' has no output here")
                }
                None if gate.proves_names() => continue,
                None if self.is_by_key() => {
                    "with --authorized a neighbour needs name= or keys=, as a stream identifier proves nothing".into()
                }
                None if self.needs_names() && !gate.says_names() => {
                    "it does not say what a stream is called, and its name decides where it goes here".into()
                }
                _ => continue,
            };
            return Err(Failure::usage(format!("{gate}: {why}"), format!("write for example {gate}?name=cam1")));
        }
        Ok(())
    }
}

impl Plan {
    /// Each stream that has a passphrase of its own must have an output, and the name of no key.
    pub(super) fn check_keys(&self, keys: &Keys, list: Option<&Senders>) -> Outcome {
        let is_listed = |name: &str| list.is_some_and(|list| list.lines().iter().any(|line| line.name == name));
        for name in keys.names() {
            let why = if is_listed(name) {
                format!("'{name}' is the name of a sender with a key in the list of --authorized")
            } else if self.needs_names() && self.describe(name).is_empty() {
                format!("a stream '{name}' has no output here")
            } else {
                continue;
            };
            let path = keys.path().display();
            return Err(Failure::usage(format!("{path}: {why}"), "put {name} into FILE, or take its line out"));
        }
        Ok(())
    }
}

impl Session {
    /// SIGHUP: files with passphrases may have changed. One that makes no sense changes nothing.
    pub(super) fn reload_keys(&mut self) {
        let now = self.driver.now();
        for gate in &mut self.gates {
            let Some(keys) = gate.keys() else { continue };
            let path = keys.path().display().to_string();
            let read = keys.read_again();
            match read.and_then(|keys| self.plan.check_keys(&keys, self.authorized.as_ref()).map(|()| keys)) {
                Ok(keys) => {
                    gate.set_keys(now, keys);
                    self.live.note(format!("{path} was read again"));
                }
                Err(failure) => self.live.warn(format!("{failure}; going on with what it said before")),
            }
        }
    }

    /// Takes what neighbours send, and writes it where it goes.
    pub(super) fn cross(&mut self, now: Instant) -> Outcome {
        let mut gates = std::mem::take(&mut self.gates);
        let mut outcome = Ok(());
        for (at, gate) in gates.iter_mut().enumerate() {
            outcome = outcome.and_then(|()| gate.tend(now, &mut self.driver));
            self.take_passages(now, at, gate);
        }
        // Who came has its place before its first payload, and whoever goes is gone after its last one.
        outcome = outcome.and_then(|()| self.make_room_at(now, &mut gates));
        for (at, gate) in gates.iter_mut().enumerate() {
            outcome = outcome.and_then(|()| self.take_payloads(now, at, gate));
            self.take_passages(now, at, gate);
        }
        self.gates = gates;
        outcome?;
        self.see_off(now)
    }

    fn take_payloads(&mut self, now: Instant, at: usize, gate: &mut Gate) -> Outcome {
        // What one of them brought is written together.
        let (mut all, mut whose, mut packets) = (std::mem::take(&mut self.output), None, 0);
        all.clear();
        let mut buf = std::mem::take(&mut self.payload);
        let mut outcome = Ok(());
        while outcome.is_ok() {
            let id = gate.deliver(now, &mut buf);
            // What is no transport stream keeps its limits.
            let goes_on = id == whose && all.len().is_multiple_of(PACKET) && all.len() + buf.len() <= SLICE_BYTES;
            if let Some(from) = whose.filter(|_| !goes_on) {
                outcome = self.take_payload(now, gate, from, (&all, packets));
                packets = 0;
                all.clear();
            }
            if id.is_none() {
                break;
            }
            all.extend_from_slice(&buf);
            (packets, whose) = (packets + 1, id);
        }
        (self.output, self.payload) = (all, buf);
        outcome?;
        for room in self.rooms.values_mut() {
            if let Some(guest) = room.guest.as_mut().filter(|guest| guest.from.0 == at && guest.is_there()) {
                guest.look(now, gate);
            }
        }
        Ok(())
    }

    fn take_passages(&mut self, now: Instant, at: usize, gate: &mut Gate) {
        while let Some(passage) = gate.poll(now, &mut self.live) {
            match passage {
                Passage::Came(id, stream_id) => {
                    let name = gate.name_of(&stream_id);
                    // What a stranger says becomes a file's name.
                    let fits = !self.plan.needs_names() || check_name(&name).is_ok();
                    let name = Some(if self.plan.needs_names() { name } else { String::new() }).filter(|_| fits);
                    gate.callers.insert(id, Caller { name, place: Place::Waits(now), heard: now });
                }
                Passage::Went(id, said_so) => {
                    let Some(Caller { place: Place::At(channel), .. }) = gate.callers.remove(&id) else { continue };
                    let room = self.rooms.get_mut(&channel);
                    if let Some(guest) = room.and_then(|room| room.guest.as_mut()).filter(|it| it.from == (at, id)) {
                        guest.gone = Some((now, said_so));
                        self.receiver.free(now, channel);
                    }
                }
            }
        }
    }

    /// Writes a payload, and counts the packets in which it came.
    fn take_payload(
        &mut self,
        now: Instant,
        gate: &mut Gate,
        id: ConnectionId,
        (payload, packets): (&[u8], u64),
    ) -> Outcome {
        let Some(caller) = gate.callers.get_mut(&id) else { return Ok(()) };
        caller.heard = now;
        let Place::At(channel) = caller.place else { return Ok(()) };
        let Some(room) = self.rooms.get_mut(&channel).filter(|room| !room.failed) else { return Ok(()) };
        room.guest.iter_mut().for_each(|guest| guest.count(now, packets, payload.len()));
        let (before, from) = payload.split_at(marked_entry(payload).unwrap_or(payload.len()));
        let parts = [(before, false), (from, true)].into_iter().filter(|(bytes, _)| !bytes.is_empty());
        let Self { driver, live, .. } = self;
        let mut written = Ok(());
        for part in parts {
            written = written.and_then(|()| room.outputs.write(now, driver, part, live));
        }
        if let Err(failure) = written {
            caller.place = Place::Barred;
            gate.disconnect(now, id);
            self.guest_failed(now, channel, failure)?;
        }
        Ok(())
    }

    /// Lets in who waits, where there is room by now.
    fn make_room_at(&mut self, now: Instant, gates: &mut [Gate]) -> Outcome {
        for at in 0..gates.len() {
            let due = |caller: &Caller| matches!(caller.place, Place::Waits(since) if since <= now);
            let waiting: Vec<_> = gates[at].callers.iter().filter(|(_, it)| due(it)).map(|(id, _)| *id).collect();
            for id in waiting {
                let place = self.place_for(now, (at, id), gates)?;
                if place == Place::Barred {
                    gates[at].disconnect(now, id);
                }
                if let Some(caller) = gates[at].callers.get_mut(&id) {
                    caller.place = place;
                }
            }
        }
        Ok(())
    }

    fn place_for(&mut self, now: Instant, from: (usize, ConnectionId), gates: &mut [Gate]) -> Outcome<Place> {
        let gate = &gates[from.0];
        let title = gate.title.clone();
        let Some(name) = gate.callers.get(&from.1).and_then(|caller| caller.name.clone()) else {
            let why = "its stream identifier is not a name of letters, digits, '.', '_', '-' and spaces";
            self.live.warn_rarely(now, format!("{title}: a neighbour was sent away: {why}"));
            return Ok(Place::Barred);
        };
        match self.receiver.occupy(now, &name) {
            Ok(channel) => match self.arrive(now, channel, &name, from, gate) {
                Ok(()) => Ok(Place::At(channel)),
                Err(failure) => {
                    self.guest_failed(now, channel, failure)?;
                    Ok(Place::Barred)
                }
            },
            Err(Farewell::Busy) => {
                if !self.displace_silent(now, &name, gates) {
                    let whose = if name.is_empty() { String::new() } else { format!(" of '{name}'") };
                    self.live.warn_rarely(now, format!("{title}: a neighbour waits: the place{whose} is taken"));
                }
                Ok(Place::Waits(now + AGAIN))
            }
            Err(why) => {
                self.live.warn_rarely(now, format!("{title}: a neighbour was sent away: {why}"));
                Ok(Place::Barred)
            }
        }
    }

    /// Ends the connection of a neighbour that has fallen silent, so that its next one has the place.
    fn displace_silent(&mut self, now: Instant, name: &str, gates: &mut [Gate]) -> bool {
        let is_silent = |guest: &Guest| guest.is_there() && now.since(guest.heard()) >= SILENT;
        let room =
            self.rooms.iter_mut().find(|(_, room)| room.name == name && room.guest.as_ref().is_some_and(is_silent));
        let Some((channel, room)) = room else { return false };
        let (channel, Some(guest)) = (*channel, room.guest.as_mut()) else { return false };
        guest.gone = Some((now, false));
        let (at, id) = guest.from;
        if let Some(caller) = gates[at].callers.get_mut(&id) {
            caller.place = Place::Barred;
        }
        gates[at].disconnect(now, id);
        self.receiver.free(now, channel);
        true
    }

    /// A neighbour's stream has its turn, or goes on.
    fn arrive(
        &mut self,
        now: Instant,
        channel: ChannelId,
        name: &str,
        from: (usize, ConnectionId),
        gate: &Gate,
    ) -> Outcome {
        self.room_for(channel, name)?;
        let Some(room) = self.rooms.get_mut(&channel) else { return Ok(()) };
        let prefix = room.prefix();
        if let Some(guest) = &mut room.guest {
            guest.back(now, from, gate);
            self.live.note(format!("{prefix}the stream goes on, from {}", gate.title));
            return Ok(());
        }
        let identity = Identity::random(&mut self.rng);
        let offer = Offer { identity, name: name.to_owned(), reliable: false, size: None, key: None };
        (room.reliable, room.connected, room.flush_asked) = (false, true, false);
        room.guest = Some(Guest::new(now, from, gate));
        room.outputs.begin(&offer, &self.live)?;
        self.live.note(format!("{prefix}a stream from {} begins", gate.title));
        self.tell_other_names(channel);
        Ok(())
    }

    /// An output failed under a neighbour's stream.
    fn guest_failed(&mut self, now: Instant, channel: ChannelId, failure: Failure) -> Outcome {
        self.receiver.free(now, channel);
        if let Some(room) = self.rooms.get_mut(&channel) {
            (room.guest, room.connected) = (None, false);
        }
        self.room_failed(now, channel, failure)
    }

    /// Ends streams whose neighbours have been gone for long enough.
    fn see_off(&mut self, now: Instant) -> Outcome {
        let over = |room: &Room| self.sees_off_at(room).is_some_and(|at| at <= now);
        let over: Vec<ChannelId> = self.rooms.iter().filter(|(_, room)| over(room)).map(|(id, _)| *id).collect();
        over.into_iter().try_for_each(|id| self.end_guest(now, id))
    }

    fn sees_off_at(&self, room: &Room) -> Option<Instant> {
        let (at, said_so) = room.guest.as_ref()?.gone?;
        let limit = if said_so { Some(GOODBYE) } else { self.give_up };
        Some(at + limit?.min(self.give_up.unwrap_or(Duration::MAX)))
    }

    /// A neighbour's stream is over.
    pub(super) fn end_guest(&mut self, now: Instant, channel: ChannelId) -> Outcome {
        let Some(room) = self.rooms.get_mut(&channel) else { return Ok(()) };
        let Some(guest) = room.guest.take() else { return Ok(()) };
        let complete = guest.gone.is_some_and(|(_, said_so)| said_so);
        room.last_guest = Some(guest.keep(now));
        room.connected = false;
        *(if complete { &mut room.complete } else { &mut room.broken }) += 1;
        let reason = if complete { CloseReason::Shutdown } else { CloseReason::PathsFailed };
        room.end = Some((complete, reason));
        let ended = if room.failed { Ok(()) } else { room.outputs.end(complete) };
        if self.keep && self.interrupted.is_none() {
            let how = if complete { "the stream ended" } else { "the stream broke off: its sender is gone" };
            self.live.note(format!("{}{how}; waiting for the next sender", room.prefix()));
        }
        ended.or_else(|failure| self.room_failed(now, channel, failure))
    }

    /// Ctrl-C: what has come is written, and the neighbours are told.
    pub(super) fn leave_gates(&mut self, now: Instant) -> Outcome {
        let mut gates = std::mem::take(&mut self.gates);
        let mut buf = Vec::new();
        for gate in &mut gates {
            while let Some(id) = gate.deliver_rest(now, &mut buf) {
                self.take_payload(now, gate, id, (&buf, 1))?;
            }
            self.driver.unregister(gate.input).map_err(|e| crate::cmd::common::broken(&e))?;
        }
        let channels: Vec<ChannelId> = self.rooms.keys().copied().collect();
        channels.into_iter().for_each(|id| self.receiver.free(now, id));
        Ok(())
    }

    /// When to [`cross`](Self::cross) although nothing came.
    pub(super) fn next_crossing(&self, now: Instant) -> Option<Instant> {
        let waits = |caller: &Caller| if let Place::Waits(at) = caller.place { Some(at) } else { None };
        let gates = self.gates.iter().filter_map(Gate::next);
        let callers = self.gates.iter().flat_map(|gate| gate.callers.values()).filter_map(waits);
        let ends = self.rooms.values().filter_map(|room| self.sees_off_at(room));
        let looks = self.rooms.values().any(|room| room.guest.as_ref().is_some_and(Guest::is_there));
        gates.chain(callers).chain(ends).chain(looks.then(|| now + guest::LOOK)).min()
    }
}
