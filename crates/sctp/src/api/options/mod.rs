//! How an endpoint and its associations behave, in groups.

mod congestion;
mod limits;
mod papers;
mod paths;
mod queue;
mod redundancy;
mod sack;
mod timers;

pub use braidcast_secure::SecurityOptions;
pub use congestion::CongestionOptions;
pub use limits::LimitOptions;
pub use papers::PaperRules;
pub use paths::PathOptions;
pub use queue::QueueOptions;
pub use redundancy::RedundancyOptions;
pub use sack::SackOptions;
pub use timers::TimerOptions;

use crate::addresses::Addresses;
use crate::api::{CwndUnit, LossDetection, MarkResponse, RttSamples, SackPath};
use braidcast_cc::{Algorithm, RtoBounds};
use braidcast_core::Misuse;
use braidcast_core::events::Tracer;
use braidcast_mpath::{RetransmissionPolicy, SchedulerKind};
use core::time::Duration;
use std::net::IpAddr;

/// The shortest of the times that must not be zero, as timers would run out again at once.
const LEAST_TIME: Duration = Duration::from_millis(1);

/// How an endpoint and its associations behave. [`Default`] is what RFC 9260 §16 recommends, where it says anything.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// SCTP port of this endpoint, 1 to 65535. Default 9899, the port of SCTP over UDP (RFC 6951 §4.1).
    pub local_port: u16,
    /// Secret that both ends share (RFC 4895 endpoint pair shared key). Empty, the default: joins are bound to the
    /// handshake, but whoever saw the handshake could forge them.
    pub key: Vec<u8>,
    /// Addresses of our sockets from the first one on, in their order, eight at most, listed in
    /// INIT and INIT ACK (RFC 9260 §5.1.2) for peers whose paths do not join by ASCONF: Linux, as
    /// it comes. A request by ASCONF names one that the peer still has; Linux finds the association
    /// by nothing else. If there are any, what the peer lists counts too: a route between
    /// listed addresses needs no join, and a packet from a listed address makes a path of its
    /// route. Default none, since lists are wrong behind NATs.
    pub local_addresses: Vec<IpAddr>,
    /// Offer I-DATA (RFC 8260), so that a long message does not hold up the others. Default true.
    pub interleaving: bool,
    /// Offer RE-CONFIG (RFC 6525), so that either end may number streams anew and add some
    /// ([`reconfigure`](crate::Association::reconfigure)). The peer may then, too, up to
    /// [`LimitOptions::streams`]. Default false.
    pub reconfiguration: bool,
    /// Records of the peer may come without a CRC32c (RFC 9653), if both ends encrypt. Default:
    /// yes.
    pub zero_checksum: bool,
    /// Tell the peer, where it offers that too, when each message with a
    /// [deadline](crate::SendOptions::deadline) was given to us and when it is due, and say the same of
    /// those that come ([`Received::timing`](crate::Received), decision 39). It takes 8 bytes of such a
    /// message, and 12 of each packet in which one leaves first in half a round trip. Default false.
    pub timed_messages: bool,
    /// Paths: how many, which carries what, how large packets are, when one has failed.
    pub paths: PathOptions,
    /// How much is held at most.
    pub limits: LimitOptions,
    /// Protection of all that an association sends. Default none.
    pub security: Option<SecurityOptions>,
    /// How long is waited, how often tried.
    pub timers: TimerOptions,
    /// When data is acknowledged.
    pub sack: SackOptions,
    /// How fast data leaves.
    pub congestion: CongestionOptions,
    /// Where messages wait. Default nowhere but in their streams.
    pub queue: QueueOptions,
    /// Redundancy by an erasure code. Default none.
    pub redundancy: RedundancyOptions,
    /// What only the papers' experiments need.
    pub papers: PaperRules,
    /// Who is told of what happens inside: chunks, packets and paths. It changes nothing of that. Default nobody.
    pub events: Tracer,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            local_port: 9899,
            key: Vec::new(),
            local_addresses: Vec::new(),
            interleaving: true,
            reconfiguration: false,
            zero_checksum: true,
            timed_messages: false,
            paths: PathOptions::default(),
            limits: LimitOptions::default(),
            security: None,
            timers: TimerOptions::default(),
            sack: SackOptions::default(),
            congestion: CongestionOptions::default(),
            queue: QueueOptions::default(),
            redundancy: RedundancyOptions::default(),
            papers: PaperRules::default(),
            events: Tracer::default(),
        }
    }
}

