//! Streams that are numbered anew, and more of them (RFC 6525): what we ask for. What the peer asks
//! for is in [`answer`].

mod answer;

use super::Open;
use super::control::Control;
use crate::api::{Event, ReconfigurationResult, ReconfigureError, StreamChange, StreamRequest};
use crate::number::Tsn;
use crate::wire::chunk::ReConfig;
use crate::wire::param::Reconfiguration;
use crate::wire::{Entries, Parameter, Parameters};
use answer::Answers;
use braidcast_core::{Instant, Writer};
use std::collections::VecDeque;

/// What the two ends ask each other about their streams: each one request at a time, by number.
#[derive(Debug)]
pub(super) struct StreamChanges {
    /// The number of our next request.
    next: u32,
    /// What we are to ask for, in turn.
    jobs: VecDeque<Job>,
    /// What we have asked for.
    out: Option<Request>,
    answers: Answers,
}

/// Something to ask the peer for.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Job {
    request: StreamRequest,
    /// The peer asked for it, by the request of this number.
    wanted_by: Option<u32>,
}

impl Job {
    /// Returns `true` if the messages of our `stream` are to be numbered anew.
    fn renumbers(&self, stream: u16) -> bool {
        matches!(&self.request, StreamRequest::ResetOutgoing(streams) if streams.is_empty() || streams.contains(&stream))
    }
}

/// A request that is not settled.
#[derive(Debug)]
struct Request {
    number: u32,
    job: Job,
    /// The chunk as on the wire.
    bytes: Vec<u8>,
    /// The last TSN with the old numbers.
    last_tsn: Tsn,
    /// It goes again then (RFC 6525 §5.1.1).
    due: Instant,
    timeouts: u32,
    /// The peer said so: no error then if the answer is late (RFC 6525 §5.2.7 H2).
    in_progress: bool,
    /// The peer has done it.
    done: bool,
    /// FORWARD-TSN has more to say once all with the old numbers is acknowledged.
    holds_forward: bool,
}

impl StreamChanges {
    /// Streams named in one request, at most: the rest is asked for next. So it fits the smallest packet.
    const MOST_NAMED: usize = 200;

    /// Numbers begin at the initial TSNs (RFC 6525 §4.1).
    pub(super) fn new(initial_tsn: u32, peer_initial_tsn: u32) -> Self {
        Self { next: initial_tsn, jobs: VecDeque::new(), out: None, answers: Answers::new(peer_initial_tsn) }
    }

    /// Puts `request` behind the others, or adds it to the last one.
    fn enqueue(&mut self, request: StreamRequest) {
        use StreamRequest::{AddIncoming, AddOutgoing, ResetIncoming, ResetOutgoing};
        let last = self.jobs.back_mut().filter(|job| job.wanted_by.is_none());
        match (last.map(|job| &mut job.request), request) {
            (Some(ResetOutgoing(there)), ResetOutgoing(more)) | (Some(ResetIncoming(there)), ResetIncoming(more)) => {
                if there.is_empty() || more.is_empty() {
                    there.clear();
                } else {
                    let new: Vec<u16> = more.into_iter().filter(|it| !there.contains(it)).collect();
                    there.extend(new);
                }
            }
            (Some(AddOutgoing(there)), AddOutgoing(more)) | (Some(AddIncoming(there)), AddIncoming(more)) => {
                *there = there.saturating_add(more);
            }
            (_, request) => self.jobs.push_back(Job { request, wanted_by: None }),
        }
    }

    /// Streams that were asked for and are not there yet.
    fn coming(&self) -> u16 {
        let jobs = self.jobs.iter().chain(self.out.iter().map(|request| &request.job));
        jobs.fold(
            0,
            |sum, job| if let StreamRequest::AddOutgoing(more) = job.request { sum.saturating_add(more) } else { sum },
        )
    }

    /// Returns `true` if a chunk of `stream` with this TSN has to wait until the stream has begun anew (RFC
    /// 6525 §5.2.2 E2): it counts as lost.
    pub(super) fn is_too_early(&self, stream: u16, tsn: Tsn) -> bool {
        self.answers.is_too_early(stream, tsn)
    }
}

