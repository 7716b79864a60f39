//! Joins what one or both ends tell.

use crate::clocks::Clocks;
use crate::frames::Frames;
use crate::rows::{Known, Mark, PacketOutcome, Sent, Sign, What};
use braidcast_core::events::{DccpEvent, PathCondition, Reduction, SctpEvent, Sending, TraceEvent};
use braidcast_trace::Record;
use std::collections::{HashMap, VecDeque};

/// One of the ends that tell, by the order in which they were [added](Exchange::add_end).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EndId(pub(crate) usize);

/// What chunks or packets are told apart by: the association, the end that sent it, and its number.
type Key = (u32, usize, u64);

/// What both ends told of what went between them.
#[derive(Debug, Default)]
pub struct Exchange {
    pub(crate) ends: Vec<String>,
    pub(crate) sent: Vec<Sent>,
    pub(crate) known: Vec<Known>,
    pub(crate) marks: Vec<Mark>,
    pub(crate) frames: Frames,
    /// Associations by the tags at both ends.
    flows: HashMap<u32, u32>,
    /// First number of each association and sender.
    first: HashMap<(u32, usize), u32>,
    /// Transmissions of each chunk, by row.
    chunks: HashMap<Key, Vec<u32>>,
    /// What came, by an end whose peer's trace may come later.
    arrivals: Vec<Arrival>,
    /// The same of what is no chunk: redundancy, SACKs, FORWARD-TSN.
    others: HashMap<(u32, What2, u64), VecDeque<u32>>,
    other_arrivals: Vec<(Record, usize)>,
    pub(crate) last: Vec<f64>,
    /// All ends have one clock.
    one_clock: bool,
}

/// [`What`], to look up by.
type What2 = u8;

/// A chunk that came.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    flow: u32,
    end: usize,
    at: f64,
    path: u32,
    number: u32,
    bytes: u32,
    new: bool,
    recovered: bool,
}

/// Milliseconds.
fn ms(at: braidcast_core::Instant) -> f64 {
    at.as_nanos() as f64 / 1e6
}

fn span_ms(span: Option<core::time::Duration>) -> f64 {
    span.map_or(f64::NAN, |span| span.as_secs_f64() * 1e3)
}

impl Exchange {
    /// One more end, called `name`. Two at most are shown together: the first that sends frames,
    /// else the first, is on the left.
    pub fn add_end(&mut self, name: &str) -> EndId {
        self.ends.push(name.to_owned());
        self.last.push(0.0);
        EndId(self.ends.len() - 1)
    }

    /// All ends have one clock, as in a simulation: nothing is to be laid over each other.
    pub const fn share_clock(&mut self) {
        self.one_clock = true;
    }

    /// How many chunks and packets there are.
    pub fn len(&self) -> usize {
        self.sent.len() + self.arrivals.len()
    }

    /// Returns `true` if nothing was told.
    pub fn is_empty(&self) -> bool {
        self.len() == 0 && self.frames.rows.is_empty()
    }

    /// Takes what an end told. Records of an end come in the order of time.
    pub fn take(&mut self, EndId(end): EndId, record: &Record) {
        let at = ms(record.at);
        self.last[end] = self.last[end].max(at);
        match record.event {
            TraceEvent::Sctp(event) => self.take_sctp(at, end, record, &event),
            TraceEvent::Dccp(event) => self.take_dccp(at, end, record.connection, &event),
            TraceEvent::Media(event) => self.frames.take(at, record.connection, &event),
            _ => {}
        }
    }

    /// The association that an end calls `tag`.
    fn flow(&mut self, tag: u32) -> u32 {
        *self.flows.entry(tag).or_insert(tag)
    }

    /// The number relative to the first of its sender.
    pub(crate) fn relative(&mut self, flow: u32, end: usize, number: u32) -> f64 {
        let first = *self.first.entry((flow, end)).or_insert(number);
        f64::from(number.wrapping_sub(first) as i32)
    }

    fn push(&mut self, row: Sent) -> u32 {
        self.sent.push(row);
        self.sent.len() as u32 - 1
    }

