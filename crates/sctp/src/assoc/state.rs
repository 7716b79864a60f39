use braidcast_core::Instant;

/// The states of RFC 9260 §4 from the handshake's end on, each with the data that only it has;
/// those before are `opening::Stage`'s.
///
/// ```text
///                                       Opening, or cookie came back
///                                                          |
///                                                     Established
///                                                          |
///                    shutdown()                            |            SHUTDOWN came
///          ShutdownPending <-------------------------------+-------------> ShutdownReceived
///               | all acknowledged: SHUTDOWN                      all acknowledged: SHUTDOWN ACK |
///          ShutdownSent                                                              ShutdownAckSent
///               | SHUTDOWN ACK: SHUTDOWN COMPLETE                          SHUTDOWN COMPLETE |
///               +----------------------------------> Closed <-------------------------------+
/// ```
#[derive(Debug)]
pub(crate) enum State {
    /// Data flows.
    Established,
    /// Shutdown asked for; data is still out.
    ShutdownPending,
    /// The peer shuts down; data is still out.
    ShutdownReceived,
    /// SHUTDOWN sent.
    ShutdownSent(Closing),
    /// SHUTDOWN ACK sent.
    ShutdownAckSent(Closing),
    /// Over.
    Closed,
}

/// T2-shutdown and T5-shutdown-guard (RFC 9260 §9.2).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Closing {
    /// When the chunk is sent again.
    pub(crate) repeat: Instant,
    /// When patience ends.
    pub(crate) guard: Instant,
    /// How often it was sent again.
    pub(crate) repeats: u32,
}

impl State {
    /// Returns `true` if the application may send.
    pub(crate) const fn takes_messages(&self) -> bool {
        matches!(self, Self::Established)
    }

    /// Returns `true` if chunks may be sent and acknowledged.
    pub(crate) const fn carries_data(&self) -> bool {
        matches!(self, Self::Established | Self::ShutdownPending | Self::ShutdownReceived)
    }

    /// Returns `true` if data from the peer is taken (RFC 9260 §6: not in SHUTDOWN-RECEIVED and after).
    pub(crate) const fn accepts_data(&self) -> bool {
        matches!(self, Self::Established | Self::ShutdownPending | Self::ShutdownSent(_))
    }

    /// Returns `true` if the association is over.
    pub(crate) const fn is_closed(&self) -> bool {
        matches!(self, Self::Closed)
    }

    /// Returns `true` if the association is not over.
    pub(crate) const fn is_up(&self) -> bool {
        !self.is_closed()
    }
}
