//! The other end of a tunnel, and the flows between us; it outlives connections.

use super::carrier::ConnectionId;
use super::flow::Flow;
use super::header::FlowId;
use super::permit::Permit;
use crate::report::SecurityReport;
use braidcast_core::{Instant, Route, SocketId};
use braidcast_dccp::{Admission, Report};
use braidcast_sctp::PathReport;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Flows that a link has at most.
pub const MAX_FLOWS: usize = 1024;

/// Datagrams that did not get through, by reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct Dropped {
    /// Longer than a DCCP packet carries.
    pub too_long: u64,
    /// The send queue was full.
    pub queue_full: u64,
    /// There was no connection.
    pub unconnected: u64,
    /// There were too many flows, or a flow's first datagrams came faster than its socket.
    pub too_many: u64,
    /// They came for a --forward that is not there.
    pub no_forward: u64,
    /// They were no messages of a tunnel.
    pub malformed: u64,
    /// They were of calls that were refused, as no more fit.
    pub refused_calls: u64,
}

/// The other end.
#[derive(Debug)]
pub struct Link {
    /// Where it is.
    pub route: Route,
    pub(super) connection: Option<ConnectionId>,
    /// There is a connection, and its handshake is done.
    pub connected: bool,
    /// How the connection is protected, or the last one was; `None` without encryption.
    pub security: Option<SecurityReport>,
    /// Who it is and what it may reach, where that is in a list of keys.
    pub permit: Option<Permit>,
    /// The last connection was closed as agreed.
    pub closed: bool,
    /// Connections there were.
    pub connections: u64,
    /// When anything came last, and how many packets of the connection had come then.
    pub(super) heard: (Instant, u64),
    /// The flows between us, those that wait for a socket among them.
    pub flows: BTreeMap<FlowId, Flow>,
    /// Flows that were opened here, by the socket and the application that their datagrams come from.
    by_application: BTreeMap<(SocketId, SocketAddr), FlowId>,
    /// The calls that were begun here, where they are counted.
    pub(super) calls: Option<Admission<(SocketId, SocketAddr)>>,
    next_flow: u16,
    /// Flows that were forgotten.
    pub ended_flows: u64,
    /// What did not get through.
    pub dropped: Dropped,
    /// A report of not long ago, for when the connection is gone.
    pub(super) last_report: Option<Report>,
    /// The same of SCTP's paths.
    pub(super) last_paths: Vec<PathReport>,
    /// The other end does not answer, and that was said.
    pub(super) silent: bool,
    /// The rate is below the lowest useful one, and that was said.
    pub(super) below_minimum: bool,
    /// For so many ticks the way there has taken longer than some flow's datagrams live.
    pub(super) too_far: u8,
}

impl Link {
    /// Flows that begin here are numbered from `first_flow`: at random, since the other end may
    /// remember those of a link before.
    pub(super) fn new(now: Instant, route: Route, first_flow: u16) -> Self {
        Self {
            route,
            connection: None,
            connected: false,
            security: None,
            permit: None,
            closed: false,
            connections: 0,
            heard: (now, 0),
            flows: BTreeMap::new(),
            by_application: BTreeMap::new(),
            calls: None,
            next_flow: first_flow,
            ended_flows: 0,
            dropped: Dropped::default(),
            last_report: None,
            last_paths: Vec::new(),
            silent: false,
            below_minimum: false,
            too_far: 0,
        }
    }

