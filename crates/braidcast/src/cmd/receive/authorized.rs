//! `--authorized FILE`: the senders that are taken, a line for each, as ssh's authorized_keys.

use crate::args::values::{self, Accept, Output};
use crate::failure::{Failure, Outcome};
use crate::process;
use braidcast_secure::Fingerprint;
use braidcast_session::Permit;
use braidcast_sim::link::parse;
use jiff::civil::Date;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A sender that is taken.
struct Line {
    key: Fingerprint,
    permit: Permit,
    output: Option<Output>,
    /// The last day on which it is taken.
    until: Option<Date>,
}

/// What the file says.
pub(super) struct Authorized {
    path: PathBuf,
    lines: Vec<Line>,
    /// Lines that were in force when they were last handed out.
    in_force: usize,
}

impl Authorized {
    /// Reads it. `needs_output` if the command has no OUTPUT that each sender can use.
    pub(super) fn read(path: &Path, needs_output: bool) -> Outcome<Self> {
        let text = fs::read_to_string(path).map_err(|error| {
            Failure::usage(
                format!("cannot read --authorized {}: {error}", path.display()),
                "give the name of a text file",
            )
        })?;
        let mut lines: Vec<Line> = Vec::new();
        for (number, text) in (1..).zip(text.lines()) {
            let refused = |what: String| {
                Failure::usage(
                    format!("{}:{number}: {what}", path.display()),
                    "a line is: FINGERPRINT NAME [OUTPUT] [max-rate=5mbit] [until=2027-01-31]",
                )
            };
            let Some(line) = Line::parse(text).map_err(refused)? else { continue };
            if lines.iter().any(|it| it.key == line.key) {
                return Err(refused("this fingerprint is there twice".into()));
            }
            if lines.iter().any(|it| it.permit.name == line.permit.name) {
                return Err(refused(format!("another line has the name '{}'", line.permit.name)));
            }
            if line.output.is_none() && needs_output {
                return Err(refused("an OUTPUT is missing, and the command has none with {name}".into()));
            }
            if let Some(Output::File(file)) = &line.output {
                let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
                process::check_folder(folder.unwrap_or(Path::new(".")))?;
            }
            lines.push(line);
        }
        Ok(Self { path: path.to_owned(), lines, in_force: 0 })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn valid(&self) -> impl Iterator<Item = &Line> {
        let today = jiff::Zoned::now().date();
        self.lines.iter().filter(move |line| line.until.is_none_or(|last| today <= last))
    }

    /// Whether a line has come to its last day since [`permits`](Self::permits) was called.
    pub(super) fn has_changed(&self) -> bool {
        self.valid().count() != self.in_force
    }

    /// Who is taken today, and as what.
    pub(super) fn permits(&mut self) -> BTreeMap<Fingerprint, Permit> {
        let permits: BTreeMap<_, _> = self.valid().map(|line| (line.key, line.permit.clone())).collect();
        self.in_force = permits.len();
        permits
    }

    /// Outputs that lines have of their own.
    pub(super) fn outputs(&self) -> Vec<Accept> {
        let of = |line: &Line| Some(Accept { name: line.permit.name.clone(), output: line.output.clone()? });
        self.lines.iter().filter_map(of).collect()
    }
}

impl Line {
    /// `None` of an empty line and of a comment.
    fn parse(text: &str) -> Result<Option<Self>, String> {
        let text = text.split_once(" #").map_or(text, |(before, _)| before);
        let mut words = text.split_whitespace();
        let Some(first) = words.next().filter(|word| !word.starts_with('#')) else { return Ok(None) };
        let key = values::fingerprint(first)?;
        let name = values::name(words.next().ok_or("a name is missing")?)?;
        let mut line = Self { key, permit: Permit { name, max_rate: None }, output: None, until: None };
        for word in words {
            match word.split_once('=') {
                Some(("max-rate", rate)) => {
                    line.permit.max_rate = Some(parse::rate(rate).map_err(|error| error.to_string())?)
                }
                Some(("until", date)) => {
                    let wrong = |_| format!("'{date}' is not a date; write it as 2027-01-31");
                    line.until = Some(date.parse().map_err(wrong)?);
                }
                _ if line.output.is_none() => line.output = Some(values::output(word)?),
                _ => return Err(format!("'{word}' is neither a limit nor the only OUTPUT")),
            }
        }
        Ok(Some(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_a_key_and_a_name_and_what_else_it_says() {
        let key = "ab".repeat(32);
        assert!(matches!(Line::parse(""), Ok(None)));
        assert!(matches!(Line::parse("  # nobody"), Ok(None)));
        let parse = |text: String| Line::parse(&text).ok().flatten().expect("a sender");
        let line = parse(format!("{key} cam1 # the door"));
        assert_eq!((line.permit.name.as_str(), line.permit.max_rate, line.output), ("cam1", None, None));
        let line = parse(format!("{key} cam1 udp://127.0.0.1:5000 max-rate=5mbit until=2027-01-31"));
        assert_eq!(line.permit.max_rate, Some(5_000_000));
        assert_eq!(line.output.map(|it| it.to_string()), Some("udp://127.0.0.1:5000".into()));
        assert_eq!(line.until.map(|it| it.to_string()), Some("2027-01-31".into()));
        for wrong in [
            "ab cam1",
            &key,
            &format!("{key} a/b"),
            &format!("{key} a max-rate=x"),
            &format!("{key} a until=x"),
            &format!("{key} a b.ts c.ts"),
        ] {
            assert!(Line::parse(wrong).is_err(), "{wrong}");
        }
    }
}
