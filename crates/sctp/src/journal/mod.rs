mod tell;

use crate::api::{Event, Stats};
use crate::tx::Message;
use braidcast_core::events::{ConnectionTracer, Tracer};
use braidcast_queue::Why;
use std::collections::VecDeque;

/// What an association has to tell: events for the application, in order, and counts. Written where things happen.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    pub(crate) events: VecDeque<Event>,
    pub(crate) stats: Stats,
    /// Who is told of what happens inside.
    pub(crate) trace: ConnectionTracer,
    /// What was told of the paths, by [`PathIndex`](crate::path::PathIndex); empty while nobody listens.
    seen: Vec<Option<tell::Seen>>,
}

impl Journal {
    /// Of the association with our verification tag `tag`.
    pub(crate) fn traced(tracer: &Tracer, tag: u32) -> Self {
        Self { trace: ConnectionTracer::new(tracer.clone(), tag), ..Self::default() }
    }

    /// A message was given up: by the queue it waited in if that says `why`, else by the association.
    pub(crate) fn abandoned(&mut self, message: &Message, why: Option<Why>, unsent: bool) {
        let &Message { stream, ppid, context, .. } = message;
        self.events.push_back(Event::Abandoned { stream, ppid, context, sent: !unsent, why });
        self.message_abandoned((context, stream), !unsent, why);
        *(if unsent { &mut self.stats.abandoned_unsent } else { &mut self.stats.abandoned_sent }) += 1;
        match why {
            Some(Why::Expired) => self.stats.expired += 1,
            Some(Why::Replaced | Why::NoRoom) => self.stats.crowded_out += 1,
            None => {}
        }
    }
}
