//! What the user of a session chooses, and what SCTP is to do for it.

use crate::identity::Identity;
use crate::mapping::STREAMS;
use crate::receiver::Permit;
use crate::redundancy::Redundancy;
use braidcast_core::events::Tracer;
use braidcast_rate::RateLimits;
use braidcast_sctp::{
    Algorithm, Fingerprint, Method, Options, PathSelection, RetransmissionPolicy, SchedulerKind, SecurityOptions,
};
use core::time::Duration;
use std::collections::BTreeMap;

/// SCTP port of both ends unless they say otherwise.
const PORT: u16 = 9899;

/// The default of the longest slice: a tick of a kernel at 250 Hz, which is a tenth of a video frame
/// at 25 Hz and eight datagrams at 20 Mbit/s.
pub const SLICE: Duration = Duration::from_millis(4);
/// If a slice has more bytes than this, slices are half as long: sockets of Linux hold 208 KiB by default
/// (`net.core.rmem_default`), of which a datagram of 1316 bytes takes 2304.
pub const SLICE_BYTES: usize = 48 * 1024;
/// Slices in a latency, at least: a packet leaves early by 2 % of it at most, 4 ms of 200 ms.
const SLICES_OF_LATENCY: u32 = 50;

/// The slices in which a stream of this `latency` is read and handed out: `longest`, or less if the
/// latency is short. 4 ms are used from a latency of 200 ms on.
pub fn slice_of(longest: Duration, latency: Duration) -> Duration {
    longest.min(latency / SLICES_OF_LATENCY)
}

/// How to send.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SenderOptions {
    /// How long after its capture each packet is played at the other end. Default: 500 ms. At most 71 minutes.
    pub latency: Duration,
    /// Deliver everything, in order, however long it takes. Default: no.
    pub reliable: bool,
    /// How lost packets are made up for without waiting a round trip, if the receiver takes
    /// redundancy. Default: as loss, round trip and latency ask for, which over clean paths is not
    /// at all.
    pub redundancy: Redundancy,
    /// What would be late over the path that it is on goes over a second one too, as far as that
    /// has room, before frames that matter less. Default: yes, but not in a reliable session
    /// (decision 19).
    pub reinject: bool,
    /// Which of the units that wait goes next, and which one never, by their kinds and deadlines.
    /// `None`: by kind alone. A reliable session does without. Default: `by-worth` (decision 19).
    pub queue: Option<Method>,
    /// Which path the next packet takes. Default: `earliest-delivery` (decision 19).
    pub scheduler: SchedulerKind,
    /// By what the one path is chosen that carries everything; what one path cannot carry is not
    /// sent. Default: `None`, all paths carry at once.
    pub selection: Option<PathSelection>,
    /// All paths carry at once. Default: yes; no: the first one alone, as long as it works, unless
    /// `selection` says which.
    pub concurrent: bool,
    /// How much less another path's delay must be, for `selection`. Default: 30 ms, more than
    /// receivers wait with a SACK.
    pub hysteresis: Duration,
    /// Longest time for which another path must be better before it takes over; the time is drawn anew
    /// each time. Default: 0.
    pub time_guard: Duration,
    /// How often paths that carry nothing are measured for `selection`. Default: 1 s.
    pub probe_interval: Duration,
    /// Timeouts in a row after which new data avoids a path
    /// ([`PathOptions::quick_failover`](braidcast_sctp::PathOptions::quick_failover)). Default: 0.
    pub quick_failover: Option<u32>,
    /// Timeouts in a row after which the first path is not gone back to
    /// ([`PathOptions::switchover`](braidcast_sctp::PathOptions::switchover)), where paths do not
    /// carry at once. Default: `None`, it is.
    pub switchover: Option<u32>,
    /// Timeouts in a row after which a path has failed. Default: 5.
    pub path_max_retrans: u32,
    /// Which path carries what was lost. Default: any that has room.
    pub retransmission: RetransmissionPolicy,
    /// How much each path may carry: its congestion controller. Default: `live` (decision 19).
    pub congestion: Algorithm,
    /// Bytes that may wait in a queue, and as many may be sent and unacknowledged; without a queue,
    /// both together. A reliable session gives units back beyond that. 2 MiB, the longest unit, or
    /// more. Default: 4 MiB.
    pub buffer: usize,
    /// How long there may be no receiver that answers before the session ends. Default: `None`, it
    /// goes on trying for ever.
    pub give_up: Option<Duration>,
    /// A live session ends where its receiver does: by the receiver's user, by an output that fails,
    /// or as another sender is being received. Default: no, it goes on trying (decision 18). A
    /// reliable session ends so in any case.
    pub end_with_receiver: bool,
    /// Of a sender that is called: each receiver waits until the application [admits](crate::Sender::admit)
    /// it. Default: no, who has a right key comes in.
    pub ask: bool,
    /// Protection of all that goes and comes. Default: none.
    pub security: Option<SecurityOptions>,
    /// Find out a receiver that acknowledges what it never got
    /// ([`LimitOptions::skip_tsns`](braidcast_sctp::LimitOptions::skip_tsns)). Default: no, so that
    /// experiments send what they always sent.
    pub skip_tsns: bool,
    /// Our SCTP port. Default: 9899.
    pub local_port: u16,
    /// What makes it the same stream after a restart of this end; `None`: nothing does. Default: `None`.
    pub identity: Option<Identity>,
    /// What the receiver knows the stream by, as [`check_name`](crate::wire::check_name) has it.
    /// Default: empty, which is no name.
    pub name: String,
    /// Bytes of all that is sent, if that is known. Default: `None`.
    pub size: Option<u64>,
    /// The rates that the encoder is able to make
    /// ([`Sender::rate_report`](crate::Sender::rate_report)). Default: 100 kbit/s to 50 Mbit/s.
    pub encoder: RateLimits,
    /// Who is told of what happens inside, in the transport too. Default: nobody.
    pub events: Tracer,
}

