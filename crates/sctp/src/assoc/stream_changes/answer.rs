//! What the peer asks for about its streams and ours (RFC 6525 §5.2).

use super::{Job, StreamChanges, chunk, emitted, named};
use crate::api::{Event, ReconfigurationResult, StreamChange, StreamRequest};
use crate::assoc::Open;
use crate::assoc::control::Control;
use crate::number::Tsn;
use crate::path::PathIndex;
use crate::wire::chunk::{ErrorChunk, ReConfig};
use crate::wire::param::{Reconfiguration, kind};
use crate::wire::{Cause, Causes, Chunk, Parameter};
use braidcast_core::{Instant, Writer};

/// What we said to the peer's requests.
#[derive(Debug)]
pub(super) struct Answers {
    /// The number of the peer's next request.
    expected: u32,
    /// The first request of its last chunk, and our chunk that answers it: for a repetition.
    last: Option<(u32, Vec<u8>)>,
    /// Streams that we asked the peer to have on top of what the options let it have.
    pub(super) granted: u16,
    /// Streams of its that begin anew once all of before has come.
    deferred: Option<Deferred>,
}

#[derive(Debug)]
struct Deferred {
    request: u32,
    last_tsn: Tsn,
    streams: Vec<u16>,
}

impl Answers {
    pub(super) const fn new(peer_initial_tsn: u32) -> Self {
        Self { expected: peer_initial_tsn, last: None, granted: 0, deferred: None }
    }

    /// The number of the peer's last request.
    pub(super) const fn last(&self) -> u32 {
        self.expected.wrapping_sub(1)
    }

    /// `bytes` are what answers the request `number`, if that was the last one.
    pub(super) fn note(&mut self, number: u32, bytes: &[u8]) {
        if let Some((_, answer)) = self.last.as_mut().filter(|(first, _)| *first == number) {
            *answer = bytes.to_vec();
        }
    }

    pub(super) fn is_too_early(&self, stream: u16, tsn: Tsn) -> bool {
        let is = |it: &Deferred| tsn > it.last_tsn && (it.streams.is_empty() || it.streams.contains(&stream));
        self.deferred.as_ref().is_some_and(is)
    }
}

/// Returns `true` if RFC 6525 §3.1 has parameters of these kinds together.
const fn may_stand_together(kinds: &[u16]) -> bool {
    use kind::{ADD_INCOMING, ADD_OUTGOING, INCOMING_RESET, OUTGOING_RESET, RECONFIGURATION_RESPONSE, TSN_RESET};
    matches!(
        kinds,
        [OUTGOING_RESET | INCOMING_RESET | TSN_RESET | ADD_OUTGOING | ADD_INCOMING | RECONFIGURATION_RESPONSE]
            | [OUTGOING_RESET, INCOMING_RESET]
            | [ADD_OUTGOING, ADD_INCOMING]
            | [RECONFIGURATION_RESPONSE, OUTGOING_RESET | RECONFIGURATION_RESPONSE]
    )
}

impl Open {
    /// RE-CONFIG, where it was agreed on (RFC 6525 §5.2.1).
    pub(in crate::assoc) fn handle_re_config(&mut self, now: Instant, path: PathIndex, re_config: &ReConfig<'_>) {
        let mut parameters = Vec::new();
        for raw in re_config.parameters.iter().take(3) {
            match raw.and_then(Parameter::parse) {
                Ok(Parameter::Reconfiguration(it)) => parameters.push(it),
                Ok(_) => break, // RFC 6525 §4: nothing behind what is not known.
                Err(_) => return self.refuse_re_config(path, "a parameter of RE-CONFIG has a length that cannot be"),
            }
        }
        let kinds: Vec<u16> = parameters.iter().map(Reconfiguration::kind).collect();
        if kinds.is_empty() {
            return;
        }
        if !may_stand_together(&kinds) {
            return self.refuse_re_config(path, "parameters of RE-CONFIG that must not stand together");
        }
        for it in &parameters {
            if let &Reconfiguration::Response { response, result, .. } = it {
                self.handle_stream_response(now, response, ReconfigurationResult::from_wire(result));
            }
        }
        let Some(first) = parameters.iter().find_map(Reconfiguration::request) else { return };
        self.ack.demand(now);
        let Some(changes) = &mut self.stream_changes else { return };
        if let Some((_, answer)) = changes.answers.last.as_ref().filter(|(number, _)| *number == first) {
            let answer = answer.clone();
            return self.answer_re_config(path, answer);
        }
        if first != changes.answers.expected {
            let refused = parameters.iter().filter_map(Reconfiguration::request);
            let bad = ReconfigurationResult::BadSequenceNumber;
            let refused: Vec<Vec<u8>> = refused.map(|number| response(number, bad)).collect();
            return self.answer_re_config(path, chunk(&refused));
        }
        changes.answers.last = Some((first, Vec::new()));
        let answers: Vec<Vec<u8>> = parameters.iter().filter_map(|it| self.answer_request(now, it)).collect();
        if !answers.is_empty() {
            let answer = chunk(&answers);
            if let Some(changes) = &mut self.stream_changes {
                changes.answers.note(first, &answer);
            }
            self.answer_re_config(path, answer);
        }
        self.advance_stream_changes(now);
    }

