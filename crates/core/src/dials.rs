use crate::{Instant, Route};
use core::fmt;

/// What dials over paths that come and go while it runs: a session, or a connection.
pub trait Dials {
    /// A path over `route` can be used from now on.
    ///
    /// # Errors
    /// [`NotJoined`]: it does not join now.
    fn join(&mut self, now: Instant, route: Route) -> Result<(), NotJoined>;

    /// The path over `route` cannot be used any more.
    fn leave(&mut self, now: Instant, route: Route);

    /// No more than `limit` goes over `route` from now on: bits per second with the headers of IP and
    /// UDP. `None`: as much as it carries. What knows no limits ignores it.
    fn set_limit(&mut self, _route: Route, _limit: Option<u64>) {}
}

/// Why a path did not join.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NotJoined {
    /// The reason in words.
    pub why: String,
    /// It is kept for the next connection, so its socket has to stay open.
    pub is_kept: bool,
}

impl fmt::Display for NotJoined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl core::error::Error for NotJoined {}