impl Options {
    /// For live media: quick acknowledgements and timers, so that a dead path is noticed within a second.
    ///
    /// RTO from 200 ms to 3 s instead of 1 s to 60 s (RFC 9260 §6.3.1 C5 allows a lower limit where
    /// the clock is fine enough), SACKs after 20 ms over the quickest path, heartbeats each second on paths that carry
    /// nothing, each half where they do not answer, however long that lasts, and each tenth at
    /// first: no outage ends the association; queues of 60 ms at most; a first window of ten
    /// packets (RFC 6928) and [`Algorithm::Veno`], so that a path that was idle can take over;
    /// [`MarkResponse::Abe`], as else a mark would cost more than a loss.
    pub fn live() -> Self {
        let ms = Duration::from_millis;
        Self {
            paths: PathOptions {
                heartbeat_interval: ms(1000),
                longest_silence: Some(ms(500)),
                silent_interval: Some(ms(100)),
                ..PathOptions::default()
            },
            timers: TimerOptions {
                rto: RtoBounds::new(ms(500), ms(200), ms(3000)),
                association_max_retrans: None,
                reordering: Some(ms(15)),
                ..TimerOptions::default()
            },
            sack: SackOptions { delay: ms(20), path: SackPath::Quickest, ..SackOptions::default() },
            congestion: CongestionOptions {
                algorithm: Algorithm::Veno,
                mark_response: MarkResponse::Abe,
                initial_window: Some(10),
                queueing_limit: Some(ms(60)),
                ..CongestionOptions::default()
            },
            ..Self::default()
        }
    }

    /// Returns `true` if redundancy is taken from the peer.
    pub(crate) const fn takes_redundancy(&self) -> bool {
        self.redundancy.fec.is_some() || self.redundancy.fec_receive
    }

    /// CMT-SCTP as the papers' simulations have it (ns-2's `Agent/SCTP/CMT`, RFC 2960 constants),
    /// for their experiments.
    ///
    /// Packets of 1500 bytes with a plain IPv4 header, DATA chunks, a first window of two packets,
    /// 64 KiB of receive window and of initial `ssthresh`, which a loss leaves at two packets or
    /// more, windows of whole packets, bursts of four, RTO from 1 s (3 s before the first
    /// measurement), split fast retransmit once for each chunk and T3 after that, CUCv2, RTX-CWND,
    /// SACKs back over the path of the last packet; heartbeats each 30 s, and nothing that came
    /// later: no pacing, no probes, no quick failover.
    pub fn classic() -> Self {
        let rwnd = 65_536;
        let mtu = 1480;
        Self {
            interleaving: false,
            paths: PathOptions {
                scheduler: SchedulerKind::RoundRobin,
                base_mtu: mtu,
                max_mtu: mtu,
                slices: false,
                quick_failover: None,
                probe: false,
                ..PathOptions::default()
            },
            limits: LimitOptions {
                receive_buffer: rwnd,
                max_message: rwnd / 2,
                max_segments: 1,
                ..LimitOptions::default()
            },
            timers: TimerOptions {
                rto: RtoBounds::new(Duration::from_secs(3), Duration::from_secs(1), Duration::from_secs(60)),
                ..TimerOptions::default()
            },
            sack: SackOptions { path: SackPath::Last, ..SackOptions::default() },
            congestion: CongestionOptions {
                ecn: false,
                initial_window: Some(2),
                pacing: false,
                ..CongestionOptions::default()
            },
            papers: PaperRules {
                loss_detection: LossDetection::Count,
                retransmission: RetransmissionPolicy::RtxCwnd,
                cwnd_unit: CwndUnit::Payload,
                initial_ssthresh: Some(rwnd),
                min_ssthresh: 2,
                max_burst: Some(4),
                rtt_samples: RttSamples::AnyReturn,
                ..PaperRules::default()
            },
            ..Self::default()
        }
    }

    /// Returns `true` if an endpoint can do with these options. It asks itself
    /// ([`Endpoint::new`](crate::Endpoint::new)).
    ///
    /// # Errors
    /// [`Misuse`]: the first option with a value that cannot work, or not beside another.
    pub fn check(&self) -> Result<(), Misuse> {
        Misuse::below("local_port", self.local_port, 1)?;
        Misuse::unless_within("local_addresses.len()", self.local_addresses.len(), 0..=Addresses::MAX)?;
        self.paths.check()?;
        self.limits.check()?;
        self.timers.check()?;
        self.sack.check()?;
        self.congestion.check()?;
        self.queue.check()?;
        self.redundancy.check()?;
        self.papers.check()
    }

    /// These options with a `change`, for fields within groups:
    /// `Options::live().with(|options| options.paths.max_paths = 2)`.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}
