use crate::api::{Abandonment, Options, StreamOrder};
use braidcast_core::named;

/// The five transports that PRCMT compares (§6), as sets of options.
///
/// Its §5 uses "PR-CMTf" in passing for partial reliability alone; §6, which defines the modes and
/// measures them, has it without delayed abandonment, and so it is here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PrVariant {
    /// One path at a time; late messages are abandoned at once.
    PrSctp,
    /// PR-SCTP with delayed abandonment.
    PrSctpF,
    /// All paths at once, all messages reliable and equal.
    Cmt,
    /// CMT with partial reliability, without delayed abandonment, all messages equal.
    PrCmtF,
    /// CMT with partial reliability, delayed abandonment and stream priorities.
    PrCmt,
}

impl PrVariant {
    /// `options` with what the variant says.
    #[must_use]
    pub fn apply(self, options: Options) -> Options {
        let (concurrent, abandonment, stream_order) = match self {
            Self::PrSctp => (false, Abandonment::ImmediateCounted, StreamOrder::Fcfs),
            Self::PrSctpF => (false, Abandonment::Delayed, StreamOrder::Fcfs),
            Self::Cmt => (true, Abandonment::Delayed, StreamOrder::Fcfs),
            Self::PrCmtF => (true, Abandonment::ImmediateCounted, StreamOrder::Fcfs),
            Self::PrCmt => (true, Abandonment::Delayed, StreamOrder::Priority),
        };
        options.with(|it| {
            it.paths.concurrent = concurrent;
            it.papers.abandonment = abandonment;
            it.queue.stream_order = stream_order;
        })
    }

    /// Returns `true` if messages are sent with a lifetime ([`Reliability::Lifetime`](crate::Reliability)).
    pub fn is_partially_reliable(self) -> bool {
        self != Self::Cmt
    }
}

named! {
    /// Every variant, by the name that command line and scenarios use.
    PrVariant, "variant" {
        "pr-sctp" => PrSctp,
        "pr-sctpf" => PrSctpF,
        "cmt" => Cmt,
        "pr-cmtf" => PrCmtF,
        "pr-cmt" => PrCmt,
    }
}