    /// Does what a request asks for, and says what became of it; `None`: a request of ours says it.
    fn answer_request(&mut self, now: Instant, request: &Reconfiguration<'_>) -> Option<Vec<u8>> {
        use ReconfigurationResult as Said;
        let number = request.request()?;
        if let Some(changes) = &mut self.stream_changes {
            changes.answers.expected = number.wrapping_add(1);
        }
        let result = match *request {
            _ if !self.is_established() => Said::Denied,
            Reconfiguration::OutgoingReset { response, last_tsn, streams, .. } => {
                self.handle_stream_response(now, response, Said::Performed);
                let (last_tsn, streams) = (self.tracker.unwrap(last_tsn), streams.iter().collect());
                self.answer_outgoing_reset(now, number, last_tsn, streams)
            }
            Reconfiguration::IncomingReset { streams, .. } => {
                self.answer_incoming_reset(number, streams.iter().collect())?
            }
            // We keep TSNs as they are: what has gone wrong is not repaired by other numbers.
            Reconfiguration::TsnReset { .. } => {
                let next_tsns = Some((self.ledger.next_tsn().wire(), self.tracker.cumulative().next().wire()));
                let result = Said::Denied.wire();
                return Some(emitted(Reconfiguration::Response { response: number, result, next_tsns }));
            }
            Reconfiguration::AddOutgoing { count, .. } => self.answer_added(now, count),
            Reconfiguration::AddIncoming { count, .. } => self.answer_wish_for_streams(count),
            Reconfiguration::Response { .. } => return None,
        };
        Some(response(number, result))
    }

    /// The peer numbers streams anew (RFC 6525 §5.2.2).
    fn answer_outgoing_reset(
        &mut self,
        now: Instant,
        request: u32,
        last_tsn: Tsn,
        streams: Vec<u16>,
    ) -> ReconfigurationResult {
        if streams.iter().any(|&stream| !self.reassembly.has_stream(stream)) {
            return ReconfigurationResult::WrongStream;
        }
        let Some(changes) = &mut self.stream_changes else { return ReconfigurationResult::Denied };
        if changes.answers.deferred.is_some() {
            return ReconfigurationResult::AlreadyInProgress;
        }
        if last_tsn > self.tracker.cumulative() {
            changes.answers.deferred = Some(Deferred { request, last_tsn, streams });
            return ReconfigurationResult::InProgress;
        }
        self.reset_incoming(now, streams, last_tsn);
        ReconfigurationResult::Performed
    }

    /// Streams of the peer begin anew once all of before has come; says so then (RFC 6525 §5.2.2 E3 to E6).
    pub(super) fn finish_deferred(&mut self, now: Instant) {
        let come = self.tracker.cumulative();
        let Some(answers) = self.stream_changes.as_mut().map(|changes| &mut changes.answers) else { return };
        let Some(Deferred { request, last_tsn, streams }) = answers.deferred.take_if(|it| it.last_tsn <= come) else {
            return;
        };
        let answer = chunk(&[response(request, ReconfigurationResult::Performed)]);
        answers.note(request, &answer);
        self.reset_incoming(now, streams, last_tsn);
        if let Some(path) = self.paths.for_control(None) {
            self.answer_re_config(path, answer);
        }
    }

