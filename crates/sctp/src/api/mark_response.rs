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

impl MarkResponse {
    /// The share of the window that is kept.
    pub(crate) fn kept(self, in_slow_start: bool) -> f64 {
        if self == Self::Abe && !in_slow_start { 0.8 } else { 0.5 }
    }
}

named! {
    /// Both, by the name that command line and scenarios use.
    MarkResponse, "mark response" {
        "halve" => Halve,
        "abe" => Abe,
    }
}
