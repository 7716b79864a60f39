//! What a receiver says of its senders while it runs.

use crate::cmd::ends::Ends;
use braidcast_session::Event;

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
