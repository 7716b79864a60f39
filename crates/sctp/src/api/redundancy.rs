//! How erasure codes work together with congestion control and retransmission (ECMT = THESIS ch. 8).

use braidcast_core::named;

/// `true` if redundancy counts for the congestion window.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FecWindow {
    /// It goes where the window has room, and takes room until data sent after it over its path is acknowledged.
    #[default]
    Inside,
    /// It goes at once and takes no room (ECMT §II-A), so that a path is sent more than its window
    /// allows, by the code's share.
    Outside,
}

named! {
    /// Both, by the name that command line and scenarios use.
    FecWindow, "place of redundancy" {
        "inside" => Inside,
        "outside" => Outside,
    }
}

/// `true` if congestion control learns of losses that redundancy made up for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FecLosses {
    /// It does not: they are acknowledged before anything reports them missing three times (ECMT
    /// §II-B). Beside others at a bottleneck that drops packets, nothing holds such a flow back: it
    /// leaves them next to nothing (decision 14).
    Hidden,
    /// It does if packets stood in a queue, by the test with which TCP Veno separates congestion from
    /// other losses ([`Algorithm::Veno`](crate::Algorithm)): what a link loses by itself stays
    /// hidden, what a full queue drops does not.
    Queued,
    /// It does: what is acknowledged after later chunks of its path shrinks the window, once a round trip, as a fast
    /// retransmission would.
    #[default]
    Told,
}

named! {
    /// Every rule, by the name that command line and scenarios use.
    FecLosses, "rule for losses made up for" {
        "hidden" => Hidden,
        "queued" => Queued,
        "told" => Told,
    }
}

/// Adaptive retransmission (ECMT algorithm 2, THESIS algorithm 5): how long a fast retransmission waits for the code to
/// make up for the loss, δ. With a block code by ECMT eq. 1 (THESIS 8.1) in any case; with the others by one of the
/// two readings of ECMT eq. 2 (THESIS 8.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Artx {
    /// Twice the round trip of the fastest path: `min`, as the equation is printed.
    Min,
    /// Twice the round trip of the slowest path, as the text has it.
    #[default]
    Slowest,
}

named! {
    /// Both readings, by the name that command line and scenarios use.
    Artx, "reading of eq. 8.2" {
        "min" => Min,
        "slowest" => Slowest,
    }
}

/// Where δ of [`Artx`] counts from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ArtxFrom {
    /// When the chunk was sent: what the derivations of ECMT eq. 1 and 2 count from. A
    /// retransmission that is due later than that waits for one more report only. Measured to be
    /// better (decision 14).
    #[default]
    Sent,
    /// When its fast retransmission was due, as ECMT's algorithm 2 and its text have it.
    Due,
}

named! {
    /// Both, by the name that command line and scenarios use.
    ArtxFrom, "start of adaptive retransmission's wait" {
        "sent" => Sent,
        "due" => Due,
    }
}
