use braidcast_core::Instant;
use std::collections::HashMap;

/// Local ports that are ours: those with connections, and for a while those that had any.
///
/// Straight over IP every raw socket of the machine gets every packet, so an endpoint may only answer for these; in UDP
/// nobody else gets what it gets.
#[derive(Debug, Default)]
pub(super) struct Ports(HashMap<u16, Port>);

#[derive(Clone, Copy, Debug, Default)]
struct Port {
    connections: u32,
    /// Without any, it is still ours until then.
    until: Instant,
}

impl Ports {
    /// A connection at `port` begins.
    pub(super) fn begin(&mut self, port: u16) {
        self.0.entry(port).or_default().connections += 1;
    }

    /// A connection at `port` is over; its peer may not know yet.
    pub(super) fn end(&mut self, port: u16, until: Instant) {
        if let Some(it) = self.0.get_mut(&port) {
            it.connections = it.connections.saturating_sub(1);
            it.until = it.until.max(until);
        }
    }

    /// Returns `true` if `port` is ours at `now`.
    pub(super) fn owns(&mut self, now: Instant, port: u16) -> bool {
        let ours = self.0.get(&port).is_some_and(|it| it.connections > 0 || it.until > now);
        if !ours {
            self.0.remove(&port);
        }
        ours
    }
}
