mod answer;

use super::control::Control;
use super::{Open, State};
use crate::api::{CloseReason, JoinError, PathState};
use crate::path::PathIndex;
use crate::wire::chunk::{Asconf, AsconfAck, ErrorChunk, kind};
use crate::wire::{Cause, Causes, Parameter, Parameters};
use braidcast_core::{Instant, PathId, Route, Writer};
use core::time::Duration;
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};

/// The address of what every request of ours asks for: the receiver takes the packet's source,
/// which is the only address that is right behind NATs (RFC 5061 §4.2.1, §4.2.2).
const WILDCARD: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// Paths that join and leave (RFC 5061): one packet of requests at a time, by serial number.
#[derive(Debug)]
pub(super) struct Reconfiguration {
    next_serial: u32,
    /// Paths that are to join.
    joins: VecDeque<PathId>,
    /// The peer is to be told that paths have left.
    leaves: bool,
    /// How often in a row that was refused.
    refused_leaves: u32,
    /// The path that the peer is asked to send over, before all others.
    primary: Option<PathId>,
    /// An address of ours that the peer knows, by which it may find the association of a packet
    /// from a new one; the wildcard where there is none for sure: then it has to go by the tag,
    /// which it may, and Linux does not (RFC 5061 §4.1.1).
    known: IpAddr,
    /// The peer does not know how to add and delete; how to be told of a primary path (RFC 5061 §5.3 F3a, F3b).
    unknown: NotUnderstood,
    /// What has not been answered, the oldest first. More than one only after the path that the
    /// oldest went over has left (RFC 5061 §5.5).
    requests: VecDeque<Request>,
    /// The path that they went over last.
    carrier: Option<PathId>,
    /// They went over several paths at once.
    scattered: bool,
    /// How often they were sent since the last one was added.
    attempts: u32,
    /// When they were last sent.
    sent: Instant,
    /// They go, or go again, no sooner than this: T4-rto (RFC 5061 §5.1).
    due: Instant,
    /// The peer's last request, and our answer to it as on the wire.
    peer_serial: u32,
    answer: Vec<u8>,
    /// Routes that the peer had us delete, and when, the newest last.
    deleted: VecDeque<(Route, Instant)>,
    /// How often in a row the peer's request to delete was put off because ours was out.
    put_off: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Change {
    /// Add the source address, sent from the path itself.
    Join(PathId),
    /// Delete all addresses but the source; the paths that stay then join anew.
    Leave,
    /// Make the source address the primary one, sent from the path itself (RFC 5061 §4.2.4).
    Primary(PathId),
}

/// Requests that the peer did not understand: they are not made again.
#[derive(Clone, Copy, Debug)]
struct NotUnderstood {
    add_and_delete: bool,
    primary: bool,
}

/// An ASCONF that has not been answered.
#[derive(Debug)]
struct Request {
    serial: u32,
    change: Change,
    bytes: Vec<u8>,
}

impl Reconfiguration {
    /// Attempts over the path that wants to join; then the serial number must be settled over another one.
    const OWN_ATTEMPTS: u32 = 3;
    /// How often in a row a request to delete is made again though it was refused.
    const LEAVE_ATTEMPTS: u32 = 8;
    /// How often in a row the peer's request to delete is put off: ours may have gone over a path that it left.
    const PUT_OFF: u32 = 2;
    /// How long packets of a path that is deleted may still come.
    const UNDER_WAY: Duration = Duration::from_millis(500);
    /// Requests in a packet at most: what the smallest MTU has room for behind an AUTH chunk. When
    /// paths come and go more often than that and nobody answers, the last request speaks for the
    /// path that there is now.
    const MAX_REQUESTS: usize = 12;

    /// Serial numbers begin at the initial TSN (RFC 5061 §4.1.1).
    /// `listed`: an address that our INIT or INIT ACK lists.
    pub(super) fn new(now: Instant, initial_tsn: u32, peer_initial_tsn: u32, listed: Option<IpAddr>) -> Self {
        Self {
            next_serial: initial_tsn,
            joins: VecDeque::new(),
            leaves: false,
            refused_leaves: 0,
            primary: None,
            known: listed.unwrap_or(WILDCARD),
            unknown: NotUnderstood { add_and_delete: false, primary: false },
            requests: VecDeque::new(),
            carrier: None,
            scattered: false,
            attempts: 0,
            sent: now,
            due: now,
            peer_serial: peer_initial_tsn.wrapping_sub(1),
            answer: Vec::new(),
            deleted: VecDeque::new(),
            put_off: 0,
        }
    }

