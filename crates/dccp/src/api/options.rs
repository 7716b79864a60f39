use super::{ReorderOptions, TfrcOptions};
use crate::ccid::Ccid;
use braidcast_cc::Algorithm;
use braidcast_core::events::Tracer;
use braidcast_core::{Instant, Misuse};
use braidcast_queue::{Limits, Method, Priority};
use braidcast_secure::SecurityOptions;
use core::time::Duration;
use std::sync::Arc;

/// How an endpoint and its connections behave. [`Default`] is what RFC 4340 recommends, where it says anything.
///
/// # Memory
/// A connection at rest takes 6 to 8 KiB at each end (`tests/it/memory.rs`). A busy one takes no more
/// than twice `send_queue` · `max_packet`, `receive_buffer` and 64 packets, 2.1 MB for 65,536
/// packets out, and 50 KB for all else: 3.5 MB by default. A reordering buffer adds X · `D_max`
/// bytes, 4096 packets at most. In all that is for `max_connections` connections; besides them an
/// endpoint keeps 65,536 resting ports (6 MB) and 256 answers.
#[derive(Clone, Debug)]
pub struct Options {
    /// Congestion controls for both directions, the best first, one to [eight](Self::MAX_CCIDS).
    /// Default CCID 2 (RFC 4340 §10).
    pub ccids: Vec<Ccid>,
    /// Congestion controller of the window that CCID 2 or CUBIC gives to what this end sends; the
    /// peer need not know. Default `None`: Reno (RFC 4341 §5), or CUBIC.
    pub cc: Option<Algorithm>,
    /// How CCID 3 and 4 behave.
    pub tfrc: TfrcOptions,
    /// Puts packets into order before loss detection and the application see them (CCID 3 and 4). Default `None`: off.
    pub reorder: Option<ReorderOptions>,
    /// Which of the messages that wait goes next, and which one not at all. Default
    /// [`FifoTimed`](braidcast_queue::Method::FifoTimed).
    pub queue: Method,
    /// How many messages, one or more, and bytes in them, may wait to be sent. Default 64 messages.
    pub send_queue: Limits,
    /// The delay to the receiver that queues judge by what would arrive too late. Default measured.
    pub one_way_delay: OneWayDelay,
    /// A message that the peer's application ignores, to be sent where the queue asks for padding
    /// ([`KeepAlive`](braidcast_queue::Method::KeepAlive) does). Default `None`: none is sent.
    pub padding: Option<Arc<[u8]>>,
    /// Bytes received and not yet taken; what comes on top is dropped and reported as such (§11.7). Default 1 MiB.
    pub receive_buffer: usize,
    /// DCCP packet in bytes, headers included, that every path is trusted to carry (`BASE_PLPMTU`,
    /// RFC 8899 §5.1.2). Default
    /// 1200. More than `max_packet` counts as that.
    pub base_packet: usize,
    /// Size of the largest packets at first. What is above `base_packet` is probed as soon as such
    /// packets leave. If they do not get through, they have the base size some 3 s later, and the
    /// search for what the path carries begins there. The base size here avoids even that: then nothing
    /// larger leaves before a probe has come back. Default `None`: `max_packet` (RFC 4340 §14.1).
    pub first_packet: Option<usize>,
    /// Largest DCCP packet in bytes, headers included, [128](Self::MIN_PACKET) to
    /// [65,507](Self::MAX_PACKET), and no more than [9216](Self::MAX_PROBE) if that is above
    /// `base_packet`. What is between the present size and this is probed once the application has
    /// use for it. Default 1400.
    pub max_packet: usize,
    /// Data packets of one size that are handed out at once, for the kernel to cut (UDP
    /// segmentation offload), 1 to 64. Default 40.
    pub max_segments: usize,
    /// Packets that may be out at first (§7.5.2, 32 to 2^46 − 1); grows to five times what a round
    /// trip takes. Default 1000.
    pub sequence_window: u64,
    /// Ask for short sequence numbers on data (§7.6.1): four to eight bytes less, easier to forge. Default false.
    pub short_seqnos: bool,
    /// Ask the peer for NDP Counts (§7.7), which tell lost data from lost acknowledgements. Default false.
    pub ndp_count: bool,
    /// Least checksum coverage of data that is accepted, 0 to 15; 0, the default, means all of it (§9.2.1).
    pub min_coverage: u8,
    /// Put a CRC-32c of the data on each data packet and demand that the peer checks it (§9.3). Default false.
    pub data_checksum: bool,
    /// ECN bits of what arrives can be read, and what is sent may be marked (§12). Default true.
    pub ecn: bool,
    /// Send ECN nonces (§12.2). Default false: RFC 8311 §6 has data sent as ECT(0).
    pub ecn_nonce: bool,
    /// Connections whose handshake is not done that a server remembers, for clients that do not
    /// bring their Init Cookie back (§8.1.4), as Linux; the newest push out the oldest. All others
    /// need none: what it would have to know is in the cookie. 0 keeps no state at all before the
    /// Response is answered. A million at most, default 128, some 7 KiB each.
    pub half_open: usize,
    /// This endpoint is the only one on the machine that speaks DCCP straight over IP: it answers
    /// packets to any port with Resets (§8.5 step 2). Default false: only for ports that it listens
    /// at, has connections at or had some at a [`time_wait`](Self::time_wait) ago, since raw
    /// sockets get what is for other processes too.
    pub answer_for_host: bool,
    /// How long an Init Cookie is good for. Default 60 s.
    pub cookie_life: Duration,
    /// Time after which Requests without an answer end (§8.1.1: 3 minutes, for example). Default 180 s.
    pub request_timeout: Duration,
    /// How long a handshake may stay half done (§8.1.3, §8.1.5: 4 MSL). Default 480 s.
    pub handshake_timeout: Duration,
    /// How long a connection that is to be closed hears nothing of its peer while it still sends
    /// what waits, and how long Close and CloseReq are repeated (§8.3 names no end), before the
    /// peer counts as gone. Default 240 s (2 MSL).
    pub close_timeout: Duration,
    /// How long the port pair of a closed connection rests (2 MSL). Default 240 s.
    pub time_wait: Duration,
    /// A server that closes keeps TIMEWAIT itself instead of asking the client to (§8.3). Default false.
    pub server_holds_time_wait: bool,
    /// Connections at once. Default 16,384.
    pub max_connections: usize,
    /// Encryption and authentication of all packets (`docs/decisions/0020`). Default `None`.
    pub security: Option<SecurityOptions>,
    /// Who is told of what happens inside. It changes nothing of that. Default nobody.
    pub events: Tracer,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            ccids: vec![Ccid::Two],
            cc: None,
            tfrc: TfrcOptions::default(),
            reorder: None,
            queue: Method::FifoTimed,
            send_queue: Limits::messages(64),
            one_way_delay: OneWayDelay::default(),
            padding: None,
            receive_buffer: 1 << 20,
            base_packet: 1200,
            first_packet: None,
            max_packet: 1400,
            max_segments: 40,
            sequence_window: 1000,
            short_seqnos: false,
            ndp_count: false,
            min_coverage: 0,
            data_checksum: false,
            ecn: true,
            ecn_nonce: false,
            half_open: 128,
            answer_for_host: false,
            cookie_life: Duration::from_secs(60),
            request_timeout: Duration::from_secs(180),
            handshake_timeout: Duration::from_secs(480),
            close_timeout: Duration::from_secs(240),
            time_wait: Duration::from_secs(240),
            server_holds_time_wait: false,
            max_connections: 16_384,
            security: None,
            events: Tracer::default(),
        }
    }
}

