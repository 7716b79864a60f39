//! Redundancy: whether a session sends any, and how much.

use braidcast_core::{Instant, PathId};
use braidcast_fec::{Auto, Conditions};
use braidcast_sctp::{Artx, Association, Code, Options};
use core::fmt;
use core::str::FromStr;
use core::time::Duration;
use std::collections::BTreeMap;

/// How packets that the network loses are made up for, besides being repeated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Redundancy {
    /// Not at all.
    #[default]
    None,
    /// By the code that fits what each path loses, how far away the receiver is and the latency; none where repeating does
    /// ([`Conditions::choose`]).
    Auto,
    /// By this code all the time.
    Code(Code),
}

impl Redundancy {
    /// Sets what the association has to agree on with its peer, and what goes with a code.
    pub(crate) fn apply(self, sctp: &mut Options) {
        if self == Self::None {
            return;
        }
        sctp.fec = if let Self::Code(code) = self { Some(code) } else { None };
        sctp.fec_receive = true;
        // Only where repeating is too late anyway is a code in use.
        sctp.artx = Some(Artx::Slowest);
    }
}

impl fmt::Display for Redundancy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Auto => f.write_str("auto"),
            Self::Code(code) => code.fmt(f),
        }
    }
}

impl FromStr for Redundancy {
    type Err = String;

    /// `none`, `auto`, or a code's words.
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self::None),
            "auto" => Ok(Self::Auto),
            code => match code.parse::<Code>() {
                Ok(code) if code.is_linear() => Ok(Self::Code(code)),
                Ok(code) => Err(format!("SCTP cannot carry '{code}'; use block, convolutional or tetrys")),
                Err(why) => Err(format!("{why}, or none or auto")),
            },
        }
    }
}

/// Chooses the code by what the paths do.
#[derive(Debug)]
pub(crate) struct Chooser {
    deadline: Option<Duration>,
    auto: Auto,
    next: Instant,
    /// Data chunks that each path had carried when it was last looked at, and when that was.
    carried: BTreeMap<PathId, (u64, Instant)>,
}

impl Chooser {
    /// For packets that are of use until `deadline` after they were sent first; `None`: for ever.
    pub(crate) fn new(deadline: Option<Duration>) -> Self {
        Self { deadline, auto: Auto::default(), next: Instant::ZERO, carried: BTreeMap::new() }
    }

    /// Looks at the paths, once a round trip at most, and changes the code if another one fits clearly better.
    pub(crate) fn update(&mut self, now: Instant, association: &mut Association) {
        if now < self.next {
            return;
        }
        let mut paths = Vec::new();
        for path in association.paths() {
            let (before, since) = self.carried.insert(path.id, (path.sent_chunks, now)).unwrap_or((0, now));
            let seconds = now.since(since).as_secs_f64();
            let (Some((loss, burst)), Some(rtt)) = (association.recent_losses(path.id), path.srtt) else { continue };
            self.next = self.next.max(now + rtt);
            if seconds > 0.0 {
                let rate = path.sent_chunks.saturating_sub(before) as f64 / seconds;
                paths.push(Conditions { loss, burst, rtt, deadline: self.deadline, rate });
            }
        }
        if let Some(code) = Conditions::merged(&paths).and_then(|together| self.auto.update(&together)) {
            // A receiver that takes none is left alone.
            association.set_fec(code);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_and_written() {
        for word in ["none", "auto", "block:10,9", "tetrys:10,9,43"] {
            assert_eq!(word.parse::<Redundancy>().unwrap().to_string(), word);
        }
        for (wrong, why) in [("some", "or none or auto"), ("block:9,10", "0 < k < n"), ("raptorq:10,9", "cannot carry")]
        {
            assert!(wrong.parse::<Redundancy>().unwrap_err().contains(why), "{wrong}");
        }
    }
}
