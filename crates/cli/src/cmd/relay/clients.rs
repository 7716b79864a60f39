//! `relay --authorized FILE`: who may open circuits.

use crate::cmd::authorized::{Authorized, Line, Rights, Who};
use crate::failure::Outcome;
use braidcast_relay::{Admission, Keys, Proof, Quota};
use braidcast_secure::identity;
use braidcast_sim::link::parse;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Circuits of a client whose line says nothing of them.
const CIRCUITS: usize = 16;

/// What a client may do.
#[derive(Default, Debug)]
pub(super) struct MayRelay {
    max_rate: Option<u64>,
    circuits: Option<usize>,
    quota: Option<Quota>,
}

impl Rights for MayRelay {
    const FORM: &str = "FINGERPRINT NAME [max-rate=20mbit] [circuits=4] [quota=500gb/month] [until=2027-01-31]";

    fn add(&mut self, word: &str) -> Result<(), String> {
        if let Some(rate) = word.strip_prefix("max-rate=") {
            self.max_rate = Some(parse::rate(rate).map_err(|error| error.to_string())?);
        } else if let Some(number) = word.strip_prefix("circuits=") {
            let wrong = || format!("'{number}' is not a number of circuits; write 1 to 10000");
            let number = number.parse().ok().filter(|number| (1..=10_000).contains(number)).ok_or_else(wrong)?;
            self.circuits = Some(number);
        } else if let Some(quota) = word.strip_prefix("quota=") {
            self.quota = Some(parse_quota(quota)?);
        } else {
            return Err(format!("'{word}' is not a limit"));
        }
        Ok(())
    }
}

/// The list.
pub(super) struct Clients(Authorized<MayRelay>);

impl Clients {
    pub(super) fn read(path: &Path) -> Outcome<Self> {
        Authorized::read(path, false).map(Self)
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Returns `true` if a line has come to its last day.
    pub(super) fn has_changed(&self) -> bool {
        self.0.has_changed()
    }

    /// Who may open circuits today; `max_rate` is for whom the list has none.
    pub(super) fn admission(&mut self, max_rate: Option<u64>) -> Admission {
        let rights = |line: &Line<MayRelay>| braidcast_relay::Rights {
            name: line.name.clone(),
            max_rate: line.rights.max_rate.or(max_rate),
            circuits: line.rights.circuits.unwrap_or(CIRCUITS),
            quota: line.rights.quota,
        };
        let by_key = self.0.in_force().filter(|line| matches!(line.who, Who::Key(_)));
        let list = by_key.map(|line| (line.who.listed().0, rights(line))).collect();
        Admission::Listed(list, Arc::new(Checks))
    }
}

/// `500gb/month`: a number of bytes in a day, in seven, or in thirty.
fn parse_quota(text: &str) -> Result<Quota, String> {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    let wrong = || format!("'{text}' is not a quota; write for example 500gb/month, 20gb/day or 800mb/week");
    let (size, every) = text.split_once('/').ok_or_else(wrong)?;
    let every = match every {
        "day" => DAY,
        "week" => 7 * DAY,
        "month" => 30 * DAY,
        _ => return Err(wrong()),
    };
    let units = [("kb", 1_000), ("mb", 1_000_000), ("gb", 1_000_000_000), ("tb", 1_000_000_000_000_u64)];
    let size = size.to_ascii_lowercase();
    let (number, unit) =
        units.iter().find_map(|(name, bytes)| Some((size.strip_suffix(name)?, *bytes))).ok_or_else(wrong)?;
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let bytes = number.checked_mul(unit).filter(|bytes| *bytes > 0).ok_or_else(wrong)?;
    Ok(Quota { bytes, every })
}

/// Checks signatures by the cryptographic library.
struct Checks;

impl Keys for Checks {
    fn fingerprint(&self, public: &[u8; 32]) -> [u8; 32] {
        identity::fingerprint_of(public).0
    }

    fn is_signed(&self, proof: &Proof, message: &[u8]) -> bool {
        identity::is_signed(&proof.public, message, &proof.signature)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_a_key_a_name_and_limits() {
        let key = "ab".repeat(32);
        let parse = |text: String| Line::<MayRelay>::parse(1, &text);
        let line = parse(format!("{key} studio max-rate=20mbit circuits=4 until=2027-01-31")).ok().flatten().unwrap();
        assert_eq!((line.rights.max_rate, line.rights.circuits), (Some(20_000_000), Some(4)));
        let quota = |text: &str| parse(format!("{key} studio quota={text}")).map(|line| line.unwrap().rights.quota);
        let days = |n: u64| Duration::from_secs(n * 86_400);
        assert_eq!(quota("500GB/month"), Ok(Some(Quota { bytes: 500_000_000_000, every: days(30) })));
        assert_eq!(quota("800mb/week"), Ok(Some(Quota { bytes: 800_000_000, every: days(7) })));
        for wrong in ["500gb", "500gb/year", "gb/day", "0gb/day", "1.5gb/day", "99999999999tb/day", "5/day"] {
            assert!(quota(wrong).is_err_and(|why| why.contains("500gb/month")), "{wrong}");
        }
        for wrong in ["max-rate=x", "circuits=0", "circuits=many", "out.ts"] {
            assert!(parse(format!("{key} studio {wrong}")).is_err(), "{wrong}");
        }
    }
}
