//! SCTP as a measurement sees it. What the two ends say to each other fits into the payload protocol identifier.

use super::protocol::{ConnectionEvent, Ending, PathState, Protocol, Purpose, State};
use crate::out::units;
use braidcast_core::{Instant, Machine, NotJoined, PathId, Route};
use braidcast_sctp::{Association, AssociationId, CloseReason, Endpoint, Event, JoinError, SendOptions};
use braidcast_session::wire::{Message, PPID, Seen, write_seen};
use braidcast_session::{Farewell, SecurityReport};

/// Messages to be counted: "BRPB".
const BULK: u32 = 0x4252_5042;
/// Messages that carry the time: "BRPT".
const TIMED: u32 = 0x4252_5054;
/// The time that comes back: "BRPE".
const ECHO: u32 = 0x4252_5045;

/// Bytes that may wait whatever is in flight: a burst of the driver and more; half a second at 1 Mbit/s.
const LEAST_WAITING: usize = 64 << 10;

impl Protocol for Endpoint {
    type Id = AssociationId;

    fn poll(&mut self) -> Option<(AssociationId, ConnectionEvent)> {
        let (id, event) = self.poll_event()?;
        let event = match event {
            Event::Connected => ConnectionEvent::Connected,
            Event::Readable => ConnectionEvent::Readable,
            Event::PathUp(_, route) => ConnectionEvent::Answers(route),
            Event::PathDown(_, route) => ConnectionEvent::Silent(route),
            Event::Closed(reason) => {
                let orderly = reason == CloseReason::Shutdown;
                let insecure = reason.insecure().cloned();
                ConnectionEvent::Closed(Ending { orderly, insecure, reason: reason.to_string() })
            }
            _ => ConnectionEvent::Other,
        };
        Some((id, event))
    }

    fn poll_turned_away(&mut self) -> Option<String> {
        Endpoint::poll_turned_away(self).map(|(_, reason)| reason.to_string())
    }

    fn send(&mut self, now: Instant, id: AssociationId, payload: &[u8], purpose: Purpose) -> bool {
        let timed = purpose == Purpose::Timed;
        let how = SendOptions { ppid: if timed { TIMED } else { BULK }, unordered: timed, ..SendOptions::default() };
        self.association_mut(id).is_some_and(|association| association.send(now, payload, how).is_ok())
    }

    /// As much as is in flight fills a window that doubles within a round trip, and is gone within two.
    fn has_enough(&self, id: AssociationId) -> bool {
        self.association(id).is_some_and(|association| {
            let (waiting, held) = (association.waiting(), association.buffered());
            waiting >= LEAST_WAITING.max(held.saturating_sub(waiting))
        })
    }

    fn echo(&mut self, now: Instant, id: AssociationId, stamp: &[u8]) {
        let how = SendOptions { ppid: ECHO, unordered: true, ..SendOptions::default() };
        if let Some(association) = self.association_mut(id) {
            let _closing = association.send(now, stamp, how);
        }
    }

    fn recv(&mut self, now: Instant, id: AssociationId, out: &mut Vec<u8>) -> Option<Purpose> {
        let association = self.association_mut(id)?;
        loop {
            let received = association.recv(now, out)?;
            match received.ppid {
                BULK => return Some(Purpose::Bulk),
                TIMED | ECHO => return Some(Purpose::Timed),
                _ => {}
            }
            let Some(Message::Look(number)) = (received.ppid == PPID).then(|| Message::parse(out).ok()).flatten()
            else {
                association.abort(now, Farewell::Measures);
                return None;
            };
            answer(now, association, number, received.path);
        }
    }

    fn close(&mut self, now: Instant, id: AssociationId) {
        self.association_mut(id).into_iter().for_each(|association| association.shutdown(now));
    }

    fn abort(&mut self, now: Instant, id: AssociationId) {
        self.association_mut(id).into_iter().for_each(|association| association.abort(now, "interrupted"));
    }

    fn join(&mut self, now: Instant, id: AssociationId, route: Route) -> Result<(), NotJoined> {
        let Some(association) = self.association_mut(id) else { return Ok(()) };
        let refused = |error: JoinError| NotJoined { why: error.to_string(), is_kept: false };
        association.join(now, route).map(|_| ()).map_err(refused)
    }

    fn leave(&mut self, now: Instant, id: AssociationId, route: Route) {
        self.association_mut(id).into_iter().for_each(|association| association.leave(now, route));
    }

    fn state(&self, _now: Instant, id: AssociationId) -> Option<State> {
        let association = self.association(id)?;
        let paths = association.paths().map(|path| PathState {
            route: path.route,
            rtt: path.srtt,
            allowed: units::bytes(path.cwnd as u64),
            sent_packets: path.sent_packets,
            sent_bytes: path.sent_bytes,
            lost: path.lost_chunks,
            retransmitted: path.retransmitted_chunks,
            mtu: path.mtu,
        });
        Some(State {
            paths: paths.collect(),
            dccp: None,
            security: association.standing().as_ref().map(SecurityReport::from),
        })
    }
}

/// Answers who looks at the network: what came of it, and what time it is here.
fn answer(now: Instant, association: &mut Association, number: u64, path: PathId) {
    let path = association.paths().find(|it| it.id == path);
    let Some(path) = path else { return };
    let clock = u64::try_from(jiff::Timestamp::now().as_microsecond()).ok();
    let seen = Seen { number, clock, ect_packets: path.ect_packets, from: path.route.remote, measures: true };
    let mut message = Vec::new();
    write_seen(&mut message, &seen);
    let how = SendOptions { ppid: PPID, unordered: true, ..SendOptions::default() };
    // One that goes away needs no answer.
    let _closing = association.send(now, &message, how);
}