    fn take_sctp(&mut self, at: f64, end: usize, record: &Record, event: &SctpEvent) {
        use SctpEvent as E;
        let flow = self.flow(record.connection);
        let row = |path: u32, what, bytes| Sent { flow, ..Sent::new(at, end, path, what, bytes) };
        let sign = |sign, path: u32| Mark { at, end, path, sign };
        match *event {
            E::Opened { peer_tag, .. } => _ = self.flows.insert(peer_tag, flow),
            E::PathRemoved { path } => self.marks.push(sign(Sign::Left, path.0.into())),
            E::PathState { path, state } => {
                let state = match state {
                    PathCondition::Unconfirmed => Sign::Unconfirmed,
                    PathCondition::Active => Sign::Active,
                    PathCondition::PotentiallyFailed => Sign::PotentiallyFailed,
                    PathCondition::Inactive => Sign::Inactive,
                };
                self.marks.push(sign(state, path.0.into()));
            }
            E::WindowReduced { path, cause } => {
                let reduced = match cause {
                    Reduction::Loss => Sign::ReducedForLoss,
                    Reduction::Mark => Sign::ReducedForMark,
                    Reduction::Timeout => Sign::ReducedForTimeout,
                };
                self.marks.push(sign(reduced, path.0.into()));
            }
            E::PathMetrics { path, metrics: it } => self.known.push(Known {
                at,
                end,
                path: path.0.into(),
                cwnd: it.cwnd as f64,
                in_flight: it.in_flight as f64,
                srtt: span_ms(it.srtt),
                queued: span_ms(Some(it.queued)),
            }),
            E::MessageAbandoned { message, sent, why, .. } => self.frames.abandoned(at, message, sent, why),
            E::ChunkSent { path, tsn, bytes, stream, message, sending } => {
                let what = match sending {
                    Sending::New => What::New,
                    Sending::Again(_) => What::Repeat,
                    Sending::Copy => What::Copy,
                };
                let number = self.relative(flow, end, tsn);
                let frame = self.frames.of_message(message);
                let stream = stream.into();
                let row = Sent { number, stream, message, frame, ..row(path.0.into(), what, bytes.into()) };
                let place = self.push(row);
                self.chunks.entry((flow, end, tsn.into())).or_default().push(place);
            }
            E::ChunkAcked { tsn, .. } => self.on_acked(at, (flow, end, tsn.into())),
            E::ChunkLost { path, tsn, .. } => {
                self.on_lost((flow, end, tsn.into()), path.map(|path| path.0.into()));
            }
            E::ChunkReceived { path, tsn, bytes, new } => self.arrivals.push(Arrival {
                flow,
                end,
                at,
                path: path.0.into(),
                number: tsn,
                bytes: bytes.into(),
                new,
                recovered: false,
            }),
            E::ChunkRecovered { tsn, .. } => {
                let last = self.arrivals.iter_mut().rev().take(64).find(|it| (it.flow, it.number) == (flow, tsn));
                last.into_iter().for_each(|it| it.recovered = true);
            }
            E::RedundancySent { path, first, count, bytes } => {
                let number = self.relative(flow, end, first);
                let place = self.push(Sent { number, ..row(path.0.into(), What::Redundancy, bytes.into()) });
                self.other(flow, What::Redundancy, u64::from(first) << 16 | u64::from(count), place);
            }
            E::SackSent { path, cumulative, gaps, window } => {
                let place = self.push(row(path.0.into(), What::Sack, 0));
                self.other(flow, What::Sack, sack_key(cumulative, gaps, window), place);
            }
            E::ForwardSent { path, tsn } => {
                let number = self.relative(flow, end, tsn);
                let place = self.push(Sent { number, ..row(path.0.into(), What::Forward, 0) });
                self.other(flow, What::Forward, tsn.into(), place);
            }
            E::RedundancyReceived { .. } | E::SackReceived { .. } | E::ForwardReceived { .. } => {
                self.other_arrivals.push((Record { connection: flow, ..*record }, end));
            }
            _ => {}
        }
    }

    fn other(&mut self, flow: u32, what: What, key: u64, place: u32) {
        self.others.entry((flow, what as What2, key)).or_default().push_back(place);
    }

    fn take_dccp(&mut self, at: f64, end: usize, flow: u32, event: &DccpEvent) {
        match *event {
            DccpEvent::PacketSent { seq, kind, bytes, .. } => {
                let what = if matches!(kind, 2 | 4) { What::New } else { What::Control };
                let number = self.relative(flow, end, seq as u32);
                let place = self.push(Sent { number, flow, ..Sent::new(at, end, 0, what, bytes) });
                self.chunks.entry((flow, end, u64::from(seq as u32))).or_default().push(place);
            }
            DccpEvent::PacketReceived { seq, bytes, .. } => self.arrivals.push(Arrival {
                flow,
                end,
                at,
                path: 0,
                number: seq as u32,
                bytes,
                new: true,
                recovered: false,
            }),
            DccpEvent::Metrics(it) => self.known.push(Known {
                at,
                end,
                path: 0,
                cwnd: it.cwnd.map_or(f64::NAN, f64::from),
                in_flight: it.pipe.map_or(f64::NAN, f64::from),
                srtt: span_ms(it.srtt),
                queued: f64::NAN,
            }),
            _ => {}
        }
    }

