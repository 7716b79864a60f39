//! What is told of the inside ([`braidcast_core::events`]), in the words of the outside: paths by their [`PathId`]s.

use super::Journal;
use crate::api::{PathState, SendOptions};
use crate::number::Tsn;
use crate::path::{Congested, PathIndex, Paths};
use crate::tx::{Chunk, LossCause, Message};
use braidcast_core::PathId;
use braidcast_core::events::{Loss, PathCondition, PathMetrics, Reduction, SctpEvent, Sending, Unsent};
use braidcast_queue::Why;

/// What was last told of a path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    id: PathId,
    state: PathState,
    metrics: PathMetrics,
}

impl Journal {
    /// Reports what happens now; `event` is made only if anybody listens.
    #[inline]
    pub(crate) fn tell(&self, event: impl FnOnce() -> SctpEvent) {
        self.trace.tell(event);
    }

    /// Informs what has changed about the paths since the last time. `in_flight`: bytes over each.
    #[inline]
    pub(crate) fn watch(&mut self, paths: &Paths, in_flight: impl Fn(PathIndex) -> usize) {
        if self.trace.is_on() {
            self.compare(paths, in_flight);
        }
    }

    fn compare(&mut self, paths: &Paths, in_flight: impl Fn(PathIndex) -> usize) {
        let places = paths.places().max(self.seen.len());
        self.seen.resize(places, None);
        for place in 0..places {
            let index = paths.at(place);
            let path = index.map(|index| (&paths[index], paths[index].metrics(in_flight(index))));
            let before = self.seen[place];
            let known = before.filter(|seen| path.as_ref().is_some_and(|(path, _)| path.id() == seen.id));
            if let (Some(gone), None) = (before, known) {
                self.tell(|| SctpEvent::PathRemoved { path: gone.id });
            }
            self.seen[place] =
                path.as_ref().map(|(path, metrics)| Seen { id: path.id(), state: path.state(), metrics: *metrics });
            let Some((path, metrics)) = path else { continue };
            let (id, route, state) = (path.id(), path.route(), path.state());
            if known.is_none() {
                self.tell(|| SctpEvent::PathAdded { path: id, route });
            }
            if known.is_none_or(|seen| seen.state != state) {
                self.tell(|| SctpEvent::PathState { path: id, state: condition(state) });
            }
            if known.is_none_or(|seen| seen.metrics != metrics) {
                self.tell(|| SctpEvent::PathMetrics { path: id, metrics });
            }
        }
    }

    /// What the path `index` is called outside, as last seen; while nobody listens nothing is.
    fn name(&self, index: PathIndex) -> Option<PathId> {
        self.seen.get(index.get()).copied().flatten().map(|seen| seen.id)
    }

    /// `message` was handed over as `how` says.
    pub(crate) fn message_queued(&self, bytes: usize, how: &SendOptions) {
        let &SendOptions { stream, context: message, deadline, .. } = how;
        self.tell(|| SctpEvent::MessageQueued { message, stream, bytes: bytes as u32, deadline });
    }

    /// A message was abandoned: by the queue it waited in if that says `why`.
    pub(crate) fn message_abandoned(&self, (message, stream): (u64, u16), sent: bool, why: Option<Why>) {
        self.tell(|| SctpEvent::MessageAbandoned { message, stream, sent, why: unsent(why) });
    }

    /// `chunk` of `message` leaves; `again`: how it was lost before.
    pub(crate) fn chunk_sent(&self, tsn: Tsn, chunk: &Chunk, message: &Message, again: Option<LossCause>) {
        let sending = again.map_or(Sending::New, |cause| Sending::Again(loss(cause)));
        if let Some((index, _)) = chunk.place() {
            self.chunk_left(index, tsn, chunk, message, sending);
        }
    }

    /// A copy of `chunk` of `message` leaves over the path `index`.
    pub(crate) fn chunk_copied(&self, index: PathIndex, tsn: Tsn, chunk: &Chunk, message: &Message) {
        self.chunk_left(index, tsn, chunk, message, Sending::Copy);
    }

    fn chunk_left(&self, index: PathIndex, tsn: Tsn, chunk: &Chunk, message: &Message, sending: Sending) {
        let Some(path) = self.name(index) else { return };
        let (stream, message, bytes) = (message.stream, message.context, chunk.len() as u16);
        self.tell(|| SctpEvent::ChunkSent { path, tsn: tsn.wire(), bytes, stream, message, sending });
    }

    /// The chunk `tsn` was acknowledged; `spurious`: it had been taken for lost.
    pub(crate) fn chunk_acked(&self, tsn: Tsn, chunk: &Chunk, spurious: bool) {
        let path = || chunk.place().and_then(|(index, _)| self.name(index));
        self.tell(|| SctpEvent::ChunkAcked { path: path(), tsn: tsn.wire(), spurious });
    }

    /// The chunk `tsn` is taken for lost.
    pub(crate) fn chunk_lost(&self, tsn: Tsn, chunk: &Chunk, cause: LossCause) {
        let path = || chunk.place().and_then(|(index, _)| self.name(index));
        self.tell(|| SctpEvent::ChunkLost { path: path(), tsn: tsn.wire(), cause: loss(cause) });
    }
}

const fn condition(state: PathState) -> PathCondition {
    match state {
        PathState::Unconfirmed => PathCondition::Unconfirmed,
        PathState::Active => PathCondition::Active,
        PathState::PotentiallyFailed => PathCondition::PotentiallyFailed,
        PathState::Inactive => PathCondition::Inactive,
    }
}

const fn loss(cause: LossCause) -> Loss {
    match cause {
        LossCause::Reported => Loss::Reported,
        LossCause::Timeout => Loss::Timeout,
        LossCause::Silence => Loss::Silence,
    }
}

/// What gave a message up.
const fn unsent(why: Option<Why>) -> Unsent {
    match why {
        Some(Why::Expired) => Unsent::Expired,
        Some(Why::Replaced) => Unsent::Replaced,
        Some(Why::NoRoom) => Unsent::NoRoom,
        None => Unsent::NotWorthIt,
    }
}

impl From<Congested> for Reduction {
    fn from(congested: Congested) -> Self {
        match congested {
            Congested::Lost => Self::Loss,
            Congested::Marked => Self::Mark,
        }
    }
}