impl SenderOptions {
    /// The same after `change`.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

impl Default for SenderOptions {
    fn default() -> Self {
        Self {
            latency: Duration::from_millis(500),
            reliable: false,
            redundancy: Redundancy::Auto,
            reinject: true,
            queue: Some(Method::ByWorth),
            scheduler: SchedulerKind::EarliestDelivery,
            selection: None,
            concurrent: true,
            hysteresis: Duration::from_millis(30),
            time_guard: Duration::ZERO,
            probe_interval: Duration::from_secs(1),
            quick_failover: Some(0),
            switchover: None,
            path_max_retrans: 5,
            retransmission: RetransmissionPolicy::default(),
            congestion: Algorithm::Live,
            buffer: 4 << 20,
            give_up: None,
            end_with_receiver: false,
            ask: false,
            security: None,
            skip_tsns: false,
            local_port: PORT,
            identity: None,
            name: String::new(),
            size: None,
            encoder: RateLimits::default(),
            events: Tracer::default(),
        }
    }
}

impl SenderOptions {
    /// The defaults of a reliable session, which has no deadlines to go by: Veno, which leaves room
    /// for others, lowest delay, and no redundancy, as there is time to repeat.
    pub fn reliable() -> Self {
        let (scheduler, congestion) = (SchedulerKind::default(), Algorithm::Veno);
        Self { reliable: true, scheduler, congestion, redundancy: Redundancy::None, ..Self::default() }
    }

    /// SCTP as such a session has it.
    pub fn transport(&self) -> Options {
        let mut transport = live(self.local_port, self.security.as_ref());
        transport.paths.scheduler = self.scheduler;
        transport.paths.forward_delay = self.scheduler.scheduler().heeds_forward_delay();
        transport.paths.concurrent = self.concurrent;
        if let Some(by) = self.selection {
            let paths = &mut transport.paths;
            (paths.selection, paths.concurrent) = (Some(by), false);
            (paths.hysteresis, paths.time_guard) = (self.hysteresis, self.time_guard);
            paths.heartbeat_interval = self.probe_interval;
            paths.forward_delay |= by.heeds_forward_delay();
        }
        transport.paths.quick_failover = self.quick_failover;
        transport.paths.switchover = self.switchover;
        transport.paths.path_max_retrans = self.path_max_retrans;
        transport.papers.retransmission = self.retransmission;
        transport.congestion.algorithm = self.congestion;
        transport.queue.method = self.queue.filter(|_| !self.reliable);
        // Half of the send buffer is the queue, where there is one.
        transport.limits.send_buffer = self.buffer.saturating_mul(if transport.queue.method.is_some() { 2 } else { 1 });
        transport.timers.rto = self.redundancy.rto(transport.timers.rto);
        transport.timers.give_up = self.give_up;
        knock(&mut transport);
        transport.redundancy = self.redundancy.transport();
        transport.redundancy.reinject = self.reinject && !self.reliable;
        transport.limits.skip_tsns = self.skip_tsns;
        transport.events = self.events.clone();
        transport
    }
}

/// How to receive.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ReceiverOptions {
    /// Hand units out as soon as everything before them is there; the latency is then a bound and not a constant
    /// wait. Default: no.
    pub early: bool,
    /// A second sender waits for the first to end instead of being turned away; at most 4 wait. Default: no. Either
    /// way it takes over from one that has been silent for three seconds.
    pub keep: bool,
    /// Keep a log entry for each unit. Default: no.
    pub log: bool,
    /// Bytes that one output holds at most, unless it is one plain message. Default: 7 packets of 188 bytes, which fit
    /// into a datagram.
    pub output_size: usize,
    /// What is due within this time is handed out together, up to that much early and never late. It is
    /// less if the latency is short ([`slice_of`]) or it has more than [`SLICE_BYTES`]. What is behind a gap
    /// leaves when it is due. 0: all does. Default: [`SLICE`], 4 ms.
    pub slice: Duration,
    /// Bytes that may wait to be due; beyond this, messages stay in the association, whose window closes.
    /// Default: 64 MiB.
    pub buffer: usize,
    /// How long a stream's sender may be gone before the stream is over. Default: `None`, it is waited for for ever.
    pub give_up: Option<Duration>,
    /// Protection of all that goes and comes. Default: none.
    pub security: Option<SecurityOptions>,
    /// The SCTP port that senders connect to. Default: 9899.
    pub local_port: u16,
    /// An unfinished reliable stream keeps its place, however long its sender is gone, until
    /// [`give_up`](Self::give_up). Default: no, another sender takes it.
    pub hold: bool,
    /// Which streams are taken, by their names. Default: one, of any name.
    pub admission: Admission,
    /// Only senders with these keys, or names of certificates, are taken
    /// (`braidcast_secure::Peer::listed`), each with the name that the list has for it. Needs
    /// [`security`](Self::security) that lets in who has one of them. Default: `None`, keys say
    /// nothing of names.
    pub permits: Option<BTreeMap<Fingerprint, Permit>>,
    /// What comes of live streams is kept for [`Receiver::take_pieces`](crate::Receiver::take_pieces).
    /// Default: no.
    pub pieces: bool,
    /// Of a receiver that dials: what the stream is called that it wants, as
    /// [`check_name`](crate::wire::check_name) has it. Default: empty, the only one that there is.
    pub name: String,
    /// Of a receiver that dials who serves a stream to many: time from the output there to the output
    /// here, 1 µs to 71 minutes. Default: `None`, as it is set there.
    pub latency: Option<Duration>,
    /// Who is told of what happens inside, in the transport too. Default: nobody.
    pub events: Tracer,
}

