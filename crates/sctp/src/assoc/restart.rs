use super::forward_delay::Clocks;
use super::{Open, Settled, State};
use crate::api::{Event, PathState};
use crate::cookie::Cookie;
use crate::path::PathIndex;
use crate::rx::{Echoes, Slices, Timestamps};
use crate::wire::Cause;
use braidcast_core::{Instant, Route};

impl Open {
    /// A valid COOKIE ECHO for this association came over `route` (RFC 9260 §5.2.4). `restart`: case A, the peer
    /// lost its state. Whether a COOKIE ACK goes out over a path; else the caller answers.
    pub(super) fn handle_cookie_echo(&mut self, now: Instant, route: Route, cookie: &Cookie, restart: bool) -> bool {
        // Who restarted has lost the keys, and proves nothing by a cookie.
        if self.is_protected() || (restart && self.protection.is_some()) {
            return true;
        }
        let known = self.paths.by_route(route);
        let is_proved = self.paths.iter().any(|path| !path.is_unproved_hearsay());
        if known.is_none() && !restart && self.state.is_up() && (is_proved || route != cookie.route) {
            return false; // Anybody may have recorded it: a cookie does not let a new path join.
        }
        if restart && self.awaits_shutdown_complete() {
            // No new association: the peer is to hear that the old one ends (RFC 9260 §5.2.4 A).
            self.send_shutdown();
            self.send_error(&Cause::CookieWhileShuttingDown);
            return true;
        }
        let index = known.unwrap_or_else(|| self.paths.add(now, route, PathState::Active));
        if restart {
            self.restart(now, index, cookie);
        } else if !is_proved && known.is_none() {
            // It came over another route first; now it is back where it was sent to.
            self.paths[index].start(now);
            self.path_answers(now, index);
        }
        self.cookie_ack(index);
        true
    }

    /// Case A: everything begins anew, over the path that the restart came from. Messages of which nothing or a part
    /// was cut are sent again whole; those that were out whole are out of reach (RFC 9260 §5.2.4.1).
    fn restart(&mut self, now: Instant, index: PathIndex, cookie: &Cookie) {
        let (ledger, books) = self.books();
        ledger.abandon_all(books);
        let others: Vec<PathIndex> = self.paths.indices().filter(|&other| other != index).collect();
        for other in others {
            self.remove_path(now, other);
        }
        self.paths.renew(now, index);
        self.scheduler.on_restarted(index.get());
        self.queue.restart();
        self.control.clear();
        self.errors = 0;
        self.local_tag = cookie.local_tag;
        self.begin_anew(now, Settled::by_cookie(&self.options, cookie));
        self.state = State::Established;
        self.paths[index].start(now);
        self.journal.events.push_back(Event::Restarted);
    }

    /// Takes over what the new handshake settled. Messages that are whole stay to be received.
    fn begin_anew(&mut self, now: Instant, settled: Settled) {
        let options = &self.options;
        self.queue.settle(settled.agreed.interleaving, settled.agreed.forward_tsn, settled.agreed.timed);
        self.reassembly.reset(settled.receive_limits(options));
        self.ledger = settled.ledger(options);
        self.tracker = settled.tracker();
        self.fec = settled.fec(options, &self.ledger, &self.tracker);
        self.reconfiguration = settled.reconfiguration(now, &self.options);
        self.stream_changes = settled.stream_changes();
        self.echoes = Echoes::default();
        self.slices = Slices::default();
        (self.timestamps, self.clocks) = (Timestamps::default(), Clocks::default());
        self.peer_tag = settled.peer_tag;
        self.peer_addresses = settled.peer_addresses;
        (self.agreed, self.zero_checksum) = (settled.agreed, settled.zero_checksum);
        self.auth = settled.auth;
        self.outbound_streams = settled.outbound_streams;
    }
}
