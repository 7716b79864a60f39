//! What a tunnel does by the clock: it asks who is silent, and forgets what is idle.

use super::carrier::How;
use super::event::TunnelEvent;
use super::header::Header;
use super::machine::{LinkId, PING_CONTEXT, Tunnel};
use braidcast_core::Instant;
use braidcast_dccp::Priority;
use std::time::Duration;

/// How often flows and connections are looked after.
const TICK: Duration = Duration::from_secs(1);
/// After so long without a word from the other end, a client asks for one.
const PING_AFTER: Duration = Duration::from_secs(2);
/// A flow that carried nothing for this long is forgotten. NATs should keep UDP for two minutes,
/// better five (RFC 4787 §4.3).
const IDLE: Duration = Duration::from_secs(300);
/// Ends that are not connected and have no flows, kept at most.
const MAX_GONE: usize = 64;
/// Ticks in a row in which the way takes longer than datagrams live, until it is said.
const TOO_FAR: u8 = 3;
/// A server that was asked has answered by then, or in two round trips. If not, a client of DCCP, which knows one path,
/// says so, and other addresses are tried long before the connection counts as broken.
const ANSWERED: Duration = Duration::from_secs(1);
/// A connection from which a client, or a server, heard nothing for this long is broken.
const CLIENT_PATIENCE: Duration = Duration::from_secs(10);
const SERVER_PATIENCE: Duration = Duration::from_secs(30);

impl Tunnel {
    /// What is due by the clock.
    pub(super) fn tend(&mut self, now: Instant) {
        self.redial(now);
        if now < self.next_tick {
            return;
        }
        self.next_tick = now + TICK;
        self.endpoint.tend(now);
        let ids: Vec<LinkId> = self.links.keys().copied().collect();
        for id in ids {
            self.tend_link(now, id);
        }
    }

    fn tend_link(&mut self, now: Instant, id: LinkId) {
        let Some(link) = self.links.get_mut(&id) else { return };
        link.flows.values_mut().for_each(|flow| flow.tick(now));
        for flow in link.take_idle(now - IDLE) {
            self.free_exit(&flow);
        }
        let Some(link) = self.links.get_mut(&id) else { return };
        let Some(connection) = link.connection else {
            // A client that went for good; the latest stay for the summary.
            if self.dial.is_none() && link.flows.is_empty() && self.links.len() > MAX_GONE {
                self.links.remove(&id);
            }
            return;
        };
        let report = self.endpoint.report(now, connection);
        link.last_report = report.or(link.last_report);
        link.last_paths = self.endpoint.paths(connection);
        let received = self.endpoint.heard_of(now, connection);
        if received != link.heard.1 {
            link.heard = (now, received);
        }
        let silent = now.since(link.heard.0);
        let patience = if self.dial.is_some() { CLIENT_PATIENCE } else { SERVER_PATIENCE };
        if link.connected && silent >= patience {
            self.endpoint.abort(now, connection, "nothing was heard for too long");
        } else if link.connected && silent >= PING_AFTER && self.dial.is_some() {
            let mut ping = Vec::new();
            Header::Ping.emit(&mut ping);
            // If the queue is full, what is in it asks as well.
            let how = How { priority: Priority::default(), deadline: now + CLIENT_PATIENCE, context: PING_CONTEXT };
            let _full = self.endpoint.send(now, connection, &ping, &how);
        }
        // SCTP says it of each path.
        if let Some(report) = report.filter(|_| link.connected && self.dial.is_some()) {
            let answered = report.rtt.map_or(ANSWERED, |rtt| ANSWERED.max(2 * rtt));
            let silent = silent >= PING_AFTER + answered;
            if silent != std::mem::replace(&mut link.silent, silent) {
                self.events.push_back(TunnelEvent::Path(id, link.route, !silent));
            }
        }
        if let Some(report) = report.filter(|report| report.ccid.below_minimum != link.below_minimum) {
            link.below_minimum = report.ccid.below_minimum;
            self.events.push_back(TunnelEvent::BelowMinimum(id, link.below_minimum));
        }
        self.look_ahead(now, id);
        self.pump(now);
    }

    /// Says when the way takes longer than a flow's datagrams live.
    fn look_ahead(&mut self, now: Instant, id: LinkId) {
        let Some(link) = self.links.get_mut(&id).filter(|_| self.settings.reckons_with_the_way()) else { return };
        let lifetimes = link.flows.values().map(|flow| flow.lifetime().unwrap_or(self.settings.lifetime));
        let one_way = link.connection.and_then(|id| self.endpoint.one_way_delay(now, id));
        let (Some(one_way), Some(lifetime)) = (one_way, lifetimes.min()) else { return };
        link.too_far = if one_way >= lifetime { link.too_far.saturating_add(1) } else { 0 };
        if link.too_far >= TOO_FAR && !std::mem::replace(&mut self.said_too_far, true) {
            self.events.push_back(TunnelEvent::TooFar(id, one_way, lifetime));
        }
    }
}
