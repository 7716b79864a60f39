use braidcast_core::{Instant, PathId, Reader, Truncated, Writer};
use core::time::Duration;

/// What we put into a HEARTBEAT and expect back in its acknowledgement (RFC 9260 §8.3): opaque to the peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Info {
    pub(crate) path: PathId,
    pub(crate) sent: Instant,
    /// Unguessable, so that nobody can confirm a path that he does not see (RFC 9260 §5.4).
    pub(crate) nonce: u64,
    /// The size of the packet where it probes the MTU; 0 in a plain heartbeat.
    pub(crate) probe_size: u16,
    /// Its place in a train, if it is part of one.
    pub(crate) place: Option<u8>,
}

impl Info {
    /// Bytes of a HEARTBEAT with it: both headers, path, probe size, time and nonce.
    pub(crate) const CHUNK: usize = 4 + 4 + 2 + 2 + 8 + 8;

    pub(crate) fn emit(&self, w: &mut Writer<'_>) {
        w.u16(self.path.0);
        w.u16(self.probe_size);
        w.u64(self.sent.as_nanos());
        w.u64(self.nonce);
        self.place.iter().for_each(|&place| w.u8(place));
    }

    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Truncated> {
        let mut r = Reader::new(bytes);
        let path = PathId(r.u16()?);
        let probe_size = r.u16()?;
        let (sent, nonce) = (Instant::from_nanos(r.u64()?), r.u64()?);
        Ok(Self { path, probe_size, sent, nonce, place: r.u8().ok() })
    }
}

/// When to ask a path whether it is alive (RFC 9260 §8.3).
#[derive(Debug)]
pub(crate) struct Heartbeats {
    /// When the next heartbeat leaves, unless data is acknowledged before.
    /// `None`: the path has not joined yet.
    next: Option<Instant>,
    /// The one that has not been answered: its nonce and when it counts as failed.
    outstanding: Option<(u64, Instant)>,
    /// When the same goes once more.
    again: Option<Instant>,
    /// When the last one left.
    sent: Instant,
    /// The last one that failed.
    failed: Option<u64>,
    /// The nonce of the last one: as random as the pause behind it is to be.
    drawn: u64,
}

impl Heartbeats {
    /// How late an answer is waited for; queues hold little more than that.
    const PATIENCE: Duration = Duration::from_secs(5);

    /// None is due before [`start`](Self::start).
    pub(crate) const fn new() -> Self {
        Self { next: None, outstanding: None, again: None, sent: Instant::ZERO, failed: None, drawn: u64::MAX / 2 }
    }

    /// The peer knows the path: the first one is due at once.
    pub(crate) const fn start(&mut self, now: Instant) {
        self.next = Some(now);
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let asked = self.outstanding.map(|(_, deadline)| self.again.map_or(deadline, |again| again.min(deadline)));
        asked.or(self.next)
    }

    /// Returns `true` if a heartbeat should leave at `now`.
    pub(crate) fn due(&self, now: Instant) -> bool {
        self.outstanding.is_none() && self.next.is_some_and(|next| next <= now)
    }

    /// Puts the next heartbeat off: the path was just heard of.
    pub(crate) fn postpone(&mut self, now: Instant, interval: Duration) {
        self.next = Some(now + interval);
    }

    /// A heartbeat left.
    pub(crate) fn sent(&mut self, now: Instant, nonce: u64, rto: Duration) {
        self.outstanding = Some((nonce, now + rto));
        (self.sent, self.drawn, self.again) = (now, nonce, None);
    }

    /// The one that is not answered goes once more after a `pause`; `None`: not.
    pub(crate) fn ask_again(&mut self, now: Instant, pause: Option<Duration>) {
        self.again = pause.map(|pause| now + pause);
    }

    /// The nonce of the one that is not answered and has not failed.
    pub(crate) fn asked(&self) -> Option<u64> {
        self.outstanding.map(|(nonce, _)| nonce)
    }

    /// Returns `true` if it is time for that one to go once more.
    pub(crate) fn is_asked_again(&self, now: Instant) -> bool {
        self.outstanding.is_some() && self.again.is_some_and(|again| again <= now)
    }

    /// A share of the pause that is drawn anew with each heartbeat, uniformly from 0.5 to 1.5 (RFC 9260 §8.3).
    pub(crate) fn jitter(&self) -> f64 {
        0.5 + (self.drawn >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns `true` if the last one may still be answered, on time or late: another one now would make that
    /// answer count for nothing.
    pub(crate) fn awaits_answer(&self, now: Instant) -> bool {
        self.outstanding.is_some() || (self.failed.is_some() && now - self.sent < Self::PATIENCE)
    }

    /// An answer with `nonce` came. Returns `true` if it answers what was asked.
    pub(crate) fn answered(&mut self, now: Instant, nonce: u64, interval: Duration) -> bool {
        if self.outstanding.is_none_or(|(asked, _)| asked != nonce) {
            return false;
        }
        self.outstanding = None;
        self.next = Some(now + interval);
        true
    }

    /// When the outstanding one left, if it has failed by `now`; the next is then due at once.
    pub(crate) fn take_failure(&mut self, now: Instant) -> Option<Instant> {
        let (nonce, _) = self.outstanding.take_if(|(_, deadline)| *deadline <= now)?;
        self.failed = Some(nonce);
        self.next = Some(now);
        Some(self.sent)
    }

    /// Waits longer for the outstanding one, by `late`.
    pub(crate) fn put_off(&mut self, late: Duration) {
        if let Some((_, deadline)) = &mut self.outstanding {
            *deadline += late;
        }
    }

    /// Returns `true` if `nonce` is that of the one that failed last: the path stood still, but is not dead.
    pub(crate) fn answered_late(&mut self, nonce: u64) -> bool {
        self.failed.take_if(|failed| *failed == nonce).is_some()
    }
}