    /// The last transmission of what nothing else is known of arrived.
    fn on_acked(&mut self, at: f64, key: Key) {
        let Some(places) = self.chunks.get(&key) else { return };
        if let Some(&place) = places.iter().rev().find(|&&it| self.sent[it as usize].outcome == PacketOutcome::Unknown)
        {
            let row = &mut self.sent[place as usize];
            row.outcome = PacketOutcome::Arrived;
            // Half way between: the acknowledgement took the other half.
            row.arrived = f64::midpoint(row.sent, at);
            row.reckoned = true;
        } else if let Some(&place) = places.last() {
            self.sent[place as usize].outcome = PacketOutcome::Arrived; // It had been taken for lost.
        }
    }

    fn on_lost(&mut self, key: Key, path: Option<u32>) {
        let Some(places) = self.chunks.get(&key) else { return };
        let lost = |&&it: &&u32| {
            let row = &self.sent[it as usize];
            row.what != What::Copy && row.outcome == PacketOutcome::Unknown && path.is_none_or(|path| path == row.path)
        };
        if let Some(&place) = places.iter().rev().find(lost) {
            self.sent[place as usize].outcome = PacketOutcome::Lost;
        }
    }

    /// Joins both ends and both clocks. Nothing more is taken then.
    pub(crate) fn join(&mut self) {
        let paths = self.match_paths();
        let (mut clocks, arrivals) = (Clocks::default(), std::mem::take(&mut self.arrivals));
        let heard: Vec<bool> = (0..self.ends.len()).map(|end| arrivals.iter().any(|it| it.end != end)).collect();
        let left = self.left();
        let mut joined = vec![false; self.sent.len()];
        for it in &arrivals {
            let path = paths.get(&(it.end, it.path)).copied().unwrap_or(it.path);
            let key = |from: usize| (it.flow, from, u64::from(it.number));
            let places =
                (0..self.ends.len()).filter(|&from| from != it.end).find_map(|from| self.chunks.get(&key(from)));
            let free = |same: bool| {
                let fits = |&&place: &&u32| !joined[place as usize] && (self.sent[place as usize].path == path) == same;
                places.and_then(|places| places.iter().find(fits))
            };
            if let Some(&place) = free(true).or_else(|| free(false)) {
                let row = &mut self.sent[place as usize];
                joined[place as usize] = true;
                (row.arrived, row.reckoned) = (it.at, false);
                row.outcome = match (it.recovered, it.new) {
                    (true, _) => PacketOutcome::Recovered,
                    (_, false) => PacketOutcome::Duplicate,
                    _ => PacketOutcome::Arrived,
                };
                if !it.recovered {
                    if row.end == left { clocks.there(row.sent, it.at) } else { clocks.back(row.sent, it.at) }
                }
            } else if places.is_none() && self.ends.len() == 1 {
                let number = self.relative(it.flow, usize::MAX, it.number);
                let what = if it.recovered { What::Redundancy } else { What::New };
                let outcome = if it.new { PacketOutcome::Arrived } else { PacketOutcome::Duplicate };
                let row = Sent::new(it.at, usize::MAX, it.path, what, it.bytes);
                self.sent.push(Sent { arrived: it.at, reckoned: true, number, flow: it.flow, outcome, ..row });
            }
        }
        self.join_others(&mut clocks, &paths, left);
        // What the other end would have told of did not come.
        for (row, joined) in self.sent.iter_mut().zip(joined) {
            let told = heard.get(row.end).copied().unwrap_or(false);
            let data = matches!(row.what, What::New | What::Repeat | What::Copy | What::Control);
            if told && !joined && data {
                (row.outcome, row.arrived, row.reckoned) = (PacketOutcome::Lost, f64::NAN, false);
            }
            row.frame = self.frames.of_message(row.message);
        }
        self.align(&clocks, left);
    }

