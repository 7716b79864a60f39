//! What a measurement needs of a protocol, so that one client and one server serve all.

use crate::cmd::dccp::ConnectionLine;
use crate::failure::Outcome;
use braidcast_core::{Dials, Instant, Machine, NotJoined, Route};
use braidcast_sctp::Insecure;
use braidcast_session::SecurityReport;
use std::time::Duration;

/// What a client's messages are for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::cmd) enum Purpose {
    /// To be counted.
    Bulk,
    /// To be timed: they begin with the client's clock and a mark of its machine, and the former comes back.
    Timed,
}

/// What happened to a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::cmd) enum ConnectionEvent {
    Connected,
    Readable,
    /// This path answers.
    Answers(Route),
    /// This path does not answer.
    Silent(Route),
    Closed(Ending),
    /// Nothing that a measurement cares about.
    Other,
}

/// How a connection ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::cmd) struct Ending {
    /// As agreed between the ends.
    pub(in crate::cmd) orderly: bool,
    /// No protection was to be agreed on, for this reason.
    pub(in crate::cmd) insecure: Option<Insecure>,
    pub(in crate::cmd) reason: String,
}

/// How a connection does.
#[derive(Clone, Default)]
pub(in crate::cmd) struct State {
    pub(in crate::cmd) paths: Vec<PathState>,
    /// What only DCCP has.
    pub(in crate::cmd) dccp: Option<ConnectionLine>,
    /// How it is protected; `None` if it is not.
    pub(in crate::cmd) security: Option<SecurityReport>,
}

/// How a path of it does.
#[derive(Clone)]
pub(in crate::cmd) struct PathState {
    pub(in crate::cmd) route: Route,
    pub(in crate::cmd) rtt: Option<Duration>,
    /// Window or rate, as people read it.
    pub(in crate::cmd) allowed: String,
    pub(in crate::cmd) sent_packets: u64,
    pub(in crate::cmd) sent_bytes: u64,
    pub(in crate::cmd) lost: u64,
    pub(in crate::cmd) retransmitted: u64,
    pub(in crate::cmd) mtu: usize,
}

/// A protocol's endpoint as a measurement sees it.
pub(in crate::cmd) trait Protocol: Machine {
    /// Names a connection.
    type Id: Copy + Ord;

    /// The next thing that happened, oldest first.
    fn poll(&mut self) -> Option<(Self::Id, ConnectionEvent)>;

    /// Why somebody could not be connected with, as protection was not to be agreed on.
    fn poll_turned_away(&mut self) -> Option<String> {
        None
    }

    /// Queues a message; `false` if there is no room now.
    fn send(&mut self, now: Instant, id: Self::Id, payload: &[u8], purpose: Purpose) -> bool;

    /// Returns `true` if enough waits: more would only make the test end later, and the network no
    /// busier.
    fn has_enough(&self, _id: Self::Id) -> bool {
        false
    }

    /// Sends the first bytes of a timed message back; a client that is closing takes no more, and
    /// has counted what it has.
    fn echo(&mut self, now: Instant, id: Self::Id, stamp: &[u8]);

    /// Moves the next message that came into `out`, and says what it is for; an echo is timed too.
    fn recv(&mut self, now: Instant, id: Self::Id, out: &mut Vec<u8>) -> Option<Purpose>;

    /// Closes in good order.
    fn close(&mut self, now: Instant, id: Self::Id);

    /// Closes at once.
    fn abort(&mut self, now: Instant, id: Self::Id);

    /// A path came.
    ///
    /// # Errors
    /// It cannot join, for this reason.
    fn join(&mut self, now: Instant, id: Self::Id, route: Route) -> Result<(), NotJoined>;

    /// A path went.
    fn leave(&mut self, now: Instant, id: Self::Id, route: Route);

    /// How it does; nothing once it is gone.
    fn state(&self, now: Instant, id: Self::Id) -> Option<State>;

    /// Returns `true` if a probe could write all that it noted.
    fn probe(&mut self) -> Outcome {
        Ok(())
    }

    /// Writes all of it to the disk.
    fn end_probe(&mut self) -> Outcome {
        Ok(())
    }
}

/// A connection of an endpoint, if it has been begun.
pub(super) struct Dialled<'a, P: Protocol> {
    pub(super) endpoint: &'a mut P,
    pub(super) id: Option<P::Id>,
}

impl<P: Protocol> Dials for Dialled<'_, P> {
    fn join(&mut self, now: Instant, route: Route) -> Result<(), NotJoined> {
        self.id.map_or(Ok(()), |id| self.endpoint.join(now, id, route))
    }

    fn leave(&mut self, now: Instant, route: Route) {
        if let Some(id) = self.id {
            self.endpoint.leave(now, id, route);
        }
    }
}