impl Open {
    /// Asks the peer for a change of streams.
    pub(super) fn ask_for_streams(&mut self, now: Instant, request: StreamRequest) -> Result<(), ReconfigureError> {
        if !self.is_established() {
            return Err(ReconfigureError::NotOpen);
        }
        let Some(changes) = &self.stream_changes else { return Err(ReconfigureError::NotSupported) };
        match &request {
            StreamRequest::ResetOutgoing(streams) => {
                if self.queue.front().is_some() {
                    return Err(ReconfigureError::Queued);
                }
                check_streams(streams, self.outbound_streams)?;
            }
            StreamRequest::ResetIncoming(streams) => check_streams(streams, self.reassembly.stream_count())?,
            &StreamRequest::AddOutgoing(more) => {
                check_count(more, self.outbound_streams.saturating_add(changes.coming()))?
            }
            &StreamRequest::AddIncoming(more) => check_count(more, self.reassembly.stream_count())?,
        }
        let request = match request {
            StreamRequest::ResetOutgoing(streams) if !streams.is_empty() => {
                let new: Vec<u16> =
                    streams.into_iter().filter(|&stream| !self.queue.is_stream_paused(stream)).collect();
                if new.is_empty() {
                    return Ok(());
                }
                StreamRequest::ResetOutgoing(new)
            }
            request => request,
        };
        if let StreamRequest::ResetOutgoing(streams) = &request {
            self.pause_streams(streams);
        }
        if let Some(changes) = &mut self.stream_changes {
            if let StreamRequest::AddIncoming(more) = request {
                changes.answers.granted = changes.answers.granted.saturating_add(more);
            }
            changes.enqueue(request);
        }
        self.advance_stream_changes(now);
        Ok(())
    }

    /// The association is to end: nothing more is asked for, and what waited for it goes.
    pub(super) fn end_stream_changes(&mut self) {
        let Some(changes) = &mut self.stream_changes else { return };
        let waiting: Vec<Job> = changes.jobs.drain(..).collect();
        let out = changes.out.as_ref().map(|request| request.job.clone());
        for job in waiting {
            if let StreamRequest::ResetOutgoing(streams) = &job.request {
                named(streams, self.outbound_streams)
                    .filter(|&stream| !out.as_ref().is_some_and(|out| out.renumbers(stream)))
                    .for_each(|stream| self.queue.resume(stream, false));
            }
        }
    }

    /// Goes on with what waits for data to leave or to be acknowledged.
    pub(super) fn advance_stream_changes(&mut self, now: Instant) {
        if self.stream_changes.is_none() {
            return;
        }
        self.finish_deferred(now);
        let acknowledged = self.ledger.base();
        let out = self.stream_changes.as_mut().and_then(|changes| changes.out.as_mut());
        if out.is_some_and(|out| acknowledged > out.last_tsn && core::mem::take(&mut out.holds_forward)) {
            self.request_forward();
        }
        let is_settled = |request: &mut Request| {
            let renumbers = matches!(request.job.request, StreamRequest::ResetOutgoing(_));
            request.done && (!renumbers || acknowledged > request.last_tsn)
        };
        let settled = self.stream_changes.as_mut().and_then(|changes| changes.out.take_if(is_settled));
        if let Some(request) = settled {
            self.apply(request.job);
        }
        if self.is_established() {
            self.next_stream_request(now);
        }
    }

    /// How far FORWARD-TSN may go that would go up to `point`: not beyond the last TSN with the old
    /// numbers, until all of those are acknowledged. It names messages by their numbers, and would
    /// come to a peer that has begun anew if it came late: those with the same new numbers would
    /// count as skipped there. One that ends before that TSN is too old then.
    pub(super) fn forward_before_reset(&mut self, point: Tsn) -> Tsn {
        let base = self.ledger.base();
        let out = self.stream_changes.as_mut().and_then(|changes| changes.out.as_mut());
        let renumbers = |out: &&mut Request| matches!(out.job.request, StreamRequest::ResetOutgoing(_));
        let Some(out) = out.filter(renumbers).filter(|out| (base..point).contains(&out.last_tsn)) else { return point };
        out.holds_forward = true;
        out.last_tsn
    }

    fn pause_streams(&mut self, streams: &[u16]) {
        for stream in named(streams, self.outbound_streams) {
            self.queue.pause_stream(stream);
        }
    }

