use crate::api::{
    Abandonment, Artx, ArtxFrom, BufferSplit, CwndUnit, CwndUpdate, FecLosses, FecWindow, LossDetection, MarkResponse,
    QueueScope, RttSamples, SackPath, StreamOrder,
};
use braidcast_cc::{Congestion, LossResponse, RtoBounds};
use braidcast_fec::Code;
use braidcast_mpath::{RetransmissionPolicy, Scheduler};
use braidcast_queue::{Limits, Method};
use core::time::Duration;
use std::net::IpAddr;

/// How an endpoint and its associations behave. [`Default`] is what RFC 9260 §16 recommends, where it says anything.
#[derive(Clone, Debug)]
pub struct Options {
    /// SCTP port of this endpoint. Default 9899, the port of SCTP over UDP (RFC 6951 §4.1).
    pub local_port: u16,
    /// Secret that both ends share (RFC 4895 endpoint pair shared key). Empty, the default: joins are bound to the
    /// handshake, but whoever saw the handshake could forge them.
    pub key: Vec<u8>,
    /// Addresses of our sockets, eight at most, listed in INIT and INIT ACK (RFC 9260 §5.1.2) for peers whose paths do not
    /// join by ASCONF: Linux, as it comes. Where there are some, what the peer lists counts too: a route between listed
    /// addresses needs no join, and a packet from a listed address makes a path of its route. Default none, since lists are
    /// wrong behind NATs.
    pub local_addresses: Vec<IpAddr>,
    /// Which path carries new data. Default lowest delay.
    pub scheduler: Scheduler,
    /// What counts as lost. Default by time.
    pub loss_detection: LossDetection,
    /// New data goes over all paths at once. Default true; false: over the primary path alone, and over another one while the
    /// primary has failed (RFC 9260 §6.4).
    pub concurrent: bool,
    /// Which path carries what was lost. Default any with room (RTX-ASAP); without `concurrent` one of `all-rtx-same`,
    /// `all-rtx-alt`, `fr-same-rto-alt` is meant.
    pub retransmission: RetransmissionPolicy,
    /// Which acknowledgements let a path's window grow. Default CUCv2.
    pub cwnd_update: CwndUpdate,
    /// Which acknowledgements measure a path's round trip. Default those that come back over it.
    pub rtt_samples: RttSamples,
    /// What happens to messages whose lifetime ends in flight. Default delayed abandonment.
    pub abandonment: Abandonment,
    /// Which stream is served next. Default the most important.
    pub stream_order: StreamOrder,
    /// Streams asked for and accepted in each direction, 1 to 65535. Default 64.
    pub streams: u16,
    /// Bytes that may wait or be unacknowledged; [`SendError::BufferFull`](crate::SendError) beyond. Default 4 MiB.
    pub send_buffer: usize,
    /// Bytes received and not yet taken; the window that the peer is told. Default 4 MiB.
    pub receive_buffer: usize,
    /// Longest message in bytes, sent or received. Default 2 MiB; must fit both buffers.
    pub max_message: usize,
    /// Limits of the retransmission timeout. Default RFC 9260: 1 s, 1 s, 60 s.
    pub rto: RtoBounds,
    /// When data is acknowledged.
    pub sack: SackOptions,
    /// Offer NR-SACK (draft-natarajan-tsvwg-sctp-nrsack): what is acknowledged above a gap leaves the peer's send buffer at once,
    /// as nothing is ever dropped here. Default false: the draft expired and its chunk type is not registered.
    pub nr_sack: bool,
    /// Offer I-DATA (RFC 8260), so that a long message does not hold up the others. Default true.
    pub interleaving: bool,
    /// Pause between heartbeats of an idle path (HB.interval). Default 30 s.
    pub heartbeat_interval: Duration,
    /// Timeouts in a row after which a path is inactive (Path.Max.Retrans). Default 5.
    pub path_max_retrans: u32,
    /// Timeouts in a row after which new data avoids a path and heartbeats ask it each RTO (PotentiallyFailed.Max.Retrans,
    /// RFC 7829 §3). Default 0: the first timeout. `None`: as in RFC 9260 it carries data until it is inactive, and is asked
    /// each `heartbeat_interval`.
    pub quick_failover: Option<u32>,
    /// Timeouts in a row, over all paths, after which the association ends (Association.Max.Retrans). Default 10.
    pub association_max_retrans: u32,
    /// How often INIT and COOKIE ECHO are repeated (Max.Init.Retransmits). Default 8.
    pub max_init_retransmits: u32,
    /// How long a cookie is good for (Valid.Cookie.Life). Default 60 s.
    pub cookie_life: Duration,
    /// SCTP packet size that every path is trusted to carry (BASE_PLPMTU, RFC 8899 §5.1.2). Default 1200.
    pub base_mtu: usize,
    /// Largest SCTP packet that probing tries (MAX_PLPMTU). Default 1472: Ethernet less IPv4 and UDP headers.
    pub max_mtu: usize,
    /// Probe a silent path after two round trips (RFC 8985 §7), and meanwhile repeat what it owes over the other
    /// paths. Default true.
    pub probe: bool,
    /// Spread packets over the round trip instead of sending windows in bursts. Default true.
    pub pacing: bool,
    /// How the windows of the paths depend on each other. Default not at all.
    pub congestion: Congestion,
    /// Which buffers are divided among the paths. Default none.
    pub buffer_split: BufferSplit,
    /// What the window does upon loss. Default Reno.
    pub loss_response: LossResponse,
    /// What the window does upon marks (`ecn`). Default that it halves.
    pub mark_response: MarkResponse,
    /// Packets in the first window of a path; `None`, the default, as RFC 9260 §7.2.1 has it, three or four.
    pub initial_window: Option<usize>,
    /// Slow start threshold of a new path, bytes. Default `None`: arbitrarily high (RFC 9260 §7.2.1); ns-2 begins with the
    /// peer's window.
    pub initial_ssthresh: Option<usize>,
    /// Packets that a loss leaves the slow start threshold at least, where paths are not coupled. Default 4 (RFC 9260 §7.2.3);
    /// RFC 2960 §7.2.3 and ns-2 have 2.
    pub min_ssthresh: usize,
    /// What a packet counts for in a window. Default the MTU.
    pub cwnd_unit: CwndUnit,
    /// A window grows while it recovers from losses too, as ns-2.35's CMT lets it, against RFC 9260 §7.2.4. Default false.
    pub growth_in_recovery: bool,
    /// Packets with data that may leave over a path for one acknowledgement (Max.Burst, RFC 9260 §6.1 D, which recommends 4).
    /// Default `None`, as `pacing` serves the same end.
    pub max_burst: Option<u32>,
    /// How long our packets may stand in a path's queues before its window stops growing and shrinks, for data that must be
    /// on time ([`braidcast_cc::QueueingDelay`]). `None`, the default: only loss tells, as in RFC 9260.
    pub queueing_limit: Option<Duration>,
    /// Packets that one [`poll_transmit`](braidcast_core::Machine::poll_transmit) may put into the buffer for one
    /// route, 1 to 64. Default 40: with packets of 1472 bytes a UDP segmentation batch stays below 64 KiB.
    pub max_segments: usize,
    /// Paths that an association may have at once. Default 8.
    pub max_paths: usize,
    /// Associations that peers may open. Default 1024.
    pub max_associations: usize,
    /// The queue in which messages wait until a path has room, and by which the next one is chosen; see [`QueueScope`] for what
    /// it decides. Expiry is judged by the path that would carry the message; one that only a quicker path in use would bring in time
    /// waits for that, and the path takes the next one that it does bring in time. Padding (`keep-alive`) is never sent: a window that is not filled keeps.
    /// Default `None`: messages are sent in the order of their streams.
    pub queue: Option<Method>,
    /// How much waits in a queue at most. Bytes are no more than half of `send_buffer`, as the other half is for what was sent.
    /// Default no limit but that.
    pub send_queue: Limits,
    /// What the queue decides. Default everything.
    pub queue_scope: QueueScope,
    /// Offer ECN (RFC 4960 appendix A, draft-stewart-tsvwg-sctpecn; RFC 9260 leaves the numbers reserved): queues that mark
    /// instead of dropping are heard. A peer that does not know it skips the parameter. A path that loses packets which say that they
    /// can be marked is sent others ([`PathReport::takes_ect`](crate::PathReport::takes_ect)). Default true.
    pub ecn: bool,
    /// The erasure code that redundancy is sent by, if the peer takes it: lost chunks come back without a retransmission
    /// (ECMT). Chunks are cut so much shorter that a redundancy chunk fits the MTU. Default `None`: none is sent.
    pub fec: Option<Code>,
    /// Whether redundancy counts for the congestion window. Default inside.
    pub fec_window: FecWindow,
    /// Whether congestion control learns of losses that it made up for. Default that it does.
    pub fec_losses: FecLosses,
    /// How long fast retransmissions wait for the code, where one is used. Default `None`: not at all.
    pub artx: Option<Artx>,
    /// Where that counts from. Default when the chunk was sent.
    pub artx_from: ArtxFrom,
    /// Take redundancy from the peer even if `fec` sends none. Default false: with `fec` it is taken in any case.
    pub fec_receive: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            local_port: 9899,
            key: Vec::new(),
            local_addresses: Vec::new(),
            scheduler: Scheduler::default(),
            loss_detection: LossDetection::default(),
            concurrent: true,
            retransmission: RetransmissionPolicy::default(),
            cwnd_update: CwndUpdate::default(),
            rtt_samples: RttSamples::default(),
            abandonment: Abandonment::default(),
            stream_order: StreamOrder::default(),
            streams: 64,
            send_buffer: 4 << 20,
            receive_buffer: 4 << 20,
            max_message: 2 << 20,
            rto: RtoBounds::default(),
            sack: SackOptions::default(),
            nr_sack: false,
            interleaving: true,
            heartbeat_interval: Duration::from_secs(30),
            path_max_retrans: 5,
            quick_failover: Some(0),
            association_max_retrans: 10,
            max_init_retransmits: 8,
            cookie_life: Duration::from_secs(60),
            base_mtu: 1200,
            max_mtu: 1472,
            probe: true,
            pacing: true,
            congestion: Congestion::default(),
            buffer_split: BufferSplit::default(),
            loss_response: LossResponse::default(),
            mark_response: MarkResponse::default(),
            initial_window: None,
            initial_ssthresh: None,
            min_ssthresh: 4,
            cwnd_unit: CwndUnit::default(),
            growth_in_recovery: false,
            max_burst: None,
            queueing_limit: None,
            max_segments: 40,
            max_paths: 8,
            max_associations: 1024,
            queue: None,
            send_queue: Limits::NONE,
            queue_scope: QueueScope::default(),
            ecn: true,
            fec: None,
            fec_window: FecWindow::default(),
            fec_losses: FecLosses::default(),
            artx: None,
            artx_from: ArtxFrom::default(),
            fec_receive: false,
        }
    }
}

