use super::SackOptions;
use braidcast_core::named;

/// When a receiver acknowledges, by the names that the papers and scenarios use; [`SackOptions`] has the single fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SackPolicy {
    /// Each packet at once: the "standard SACK" beside CMT-SACK (THESIS §6.1).
    EveryPacket,
    /// Every second packet or after 200 ms, and at once upon any gap or duplicate (RFC 9260 §6.2).
    Delayed,
    /// The same without the "at once": delayed acknowledgement for CMT, "CMT-SACK" (Iyengar et al. 2006 §III-D).
    Dac,
}

impl From<SackPolicy> for SackOptions {
    fn from(policy: SackPolicy) -> Self {
        let Self { delay, path, .. } = Self::default();
        match policy {
            SackPolicy::EveryPacket => Self { every: 1, delay, dac: false, path },
            SackPolicy::Delayed => Self { every: 2, delay, dac: false, path },
            SackPolicy::Dac => Self { every: 2, delay, dac: true, path },
        }
    }
}

named! {
    /// Every policy, by name.
    SackPolicy, "SACK rule" {
        "every-packet" => EveryPacket,
        "delayed" => Delayed,
        "dac" => Dac,
    }
}
