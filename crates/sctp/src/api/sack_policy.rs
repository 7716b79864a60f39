use super::SackOptions;
use core::fmt;
use core::str::FromStr;

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

impl SackPolicy {
    /// Every policy, by name.
    pub const ALL: [(&'static str, Self); 3] =
        [("every-packet", Self::EveryPacket), ("delayed", Self::Delayed), ("dac", Self::Dac)];
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

impl FromStr for SackPolicy {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(known, _)| *known == name);
        found
            .map(|&(_, it)| it)
            .ok_or_else(|| format!("no SACK policy is called '{name}'; there are: every-packet, delayed, dac"))
    }
}

impl fmt::Display for SackPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::EveryPacket => "every-packet",
            Self::Delayed => "delayed",
            Self::Dac => "dac",
        })
    }
}
