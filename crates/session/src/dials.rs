//! Paths that come and go. A session keeps one that cannot join now for the next association.

use crate::{Receiver, Sender};
use braidcast_core::{Dials, Instant, NotJoined, Route};
use braidcast_sctp::JoinError;

fn kept(error: JoinError) -> NotJoined {
    NotJoined { why: error.to_string(), is_kept: true }
}

impl Dials for Sender {
    fn join(&mut self, now: Instant, route: Route) -> Result<(), NotJoined> {
        Self::join(self, now, route).map_err(kept)
    }

    fn leave(&mut self, now: Instant, route: Route) {
        Self::leave(self, now, route);
    }

    fn set_limit(&mut self, route: Route, limit: Option<u64>) {
        Self::set_limit(self, route, limit);
    }
}

impl Dials for Receiver {
    fn join(&mut self, now: Instant, route: Route) -> Result<(), NotJoined> {
        Self::join(self, now, route).map_err(kept)
    }

    fn leave(&mut self, now: Instant, route: Route) {
        Self::leave(self, now, route);
    }
}