impl Options {
    /// The most congestion controls that are negotiated.
    pub const MAX_CCIDS: usize = 8;
    /// The smallest `max_packet` and `base_packet`: the longest headers, and some data.
    pub const MIN_PACKET: usize = 128;
    /// The largest packets: what UDP over IPv4 carries.
    pub const MAX_PACKET: usize = 65_507;
    /// The largest packet that a path is probed with.
    pub const MAX_PROBE: usize = 9216;

    /// Returns `true` if an endpoint can do with these options. It asks itself
    /// ([`Endpoint::new`](crate::Endpoint::new)).
    ///
    /// # Errors
    /// [`Misuse`]: the first option with a value that cannot work, or not beside another.
    pub fn check(&self) -> Result<(), Misuse> {
        Misuse::unless_within("ccids.len()", self.ccids.len(), 1..=Self::MAX_CCIDS)?;
        self.tfrc.check()?;
        Misuse::below("send_queue.messages", self.send_queue.messages, 1)?;
        Misuse::below("send_queue.bytes", self.send_queue.bytes, 1)?;
        Misuse::below("receive_buffer", self.receive_buffer, 1)?;
        let packets = Self::MIN_PACKET..=Self::MAX_PACKET;
        Misuse::unless_within("base_packet", self.base_packet, packets.clone())?;
        Misuse::unless_within("max_packet", self.max_packet, packets.clone())?;
        if self.base_packet < self.max_packet {
            Misuse::unless_within("max_packet", self.max_packet, Self::MIN_PACKET..=Self::MAX_PROBE)?;
        }
        self.first_packet.map_or(Ok(()), |it| Misuse::unless_within("first_packet", it, packets))?;
        Misuse::unless_within("half_open", self.half_open, 0..=1_000_000)?;
        Misuse::unless_within("max_segments", self.max_segments, 1..=64)?;
        Misuse::unless_within("sequence_window", self.sequence_window, 32..=(1 << 46) - 1)?;
        if self.security.is_some() && self.data_checksum {
            let limit = "false beside security";
            return Err(Misuse::other("data_checksum", "true", limit, "leave it out: all packets are authenticated"));
        }
        Misuse::unless_within("min_coverage", self.min_coverage, 0..=15)
    }
}

/// How the delay from here to the receiver is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OneWayDelay {
    /// By round trips: half of the shortest of late, and all by which the present one is longer
    /// ([`RoundTrips`](braidcast_cc::RoundTrips)).
    #[default]
    Measured,
    /// Half of the smoothed round trip (SBPN §3.4).
    HalfRoundTrip,
    /// The application knows it.
    Known(Duration),
}

/// How one message is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SendOptions {
    /// Checksum coverage (RFC 4340 §9.2): 0, the default, all of it; n the first (n − 1)·4 bytes. 15 at most.
    pub coverage: u8,
    /// How important it is, for queues that heed it. Default the most important.
    pub priority: Priority,
    /// When it must be at the receiver: queues that heed it discard what would arrive later, by
    /// [`Options::one_way_delay`]; [`FifoTimed`](braidcast_queue::Method::FifoTimed) discards what
    /// has waited until then. Default `None`: it is never too late.
    pub deadline: Option<Instant>,
    /// What the application calls it in [`Event::Discarded`](crate::Event). Default `None`: nothing is told.
    pub context: Option<u64>,
}
