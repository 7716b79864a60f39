use braidcast_core::named;

/// What the window does when the peer echoes that a packet was marked (ECN).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MarkResponse {
    /// Halves, as upon a loss (RFC 3168 §6.1.2).
    #[default]
    Halve,
    /// Keeps four fifths, in slow start half: who marks does so at a short queue ("ABE", RFC 8511 §3.1, §4).
    Abe,
}

named! {
    /// Both, by the name that command line and scenarios use.
    MarkResponse, "mark response" {
        "halve" => Halve,
        "abe" => Abe,
    }
}
