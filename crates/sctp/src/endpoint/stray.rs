use super::{AssociationId, Endpoint};
use crate::wire::chunk::{ShutdownComplete, kind};
use crate::wire::{Chunk, Packet};
use braidcast_core::{Instant, Route};

impl Endpoint {
    /// A packet whose tag is none of ours, "out of the blue" (RFC 9260 §8.4), or one that reflects the peer's tag.
    pub(super) fn handle_stray(&mut self, now: Instant, route: Route, packet: &Packet<'_>) {
        let (tag, port) = (packet.header.verification_tag, packet.header.source_port);
        let Some(Ok(first)) = packet.chunks().next() else { return };
        match first.kind {
            kind::ABORT | kind::SHUTDOWN_COMPLETE => {
                // With the T bit the tag is the peer's own (RFC 9260 §8.5.1 B, C).
                let has_tag = |id: &AssociationId| self.association(*id).is_some_and(|it| it.peer_tag() == tag);
                let found = self.at(route, port).iter().copied().find(has_tag).filter(|_| first.flags & 1 == 1);
                let Some(id) = found else { return };
                if let Some(entry) = self.roster.get_mut(id) {
                    match Chunk::parse(first) {
                        Ok(Chunk::Abort(abort)) => entry.association.handle_reflected_abort(now, route, abort.causes),
                        _ => entry.association.handle_reflected_shutdown_complete(),
                    }
                    self.settle(id);
                }
            }
            kind::SHUTDOWN_ACK => {
                let chunk = Chunk::ShutdownComplete(ShutdownComplete { reflected: true });
                self.reply_chunk(route, port, tag, &chunk);
            }
            // Answers to nothing: INIT ACK (§5.2.3), COOKIE ACK (§8.4 item 7), ERROR, and anything
            // that could start a loop.
            kind::INIT_ACK | kind::COOKIE_ACK | kind::ERROR | kind::HEARTBEAT_ACK => {}
            // A record of an association that this end has lost, or that a newer one has replaced: the
            // peer must learn it, though another association stands here.
            kind::DTLS if self.options.security.is_some() => self.abort_stray(route, port, tag, true, &[]),
            // A tag that is not that of the association over this route: old or forged, dropped (RFC 9260 §8.5).
            _ if !self.at(route, port).is_empty() => {}
            // A record without checksum: an association that we have forgotten may have agreed on that.
            _ if !packet.has_checksum() && self.options.security.is_none() => {}
            _ if packet.chunks().flatten().any(|raw| raw.kind == kind::ABORT) => {}
            _ => self.abort_stray(route, port, tag, true, &[]),
        }
    }
}