    /// Returns `true` if the peer had us delete `route`, and still sends from there: it deleted all but one,
    /// and the join by which this one was to come back got lost. What comes sooner was under way
    /// before.
    pub(super) fn was_deleted(&self, now: Instant, route: Route) -> bool {
        self.deleted.iter().any(|&(other, at)| other == route && now - at > Self::UNDER_WAY)
    }

    fn joins(&self, id: PathId) -> bool {
        self.joins.contains(&id) || self.requests.iter().any(|request| request.change == Change::Join(id))
    }

    /// A request for `change` goes with the next packet of requests.
    fn add(&mut self, now: Instant, change: Change) {
        let serial = self.next_serial;
        let parameter = match change {
            Change::Join(_) => Parameter::AddIp { correlation: serial, address: WILDCARD },
            Change::Leave => Parameter::DeleteIp { correlation: serial, address: WILDCARD },
            Change::Primary(_) => Parameter::SetPrimary { correlation: serial, address: WILDCARD },
        };
        let mut parameters = Vec::new();
        parameter.emit(&mut Writer::new(&mut parameters));
        let mut bytes = Vec::new();
        Asconf { serial, address: self.known, parameters: Parameters::new(&parameters) }
            .emit(&mut Writer::new(&mut bytes));
        self.next_serial = serial.wrapping_add(1);
        self.requests.push_back(Request { serial, change, bytes });
        (self.attempts, self.due) = (0, now);
    }

    /// The next path that is to join asks for it, or `all` do. Whether there was one.
    fn add_joins(&mut self, now: Instant, all: bool) -> bool {
        let count = if all { self.joins.len() } else { self.joins.len().min(1) };
        let next: Vec<PathId> = self.joins.drain(..count).collect();
        next.iter().for_each(|&id| self.add_join(now, id));
        count > 0
    }

    /// The path `id` asks to join.
    fn add_join(&mut self, now: Instant, id: PathId) {
        if self.requests.len() < Self::MAX_REQUESTS {
            return self.add(now, Change::Join(id));
        }
        (self.attempts, self.due) = (0, now);
        let last = self.requests.back_mut().map(|request| core::mem::replace(&mut request.change, Change::Join(id)));
        match last {
            Some(Change::Join(other)) => self.joins.push_back(other),
            Some(Change::Leave) => self.leaves = true,
            Some(Change::Primary(other)) => self.primary = self.primary.or(Some(other)),
            None => {}
        }
    }

    /// Returns `true` if a request to delete all paths but `id` is out: the peer may know that one alone.
    fn may_have_left_all_but(&self, id: PathId) -> bool {
        self.carrier == Some(id) && self.requests.iter().any(|request| request.change == Change::Leave)
    }

    /// Returns `true` if the peer, which wants all paths but one deleted, has to ask again because we ask for
    /// that too: each end would keep the path that the other one's request came over, and they may
    /// have none in common.
    fn puts_off(&mut self) -> bool {
        let crossed = self.requests.iter().any(|request| request.change == Change::Leave);
        self.put_off = if crossed && self.put_off < Self::PUT_OFF { self.put_off + 1 } else { 0 };
        self.put_off > 0
    }

    /// Takes out what an answer with `serial` settles: the request of that number, and the older
    /// ones, whose answers were lost.
    fn settle(&mut self, serial: u32) -> Option<Vec<Request>> {
        let at = self.requests.iter().position(|request| request.serial == serial)?;
        Some(self.requests.drain(..=at).collect())
    }
}

impl Open {
    /// One more path, over `route`.
    pub(super) fn join(&mut self, now: Instant, route: Route) -> Result<PathId, JoinError> {
        if let Some(index) = self.paths.by_route(route) {
            return Ok(self.paths[index].id());
        }
        if !self.state.takes_messages() {
            return Err(JoinError::Closing);
        }
        if !self.may_reconfigure() {
            return Err(JoinError::NotSupported);
        }
        if self.paths.check_room().is_err()
            && let Some(failed) = self.paths.worst().filter(|&it| self.paths[it].state() == PathState::Inactive)
        {
            // Each old address of the peer's may have left one behind.
            self.remove_path(now, failed);
        }
        self.paths.check_room()?;
        let index = self.paths.add(now, route, PathState::Unconfirmed);
        let id = self.paths[index].id();
        self.queue_join(now, index);
        self.next_request(now);
        Ok(id)
    }

