//! Which packets the path carries (RFC 4340 §14): found by padded Syncs, which risk no data
//! (§14.1), in the way of RFC 8899.

use super::{Connection, Control, Phase};
use crate::api::{Event, Options};
use crate::seq::Seq;
use braidcast_cc::PathMtu;
use braidcast_core::Instant;
use core::time::Duration;

/// The size of packets, and what is done to make it right.
#[derive(Debug)]
pub(super) struct PathSize {
    search: PathMtu,
    /// The application could make use of more: only then it is looked for.
    wanted: bool,
    /// Packets above the base left since the size was confirmed or doubted.
    used: bool,
    /// It was never confirmed.
    assumed: bool,
    /// Losses that congestion control has told of, whether they raise a doubt, and when it is seen to at the earliest.
    losses: u64,
    doubted: bool,
    doubt_from: Instant,
    /// The last probe and its size.
    probe: Option<(Seq, usize)>,
    /// When it was due, and how many were since anything came from the peer.
    probed_at: Instant,
    unheard: u32,
}

impl PathSize {
    /// Losses have many causes: the size is doubted no more often.
    const PAUSE: Duration = Duration::from_secs(10);
    /// Probes in a row with nothing from the peer since; then they rest until something comes, or
    /// more is lost. Each takes two numbers, of which a sequence window may have no more than 32.
    const UNHEARD: u32 = 3;

    pub(super) fn new(now: Instant, options: &Options) -> Self {
        let max = options.max_packet;
        let mut search = PathMtu::new(options.base_packet.min(max), max);
        search.assume(options.first_packet.unwrap_or(max));
        Self {
            search,
            wanted: false,
            used: false,
            assumed: true,
            losses: 0,
            doubted: false,
            doubt_from: now,
            probe: None,
            probed_at: now,
            unheard: 0,
        }
    }

    /// Bytes of the largest packet.
    pub(super) const fn current(&self) -> usize {
        self.search.current()
    }

    /// A message of `len` bytes was to be sent where `limit` is the longest.
    pub(super) const fn asked(&mut self, len: usize, limit: usize) {
        self.wanted |= len * 4 > limit * 3;
    }

    /// A packet of `size` bytes left, of which none is larger than `base` for certain.
    pub(super) const fn sent(&mut self, size: usize, base: usize) {
        self.used |= size > base;
    }

    /// When [`due`](Self::due) is to be asked, at rest only if more is wanted.
    pub(super) fn timer(&self) -> Option<Instant> {
        let active = self.unheard < Self::UNHEARD && (self.wanted || self.search.is_searching());
        let search = self.search.poll_timeout().filter(|_| active);
        search.into_iter().chain(self.doubted.then_some(self.doubt_from)).min()
    }

    /// The size to probe now.
    fn due(&mut self, now: Instant) -> Option<usize> {
        if self.assumed && self.used {
            (self.assumed, self.used) = (false, false);
            self.search.confirm(now);
        }
        if !self.search.is_searching() {
            if !self.wanted || self.search.poll_timeout().is_some_and(|at| at > now) {
                return None;
            }
            self.wanted = false;
            self.search.start(now);
        }
        self.search.due(now)
    }

    /// Congestion control has told of `losses` so far: full packets may be what gets lost (RFC 8899 §4.3).
    pub(super) fn doubt(&mut self, losses: u64) {
        self.doubted |= losses > self.losses && self.used;
        self.losses = losses;
    }

    /// Sees to a doubt.
    fn settle_doubt(&mut self, now: Instant) {
        if self.doubted && now >= self.doubt_from {
            (self.doubted, self.used) = (false, false);
            self.unheard = 0;
            self.doubt_from = now + Self::PAUSE;
            self.search.confirm(now);
        }
    }
}

/// Filling of probes.
pub(super) static FILLING: [u8; Options::MAX_PROBE] = [0; Options::MAX_PROBE];

impl Connection {
    /// Longest message in bytes that one packet carries for certain. [`Event::MaxPayload`] reports a
    /// change. It is found out when a message is sent that nearly fills it, or refused as
    /// longer.
    pub fn max_payload(&self) -> usize {
        // Long header with acknowledgement, Data Checksum, NDP Count, padding. Ack Vectors go on
        // packets of their own if they do not fit.
        const OVERHEAD: usize = 24 + 6 + 8 + 2;
        // Records need no Data Checksum, and none goes with them.
        const RECORD: usize = braidcast_secure::OVERHEAD - 8;
        let record = if self.protection.is_some() { RECORD } else { 0 };
        self.path_size.current().saturating_sub(OVERHEAD + record)
    }

    /// Queues a probe if it is time for one.
    pub(super) fn probe_path(&mut self, now: Instant) {
        if self.last_valid > self.path_size.probed_at {
            self.path_size.unheard = 0;
        }
        if matches!(self.phase, Phase::Open) {
            self.path_size.settle_doubt(now);
        }
        let size = &self.path_size;
        let first = size.assumed && size.used || size.wanted && size.search.poll_timeout().is_none();
        if !matches!(self.phase, Phase::Open) || !(first || size.timer().is_some_and(|at| at <= now)) {
            return;
        }
        // RFC 8899 §5.1.1: PROBE_TIMER is more than a round trip, and a second at least.
        let timeout = (self.rtt_or_default() * 3).max(Duration::from_secs(1));
        let before = self.path_size.current();
        let it = &mut self.path_size;
        let silent = self.last_valid <= it.probed_at && it.probe.is_some();
        if silent && it.search.poll_timeout().is_some_and(|at| at <= now) {
            // Everything is lost, or all that would tell us: no matter of size.
            it.unheard += 1;
            it.search.discount();
            if it.unheard >= PathSize::UNHEARD {
                return;
            }
        }
        if let Some(size) = it.due(now) {
            it.search.sent(now, timeout * (1 << it.unheard));
            it.probed_at = now;
            self.control(Control::Probe { size });
            // A small one along with it, whose answer shows whether the path carries anything.
            let ack = self.numbers.acknowledgeable;
            self.control(Control::Sync { ack });
        }
        self.note_path_size(before);
    }

    /// A probe left as packet `seq`.
    pub(super) const fn probe_left(&mut self, seq: Seq, size: usize) {
        self.path_size.probe = Some((seq, size));
        self.probed = true;
    }

    /// A SyncAck came for packet `ack`.
    pub(super) fn probe_answered(&mut self, now: Instant, ack: Seq) {
        if let Some((_, size)) = self.path_size.probe.take_if(|(seq, _)| *seq == ack) {
            let before = self.path_size.current();
            self.path_size.assumed = false;
            self.path_size.search.answered(now, size);
            self.note_path_size(before);
        }
    }

    fn note_path_size(&mut self, before: usize) {
        if self.path_size.current() != before {
            let limit = self.max_payload();
            self.events.push_back(Event::MaxPayload(limit));
        }
    }
}
