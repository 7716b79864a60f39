use braidcast_core::{Instant, PathId, Route};
use core::time::Duration;

/// How a path is doing (RFC 9260 §8.2, RFC 7829).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathState {
    /// Joining, or not yet proved to lead to the peer (RFC 9260 §5.4).
    Unconfirmed,
    /// Carries data.
    Active,
    /// Missed an answer: carries no new data while another path is active.
    PotentiallyFailed,
    /// Missed [`PathOptions::path_max_retrans`](crate::PathOptions::path_max_retrans) answers in a row; still probed.
    Inactive,
}

/// One path as it is now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct PathReport {
    /// Its number.
    pub id: PathId,
    /// Where it runs.
    pub route: Route,
    /// How it is doing.
    pub state: PathState,
    /// Smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// Variation of the round-trip time.
    pub rttvar: Duration,
    /// Smallest round-trip time.
    pub min_rtt: Option<Duration>,
    /// From when a packet that is lost leaves until that is known; `None` before a round trip was measured.
    pub loss_known: Option<Duration>,
    /// Retransmission timeout.
    pub rto: Duration,
    /// Congestion window, bytes.
    pub cwnd: usize,
    /// Slow start threshold, bytes; `usize::MAX` before the first loss.
    pub ssthresh: usize,
    /// Bytes sent and neither acknowledged nor taken for lost.
    pub in_flight: usize,
    /// Largest SCTP packet, bytes.
    pub mtu: usize,
    /// The same as it leaves, with what protects it.
    pub sealed_mtu: usize,
    /// How long packets stood in queues of late.
    pub queued: Duration,
    /// Bytes of data that were acknowledged, of what went over this path alone and was not made up for by redundancy.
    pub delivered_bytes: u64,
    /// What it could carry: bytes of data per second that it delivers when it is full, or has
    /// delivered at least while it never was. `None` before anything was acknowledged.
    pub capacity: Option<u64>,
    /// When it was last full, so that its capacity was measured.
    pub full_at: Option<Instant>,
    /// `true` if packets with data may say that they can be marked, if both ends agreed on ECN: false
    /// while a timeout is not yet behind, and for good once the path has turned out to lose such
    /// packets.
    pub takes_ect: bool,
    /// SCTP packets sent.
    pub sent_packets: u64,
    /// Bytes in them.
    pub sent_bytes: u64,
    /// Data chunks sent over this path that were taken for lost, other than because it fell silent.
    pub lost_chunks: u64,
    /// Data chunks sent again over this path.
    pub retransmitted_chunks: u64,
    /// Data chunks sent over this path, repeats included.
    pub sent_chunks: u64,
    /// Data chunks sent over this path as copies of what another one carries.
    pub copied_chunks: u64,
    /// Data chunks sent over this path that were acknowledged after later ones: lost, and made up
    /// for by redundancy, unless they only were late. Counted while redundancy is sent.
    pub repaired_chunks: u64,
    /// Redundancy chunks sent over this path.
    pub redundancy_chunks: u64,
    /// Of those sent again, the ones that acknowledgements of others showed to be lost.
    pub fast_retransmissions: u64,
    /// Of those sent again, the ones that T3-rtx took for lost.
    pub timeout_retransmissions: u64,
    /// Expiries of T3-rtx (RFC 9260 §6.3.3).
    pub t3_expiries: u64,
    /// Answers missed: expiries of T3-rtx and heartbeats.
    pub timeouts: u64,
    /// SCTP packets received.
    pub received_packets: u64,
    /// Bytes in them.
    pub received_bytes: u64,
    /// Of those received, the ones that said that the network can mark them, or were marked (ECN).
    pub ect_packets: u64,
    /// Of those received, the ones that the network had marked (ECN).
    pub marked_packets: u64,
    /// How often marks that the peer echoed reduced the window.
    pub mark_reductions: u64,
}

/// Messages that were abandoned, each counted once (RFC 7496 §4.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Abandoned {
    /// Before any of them was sent.
    pub unsent: u64,
    /// After a part was.
    pub sent: u64,
}

/// Counts over the life of an association.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Messages taken from the application.
    pub messages_sent: u64,
    /// Messages handed to the application.
    pub messages_received: u64,
    /// Data chunks sent for the first time.
    pub new_chunks: u64,
    /// Bytes of payload in them.
    pub new_bytes: u64,
    /// Data chunks sent again because acknowledgements of others showed them to be lost.
    pub fast_retransmissions: u64,
    /// Data chunks sent again because T3-rtx took them for lost.
    pub timeout_retransmissions: u64,
    /// Data chunks sent again for either reason, or because their path fell silent or left.
    pub retransmissions: u64,
    /// Expiries of T3-rtx, over all paths.
    pub t3_expiries: u64,
    /// Bytes of payload acknowledged, each once; abandoned ones do not count.
    pub acked_bytes: u64,
    /// Messages abandoned before any of them was sent.
    pub abandoned_unsent: u64,
    /// Of those, the ones that the queue discarded as they would have come too late.
    pub expired: u64,
    /// Of those, the ones that the queue discarded for want of room.
    pub crowded_out: u64,
    /// Messages abandoned after a part was sent.
    pub abandoned_sent: u64,
    /// Times that data went over to another path because it is better
    /// ([`PathOptions::selection`](crate::PathOptions::selection)).
    pub handovers: u64,
    /// Data chunks that arrived more than once.
    pub duplicate_chunks: u64,
    /// Data chunks that the peer reported as having come twice: repeats and copies that were not needed.
    pub duplicates_reported: u64,
    /// Of those, the ones that were sent again. The others were copies, or came after redundancy had made up for them.
    pub spurious_retransmissions: u64,
    /// SACKs that came after one with a higher cumulative TSN and told nothing: overtaken on another return path.
    pub overtaken_sacks: u64,
    /// Packets dropped: wrong tag, unknown source, malformed, not authenticated.
    pub dropped_packets: u64,
    /// Chunks whose fast retransmission was due, and waited for the code
    /// ([`RedundancyOptions::artx`](crate::RedundancyOptions::artx)).
    pub held_retransmissions: u64,
    /// Redundancy chunks sent.
    pub redundancy_sent: u64,
    /// Redundancy chunks that came.
    pub redundancy_received: u64,
    /// Of those, the ones that told nothing new.
    pub redundancy_useless: u64,
    /// Of those, the ones that came when something that they cover was no longer held.
    pub redundancy_late: u64,
    /// Of those, the ones that were abandoned before they were of use, as others or data needed the room.
    pub redundancy_evicted: u64,
    /// Of those, the ones that say what cannot be: an unknown rule, a range too long or out of the
    /// window, a length that no chunk has.
    pub redundancy_refused: u64,
    /// Data chunks that were made up for by redundancy, each before it came, if it ever did.
    pub recovered_chunks: u64,
    /// Solutions that are no data chunk of the association: redundancy that lied. None was delivered.
    pub inconsistent_chunks: u64,
    /// Data chunks that came and differ from what was made up for them, or from the first of them that came.
    pub contradicting_chunks: u64,
}