    fn resume_streams(&mut self, streams: &[u16], reset: bool) {
        for stream in named(streams, self.outbound_streams) {
            self.queue.resume(stream, reset);
            if self.stream_changes.as_ref().is_some_and(|changes| changes.jobs.iter().any(|job| job.renumbers(stream)))
            {
                self.queue.pause_stream(stream);
            }
        }
    }

    /// Makes the next request, if none is out and what it waits for has happened.
    fn next_stream_request(&mut self, now: Instant) {
        let Some(changes) = self.stream_changes.as_deref_mut() else { return };
        // Each end may have asked the other one for a reset, which takes a request of that end's,
        // and each may have one out only (RFC 6525 §5.1.1). What the peer said that it will do need
        // not be asked for again.
        let is_heard =
            |out: &mut Request| out.in_progress && matches!(out.job.request, StreamRequest::ResetIncoming(_));
        if changes.jobs.iter().any(|job| job.wanted_by.is_some()) {
            changes.out.take_if(is_heard);
        }
        if changes.out.is_some() {
            return;
        }
        let Some(job) = changes.jobs.front_mut() else { return };
        if let StreamRequest::ResetOutgoing(streams) = &job.request
            && !named(streams, self.outbound_streams).all(|stream| self.queue.is_drained(stream))
        {
            return;
        }
        let job = match &mut job.request {
            StreamRequest::ResetOutgoing(streams) | StreamRequest::ResetIncoming(streams)
                if streams.len() > StreamChanges::MOST_NAMED =>
            {
                let rest = streams.split_off(StreamChanges::MOST_NAMED);
                let now = Job { request: job.request.clone(), wanted_by: job.wanted_by };
                if let StreamRequest::ResetOutgoing(streams) | StreamRequest::ResetIncoming(streams) = &mut job.request
                {
                    *streams = rest;
                }
                now
            }
            _ => match changes.jobs.pop_front() {
                Some(job) => job,
                None => return,
            },
        };
        if let StreamRequest::ResetOutgoing(streams) = &job.request {
            named(streams, self.outbound_streams).for_each(|stream| self.queue.end_numbers(stream));
        }
        let (number, last_tsn) = (changes.next, self.ledger.next_tsn().before());
        changes.next = number.wrapping_add(1);
        let response = job.wanted_by.unwrap_or_else(|| changes.answers.last());
        let bytes = chunk(&[parameter(&job.request, number, response, last_tsn)]);
        if let Some(wanted_by) = job.wanted_by {
            changes.answers.note(wanted_by, &bytes);
        }
        changes.out = Some(Request {
            number,
            job,
            bytes,
            last_tsn,
            due: now,
            timeouts: 0,
            in_progress: false,
            done: false,
            holds_forward: false,
        });
        self.send_stream_request(now);
    }

    /// Sends the request that is out (again), over the path that is best.
    fn send_stream_request(&mut self, now: Instant) {
        let Some(path) = self.paths.for_control(None) else { return };
        let rto = self.paths[path].rtt().rto();
        let most = self.options.timers.rto.max;
        let Some(request) = self.stream_changes.as_mut().and_then(|changes| changes.out.as_mut()) else { return };
        request.due = now + rto.saturating_mul(1 << request.timeouts.min(10)).min(most);
        let control = Control { path, tag: self.peer_tag, bytes: request.bytes.clone(), alone: false };
        if self.control.has_room() {
            self.control.push(control);
        }
    }

    /// When the request that is out goes again.
    pub(super) fn stream_request_timeout(&self) -> Option<Instant> {
        let request =
            self.stream_changes.as_ref()?.out.as_ref().filter(|request| !request.done && self.state.is_up())?;
        self.paths.for_control(None).map(|_| request.due)
    }

    /// The re-configuration timer (RFC 6525 §5.1.1).
    pub(super) fn handle_stream_request_timeout(&mut self, now: Instant) {
        if self.stream_request_timeout().is_none_or(|due| due > now) {
            return;
        }
        let Some(request) = self.stream_changes.as_mut().and_then(|changes| changes.out.as_mut()) else { return };
        request.timeouts = request.timeouts.saturating_add(1);
        let patient = request.in_progress;
        if let Some(path) = self.paths.for_control(None).filter(|_| !patient) {
            self.path_failed(path);
        }
        if !self.is_closed() {
            self.send_stream_request(now);
        }
    }

