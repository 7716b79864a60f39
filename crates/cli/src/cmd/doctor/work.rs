//! The paths are tried, looked at and filled, all at once.

use super::nat;
use super::probe::{Asked, Probe};
use super::tried::{Other, State, Tried};
use crate::cmd::common;
use crate::cmd::perf::protocol::{Protocol as _, Purpose};
use crate::cmd::security::{SAME_VERSION, Security};
use crate::cmd::through::Through;
use crate::failure::Outcome;
use braidcast_core::{Instant, Machine, Rng, Route};
use braidcast_driver::{Driver, Links, Wake};
use braidcast_relay::{Client, ClientEvent, Leg, Reason, Signer};
use braidcast_sctp::{AssociationId, CloseReason, Event, SendOptions};
use braidcast_session::Farewell;
use braidcast_session::wire::{Message, PPID, write_look};
use std::sync::Arc;
use std::time::Duration;

/// How long paths may take once another one answers. Six round trips by satellite take longer, and there nothing else
/// answers.
const PATIENCE: Duration = Duration::from_secs(5);
/// The same while none answers.
const ALONE: Duration = Duration::from_secs(12);
/// What the kernel says of a path is believed after this long without an answer.
const BELIEVED: Duration = Duration::from_millis(1500);
/// Looks at a path are so far apart.
const LOOKS: Duration = Duration::from_millis(250);
/// A receiver is looked at for this long.
const LOOKING: Duration = Duration::from_secs(2);
/// A path is full for this long before what it carries counts: its window has opened by then.
const WARM: Duration = Duration::from_secs(1);
/// The search for the longest packet ends if it made no step for this long, and after the second in any case.
const SETTLED: Duration = Duration::from_millis(1500);
const SEARCH: Duration = Duration::from_secs(6);
/// How long the other end may take to confirm the end.
const FAREWELL: Duration = Duration::from_secs(2);
/// Bytes of the headers of a packet and a chunk, and of a SACK that goes along.
const CHUNK: usize = 64;
/// Bytes of what fills a path, as in `perf client`.
const MESSAGE: usize = 1400;
/// The leg of an owner that all send to.
const FIRST: Leg = Leg(0);

/// All that is under way.
pub(super) struct Work {
    pub(super) driver: Driver,
    pub(super) links: Links,
    pub(super) probe: Probe,
    /// Of a ticket by relays.
    pub(super) through: Option<Through>,
    pub(super) tried: Vec<Tried>,
    pub(super) security: Security,
    pub(super) signer: Option<Arc<dyn Signer>>,
    pub(super) rng: Rng,
    pub(super) interrupted: bool,
    /// Paths are filled.
    pub(super) filling: bool,
    pub(super) next_look: Instant,
    pub(super) message: Vec<u8>,
}

impl Work {
    /// Begins with each path that has a socket.
    pub(super) fn begin(&mut self, port: u16) {
        let now = self.driver.now();
        for place in 0..self.tried.len() {
            let Some(route) = self.tried[place].route else { continue };
            let mut inside = route;
            if let Some(through) = self.through.as_mut().filter(|_| self.tried[place].by_relay) {
                through.join(now, route, &self.tried[place].name);
                inside = through.inside(route);
            } else {
                self.ask_relay(route);
            }
            match self.probe.endpoint.connect(now, port, &[inside]) {
                Ok(id) => self.tried[place].id = Some(id),
                Err(error) => self.tried[place].state = State::Unusable(error.to_string()),
            }
        }
    }

    /// Asks whoever is there for a place, as if it was a relay.
    pub(super) fn ask_relay(&mut self, route: Route) {
        let credentials = nat::credentials(self);
        let client = Client::new(self.driver.now(), route.remote, credentials, FIRST, self.rng.fork());
        self.probe.relays.push(Asked::new(route, client));
    }

    /// Returns `true` if a relay is at the other end.
    pub(super) fn is_relay(&self, it: &Tried) -> bool {
        it.other == Some(Other::Relay)
    }

    /// Until each path answers, or is not waited for any longer.
    pub(super) fn reach(&mut self) -> Outcome {
        let began = self.driver.now();
        loop {
            let (now, any) = (self.driver.now(), self.tried.iter().any(|it| it.state == State::Answers));
            let end = began + if any { PATIENCE } else { ALONE };
            self.believe(now, began);
            let waits = self.tried.iter().any(|it| it.state == State::Waiting);
            if !waits || now >= end || self.interrupted {
                break;
            }
            self.turn(end)?;
        }
        for it in self.tried.iter_mut().filter(|it| it.state == State::Waiting) {
            it.state = State::Silent(None);
        }
        Ok(())
    }