    /// One path less; the last one stays where the peer cannot be told of a new one, and at the end
    /// that was called: it has nowhere to go, and where both left, neither would find the other.
    pub(super) fn leave(&mut self, now: Instant, route: Route) {
        let Some(index) = self.paths.by_route(route) else { return };
        let last = self.paths.best_rank(Some(index)).is_none();
        let up = self.state.is_up();
        if (up && last && !(self.may_reconfigure() && self.initiator)) || (!up && self.paths.len() < 2) {
            return;
        }
        let (id, known_to_peer) = (self.paths[index].id(), self.paths[index].is_usable());
        self.remove_path(now, index);
        if up && self.may_reconfigure() {
            if self.reconfiguration.may_have_left_all_but(id) {
                let others: Vec<PathIndex> = self.paths.indices().collect();
                others.into_iter().for_each(|index| self.queue_join(now, index));
            }
            self.reconfiguration.leaves |= known_to_peer;
            if self.reconfiguration.carrier == Some(id) {
                (self.reconfiguration.attempts, self.reconfiguration.due) = (0, now);
            }
            self.next_request(now);
        }
    }

    /// Asks the peer to send over `route` where it uses one path at a time. Whether it can be asked.
    pub(super) fn ask_primary(&mut self, now: Instant, route: Route) -> bool {
        let Some(index) = self.paths.by_route(route) else { return false };
        let can = self.agreed.asconf && !self.reconfiguration.unknown.primary && self.state.takes_messages();
        if can {
            self.reconfiguration.primary = Some(self.paths[index].id());
            self.next_request(now);
        }
        can
    }

    /// Returns `true` if the peer lets paths join and leave.
    const fn may_reconfigure(&self) -> bool {
        self.agreed.asconf && !self.reconfiguration.unknown.add_and_delete
    }

    /// Asks the peer to take the path `index` in.
    pub(super) fn queue_join(&mut self, now: Instant, index: PathIndex) {
        if !self.may_reconfigure() {
            return self.remove_path(now, index);
        }
        let id = self.paths[index].id();
        if !self.reconfiguration.joins(id) {
            self.reconfiguration.joins.push_back(id);
        }
    }

    /// A path of ours fails: perhaps a NAT forgot it and the peer sees another address now; or the
    /// peer has never heard from us there and took it out. Join anew.
    pub(super) fn rejoin(&mut self, now: Instant, index: PathIndex) {
        let path = &self.paths[index];
        let listed = self.peer_addresses.contains(path.route().remote.ip());
        let ours = !path.is_unproved_hearsay() && (self.initiator || (!path.is_usable() && !listed));
        let failing = ours && path.errors() >= 2;
        if failing && self.may_reconfigure() && matches!(self.state, State::Established) {
            self.queue_join(now, index);
            self.next_request(now);
        }
    }

    /// The path that our requests went over last has left at the peer's wish, and its answer would
    /// come over that: once more, over another one.
    fn repeat_if_carrier_left(&mut self, now: Instant) {
        if self.reconfiguration.carrier.is_some_and(|id| self.paths.by_id(id).is_none()) {
            (self.reconfiguration.attempts, self.reconfiguration.due) = (0, now);
        }
    }

    /// Asks for the next change if none is under way, or if the one under way cannot be answered
    /// any more, as the path that it went over has left: the next one goes with it in one packet
    /// then (RFC 5061 §5.5).
    pub(super) fn next_request(&mut self, now: Instant) {
        let stranded = self.is_stranded();
        let paths = &self.paths;
        self.reconfiguration.joins.retain(|&id| paths.by_id(id).is_some());
        self.reconfiguration.primary = self.reconfiguration.primary.filter(|&id| paths.by_id(id).is_some());
        let carrier = self.reconfiguration.carrier.and_then(|id| paths.by_id(id));
        let carried = carrier.is_some();
        // What went before was not answered in time, or over a path that does not answer: who joins waits for neither.
        let unanswered = self.reconfiguration.attempts > 1 || carrier.is_some_and(|index| paths[index].has_failed());
        let urgent = (stranded || unanswered) && !self.reconfiguration.joins.is_empty();
        if !self.reconfiguration.requests.is_empty() && carried && !urgent {
            return;
        }
        // Over a path that the peer does not know nothing can leave.
        if self.reconfiguration.leaves && !stranded && self.reconfiguration.requests.is_empty() {
            self.reconfiguration.leaves = false;
            self.reconfiguration.add(now, Change::Leave);
        } else if !self.reconfiguration.add_joins(now, stranded) {
            let Some(id) = self.primary_to_ask() else { return };
            self.reconfiguration.primary = None;
            self.reconfiguration.add(now, Change::Primary(id));
        }
        self.handle_asconf_timeout(now);
    }

