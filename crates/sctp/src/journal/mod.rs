mod tell;

use crate::api::{Abandoned, AbandonmentPolicy, CloseReason, Event, Stats};
use crate::tx::Message;
use braidcast_core::events::{ConnectionTracer, SctpEvent, Tracer};
use braidcast_queue::Why;
use std::collections::{BTreeMap, VecDeque};

/// What an association has to tell: events for the application, in order, and counts. Written where
/// things happen.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    pub(crate) events: VecDeque<Event>,
    pub(crate) stats: Stats,
    /// Messages abandoned by their stream and rule.
    abandoned_by: BTreeMap<(u16, AbandonmentPolicy), Abandoned>,
    /// Who is told of what happens inside.
    pub(crate) trace: ConnectionTracer,
    /// What was told of the paths, by [`PathIndex`](crate::path::PathIndex); empty while nobody
    /// listens.
    seen: Vec<Option<tell::Seen>>,
}

impl Journal {
    /// Of the association with our verification tag `tag`.
    pub(crate) fn traced(tracer: &Tracer, tag: u32) -> Self {
        Self { trace: ConnectionTracer::new(tracer.clone(), tag), ..Self::default() }
    }

    /// A message was abandoned: by the queue it waited in if that says `why`, else by the
    /// association.
    pub(crate) fn abandoned(&mut self, message: &Message, why: Option<Why>, unsent: bool) {
        let &Message { stream, ppid, context, .. } = message;
        self.events.push_back(Event::Abandoned { stream, ppid, context, sent: !unsent, why });
        self.message_abandoned((context, stream), !unsent, why);
        self.count_abandoned(stream, message.policy(), unsent);
        *(if unsent { &mut self.stats.abandoned_unsent } else { &mut self.stats.abandoned_sent }) += 1;
        match why {
            Some(Why::Expired) => self.stats.expired += 1,
            Some(Why::Replaced | Why::NoRoom) => self.stats.crowded_out += 1,
            None => {}
        }
    }

    /// The association is over, for `reason`, and the messages with these contexts were not
    /// settled.
    pub(crate) fn close(&mut self, unsettled: Vec<u64>, reason: CloseReason) {
        if !unsettled.is_empty() {
            self.events.push_back(Event::Unsettled(unsettled));
        }
        self.events.push_back(Event::Closed(reason));
        self.tell(|| SctpEvent::Closed);
    }

    /// Reports `event`: before the end, if that is reported already.
    pub(crate) fn push_before_end(&mut self, event: Event) {
        let end = |event: &Event| matches!(event, Event::Closed(_) | Event::Unsettled(_));
        let place = self.events.iter().rposition(|event| !end(event)).map_or(0, |last| last + 1);
        self.events.insert(place, event);
    }

    /// A message that could be abandoned by the rule `policy` was.
    pub(crate) fn count_abandoned(&mut self, stream: u16, policy: Option<AbandonmentPolicy>, unsent: bool) {
        if let Some(policy) = policy {
            let counts = self.abandoned_by.entry((stream, policy)).or_default();
            *(if unsent { &mut counts.unsent } else { &mut counts.sent }) += 1;
        }
    }

    /// How many messages of a stream, or of all, were abandoned by a rule, or by any.
    pub(crate) fn abandoned_by(&self, stream: Option<u16>, policy: Option<AbandonmentPolicy>) -> Abandoned {
        let is_meant = |&(known, by): &(u16, AbandonmentPolicy)| {
            stream.is_none_or(|it| it == known) && policy.is_none_or(|it| it == by)
        };
        let counts = self.abandoned_by.iter().filter(|(key, _)| is_meant(key)).map(|(_, counts)| counts);
        counts.fold(Abandoned::default(), |sum, it| Abandoned {
            unsent: sum.unsent + it.unsent,
            sent: sum.sent + it.sent,
        })
    }
}
