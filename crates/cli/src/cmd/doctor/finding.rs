//! What is said at the end: what was found, and what to do about it.

use serde::Serialize;

/// How much it matters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    /// A stream cannot go, or not over this path.
    Bad,
    /// It can, and less well than it might.
    Doubtful,
    /// Worth knowing.
    Good,
}

/// Something that was found.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(super) struct Finding {
    pub(super) level: Level,
    /// One sentence, without a full stop.
    pub(super) what: String,
    /// What to do about it; empty if nothing.
    pub(super) fix: String,
}

impl Finding {
    pub(super) fn bad(what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { level: Level::Bad, what: what.into(), fix: fix.into() }
    }

    pub(super) fn doubtful(what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { level: Level::Doubtful, what: what.into(), fix: fix.into() }
    }

    pub(super) fn good(what: impl Into<String>) -> Self {
        Self { level: Level::Good, what: what.into(), fix: String::new() }
    }
}