    /// The path that the peer is to send over, if it can be asked now: nothing else is under way, and that path works.
    fn primary_to_ask(&self) -> Option<PathId> {
        let id = self.reconfiguration.primary?;
        let works = self.paths.by_id(id).is_some_and(|index| self.paths.is_best(index));
        (works && self.reconfiguration.requests.is_empty()).then_some(id)
    }

    /// No path answers, so that only one that joins, perhaps anew, can speak for us.
    fn is_stranded(&self) -> bool {
        self.paths.best_rank(None).is_none_or(|rank| rank > 1)
    }

    /// The path that requests go over: at first that which wants to join, as its source address is what is added.
    fn request_path(&self) -> Option<PathIndex> {
        if self.reconfiguration.requests.is_empty() {
            return None;
        }
        // The newest first, then the others in turn: any of them may lead nowhere.
        let own = self.reconfiguration.requests.iter().rev().filter_map(|request| match request.change {
            Change::Join(id) | Change::Primary(id) => self.paths.by_id(id),
            Change::Leave => None,
        });
        let own = own.clone().nth(self.reconfiguration.attempts as usize % own.count().max(1));
        let own_turn = self.reconfiguration.attempts < Reconfiguration::OWN_ATTEMPTS;
        // A request to delete that was refused: the peer may have left the path that it came over. Over another one.
        let refused = self.reconfiguration.refused_leaves as usize;
        let another = || (refused > 0).then(|| self.paths.usable_in_turn(refused)).flatten();
        own.filter(|_| own_turn).or_else(another).or_else(|| self.paths.for_control(None)).or(own)
    }

    /// When requests are sent again.
    pub(super) fn asconf_timeout(&self) -> Option<Instant> {
        // With no path to send them over they wait for one.
        self.request_path().map(|_| self.requests_due())
    }

    /// When requests go again. What was patience while another path carried data would be a pause of the stream now.
    fn requests_due(&self) -> Instant {
        let Reconfiguration { sent, due, .. } = self.reconfiguration;
        if self.is_stranded() { due.min(sent + self.options.timers.rto.initial) } else { due }
    }

    /// Sends the requests (again).
    pub(super) fn handle_asconf_timeout(&mut self, now: Instant) {
        if self.reconfiguration.requests.is_empty() {
            let waiting = self.reconfiguration.leaves
                || !self.reconfiguration.joins.is_empty()
                || self.reconfiguration.primary.is_some();
            return if waiting {
                self.next_request(now)
            };
        }
        if self.requests_due() > now {
            return;
        }
        let stranded = self.is_stranded();
        if self.reconfiguration.attempts > 0 {
            // The path that wants to join may lead nowhere: another one's turn (RFC 5061 §5.5).
            self.reconfiguration.add_joins(now, stranded);
        }
        let Some(path) = self.request_path() else { return };
        let rto = self.options.timers.rto;
        let doublings = if stranded { 0 } else { self.reconfiguration.attempts.min(10) };
        self.reconfiguration.due = now + (rto.initial * (1 << doublings)).min(rto.max);
        self.reconfiguration.sent = now;
        self.reconfiguration.attempts += 1;
        let bytes: Vec<u8> =
            self.reconfiguration.requests.iter().flat_map(|request| request.bytes.iter().copied()).collect();
        self.reconfiguration.carrier = Some(self.paths[path].id());
        self.control.drop_where(is_asconf);
        let tag = self.peer_tag;
        if stranded {
            // Which path leads to the peer nobody knows: whichever does.
            self.reconfiguration.scattered = self.paths.len() > 1;
            for path in self.paths.indices() {
                self.control.push(Control { path, tag, bytes: bytes.clone(), alone: false });
            }
        } else {
            self.control.push(Control { path, tag, bytes, alone: false });
        }
    }

    /// The peer sends over the path `index`. If that waits for an answer to its request to join, the answer was lost.
    pub(super) fn ask_if_taken_in(&mut self, now: Instant, index: PathIndex) {
        let path = &mut self.paths[index];
        if path.state() == PathState::Unconfirmed && self.reconfiguration.joins(path.id()) {
            path.ask(now);
        }
    }

    /// ERROR: one that does not know ASCONF after all is not asked any more (RFC 5061 §5.1 A9).
    pub(super) fn heed_error(&mut self, error: &ErrorChunk<'_>) {
        let mut causes = error.causes.iter().map_while(Result::ok).map_while(|raw| Cause::parse(raw).ok());
        if causes.any(|cause| matches!(cause, Cause::UnrecognizedChunk([kind::ASCONF, ..]))) {
            self.agreed.asconf = false;
            self.reconfiguration.requests.clear();
            self.reconfiguration.joins.clear();
            self.reconfiguration.leaves = false;
            self.reconfiguration.primary = None;
            self.control.drop_where(is_asconf);
        }
    }

