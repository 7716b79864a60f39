use braidcast_core::named;

/// `true` if each of n paths may fill the n-th part of a buffer only, so that a slow path cannot block a fast one.
///
/// From Adhari, Dreibholz, Becke, Rathgeb and Tüxen, "Evaluation of Concurrent Multipath Transfer
/// over Dissimilar Paths", WAINA 2011; Dreibholz, Becke, Rathgeb and Tüxen, "On the Use of
/// Concurrent Multipath Transfer over Asymmetric Paths", GLOBECOM
/// 2010. New data goes over a path only while its bytes there and one packet more are within the part; a path on
/// which nothing is out is always open.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum BufferSplit {
    /// All paths share both buffers.
    #[default]
    None,
    /// The send buffer: what was sent over a path and is still held counts, that is until the
    /// cumulative or a non-renegable acknowledgement reaches it.
    Sender,
    /// The peer's receive buffer, as far as it is free or data is in flight: what is in flight
    /// over a path counts. The more lies at the peer behind gaps, the less a slow path may add.
    Receiver,
    /// Both.
    Both,
}

impl BufferSplit {
    pub(crate) const fn at_sender(self) -> bool {
        matches!(self, Self::Sender | Self::Both)
    }

    pub(crate) const fn at_receiver(self) -> bool {
        matches!(self, Self::Receiver | Self::Both)
    }
}

named! {
    /// Every way, by the name that options and scenarios use.
    BufferSplit, "buffer split" {
        "none" => None,
        "sender" => Sender,
        "receiver" => Receiver,
        "both" => Both,
    }
}