/// Which streams a receiver takes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Admission {
    /// One at a time, of any name or none.
    One,
    /// Those of these names, each beside the others.
    Named(Vec<String>),
    /// Each that has a name, so many beside each other at most.
    Each(usize),
}

impl ReceiverOptions {
    /// The same after `change`.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

impl Default for ReceiverOptions {
    fn default() -> Self {
        Self {
            early: false,
            keep: false,
            log: false,
            output_size: 7 * 188,
            slice: SLICE,
            buffer: 64 << 20,
            give_up: None,
            security: None,
            local_port: PORT,
            hold: false,
            admission: Admission::One,
            permits: None,
            pieces: false,
            name: String::new(),
            latency: None,
            events: Tracer::default(),
        }
    }
}

impl ReceiverOptions {
    /// SCTP as such a session has it: it takes redundancy from whoever sends some.
    pub fn transport(&self) -> Options {
        live(self.local_port, self.security.as_ref()).with(|transport| {
            transport.timers.give_up = self.give_up;
            transport.redundancy.fec_receive = true;
            transport.events = self.events.clone();
        })
    }
}

/// SCTP as both ends have it.
fn live(local_port: u16, security: Option<&SecurityOptions>) -> Options {
    let mut transport = Options::live().with(|it| {
        it.local_port = local_port;
        it.security = security.cloned();
    });
    transport.limits.streams = transport.limits.streams.max(STREAMS);
    // A sender asks for it only if its scheduler heeds it.
    transport.paths.forward_delay = true;
    transport
}

/// A handshake over all networks at once, and again each second until the session begins another:
/// the first network that works does it.
pub(crate) fn knock(transport: &mut Options) {
    transport.timers.open_over_all = Some(Duration::from_secs(1));
    transport.timers.max_init_retransmits = 20;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_a_fiftieth_of_the_latency_at_most() {
        let ms = Duration::from_millis;
        assert_eq!([50, 200, 5000].map(|latency| slice_of(SLICE, ms(latency))), [ms(1), SLICE, SLICE]);
        assert_eq!(slice_of(Duration::ZERO, ms(500)), Duration::ZERO);
    }

    #[test]
    fn a_reliable_session_has_no_queue_and_one_with_a_code_waits_longer() {
        let transport = |reliable| SenderOptions { reliable, ..SenderOptions::default() }.transport();
        let queues = [false, true].map(|reliable| {
            let it = transport(reliable);
            (it.queue.method, it.limits.send_buffer >> 20)
        });
        assert_eq!(queues, [(Some(Method::ByWorth), 8), (None, 4)]);
        let auto = SenderOptions { redundancy: Redundancy::Auto, ..SenderOptions::default() }.transport();
        let (rto, usual) = (auto.timers.rto, Options::live().timers.rto);
        assert!(rto.min > usual.min && rto.initial > usual.initial && rto.max == usual.max);
        assert!(auto.redundancy.fec_receive && auto.redundancy.fec.is_none());
    }
}