    /// How it stands, in a word.
    pub const fn state(&self) -> &'static str {
        match (self.connected, self.closed) {
            (true, _) => "connected",
            (false, true) => "closed",
            (false, false) => "not connected",
        }
    }

    /// A new connection takes over.
    pub(super) fn attach(&mut self, now: Instant, connection: ConnectionId) {
        self.connection = Some(connection);
        (self.connected, self.silent) = (false, false);
        self.heard = (now, 0);
    }

    /// The flow of what `application` sends to the socket `entrance`, a new one if need be; `None`
    /// if there are too many.
    pub(super) fn flow_from(
        &mut self,
        entrance: SocketId,
        application: SocketAddr,
        new: impl FnOnce() -> Flow,
    ) -> Option<FlowId> {
        if let Some(&flow) = self.by_application.get(&(entrance, application)) {
            return Some(flow);
        }
        if self.flows.len() >= MAX_FLOWS {
            return None;
        }
        // There are far fewer flows than numbers.
        let numbers = std::iter::successors(Some(self.next_flow), |number| Some(number.wrapping_add(1)));
        let mut ids = numbers.map(|number| FlowId { ours: true, number });
        let id = ids.find(|id| !self.flows.contains_key(id))?;
        self.next_flow = id.number.wrapping_add(1);
        self.flows.insert(id, new());
        self.by_application.insert((entrance, application), id);
        Some(id)
    }

    /// Returns `true` if `application` has a flow that it opened by the socket `entrance`.
    pub(super) fn has_flow_from(&self, entrance: SocketId, application: SocketAddr) -> bool {
        self.by_application.contains_key(&(entrance, application))
    }

    /// Takes out the flow `id`.
    pub(super) fn take(&mut self, id: FlowId) -> Option<Flow> {
        let flow = self.flows.remove(&id)?;
        if id.ours {
            self.by_application.retain(|_, it| *it != id);
        }
        self.ended_flows += 1;
        Some(flow)
    }

    /// Takes out all flows.
    pub(super) fn take_all(&mut self) -> Vec<Flow> {
        self.by_application.clear();
        self.ended_flows += self.flows.len() as u64;
        std::mem::take(&mut self.flows).into_values().collect()
    }

    /// Takes out the flows that nobody has used since `before`.
    pub(super) fn take_idle(&mut self, before: Instant) -> Vec<Flow> {
        let idle: Vec<FlowId> =
            self.flows.iter().filter(|(_, flow)| flow.last_used < before).map(|(&id, _)| id).collect();
        if !idle.is_empty() {
            self.by_application.retain(|_, id| !idle.contains(id));
            self.ended_flows += idle.len() as u64;
        }
        idle.iter().filter_map(|id| self.flows.remove(id)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tunnel::Class;
    use std::time::Duration;

    const ENTRANCE: SocketId = SocketId(1);

    fn application(port: u16) -> SocketAddr {
        ([127, 0, 0, 1], port).into()
    }

    fn flow(at: Instant) -> Flow {
        Flow::new(at, 0, Class::default(), None, Duration::from_millis(100))
    }

    #[test]
    fn each_application_keeps_a_flow_until_it_is_idle() {
        let mut link = Link::new(Instant::ZERO, Route::new(SocketId(0), application(9000)), u16::MAX);
        let from = |link: &mut Link, port, at| link.flow_from(ENTRANCE, application(port), || flow(at)).unwrap();
        let early = from(&mut link, 1, Instant::ZERO);
        let late = from(&mut link, 2, Instant::from_millis(500));
        assert_ne!(early, late);
        assert_eq!(from(&mut link, 1, Instant::from_millis(600)), early);
        assert_eq!(link.take_idle(Instant::from_millis(100)).len(), 1);
        assert_eq!((link.flows.len(), link.ended_flows), (1, 1));
        // The number is not given to another one while the other end may still remember it.
        let again = from(&mut link, 1, Instant::from_millis(700));
        assert!(again != early && again != late);
    }

    #[test]
    fn flows_are_bounded() {
        let mut link = Link::new(Instant::ZERO, Route::new(SocketId(0), application(9000)), u16::MAX);
        let all =
            (0..2000).filter_map(|port| link.flow_from(ENTRANCE, application(port), || flow(Instant::ZERO))).count();
        assert_eq!(all, MAX_FLOWS);
    }
}