    /// What became of our request `number` (RFC 6525 §5.2.7).
    fn handle_stream_response(&mut self, now: Instant, number: u32, result: ReconfigurationResult) {
        let rto =
            self.paths.for_control(None).map_or(self.options.timers.rto.initial, |path| self.paths[path].rtt().rto());
        let Some(changes) = &mut self.stream_changes else { return };
        let Some(request) = changes.out.as_mut().filter(|request| request.number == number && !request.done) else {
            return;
        };
        match result {
            ReconfigurationResult::InProgress => {
                (request.in_progress, request.timeouts) = (true, 0);
                request.due = now + rto;
            }
            // It is done at the peer. Here, too, once it is known that all of before has come.
            ReconfigurationResult::NothingToDo | ReconfigurationResult::Performed => {
                request.done = true;
                self.advance_stream_changes(now);
            }
            refused => {
                let Some(Request { job, .. }) = changes.out.take() else { return };
                if let StreamRequest::ResetOutgoing(streams) = &job.request {
                    self.resume_streams(streams, false);
                }
                self.journal.events.push_back(Event::StreamsRefused(job.request, refused));
                self.advance_stream_changes(now);
            }
        }
    }

    /// The peer has done what we asked for.
    fn apply(&mut self, job: Job) {
        let change = match job.request {
            StreamRequest::ResetOutgoing(streams) => {
                self.resume_streams(&streams, true);
                StreamChange::OutgoingReset(streams)
            }
            StreamRequest::AddOutgoing(more) => {
                self.outbound_streams = self.outbound_streams.saturating_add(more);
                StreamChange::Outgoing(self.outbound_streams)
            }
            // Its own request brings it about, and that is told then.
            StreamRequest::ResetIncoming(_) | StreamRequest::AddIncoming(_) => return,
        };
        self.journal.events.push_back(Event::StreamsChanged(change));
    }
}

/// The streams in a list, of `count`; all of them if it is empty.
fn named(streams: &[u16], count: u16) -> impl Iterator<Item = u16> + Clone + '_ {
    let all = if streams.is_empty() { 0..count } else { 0..0 };
    streams.iter().copied().chain(all)
}

fn check_streams(streams: &[u16], count: u16) -> Result<(), ReconfigureError> {
    let missing = streams.iter().find(|&&stream| stream >= count);
    missing.map_or(Ok(()), |&stream| Err(ReconfigureError::NoSuchStream { stream, count }))
}

const fn check_count(more: u16, count: u16) -> Result<(), ReconfigureError> {
    if count.checked_add(more).is_some() { Ok(()) } else { Err(ReconfigureError::TooManyStreams { more, count }) }
}

/// A RE-CONFIG chunk with these parameters.
fn chunk(parameters: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    ReConfig { parameters: Parameters::new(&parameters.concat()) }.emit(&mut Writer::new(&mut bytes));
    bytes
}

/// `request` as a parameter of RE-CONFIG.
fn parameter(request: &StreamRequest, number: u32, response: u32, last_tsn: Tsn) -> Vec<u8> {
    let listed = |streams: &[u16]| streams.iter().flat_map(|stream| stream.to_be_bytes()).collect::<Vec<u8>>();
    let request = match request {
        StreamRequest::ResetOutgoing(streams) => {
            let (streams, last_tsn) = (listed(streams), last_tsn.wire());
            let streams = Entries::new(&streams);
            return emitted(Reconfiguration::OutgoingReset { request: number, response, last_tsn, streams });
        }
        StreamRequest::ResetIncoming(streams) => {
            let streams = listed(streams);
            return emitted(Reconfiguration::IncomingReset { request: number, streams: Entries::new(&streams) });
        }
        &StreamRequest::AddOutgoing(count) => Reconfiguration::AddOutgoing { request: number, count },
        &StreamRequest::AddIncoming(count) => Reconfiguration::AddIncoming { request: number, count },
    };
    emitted(request)
}

fn emitted(parameter: Reconfiguration<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    Parameter::Reconfiguration(parameter).emit(&mut Writer::new(&mut bytes));
    bytes
}
