use crate::api::{Event, Stats};
use crate::tx::Message;
use braidcast_queue::Why;
use std::collections::VecDeque;

/// What an association has to tell: events for the application, in order, and counts. Written where things happen.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    pub(crate) events: VecDeque<Event>,
    pub(crate) stats: Stats,
}

impl Journal {
    /// A message was given up: by the queue it waited in if that says `why`, else by the association.
    pub(crate) fn abandoned(&mut self, message: &Message, why: Option<Why>, unsent: bool) {
        let &Message { stream, ppid, context, .. } = message;
        self.events.push_back(Event::Abandoned { stream, ppid, context, why });
        *(if unsent { &mut self.stats.abandoned_unsent } else { &mut self.stats.abandoned_sent }) += 1;
        match why {
            Some(Why::Expired) => self.stats.expired += 1,
            Some(Why::Replaced | Why::NoRoom) => self.stats.crowded_out += 1,
            None => {}
        }
    }
}
