use super::stream::Stream;
use crate::account::Counts;
use crate::report::{Report, SecurityReport};
use braidcast_core::Instant;
use core::time::Duration;

/// Names a stream among those that a receiver takes at the same time: each has an output of its own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ChannelId(pub u32);

/// A place for one stream at a time, and what the ones before did.
#[derive(Debug, Default)]
pub(super) struct Channel {
    pub(super) name: String,
    pub(super) stream: Option<Stream>,
    /// A stream that does not come by a session has the place.
    pub(super) elsewhere: bool,
    pub(super) paused: bool,
    /// For so long its sender has sent more than it may.
    pub(super) too_much: Duration,
    pub(super) restarts: u64,
    pub(super) clock_jumps: u64,
    earlier: Counts,
    connected_at: Option<Instant>,
    /// How the stream's last association was protected.
    pub(super) security: Option<SecurityReport>,
    last: Option<Report>,
}

impl Channel {
    pub(super) fn new(name: &str) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Returns `true` if no stream has the place.
    pub(super) const fn is_free(&self) -> bool {
        self.stream.is_none() && !self.elsewhere
    }

    /// A stream has its turn.
    pub(super) fn begin(&mut self, now: Instant, stream: Stream) {
        self.connected_at.get_or_insert(now);
        self.stream = Some(stream);
    }

    /// The stream is over.
    pub(super) fn end(&mut self, now: Instant) {
        self.last = Some(self.report(now, 0));
        if let Some(stream) = self.stream.take() {
            self.earlier.add(&stream.account.counts);
        }
    }

    /// The sender was started anew; so much had come before.
    pub(super) fn restart(&mut self, counts: &Counts) {
        self.earlier.add(counts);
        self.restarts += 1;
    }

    /// What was done so far. Paths are those of the present sender, or of the last one.
    pub(super) fn report(&self, now: Instant, malformed: u64) -> Report {
        let (restarts, clock_jumps) = (self.restarts, self.clock_jumps);
        let Some(stream) = &self.stream else {
            return Report { restarts, clock_jumps, malformed, ..self.last.clone().unwrap_or_default() };
        };
        let settles = stream.settles();
        let (recent_seconds, recent) = stream.account.recent(now, settles);
        Report {
            seconds: self.connected_at.map_or(0.0, |at| now.since(at).as_secs_f64()),
            kinds: stream.account.kinds(now, settles, &self.earlier),
            recent,
            recent_seconds,
            unheard_seconds: Some(now.since(stream.heard_at()).as_secs_f64()),
            paths: stream.paths.reports(),
            clock_jumps,
            restarts,
            malformed,
            security: self.security.clone(),
            input_bytes: 0,
            acked_bytes: 0,
            redundancy: None,
            recovered_chunks: stream.recovered_chunks,
            buffered_bytes: stream.held() as u64,
            encoder: None,
        }
    }
}
