use braidcast_core::Misuse;

/// How much an endpoint and its associations hold at most.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct LimitOptions {
    /// Bytes that may wait or be unacknowledged; [`SendError::BufferFull`](crate::SendError)
    /// beyond. Messages shorter than 64 bytes on average count as that many. 1 byte to 1 GiB,
    /// default 4 MiB. Messages of the key handshake, 3.5 kB at most, come on top.
    pub send_buffer: usize,
    /// Bytes received and not yet taken; the window that the peer is told. 1500 bytes (RFC 9260
    /// §3.3.2) to 1 GiB, default 4 MiB.
    pub receive_buffer: usize,
    /// Longest message in bytes, sent or received; must fit both buffers. Default 2 MiB.
    pub max_message: usize,
    /// Streams asked for and accepted in each direction, 1 to 65535. Default 64.
    pub streams: u16,
    /// Packets that one [`poll_transmit`](braidcast_core::Machine::poll_transmit) may put into the
    /// buffer for one route, 1 to 64. Default 40: with packets of 1472 bytes a UDP segmentation
    /// batch stays below 64 KiB.
    pub max_segments: usize,
    /// Associations that peers may open; 0 refuses them all. One more takes the place of one that
    /// has sent nothing for 250 ms, of the host that opened most. Default 1024.
    pub max_associations: usize,
    /// Leave a TSN out now and then, so that a peer which acknowledges what it never got is found
    /// out and the association ended, as QUIC leaves out packet numbers (RFC 9000 §21.4). It takes
    /// a peer that knows FORWARD-TSN. Default: no.
    pub skip_tsns: bool,
}

impl Default for LimitOptions {
    fn default() -> Self {
        Self {
            send_buffer: 4 << 20,
            receive_buffer: 4 << 20,
            max_message: 2 << 20,
            streams: 64,
            max_segments: 40,
            max_associations: 1024,
            skip_tsns: false,
        }
    }
}

impl LimitOptions {
    /// The most bytes of a buffer, 1 GiB: sums of them fit 32 bits, as the window in a SACK does.
    pub const MAX_BUFFER: usize = 1 << 30;
    /// The smallest `receive_buffer` (RFC 9260 §3.3.2).
    pub const MIN_RECEIVE_BUFFER: usize = 1500;

    pub(super) fn check(&self) -> Result<(), Misuse> {
        Misuse::unless_within("limits.send_buffer", self.send_buffer, 1..=Self::MAX_BUFFER)?;
        let receive_buffer = Self::MIN_RECEIVE_BUFFER..=Self::MAX_BUFFER;
        Misuse::unless_within("limits.receive_buffer", self.receive_buffer, receive_buffer)?;
        Misuse::below("limits.max_message", self.max_message, 1)?;
        Misuse::above("limits.max_message", self.max_message, "limits.send_buffer", self.send_buffer)?;
        Misuse::above("limits.max_message", self.max_message, "limits.receive_buffer", self.receive_buffer)?;
        Misuse::below("limits.streams", self.streams, 1)?;
        Misuse::unless_within("limits.max_segments", self.max_segments, 1..=64)
    }
}
