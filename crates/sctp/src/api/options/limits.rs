/// How much an endpoint and its associations hold at most.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LimitOptions {
    /// Bytes that may wait or be unacknowledged; [`SendError::BufferFull`](crate::SendError) beyond. Default 4 MiB.
    pub send_buffer: usize,
    /// Bytes received and not yet taken; the window that the peer is told. Default 4 MiB.
    pub receive_buffer: usize,
    /// Longest message in bytes, sent or received. Default 2 MiB; must fit both buffers.
    pub max_message: usize,
    /// Streams asked for and accepted in each direction, 1 to 65535. Default 64.
    pub streams: u16,
    /// Packets that one [`poll_transmit`](braidcast_core::Machine::poll_transmit) may put into the buffer for one
    /// route, 1 to 64. Default 40: with packets of 1472 bytes a UDP segmentation batch stays below 64 KiB.
    pub max_segments: usize,
    /// Associations that peers may open. Default 1024.
    pub max_associations: usize,
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
        }
    }
}
