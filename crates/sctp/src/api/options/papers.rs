use crate::api::{Abandonment, ArtxFrom, BufferSplit, CwndUnit, CwndUpdate, LossDetection, RttSamples};
use braidcast_core::Misuse;
use braidcast_mpath::RetransmissionPolicy;

/// Rules that the experiments of the papers compare, and their simulators' constants. Whoever wants
/// to send data leaves them as they are.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct PaperRules {
    /// What counts as lost. Default by time.
    pub loss_detection: LossDetection,
    /// Which path carries what was lost. Default any with room (RTX-ASAP); without
    /// [`concurrent`](crate::PathOptions::concurrent) one of `all-rtx-same`, `all-rtx-alt`, `fr-same-rto-alt` is meant.
    pub retransmission: RetransmissionPolicy,
    /// Which acknowledgements let a path's window grow. Default CUCv2.
    pub cwnd_update: CwndUpdate,
    /// What a packet counts for in a window. Default the MTU.
    pub cwnd_unit: CwndUnit,
    /// A window grows while it recovers from losses too, as ns-2.35's CMT lets it, against RFC 9260
    /// §7.2.4. Default false.
    pub growth_in_recovery: bool,
    /// In congestion avoidance what is acknowledged cumulatively earns growth only if the window
    /// was full, and what is earned while it is not full is all kept, as in ns-2.35. Default false:
    /// everything earns growth, up to a step (RFC 9260 §7.2.2).
    pub credit_when_full: bool,
    /// T3-rtx starts anew with each cumulative acknowledgement of what went over the path, even if
    /// gap blocks named it before, and when the oldest chunk out there is to go again, as in
    /// ns-2.35's CMT. Default false: RFC 9260 §6.3.2.
    pub timer_follows_cumulative: bool,
    /// A delayed SACK counts for several missing reports (DAC) if its gap blocks are of one path,
    /// whatever it acknowledges cumulatively, as in ns-2.35. Default false: if all of it is of one.
    pub reports_by_gaps: bool,
    /// Slow start threshold of a new path, 1 byte or more. Default `None`: arbitrarily high (RFC
    /// 9260 §7.2.1); ns-2 begins with the peer's window.
    pub initial_ssthresh: Option<usize>,
    /// Packets that a loss leaves the slow start threshold at least, where paths are not coupled, 1 to
    /// [10,000](Self::MAX_MIN_SSTHRESH). Default 4 (RFC 9260 §7.2.3);
    /// RFC 2960 §7.2.3 and ns-2 have 2.
    pub min_ssthresh: usize,
    /// Packets with data that may leave over a path for one acknowledgement (Max.Burst, RFC 9260
    /// §6.1 D, which recommends 4), 1 or more. Default `None`, as
    /// [`pacing`](crate::CongestionOptions::pacing) serves the same end.
    pub max_burst: Option<u32>,
    /// `max_burst` bounds only what leaves after data that was sent again is acknowledged, as ns-2.35 has it: until a
    /// burst was that long. Default false.
    pub max_burst_after_retransmission: bool,
    /// Which acknowledgements measure a path's round trip. Default those that come back over it.
    pub rtt_samples: RttSamples,
    /// Offer NR-SACK (draft-natarajan-tsvwg-sctp-nrsack): what is acknowledged above a gap leaves
    /// the peer's send buffer at once, as nothing is ever dropped here. Default false: the draft
    /// expired and its chunk type is not registered.
    pub nr_sack: bool,
    /// Which buffers are divided among the paths. Default none.
    pub buffer_split: BufferSplit,
    /// What happens to messages whose lifetime ends in flight. Default delayed abandonment.
    pub abandonment: Abandonment,
    /// Where the wait for the code ([`artx`](crate::RedundancyOptions::artx)) counts from. Default
    /// when the chunk was sent.
    pub artx_from: ArtxFrom,
    /// Percentage by which schedulers take forward delays for longer than they are, 0 to
    /// [1000](Self::MAX_DELAY_ERROR) (THESIS §7.2.1). Default 0.
    pub delay_error: u32,
}

impl Default for PaperRules {
    fn default() -> Self {
        Self {
            loss_detection: LossDetection::default(),
            retransmission: RetransmissionPolicy::default(),
            cwnd_update: CwndUpdate::default(),
            cwnd_unit: CwndUnit::default(),
            growth_in_recovery: false,
            credit_when_full: false,
            timer_follows_cumulative: false,
            reports_by_gaps: false,
            initial_ssthresh: None,
            min_ssthresh: 4,
            max_burst: None,
            max_burst_after_retransmission: false,
            rtt_samples: RttSamples::default(),
            nr_sack: false,
            buffer_split: BufferSplit::default(),
            abandonment: Abandonment::default(),
            artx_from: ArtxFrom::default(),
            delay_error: 0,
        }
    }
}

impl PaperRules {
    /// The largest `min_ssthresh`.
    pub const MAX_MIN_SSTHRESH: usize = 10_000;
    /// The largest `delay_error`.
    pub const MAX_DELAY_ERROR: u32 = 1000;

    pub(super) fn check(&self) -> Result<(), Misuse> {
        let some = |option, it: Option<usize>| it.map_or(Ok(()), |it| Misuse::below(option, it, 1));
        some("papers.initial_ssthresh", self.initial_ssthresh)?;
        Misuse::unless_within("papers.min_ssthresh", self.min_ssthresh, 1..=Self::MAX_MIN_SSTHRESH)?;
        Misuse::unless_within("papers.delay_error", self.delay_error as usize, 0..=Self::MAX_DELAY_ERROR as usize)?;
        some("papers.max_burst", self.max_burst.map(|it| it as usize))
    }
}
