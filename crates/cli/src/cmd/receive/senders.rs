//! `receive --authorized FILE`: the senders that are taken.

use crate::args::values::{self, Accept, Output};
use crate::cmd::authorized::{Authorized, Line, Rights};
use crate::failure::Outcome;
use crate::process;
use braidcast_secure::Fingerprint;
use braidcast_session::Permit;
use braidcast_sim::link::parse;
use std::collections::BTreeMap;
use std::path::Path;

/// What a sender may do.
#[derive(Default, Debug)]
pub(super) struct MaySend {
    max_rate: Option<u64>,
    output: Option<Output>,
}

impl Rights for MaySend {
    const FORM: &str = "FINGERPRINT|dns:HOST NAME [OUTPUT] [max-rate=5mbit] [until=2027-01-31]";

    fn add(&mut self, word: &str) -> Result<(), String> {
        if let Some(rate) = word.strip_prefix("max-rate=") {
            self.max_rate = Some(parse::rate(rate).map_err(|error| error.to_string())?);
        } else if self.output.is_none() {
            self.output = Some(values::output(word)?);
        } else {
            return Err(format!("'{word}' is neither a limit nor the only OUTPUT"));
        }
        Ok(())
    }
}

/// The list.
pub(super) type Senders = Authorized<MaySend>;

/// Reads it. `needs_output` if the command has no OUTPUT that each sender can use; `certified` if
/// senders have certificates.
pub(super) fn read(path: &Path, needs_output: bool, certified: bool) -> Outcome<Senders> {
    let it = Senders::read(path, certified)?;
    for line in it.lines() {
        match &line.rights.output {
            None if needs_output => {
                let what = "an OUTPUT is missing, and the command has none with {name}";
                return Err(it.refused(line.number, what.into()));
            }
            Some(Output::File(file)) => {
                let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
                process::check_folder(folder.unwrap_or(Path::new(".")))?;
            }
            _ => {}
        }
    }
    Ok(it)
}

/// Who is taken today, and as what.
pub(super) fn permits(of: &mut Senders) -> BTreeMap<Fingerprint, Permit> {
    let permit = |line: &Line<MaySend>| {
        let mut permit = Permit::named(&line.name);
        permit.max_rate = line.rights.max_rate;
        permit
    };
    of.in_force().map(|line| (line.who.listed(), permit(line))).collect()
}

/// Outputs that lines have of their own.
pub(super) fn outputs(of: &Senders) -> Vec<Accept> {
    let output = |line: &Line<MaySend>| Some(Accept { name: line.name.clone(), output: line.rights.output.clone()? });
    of.lines().iter().filter_map(output).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_a_key_and_a_name_and_what_else_it_says() {
        let key = "ab".repeat(32);
        let parse = |text: &str| Line::<MaySend>::parse(1, text);
        assert!(matches!(parse(""), Ok(None)));
        assert!(matches!(parse("  # nobody"), Ok(None)));
        let sender = |text: String| parse(&text).ok().flatten().expect("a sender");
        let line = sender(format!("{key} cam1 # the door"));
        assert_eq!((line.name.as_str(), line.rights.max_rate, &line.rights.output), ("cam1", None, &None));
        let line = sender(format!("{key} cam1 udp://127.0.0.1:5000 max-rate=5mbit until=2027-01-31"));
        assert_eq!(line.rights.max_rate, Some(5_000_000));
        assert_eq!(line.rights.output.as_ref().map(ToString::to_string), Some("udp://127.0.0.1:5000".into()));
        assert_eq!(line.until(), Some("2027-01-31".into()));
        for wrong in [
            "ab cam1",
            &key,
            &format!("{key} a/b"),
            &format!("{key} a max-rate=x"),
            &format!("{key} a until=x"),
            &format!("{key} a b.ts c.ts"),
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