    /// What the kernel says of paths that do not answer.
    fn believe(&mut self, now: Instant, began: Instant) {
        if now.since(began) < BELIEVED {
            return;
        }
        for it in self.tried.iter_mut().filter(|it| it.state == State::Waiting) {
            let socket = it.route.and_then(|route| self.driver.socket(route.socket));
            if let Some(trouble) = socket.and_then(|socket| socket.trouble()) {
                it.state = State::Silent(Some(trouble));
            }
        }
    }

    /// Looks at the paths, and fills those that lead to who measures for as long.
    pub(super) fn measure(&mut self, duration: Duration) -> Outcome {
        // The first answers say who is there.
        let now = self.driver.now();
        let rtt = self.tried.iter().filter_map(|it| it.rtt).max().unwrap_or_default();
        self.turn_until(now + LOOKS * 2 + rtt * 3)?;
        let measures = self.tried.iter().any(|it| it.other == Some(Other::PerfServer));
        let now = self.driver.now();
        if !measures {
            self.turn_until(now + LOOKING + rtt * 4)?;
            return self.search(self.driver.now());
        }
        self.filling = true;
        self.turn_until(now + WARM)?;
        let now = self.driver.now();
        let fills = |it: &&mut Tried| it.other == Some(Other::PerfServer);
        self.tried.iter_mut().filter(fills).for_each(|it| it.fill(now));
        self.turn_until(now + duration)?;
        self.filling = false;
        let now = self.driver.now();
        self.tried.iter_mut().for_each(|it| it.filled(now));
        self.search(now)
    }

    /// Until the longest packet of each path is known: it is searched for in steps.
    fn search(&mut self, began: Instant) -> Outcome {
        while self.driver.now() < began + SEARCH && !self.interrupted {
            let now = self.driver.now();
            if self.tried.iter().all(|it| it.is_as_long_as_any() || it.is_settled(now, SETTLED)) {
                break;
            }
            self.turn(began + SEARCH)?;
        }
        Ok(())
    }

    /// Ends all that is under way, and waits for the other ends a moment.
    pub(super) fn end(&mut self) -> Outcome {
        let now = self.driver.now();
        self.next_look = now + FAREWELL * 2;
        for id in self.tried.iter().filter_map(|it| it.id) {
            self.probe.endpoint.association_mut(id).into_iter().for_each(|it| it.shutdown(now));
        }
        self.probe.relays.iter_mut().for_each(|asked| asked.client.leave());
        let end = now + FAREWELL;
        while self.driver.now() < end && self.tried.iter().any(|it| it.id.is_some()) && !self.interrupted {
            self.turn(end)?;
        }
        if let Some(through) = &mut self.through {
            through.legs.remove_all();
        }
        self.turn(self.driver.now())
    }

    fn turn_until(&mut self, end: Instant) -> Outcome {
        while self.driver.now() < end && !self.interrupted {
            self.turn(end)?;
        }
        Ok(())
    }

    /// Moves packets and time, at most until `end`, and takes in what happened.
    pub(super) fn turn(&mut self, end: Instant) -> Outcome {
        /// What is shown and asked is that old at most.
        const TURN: Duration = Duration::from_millis(50);
        let until = Some(end.min(self.driver.now() + TURN));
        self.fill();
        let wake = match &mut self.through {
            Some(through) => self.driver.drive(&mut through.legs.over(&mut self.probe), until),
            None => self.driver.drive(&mut self.probe, until),
        };
        self.interrupted |= wake.map_err(|e| common::broken(&e))? == Wake::Interrupt;
        let now = self.driver.now();
        while let Some((id, event)) = self.probe.endpoint.poll_event() {
            self.take(now, id, event);
        }
        self.hear_relays(now);
        self.look(now);
        Ok(())
    }

    /// More for each path that is to be full.
    fn fill(&mut self) {
        let now = self.driver.now();
        let payload = [0x55; MESSAGE];
        for it in self.tried.iter().filter(|it| self.filling && it.other == Some(Other::PerfServer)) {
            let Some(id) = it.id else { continue };
            while !self.probe.endpoint.has_enough(id) && self.probe.endpoint.send(now, id, &payload, Purpose::Bulk) {}
        }
    }

