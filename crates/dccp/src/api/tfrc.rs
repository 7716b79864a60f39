use braidcast_cc::tfrc::{FeedbackRate, Rules, Variant};
use braidcast_core::Misuse;
use core::time::Duration;

/// How CCID 3 and CCID 4 behave. Both ends of a connection should agree on `ccid4` and `feedback`, which nothing
/// negotiates: the receiver reports as often as its own options say, and the sender takes each report for a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TfrcOptions {
    /// Which CCID 4: plain (RFC 5622), or one of THESIS §4.5. Default plain. CCID 3 does not heed it.
    pub ccid4: Variant,
    /// Which edition of TFRC. Default RFC 5348.
    pub rules: Rules,
    /// Reports in a round trip. Default `None`: as the CCID has it, 1 but dynamic for THESIS's variants.
    pub feedback: Option<FeedbackRate>,
    /// Quadruple the rate after idle times, up to where it was. Default false.
    pub faster_restart: bool,
    /// Slow down while the round trip grows (RFC 5348 §4.5). Default true.
    pub reduce_oscillations: bool,
    /// Have the receiver compute the loss event rate (RFC 4342 §8.4). Default true, as it knows most; without it the
    /// sender takes it from Loss Intervals.
    pub ask_loss_event_rate: bool,
    /// Later packets that make a missing one lost (NDUPACK, RFC 5348 §5.1), 1 to 3. Default 3; 1
    /// takes reordering for loss, as ns-2's TFRC sink does.
    pub dup_acks: usize,
    /// How late timers may run out (t_gran). Default 10 ms.
    pub granularity: Duration,
    /// The round trip from which CCID4-N100 takes its initial rate, 1 ms to 10 s. Default 100 ms (THESIS eq. 4.13).
    pub nominal_rtt: Duration,
    /// A message that is found too late when its turn comes takes the turn with it, and nothing
    /// goes instead. Default false. So it was in Linux with SBPN: its CCID 3 had counted the packet
    /// before anybody looked at the expiry (SBPN §5.2.1.1).
    pub discard_takes_turn: bool,
    /// What the sender divides the loss event rate by, 1 to 10. Default 1; anything else takes more than TFRC's share.
    /// For one experiment alone: SBPN's kernel answered to about a third of its losses (SBPN table 5.1).
    pub loss_event_divisor: u32,
}

impl Default for TfrcOptions {
    fn default() -> Self {
        Self {
            ccid4: Variant::TfrcSp,
            rules: Rules::Rfc5348,
            feedback: None,
            faster_restart: false,
            reduce_oscillations: true,
            ask_loss_event_rate: true,
            dup_acks: 3,
            granularity: Duration::from_millis(10),
            nominal_rtt: Duration::from_millis(100),
            discard_takes_turn: false,
            loss_event_divisor: 1,
        }
    }
}

impl TfrcOptions {
    pub(super) fn check(&self) -> Result<(), Misuse> {
        Misuse::unless_within("tfrc.dup_acks", self.dup_acks, 1..=3)?;
        Misuse::unless_within(
            "tfrc.nominal_rtt",
            self.nominal_rtt,
            Duration::from_millis(1)..=Duration::from_secs(10),
        )?;
        Misuse::unless_within("tfrc.loss_event_divisor", self.loss_event_divisor, 1..=10)
    }
}

/// What the application wants from a rate, in bytes of data per second ([`Connection::set_wanted`](crate::Connection)).
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Wanted {
    /// A lower rate is useless to the application: [`CcidReport::below_minimum`](crate::CcidReport)
    /// reports it. It makes nothing faster.
    pub min: Option<f64>,
    /// More is never sent, though allowed.
    pub max: Option<f64>,
}
