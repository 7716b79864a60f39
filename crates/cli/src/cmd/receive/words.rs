//! What a receiver says of its senders while it runs.

use super::Session;
use crate::cmd::ends::Ends;
use braidcast_core::Instant;
use braidcast_sctp::CloseReason;
use braidcast_session::{Event, Farewell};

/// What is said of an event that a sender may bring about at any time, and whether it is a warning.
pub(super) fn in_words(event: &Event, ends: &Ends) -> Option<(bool, String)> {
    Some(match event {
        Event::Connected => (false, "a sender is there".into()),
        Event::PathUp(_, route) => (false, format!("{} is up", ends.name(*route))),
        Event::PathDown(_, route) => (true, format!("{} does not answer", ends.name(*route))),
        Event::PathRemoved(_, route) => (false, format!("{} has left", ends.name(*route))),
        Event::Restarted => (true, "the sender was started anew; its stream goes on".into()),
        Event::Lost(reason) => (true, format!("the sender is gone ({reason}); waiting for it")),
        Event::Back => (false, "the sender is back".into()),
        Event::ClockJumped => (true, "the sender's clock jumped; following it".into()),
        _ => return None,
    })
}

impl Session {
    /// A sender was turned away.
    pub(super) fn refused(&mut self, now: Instant, name: &str, why: Farewell) {
        let who = if name.is_empty() { String::new() } else { format!(", '{name}',") };
        let words = match why {
            Farewell::Busy if self.plan.is_named() => {
                format!("a second sender{who} was turned away: its name is in use")
            }
            Farewell::Busy => format!("a second sender{who} was turned away; start with --keep to let it wait"),
            Farewell::UnknownName if name.is_empty() => {
                "a sender without a name was turned away: `send --name` sets one".into()
            }
            why => format!("a sender{who} was turned away: {why}"),
        };
        // Whoever it was comes again, or is called again.
        self.live.warn_rarely(now, words);
    }

    /// The call was lost, or not taken; it is made again.
    pub(super) fn unanswered(&mut self, now: Instant, reason: &CloseReason) {
        self.ends.all_down(now);
        let why = Farewell::said(reason).unwrap_or_else(|| reason.to_string());
        let hint = if Farewell::of(reason).is_some() { "" } else { " (does `braidcast send --at` run there?)" };
        self.live.warn_rarely(now, format!("{why}; calling again{hint}"));
    }
}