    /// ASCONF-ACK (RFC 5061 §5.1).
    pub(super) fn handle_asconf_ack(&mut self, now: Instant, arrived: PathIndex, ack: &AsconfAck<'_>) {
        let Some(settled) = self.reconfiguration.settle(ack.serial) else {
            let ahead = ack.serial.wrapping_sub(self.reconfiguration.next_serial).cast_signed() >= 0;
            if ahead && self.reconfiguration.requests.is_empty() {
                // RFC 5061 §5.3 F0.
                self.send_abort(&Cause::IllegalAsconfAck);
                self.close(CloseReason::Violation("ASCONF-ACK for a request that was never made".into()));
            }
            return;
        };
        self.errors = 0; // RFC 5061 §5.1 A5.
        let more = !self.reconfiguration.requests.is_empty();
        let several = settled.len() > 1 || more || self.reconfiguration.scattered;
        self.reconfiguration.scattered &= more;
        let (mut refused, mut unknown) = (false, false);
        for raw in ack.parameters.iter().map_while(Result::ok) {
            if let Ok(Parameter::ErrorCauseIndication { causes, .. }) = Parameter::parse(raw) {
                refused = true;
                unknown |= says_unrecognized(causes);
            }
        }
        for request in settled {
            let (refused, unknown) = (refused && request.serial == ack.serial, unknown && request.serial == ack.serial);
            match request.change {
                Change::Primary(_) => self.reconfiguration.unknown.primary |= unknown,
                Change::Join(_) | Change::Leave => self.reconfiguration.unknown.add_and_delete |= unknown,
            }
            match request.change {
                // Of a packet with several requests, or of several packets with one, the peer took
                // one source address: that of the path that it answers over.
                Change::Join(id) if several && self.paths.by_id(id).is_some_and(|index| index != arrived) => {
                    self.reconfiguration.joins.push_back(id);
                }
                Change::Join(id) => self.joined(now, id, refused),
                // It went over another path in the end, which the peer took for the one that is
                // meant. Asked again once the right one works.
                Change::Primary(id) if !refused && self.paths.by_id(id).is_some_and(|index| index != arrived) => {
                    self.reconfiguration.primary = self.reconfiguration.primary.or(Some(id));
                }
                Change::Primary(_) => {}
                // That packet came from a path that the peer did not know, or that it was leaving
                // itself at that moment.
                Change::Leave
                    if refused
                        && !unknown
                        && (several || self.reconfiguration.refused_leaves < Reconfiguration::LEAVE_ATTEMPTS) =>
                {
                    self.reconfiguration.leaves = true;
                    self.reconfiguration.refused_leaves += u32::from(!several);
                }
                Change::Leave => {
                    self.reconfiguration.refused_leaves = 0;
                    // All but the path that carried the request have left with it; the others come back.
                    let carrier = self.paths.for_control(None);
                    let kept = carrier.map(|index| usize::from(self.paths[index].route().socket.0));
                    let listed = kept.and_then(|socket| self.options.local_addresses.get(socket));
                    self.reconfiguration.known = listed.copied().unwrap_or(WILDCARD);
                    let others: Vec<PathIndex> = self.paths.indices().filter(|&index| Some(index) != carrier).collect();
                    others.into_iter().for_each(|index| self.queue_join(now, index));
                }
            }
        }
        self.next_request(now);
    }

    /// The peer answered that the path `id` has joined, or refused it.
    fn joined(&mut self, now: Instant, id: PathId, refused: bool) {
        let Some(index) = self.paths.by_id(id) else { return };
        if refused && !self.paths[index].is_usable() {
            self.remove_path(now, index);
        } else {
            self.paths[index].ask(now);
        }
    }
}

/// Returns `true` if a request was not understood (RFC 9260 §3.3.10.8).
fn says_unrecognized(causes: Causes<'_>) -> bool {
    let mut causes = causes.iter().map_while(Result::ok).map_while(|raw| Cause::parse(raw).ok());
    causes.any(|cause| matches!(cause, Cause::UnrecognizedParameters(_)))
}

fn is_asconf(chunk: &[u8]) -> bool {
    chunk.first() == Some(&kind::ASCONF)
}

#[cfg(test)]
mod tests;
