use core::time::Duration;

/// The reordering buffer of a receiver whose congestion control is CCID 3 or 4 (THESIS ch. 5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReorderOptions {
    /// D_max: how long a packet may wait for those before it. THESIS §5.2 gives voice 100 ms and video 50 ms.
    pub max_delay: Duration,
    /// Packets that may wait, in place of X · D_max bytes.
    pub packets: Option<usize>,
}

impl ReorderOptions {
    /// A buffer of X · D_max bytes.
    pub const fn new(max_delay: Duration) -> Self {
        Self { max_delay, packets: None }
    }
}

/// How the reordering buffer does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReorderReport {
    /// Packets that wait now.
    pub held: usize,
    /// Q = X · D_max in bytes; none while X is not known.
    pub limit: Option<usize>,
    /// The most bytes of data that waited at a time.
    pub most_bytes: usize,
    /// Longest time that a packet waited.
    pub longest_delay: Duration,
    /// Times that the packet that the others waited for came.
    pub filled: u64,
    /// Times that it was waited for no longer.
    pub given_up: u64,
    /// Packets that came after that; they are handed over all the same, out of order.
    pub late: u64,
}
