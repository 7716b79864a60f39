/// Where the standards of transports with a congestion window differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Standard {
    /// How acknowledgements make Reno's window grow.
    pub counting: Counting,
    /// What a loss takes a share of.
    pub loss_basis: LossBasis,
    /// Packets that a loss leaves of the window at least.
    pub floor: usize,
    /// What a window that is not full earns is all kept (RFC 2960 §7.2.2); else one step of it (RFC
    /// 9260 §7.2.2).
    pub keeps_credit: bool,
    /// Packets that the slow start threshold is never below.
    pub least_ssthresh: usize,
    /// A mark outside slow start takes less than a loss does: ABE (RFC 8511).
    pub abe: bool,
}

/// How acknowledgements make Reno's window grow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counting {
    /// By the bytes that they cover (RFC 9260 §7.2.1, §7.2.2): up to a packet for each in slow
    /// start, which a window at its threshold is in; then a packet for each window of bytes.
    Bytes,
    /// By their number, whatever they cover (RFC 5681 §3.1, equations 2 and 3; ns-2): delayed
    /// acknowledgements halve the growth.
    Acks,
    /// By the whole packets that they cover (RFC 4341 §5): in slow start a packet for two, up to
    /// half of the Ack Ratio for each acknowledgement; then a packet for each window.
    Packets,
}

/// What a loss takes a share of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LossBasis {
    /// The window.
    Window,
    /// What is in flight (RFC 5681 §3.1, equation 4). If the timer expires again for the same data,
    /// the threshold stays.
    Flight,
}

impl Standard {
    /// SCTP.
    pub const RFC_9260: Self = Self {
        counting: Counting::Bytes,
        loss_basis: LossBasis::Window,
        floor: 4,
        keeps_credit: false,
        least_ssthresh: 1,
        abe: false,
    };

    /// TCP.
    pub const RFC_5681: Self = Self {
        counting: Counting::Acks,
        loss_basis: LossBasis::Flight,
        floor: 2,
        keeps_credit: false,
        least_ssthresh: 2,
        abe: false,
    };

    /// DCCP's CCID 2.
    pub const RFC_4341: Self = Self {
        counting: Counting::Packets,
        loss_basis: LossBasis::Window,
        floor: 1,
        keeps_credit: false,
        least_ssthresh: 2,
        abe: false,
    };
}
