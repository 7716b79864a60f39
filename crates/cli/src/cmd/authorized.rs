//! `--authorized FILE` and its like: who is let in, a line for each, as ssh's authorized_keys.

use crate::args::values;
use crate::failure::{Failure, Outcome};
use braidcast_secure::x509::Name;
use braidcast_secure::{Fingerprint, Insecure};
use jiff::civil::Date;
use std::fs;
use std::path::{Path, PathBuf};

/// What a line says besides who it is about, and until when.
pub(crate) trait Rights: Default {
    /// The flag that names the file.
    const FLAG: &str = "--authorized";
    /// What a line looks like, for people.
    const FORM: &str;

    /// Takes a word.
    ///
    /// # Errors
    /// What is wrong with it.
    fn add(&mut self, word: &str) -> Result<(), String>;
}

/// What somebody is known by.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Who {
    /// Its key, or that in its certificate.
    Key(Fingerprint),
    /// A name that its certificate is for.
    Name(Name),
}

impl Who {
    fn parse(text: &str) -> Result<Self, String> {
        match text.strip_prefix("dns:") {
            Some(name) => {
                let name =
                    Name::parse(name).ok_or_else(|| format!("'{name}' is not a name that a certificate is for"))?;
                Ok(Self::Name(name))
            }
            None => values::fingerprint(text).map(Self::Key),
        }
    }

    /// What a connection is known by that is let in by this line.
    pub(crate) fn listed(&self) -> Fingerprint {
        match self {
            Self::Key(key) => *key,
            Self::Name(name) => name.fingerprint(),
        }
    }
}

/// Who is let in.
#[derive(Debug)]
pub(crate) struct Line<R> {
    /// Its place in the file, from 1.
    pub(crate) number: usize,
    pub(crate) who: Who,
    pub(crate) name: String,
    pub(crate) rights: R,
    /// The last day on which it is let in.
    until: Option<Date>,
}

/// What the file says.
pub(crate) struct Authorized<R> {
    path: PathBuf,
    lines: Vec<Line<R>>,
    /// Lines that were in force when they were last handed out.
    in_force: usize,
}

impl<R: Rights> Authorized<R> {
    /// Reads it. Without certificates everybody is known by a key.
    pub(crate) fn read(path: &Path, certified: bool) -> Outcome<Self> {
        let text = fs::read_to_string(path).map_err(|error| {
            Failure::usage(
                format!("cannot read {} {}: {error}", R::FLAG, path.display()),
                "give the name of a text file",
            )
        })?;
        crate::process::refuse_writable(R::FLAG, path)?;
        let mut it = Self { path: path.to_owned(), lines: Vec::new(), in_force: 0 };
        for (number, text) in (1..).zip(text.lines()) {
            let Some(line) = Line::<R>::parse(number, text).map_err(|what| it.refused(number, what))? else { continue };
            if it.lines.iter().any(|other| other.who == line.who) {
                return Err(it.refused(number, "this fingerprint or name is there twice".into()));
            }
            if matches!(line.who, Who::Name(_)) && !certified {
                return Err(it.refused(number, "only certificates have names; give --cert, --cert-key and --ca".into()));
            }
            if it.lines.iter().any(|other| other.name == line.name) {
                return Err(it.refused(number, format!("another line has the name '{}'", line.name)));
            }
            it.lines.push(line);
        }
        Ok(it)
    }

    /// What is wrong with a line, for people.
    pub(crate) fn refused(&self, number: usize, what: String) -> Failure {
        Failure::usage(format!("{}:{number}: {what}", self.path.display()), format!("a line is: {}", R::FORM))
    }

    /// Returns the path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// All lines, those whose last day is over too.
    pub(crate) fn lines(&self) -> &[Line<R>] {
        &self.lines
    }

    /// Why whose key was refused is not let in, if that is only because its last day is over.
    pub(crate) fn is_over(&self, refusal: Option<&Insecure>) -> Option<String> {
        let shown = refusal?.shown?;
        let today = jiff::Zoned::now().date();
        let is_refused = |line: &&Line<R>| matches!(&line.who, Who::Key(key) if *key == shown);
        let line = self.lines.iter().find(is_refused)?;
        let last = line.until.filter(|last| *last < today)?;
        let (path, number, name) = (self.path.display(), line.number, &line.name);
        Some(format!("{path}:{number}: the last day of '{name}' was {last}, and by this machine's clock it is {today}"))
    }

    fn valid(&self) -> impl Iterator<Item = &Line<R>> {
        let today = jiff::Zoned::now().date();
        self.lines.iter().filter(move |line| line.until.is_none_or(|last| today <= last))
    }

    /// What those are known by who are let in today.
    pub(crate) fn trusted(&mut self) -> Vec<Who> {
        self.in_force().map(|line| line.who.clone()).collect()
    }

    /// Returns `true` if a line has come to its last day since [`in_force`](Self::in_force) was called.
    pub(crate) fn has_changed(&self) -> bool {
        self.valid().count() != self.in_force
    }

    /// Who is let in today.
    pub(crate) fn in_force(&mut self) -> impl Iterator<Item = &Line<R>> {
        self.in_force = self.valid().count();
        self.valid()
    }
}

impl<R: Rights> Line<R> {
    /// `None` of an empty line and of a comment.
    pub(crate) fn parse(number: usize, text: &str) -> Result<Option<Self>, String> {
        let text = text.split_once(" #").map_or(text, |(before, _)| before);
        let mut words = text.split_whitespace();
        let Some(first) = words.next().filter(|word| !word.starts_with('#')) else { return Ok(None) };
        let who = Who::parse(first)?;
        let name = values::name(words.next().ok_or("a name is missing")?)?;
        let mut line = Self { number, who, name, rights: R::default(), until: None };
        for word in words {
            if let Some(date) = word.strip_prefix("until=") {
                let wrong = |_| format!("'{date}' is not a date; write it as 2027-01-31");
                line.until = Some(date.parse().map_err(wrong)?);
            } else {
                line.rights.add(word)?;
            }
        }
        Ok(Some(line))
    }

    #[cfg(test)]
    pub(crate) fn until(&self) -> Option<String> {
        self.until.map(|it| it.to_string())
    }
}