    /// SACKs, redundancy and FORWARD-TSN, told apart by what they say.
    fn join_others(&mut self, clocks: &mut Clocks, paths: &HashMap<(usize, u32), u32>, left: usize) {
        for (record, end) in std::mem::take(&mut self.other_arrivals) {
            let at = ms(record.at);
            let TraceEvent::Sctp(event) = record.event else { continue };
            let (what, key, path) = match event {
                SctpEvent::RedundancyReceived { path, first, count } => {
                    (What::Redundancy, u64::from(first) << 16 | u64::from(count), path)
                }
                SctpEvent::SackReceived { path, cumulative, gaps, window } => {
                    (What::Sack, sack_key(cumulative, gaps, window), path)
                }
                SctpEvent::ForwardReceived { path, tsn } => (What::Forward, tsn.into(), path),
                _ => continue,
            };
            let path = u32::from(path.0);
            let place = self.others.get_mut(&(record.connection, what as What2, key)).and_then(VecDeque::pop_front);
            if let Some(place) = place {
                let row = &mut self.sent[place as usize];
                (row.arrived, row.outcome) = (at, PacketOutcome::Arrived);
                if row.end == left { clocks.there(row.sent, at) } else { clocks.back(row.sent, at) }
            } else if what == What::Sack && self.ends.len() == 1 {
                let path = paths.get(&(end, path)).copied().unwrap_or(path);
                let row = Sent::new(at, usize::MAX, path, what, 0);
                self.sent.push(Sent { arrived: at, reckoned: true, outcome: PacketOutcome::Arrived, ..row });
            }
        }
        for row in &mut self.sent {
            if row.what == What::Redundancy && row.outcome == PacketOutcome::Unknown && self.ends.len() > 1 {
                row.outcome = PacketOutcome::Lost;
            }
            if row.end != left && row.end < self.ends.len() {
                row.path = paths.get(&(row.end, row.path)).copied().unwrap_or(row.path);
            }
        }
    }

    /// Returns the end on the left: the one that sends more chunks than any other.
    pub(crate) fn left(&self) -> usize {
        let count = |end: usize| self.sent.iter().filter(|row| row.end == end && row.bytes > 0).count();
        (0..self.ends.len()).max_by_key(|&end| (count(end), self.ends.len() - end)).unwrap_or(0)
    }

    /// Each end numbers the paths by itself: which of the left end's is which of another's, by the
    /// chunks that were sent once.
    fn match_paths(&self) -> HashMap<(usize, u32), u32> {
        let mut votes: HashMap<(usize, u32), HashMap<u32, u32>> = HashMap::new();
        let left = self.left();
        for it in self.arrivals.iter().filter(|it| it.end != left && !it.recovered) {
            if let Some([only]) = self.chunks.get(&(it.flow, left, u64::from(it.number))).map(Vec::as_slice) {
                *votes.entry((it.end, it.path)).or_default().entry(self.sent[*only as usize].path).or_default() += 1;
            }
        }
        let most = |votes: HashMap<u32, u32>| {
            let mut votes: Vec<_> = votes.into_iter().collect();
            votes.sort_unstable_by_key(|&(path, count)| (std::cmp::Reverse(count), path));
            votes.first().map(|&(path, _)| path)
        };
        votes.into_iter().filter_map(|(theirs, votes)| Some((theirs, most(votes)?))).collect()
    }

    /// All times by the clock of the left end.
    fn align(&mut self, clocks: &Clocks, left: usize) {
        let shortest = self.known.iter().filter(|it| it.end == left).map(|it| it.srtt).fold(f64::INFINITY, f64::min);
        let round_trip = if shortest.is_finite() { shortest } else { 0.0 };
        let ahead = if self.one_clock { 0.0 } else { clocks.ahead(round_trip) };
        let both = self.ends.len() > 1;
        for row in self.sent.iter_mut().filter(|_| both) {
            if row.end == left {
                // Reckoned times are the left clock's already.
                row.arrived -= if row.reckoned { 0.0 } else { ahead };
            } else {
                row.sent -= ahead;
                row.arrived -= if row.reckoned { ahead } else { 0.0 };
            }
        }
        let later = |end: usize, at: &mut f64| *at -= if end == left { 0.0 } else { ahead };
        self.known.iter_mut().for_each(|it| later(it.end, &mut it.at));
        self.marks.iter_mut().for_each(|it| later(it.end, &mut it.at));
        if both {
            self.frames.shift(ahead);
        }
        let end = self.last.iter().copied().fold(0.0, f64::max);
        self.frames.settle(end);
        self.sent.sort_by(|a, b| a.sent.total_cmp(&b.sent));
        self.known.sort_by(|a, b| a.at.total_cmp(&b.at));
        self.marks.sort_by(|a, b| a.at.total_cmp(&b.at));
    }
}

const fn sack_key(cumulative: u32, gaps: u16, window: u32) -> u64 {
    (cumulative as u64) << 32 ^ (gaps as u64) << 24 ^ window as u64
}