    fn reset_incoming(&mut self, now: Instant, streams: Vec<u16>, last_tsn: Tsn) {
        for stream in named(&streams, self.reassembly.stream_count()) {
            self.reassembly.reset_stream(now, stream, last_tsn);
        }
        self.journal.events.push_back(Event::StreamsChanged(StreamChange::IncomingReset(streams)));
    }

    /// The peer wants streams of ours to be numbered anew (RFC 6525 §5.2.3). `None`: our own
    /// request says that they are.
    fn answer_incoming_reset(&mut self, number: u32, streams: Vec<u16>) -> Option<ReconfigurationResult> {
        use ReconfigurationResult as Said;
        if self.queue.front().is_some() {
            return Some(Said::Denied);
        }
        let count = self.outbound_streams;
        if streams.iter().any(|&stream| stream >= count) {
            return Some(Said::WrongStream);
        }
        let Some(changes) = &mut self.stream_changes else { return Some(Said::Denied) };
        let out = changes.out.as_ref().map(|request| &request.job.request);
        if let Some(StreamRequest::ResetOutgoing(ours)) = out
            && (ours.is_empty() || (!streams.is_empty() && streams.iter().all(|it| ours.contains(it))))
        {
            return Some(Said::NothingToDo);
        }
        if named(&streams, count).all(|stream| self.queue.is_at_start(stream)) {
            return Some(Said::NothingToDo);
        }
        if streams.len() > StreamChanges::MOST_NAMED {
            return Some(Said::Denied);
        }
        if changes.jobs.iter().any(|job| job.wanted_by.is_some()) {
            return Some(Said::AlreadyInProgress);
        }
        let drained = named(&streams, count).all(|stream| self.queue.is_drained(stream));
        let at_once = changes.out.is_none() && changes.jobs.is_empty() && drained;
        let request = StreamRequest::ResetOutgoing(streams.clone());
        changes.jobs.push_back(Job { request, wanted_by: Some(number) });
        self.pause_streams(&streams);
        (!at_once).then_some(Said::InProgress)
    }

    /// The peer wants to send on `count` streams more (RFC 6525 §5.2.5). It may be what we asked for.
    fn answer_added(&mut self, now: Instant, count: u16) -> ReconfigurationResult {
        let Some(changes) = &self.stream_changes else { return ReconfigurationResult::Denied };
        let most = self.options.limits.streams.saturating_add(changes.answers.granted);
        let Some(total) = self.reassembly.stream_count().checked_add(count).filter(|&total| total <= most) else {
            return ReconfigurationResult::Denied;
        };
        let asked = changes.out.as_ref().filter(|request| request.job.request == StreamRequest::AddIncoming(count));
        if let Some(number) = asked.map(|request| request.number) {
            self.handle_stream_response(now, number, ReconfigurationResult::Performed);
        }
        self.reassembly.add_streams(count);
        self.journal.events.push_back(Event::StreamsChanged(StreamChange::Incoming(total)));
        ReconfigurationResult::Performed
    }

    /// The peer wants us to have `count` streams more (RFC 6525 §5.2.6): we ask for them.
    fn answer_wish_for_streams(&mut self, count: u16) -> ReconfigurationResult {
        let Some(changes) = &mut self.stream_changes else { return ReconfigurationResult::Denied };
        let total = self.outbound_streams.saturating_add(changes.coming()).checked_add(count);
        if total.is_none_or(|total| total > self.options.limits.streams) {
            return ReconfigurationResult::Denied;
        }
        changes.enqueue(StreamRequest::AddOutgoing(count));
        ReconfigurationResult::Performed
    }

    fn answer_re_config(&mut self, path: PathIndex, bytes: Vec<u8>) {
        if self.control.has_room() && !bytes.is_empty() {
            self.control.push(Control { path, tag: self.peer_tag, bytes, alone: false });
        }
    }

    /// RFC 6525 §3.1: an ERROR for what must not be.
    fn refuse_re_config(&mut self, path: PathIndex, why: &str) {
        let mut causes = Vec::new();
        Cause::ProtocolViolation(why.as_bytes()).emit(&mut Writer::new(&mut causes));
        self.answer(path, &Chunk::Error(ErrorChunk { causes: Causes::new(&causes) }));
    }
}

/// What became of the request `number`.
fn response(number: u32, result: ReconfigurationResult) -> Vec<u8> {
    emitted(Reconfiguration::Response { response: number, result: result.wire(), next_tsns: None })
}