impl Options {
    /// For live media: quick acknowledgements and timers, so that a dead path is noticed within a second.
    ///
    /// RTO from 200 ms to 3 s instead of 1 s to 60 s (RFC 9260 §6.3.1 C5 allows a lower limit where the clock is
    /// fine enough), SACKs after 20 ms, heartbeats each second on paths that carry nothing, queues of 60 ms
    /// at most; a first window of ten packets (RFC 6928) and [`LossResponse::Veno`], so that a path that was idle can take over;
    /// [`MarkResponse::Abe`], as else a mark would cost more than a loss.
    pub fn live() -> Self {
        let ms = Duration::from_millis;
        Self {
            rto: RtoBounds { initial: ms(500), min: ms(200), max: ms(3000) },
            sack: SackOptions { delay: ms(20), ..SackOptions::default() },
            heartbeat_interval: ms(1000),
            association_max_retrans: 30,
            loss_response: LossResponse::Veno,
            mark_response: MarkResponse::Abe,
            initial_window: Some(10),
            queueing_limit: Some(ms(60)),
            ..Self::default()
        }
    }

    /// Whether redundancy is taken from the peer.
    pub(crate) const fn takes_redundancy(&self) -> bool {
        self.fec.is_some() || self.fec_receive
    }

    /// CMT-SCTP as the papers' simulations have it (ns-2's `Agent/SCTP/CMT`, RFC 2960 constants), for their experiments.
    ///
    /// Packets of 1500 bytes with a plain IPv4 header, DATA chunks, a first window of two packets, 64 KiB of receive window and
    /// of initial `ssthresh`, which a loss leaves at two packets or more, windows of whole packets, bursts of four, RTO from 1 s (3 s before the first measurement), split fast retransmit
    /// once for each chunk and T3 after that, CUCv2, RTX-CWND, SACKs back over the path of the last packet; heartbeats each
    /// 30 s, and nothing that came later: no pacing, no probes, no quick failover.
    pub fn classic() -> Self {
        let rwnd = 65_536;
        let mtu = 1480;
        Self {
            scheduler: Scheduler::RoundRobin,
            loss_detection: LossDetection::Count,
            retransmission: RetransmissionPolicy::RtxCwnd,
            rtt_samples: RttSamples::AnyReturn,
            receive_buffer: rwnd,
            max_message: rwnd / 2,
            rto: RtoBounds { initial: Duration::from_secs(3), ..RtoBounds::default() },
            sack: SackOptions { path: SackPath::Last, ..SackOptions::default() },
            interleaving: false,
            quick_failover: None,
            base_mtu: mtu,
            max_mtu: mtu,
            probe: false,
            pacing: false,
            initial_window: Some(2),
            initial_ssthresh: Some(rwnd),
            min_ssthresh: 2,
            cwnd_unit: CwndUnit::Payload,
            max_burst: Some(4),
            max_segments: 1,
            ecn: false,
            ..Self::default()
        }
    }
}

/// When a receiver acknowledges (RFC 9260 §6.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SackOptions {
    /// Packets with data after which a SACK goes out. Default 2.
    pub every: u32,
    /// Longest wait. Default 200 ms; at most 500 ms.
    pub delay: Duration,
    /// Delayed acknowledgement for CMT, "DAC": reordering, which several paths always bring, does not force a SACK.
    /// Default true, as loss detection counts time and does not need the early report.
    pub dac: bool,
    /// Over which path it goes back. Default in rotation.
    pub path: SackPath,
}

impl Default for SackOptions {
    fn default() -> Self {
        Self { every: 2, delay: Duration::from_millis(200), dac: true, path: SackPath::default() }
    }
}
