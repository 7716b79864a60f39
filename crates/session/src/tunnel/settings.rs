//! What the user of a tunnel chooses.

use super::header;
use crate::redundancy::Redundancy;
use braidcast_core::events::Tracer;
use braidcast_dccp::{Call, Limits, Method, OneWayDelay, Options, Wanted};
use braidcast_rate::{RateLimits, RateOptions};
use braidcast_sctp::{Algorithm, SchedulerKind, SecurityOptions};
use std::time::Duration;

/// What the user chose, besides DCCP's options. [`Default`] is what the command does unless told otherwise.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Longest useful delay from application to application, for flows that have no lifetime of their
    /// own. Default 1 s.
    pub lifetime: Duration,
    /// Which of the datagrams that wait for congestion control goes next. Default `in-time`.
    pub queue: Method,
    /// Datagrams that wait at most. Default 512, many frames' worth: what keeps them young is their lifetime.
    pub queue_length: usize,
    /// How long the way to the other end takes, if that is known better than round trips tell. Default `None`.
    pub one_way_delay: Option<Duration>,
    /// The rates of use, with a CCID that has a rate. Default none.
    pub wanted: Wanted,
    /// What applications send to entrances of priority 0, or of which no priority is said, are such
    /// calls: while no more fit, one that begins is refused. With a CCID that has a rate. Default
    /// `None`: all are carried.
    pub admission: Option<Call>,
    /// Longest wait of a listener's jitter buffer. Default 200 ms.
    pub jitter_buffer: Duration,
    /// The rates that applications here are able to make, all together
    /// ([`Tunnel::rate_report`](super::Tunnel::rate_report)). Default: 100 kbit/s to 50 Mbit/s.
    pub encoder: RateLimits,
    /// From one of their frames to the next, 4 ms to 1 s, which a tunnel does not know by itself. Default 40 ms.
    pub picture_interval: Duration,
    /// Clients that a server has at once, [`CLIENTS_PER_HOST`](super::CLIENTS_PER_HOST) of one
    /// host; one more takes the place of the one that was silent longest. Default 256.
    pub clients: usize,
    /// Who is told of what happens inside the transport. Default: nobody.
    pub events: Tracer,
}

/// What the user of a tunnel over SCTP chose besides. [`Default`] is what the command does unless told otherwise.
#[derive(Clone, Debug)]
pub struct SctpOptions {
    /// How lost packets are made up for without waiting a round trip. Default: not at all.
    pub redundancy: Redundancy,
    /// Which path the next packet takes. Default: lowest delay.
    pub scheduler: SchedulerKind,
    /// How much each path may carry. Default Veno, as in `Options::live()`.
    pub congestion: Algorithm,
    /// Protection of all that goes and comes. Default: none.
    pub security: Option<SecurityOptions>,
}

impl Default for SctpOptions {
    fn default() -> Self {
        Self {
            redundancy: Redundancy::None,
            scheduler: SchedulerKind::default(),
            congestion: Algorithm::Veno,
            security: None,
        }
    }
}

impl SctpOptions {
    /// The port of SCTP at both ends, whatever UDP's are.
    pub const PORT: u16 = 9899;
    /// The longest datagram: UDP has none that are longer.
    const LONGEST: usize = header::LEN + 65_507;
    /// Bytes that wait in the queue at most, and as many that are sent and not acknowledged.
    const BUFFER: usize = 1 << 20;

    /// SCTP as such a tunnel has it.
    pub fn transport(&self, settings: &Settings) -> braidcast_sctp::Options {
        let mut it = braidcast_sctp::Options::live();
        it.local_port = Self::PORT;
        it.security = self.security.clone();
        it.paths.scheduler = self.scheduler;
        it.congestion.algorithm = self.congestion;
        it.queue.method = Some(settings.queue);
        it.limits.send_buffer = 2 * Self::BUFFER;
        it.limits.receive_buffer = 2 * Self::BUFFER;
        it.limits.max_message = Self::LONGEST;
        it.limits.max_associations = 2 * settings.clients;
        it.limits.skip_tsns = true;
        it.events = settings.events.clone();
        it.timers.rto = self.redundancy.rto(it.timers.rto);
        crate::options::knock(&mut it);
        it.redundancy = self.redundancy.transport();
        it.redundancy.fec_receive = true;
        it
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            lifetime: Duration::from_secs(1),
            queue: Method::default(),
            queue_length: 512,
            one_way_delay: None,
            wanted: Wanted::default(),
            admission: None,
            jitter_buffer: Duration::from_millis(200),
            encoder: RateLimits::default(),
            picture_interval: Duration::from_millis(40),
            clients: 256,
            events: Tracer::default(),
        }
    }
}

impl Settings {
    /// DCCP's options with what these say of its queue and of the way.
    pub(super) fn apply(&self, options: Options) -> Options {
        let send_queue = Limits::messages(self.queue_length);
        let one_way_delay = self.one_way_delay.map_or(OneWayDelay::Measured, OneWayDelay::Known);
        let (padding, events) = (Some(header::PADDING.into()), self.events.clone());
        Options { queue: self.queue, send_queue, one_way_delay, padding, events, ..options }
    }

    /// What a guide reckons with that looks at the paths itself.
    pub(super) fn rate_options(&self) -> RateOptions {
        RateOptions::new(self.encoder).latency(self.lifetime).interval(self.picture_interval)
    }

    /// Returns `true` if the queue discards what would come too late by the way that is before it.
    pub(super) const fn reckons_with_the_way(&self) -> bool {
        self.queue.heeds_delay()
    }
}