    /// Asks over each path what the other end sees of it.
    fn look(&mut self, now: Instant) {
        if now < self.next_look {
            return;
        }
        self.next_look = now + LOOKS;
        for it in self.tried.iter_mut().filter(|it| it.state == State::Answers) {
            let association = it.id.and_then(|id| self.probe.endpoint.association_mut(id));
            let Some(association) = association else { continue };
            association.paths().take(1).for_each(|report| it.note(now, report));
            let number = self.rng.u64();
            write_look(&mut self.message, number);
            if number.is_multiple_of(2) {
                // As long as a packet, so that such ones are known to get through.
                let room = it.report.map_or(0, |report| report.mtu.saturating_sub(CHUNK));
                self.message.resize(room.max(self.message.len()), 0);
            }
            let how = SendOptions { ppid: PPID, unordered: true, ..SendOptions::default() };
            if association.send(now, &self.message, how).is_ok() {
                it.looks(number, now, u64::try_from(jiff::Timestamp::now().as_microsecond()).unwrap_or_default());
            }
        }
    }

    fn take(&mut self, now: Instant, id: AssociationId, event: Event) {
        let Some(it) = self.tried.iter_mut().find(|it| it.id == Some(id)) else { return };
        match event {
            Event::Connected => {
                it.answers(now);
                self.next_look = now;
                // It is no relay.
                let route = it.route;
                self.probe.relays.retain(|asked| Some(asked.route) != route);
            }
            Event::Readable => self.read(now, id),
            Event::Closed(reason) => {
                it.id = None;
                let (waits, hint) = (it.state == State::Waiting, self.security.hint(reason.insecure()));
                match (&reason, Farewell::of(&reason)) {
                    (CloseReason::Insecure(_), _) => it.state = State::Refuses(reason.to_string(), hint),
                    (_, Some(Farewell::Measures)) => it.other = Some(Other::Unknown),
                    (CloseReason::AbortedByPeer(_), _) if waits => {
                        it.state = State::Refuses(reason.to_string(), SAME_VERSION.into());
                    }
                    (_, Some(Farewell::Served)) => it.other = Some(Other::Sender),
                    _ if waits && it.other.is_none() => {
                        let socket = it.route.and_then(|route| self.driver.socket(route.socket));
                        it.state = State::Silent(socket.and_then(|socket| socket.trouble()));
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }

    fn read(&mut self, now: Instant, id: AssociationId) {
        let Some(it) = self.tried.iter_mut().find(|it| it.id == Some(id)) else { return };
        let Some(association) = self.probe.endpoint.association_mut(id) else { return };
        while let Some(received) = association.recv(now, &mut self.message) {
            match Message::parse(&self.message) {
                Ok(Message::Seen(seen)) if received.ppid == PPID => {
                    it.looked(now, seen.number, seen.clock);
                    it.ect_there = Some(seen.ect_packets);
                    it.other = Some(if seen.measures { Other::PerfServer } else { Other::Receiver });
                    // Behind a relay it sees the relay alone.
                    if !it.by_relay {
                        it.seen_as = Some(seen.from);
                    }
                }
                Ok(Message::Hello(_)) if received.ppid == PPID => {
                    it.other = Some(Other::Sender);
                    association.abort(now, "braidcast doctor takes no stream");
                    return;
                }
                _ => {}
            }
        }
    }

    /// What relays have said.
    fn hear_relays(&mut self, now: Instant) {
        for asked in &mut self.probe.relays {
            asked.listen();
            let heard = asked.rtt.is_some();
            let Some(it) = self.tried.iter_mut().find(|it| it.route == Some(asked.route)).filter(|_| heard) else {
                continue;
            };
            if it.other.is_none() {
                it.other = Some(Other::Relay);
                if let Some(association) = it.id.take().and_then(|id| self.probe.endpoint.association_mut(id)) {
                    association.abort(now, "");
                }
            }
            it.rtt = it.rtt.or(asked.rtt);
            it.seen_as = it.seen_as.or(asked.seen_as);
            match asked.refused {
                // Guests need no right: a ticket of somebody who has one is enough.
                Some(why @ Reason::NotAuthorized) => {
                    it.relay_refused = Some(why);
                    it.answers(now);
                }
                Some(why) => it.state = State::Refuses(why.to_string(), "ask the relay's owner, or use another".into()),
                None if asked.seen_as.is_some() => it.answers(now),
                None => {}
            }
        }
        let Some(through) = &mut self.through else { return };
        while let Some(event) = through.legs.poll_event() {
            let Some(it) = self.tried.iter_mut().find(|it| it.route == Some(event.route)) else { continue };
            match event.what {
                ClientEvent::Registered(observed) => {
                    it.seen_as = Some(observed.0);
                    it.relay_refused = None;
                }
                ClientEvent::Refused(why) => it.relay_refused = Some(why),
                _ => {}
            }
        }
    }
}
