//! `receive --serve-authorized FILE`: the receivers that are served, and what each may have.

use crate::args::values;
use crate::cmd::authorized::{Authorized, Line, Rights};
use braidcast_secure::Fingerprint;
use braidcast_session::Entitled;
use std::collections::BTreeMap;

/// What a receiver may have.
#[derive(Default, Debug)]
pub(super) struct MayHave {
    streams: Vec<String>,
}

impl Rights for MayHave {
    const FLAG: &str = "--serve-authorized";
    const FORM: &str = "FINGERPRINT|dns:HOST NAME [streams=cam1,cam2] [until=2027-01-31]";

    fn add(&mut self, word: &str) -> Result<(), String> {
        let names = word.strip_prefix("streams=").ok_or_else(|| format!("'{word}' is neither streams= nor until="))?;
        self.streams = names.split(',').map(values::name).collect::<Result<_, _>>()?;
        Ok(())
    }
}

/// The list.
pub(super) type Viewers = Authorized<MayHave>;

/// Who is served today, and what.
pub(super) fn permits(of: &mut Viewers) -> BTreeMap<Fingerprint, Entitled> {
    let entitled = |line: &Line<MayHave>| Entitled { streams: line.rights.streams.clone() };
    of.in_force().map(|line| (line.who.listed(), entitled(line))).collect()
}

/// What the list calls who has this key.
pub(super) fn name_of(of: &Viewers, key: Fingerprint) -> Option<&str> {
    of.lines().iter().find(|line| line.who.listed() == key).map(|line| line.name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_a_key_a_name_and_the_streams_that_it_may_have() {
        let key = "ab".repeat(32);
        let parse = |text: String| Line::<MayHave>::parse(1, &text);
        let streams = |text: String| parse(text).ok().flatten().expect("a receiver").rights.streams;
        assert_eq!(streams(format!("{key} screen")), [""; 0]);
        assert_eq!(streams(format!("{key} screen streams=cam1,cam2 until=2027-01-31")), ["cam1", "cam2"]);
        for wrong in ["streams=", "streams=a/b", "out.ts", "max-rate=5mbit"] {
            assert!(parse(format!("{key} screen {wrong}")).is_err(), "{wrong}");
        }
    }
}
