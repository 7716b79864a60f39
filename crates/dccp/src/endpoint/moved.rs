//! Connections whose peer is at another address than before. DCCP's ports name a connection as a
//! connection identifier would: no NAT below UDP changes them, and who connects draws its own at random.

use super::{ConnectionId, Endpoint, Flow, FlowId};
use crate::wire::Packet;
use braidcast_core::{Ecn, Instant};
use std::collections::BTreeMap;

/// Connections that are not over, by their own port and the peer's.
#[derive(Debug, Default)]
pub(super) struct ByPorts(BTreeMap<(u16, u16), Vec<ConnectionId>>);

impl ByPorts {
    pub(super) fn enter(&mut self, flow: FlowId, id: ConnectionId) {
        self.0.entry((flow.local_port, flow.remote_port)).or_default().push(id);
    }

    pub(super) fn leave(&mut self, flow: FlowId, id: ConnectionId) {
        let ports = (flow.local_port, flow.remote_port);
        if let Some(ids) = self.0.get_mut(&ports) {
            ids.retain(|it| *it != id);
            if ids.is_empty() {
                self.0.remove(&ports);
            }
        }
    }

    fn of(&self, flow: FlowId) -> &[ConnectionId] {
        self.0.get(&(flow.local_port, flow.remote_port)).map_or(&[], Vec::as_slice)
    }
}

impl Endpoint {
    /// Connections with the same ports that a record from a new address is tried on, at most.
    const TRIALS: usize = 8;

    /// A packet of no flow: it is taken if it is a record of a connection whose peer was elsewhere.
    /// Returns `true` if it was. What looks at a glance as if it could be one is opened, of which each costs as much as
    /// any forged packet; there are so many a second at most.
    pub(super) fn take_moved(&mut self, now: Instant, flow: FlowId, ecn: Ecn, packet: &Packet<'_>) -> bool {
        if self.options.security.is_none() || flow.route.remote.port() == 0 {
            return false;
        }
        let ids: Vec<ConnectionId> = self.by_ports.of(flow).iter().take(Self::TRIALS).copied().collect();
        for id in ids {
            let Some(entry) = self.roster.get_mut(id) else { continue };
            if !entry.connection.may_be_ours(packet) || !self.trials.allow(now) {
                continue;
            }
            let Some(entry) = self.roster.wake(id) else { continue };
            if entry.connection.handle_packet_from(now, ecn, flow.route, packet) {
                self.settle_flow(id);
                return true;
            }
        }
        false
    }

    /// Finds the connection `id` by the route that it has now, and by the one before while this one is not proved.
    pub(super) fn settle_flow(&mut self, id: ConnectionId) {
        let Some(entry) = self.roster.get_mut(id).filter(|entry| !entry.over) else { return };
        let (old, connection) = (entry.flow, &entry.connection);
        let flow = FlowId { route: connection.route(), ..old };
        let before = connection.route_before().map(|route| FlowId { route, ..old });
        if (flow, before) == (old, entry.flow_before) {
            return;
        }
        let gone = [Some(old), core::mem::replace(&mut entry.flow_before, before)];
        entry.flow = flow;
        gone.into_iter().flatten().for_each(|it| _ = self.flows.remove(&it));
        [Some(flow), before].into_iter().flatten().for_each(|it| _ = self.flows.insert(it, Flow::Connection(id)));
        self.last = self.last.filter(|&(_, last)| last != id);
    }
}
