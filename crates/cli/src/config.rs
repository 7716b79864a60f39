//! Flags from a file. A file's section becomes flags in front of those that were typed, so that a value is
//! checked in one place, by clap, wherever it came from.

use crate::args::{Cli, brief};
use crate::failure::Failure;
use crate::out::style::Style;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, CommandFactory, FromArgMatches};
use std::ffi::OsString;
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Flags that belong to the command line alone.
const NOT_IN_FILES: [&str; 3] = ["help", "version", "config"];

/// Names that are at least so alike are taken for slips, 0 to 1 (Jaro and Winkler).
const NEAR: f64 = 0.8;

/// Why the arguments were refused.
pub(crate) enum Refused {
    /// By clap: wrong use, or a request for help.
    Clap(clap::Error),
    /// On account of the configuration file.
    File(Failure),
    /// As nothing was typed.
    Empty,
}

impl From<clap::Error> for Refused {
    fn from(error: clap::Error) -> Self {
        Self::Clap(error)
    }
}

/// The command line together with the file that it names, if it names one.
pub(crate) fn parse(argv: Vec<OsString>) -> Result<Cli, Refused> {
    if argv.len() <= 1 {
        return Err(Refused::Empty);
    }
    if brief::is_asked(&argv) {
        let error = brief::command().try_get_matches_from(&argv).map(|_| ()).err();
        if let Some(error) = error.filter(|error| error.kind() == ErrorKind::DisplayHelp) {
            return Err(error.into());
        }
    }
    // What is still missing may be in the file; what is wrong is told when all is read.
    let lenient = all_optional(Cli::command()).ignore_errors(true);
    let Some((path, matches)) = lenient
        .try_get_matches_from(&argv)
        .ok()
        .and_then(|matches| Some((matches.get_one::<PathBuf>("config")?.clone(), matches)))
    else {
        return Ok(Cli::from_arg_matches(&Cli::command().try_get_matches_from(argv)?)?);
    };
    let file = File::read(&path).map_err(Refused::File)?;
    let mut root = Cli::command();
    // Makes clap show the flags that hold everywhere in each subcommand.
    root.build();
    let mut extra = Extra::default();
    file.apply(&root, Some(&matches), &[], &mut extra).map_err(Refused::File)?;
    Ok(Cli::from_arg_matches(&Cli::command().try_get_matches_from(extra.merge(argv))?)?)
}

/// The same command with nothing required, to learn what was typed before the file is read.
fn all_optional(command: Command) -> Command {
    command.subcommand_required(false).mut_args(|arg| arg.required(false)).mut_subcommands(all_optional)
}

/// Returns `true` if `arg` was given on the command line or in the environment, which both win over a file.
fn is_typed(matches: &ArgMatches, arg: &Arg) -> bool {
    let id = arg.get_id().as_str();
    matches.try_contains_id(id).unwrap_or(false)
        && matches!(matches.value_source(id), Some(ValueSource::CommandLine | ValueSource::EnvVariable))
}

/// What the file adds to the command line.
#[derive(Default)]
struct Extra {
    flags: Vec<OsString>,
    positionals: Vec<OsString>,
}

impl Extra {
    /// The program's name and the typed arguments with the file's flags behind them and its positionals last.
    fn merge(mut self, mut argv: Vec<OsString>) -> Vec<OsString> {
        self.flags.dedup();
        let marker = argv.iter().position(|arg| arg == "--");
        let tail = marker.map_or_else(Vec::new, |at| argv.split_off(at));
        argv.extend(self.flags);
        if tail.is_empty() && !self.positionals.is_empty() {
            argv.push("--".into());
        }
        argv.extend(tail);
        argv.extend(self.positionals);
        argv
    }
}

/// A configuration file, its text kept to tell lines by.
struct File<'a> {
    path: &'a Path,
    text: String,
}

impl<'a> File<'a> {
    fn read(path: &'a Path) -> Result<Self, Failure> {
        let text = std::fs::read_to_string(path).map_err(|e| {
            Failure::usage(format!("cannot read the configuration {}: {e}", path.display()), "check --config")
        })?;
        crate::process::refuse_writable("--config", path)?;
        Ok(Self { path, text })
    }

    /// The place `span` starts at, as FILE:LINE.
    fn place(&self, span: &Range<usize>) -> String {
        let before = self.text.get(..span.start).unwrap_or(&self.text);
        format!("{}:{}", self.path.display(), before.matches('\n').count() + 1)
    }

    /// On systems with such rights.
    fn warn_if_others_read_it(&self) {
        #[cfg(unix)]
        use std::os::unix::fs::PermissionsExt;
        #[cfg(not(unix))]
        let mode = 0;
        #[cfg(unix)]
        let mode = std::fs::metadata(self.path).map_or(0, |it| it.permissions().mode());
        if mode & 0o077 != 0 {
            let (path, style) = (self.path.display(), Style::stderr());
            let warning = style.yellow("warning:");
            say!("{warning} others on this machine may read the key in {path}; to end that: chmod 600 {path}");
        }
    }

    /// Checks the whole file and adds to `extra` what belongs to the subcommand that was typed.
    fn apply(
        &self,
        command: &Command,
        matches: Option<&ArgMatches>,
        above: &[&str],
        extra: &mut Extra,
    ) -> Result<(), Failure> {
        let table = DeTable::parse(&self.text).map_err(|e| {
            let place = e.span().map_or_else(|| self.path.display().to_string(), |span| self.place(&span));
            Failure::usage(
                format!("{place}: {}", e.message().trim()),
                "the file must be TOML: key = \"value\", [section]",
            )
        })?;
        self.section(command, matches, table.get_ref(), above, extra)
    }

    /// One section: `typed` are the matches of its command if that is the one being run.
    fn section(
        &self,
        command: &Command,
        typed: Option<&ArgMatches>,
        table: &DeTable<'_>,
        above: &[&str],
        extra: &mut Extra,
    ) -> Result<(), Failure> {
        for (key, value) in table {
            let name: &str = key.get_ref();
            let subcommand = command.find_subcommand(name).filter(|_| name != "help");
            if let (Some(subcommand), DeValue::Table(inner)) = (subcommand, value.get_ref()) {
                let below = typed.and_then(|m| m.subcommand()).filter(|(n, _)| *n == name).map(|(_, m)| m);
                self.section(subcommand, below, inner, &[above, &[name]].concat(), extra)?;
                continue;
            }
            let Some(arg) = keys(command).find(|(k, _)| k == name).map(|(_, arg)| arg) else {
                return Err(self.unknown(command, key, above));
            };
            if name == "key" {
                self.warn_if_others_read_it();
            }
            let tokens = self.tokens(arg, name, value)?;
            // A positional alone would be taken for the first one; the others are judged when all is put together.
            if arg.get_index().is_none_or(|index| index == 1) {
                self.check(&tokens, value, above)?;
            }
            let overruled = |m| is_typed(m, arg) || command.get_arg_conflicts_with(arg).iter().any(|c| is_typed(m, c));
            if typed.is_some_and(|m| !overruled(m)) {
                if arg.is_positional() { &mut extra.positionals } else { &mut extra.flags }.extend(tokens);
            }
        }
        Ok(())
    }

    /// The arguments that `key = value` stands for.
    fn tokens(&self, arg: &Arg, key: &str, value: &Spanned<DeValue<'_>>) -> Result<Vec<OsString>, Failure> {
        let wrong = |wanted: &str| {
            let found = value.get_ref().type_str();
            Failure::usage(
                format!("{}: {key} must be {wanted}, not of type {found}", self.place(&value.span())),
                format!("`braidcast help` says what --{key} takes"),
            )
        };
        if matches!(arg.get_action(), ArgAction::SetTrue) {
            return match value.get_ref() {
                DeValue::Boolean(true) => Ok(vec![format!("--{key}").into()]),
                DeValue::Boolean(false) => Ok(Vec::new()),
                _ => Err(wrong("true or false")),
            };
        }
        let token = |value: &DeValue<'_>| {
            let text = match value {
                DeValue::String(text) => text.to_string(),
                DeValue::Integer(number) => number.to_string(),
                DeValue::Float(number) => number.to_string(),
                _ => return None,
            };
            Some(OsString::from(if arg.is_positional() { text } else { format!("--{key}={text}") }))
        };
        match value.get_ref() {
            DeValue::Array(values) if matches!(arg.get_action(), ArgAction::Append) => {
                values.iter().map(|v| token(v.get_ref()).ok_or_else(|| wrong("a list of strings or numbers"))).collect()
            }
            one => Ok(vec![token(one).ok_or_else(|| wrong("a string or a number"))?]),
        }
    }

    /// Lets clap judge one value alone, so that the complaint can name the line.
    fn check(&self, tokens: &[OsString], value: &Spanned<DeValue<'_>>, above: &[&str]) -> Result<(), Failure> {
        let argv = ["braidcast"].iter().chain(above).map(OsString::from).chain(tokens.iter().cloned());
        let judged = all_optional(Cli::command()).try_get_matches_from(argv).map(|_| ());
        judged
            .or_else(|error| if error.kind() == ErrorKind::MissingRequiredArgument { Ok(()) } else { Err(error) })
            .map_err(|error| {
                let text = error.to_string();
                let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
                let command = [&["braidcast"], above].concat().join(" ");
                Failure::usage(
                    format!("{}: {first}", self.place(&value.span())),
                    format!("`{command} --help` says what it takes"),
                )
            })
    }

    fn unknown(&self, command: &Command, key: &Spanned<impl AsRef<str>>, above: &[&str]) -> Failure {
        let name = key.get_ref().as_ref();
        let sections = command.get_subcommands().map(|c| c.get_name().to_owned()).filter(|n| n != "help");
        let nearest = keys(command)
            .map(|(key, _)| key)
            .chain(sections)
            .max_by(|a, b| strsim::jaro_winkler(name, a).total_cmp(&strsim::jaro_winkler(name, b)))
            .filter(|nearest| strsim::jaro_winkler(name, nearest) >= NEAR);
        let inner: Vec<String> = command
            .get_subcommands()
            .filter(|inner| keys(inner).any(|(key, _)| key == name))
            .map(|inner| format!("[{}]", [above, &[inner.get_name()]].concat().join(".")))
            .collect();
        let place = if above.is_empty() { "at the top".into() } else { format!("in [{}]", above.join(".")) };
        let fix = match (inner.first(), nearest) {
            (Some(_), _) => format!("put it below the section of its command: {}", inner.join(", ")),
            (None, Some(nearest)) => format!("did you mean '{nearest}'?"),
            (None, None) => format!("`braidcast {} --help` lists the flags, which are the keys", above.join(" ")),
        };
        Failure::usage(format!("{}: unknown key '{name}' {place}", self.place(&key.span())), fix)
    }
}

/// The keys that a command's section may hold, with the arguments that they stand for.
fn keys(command: &Command) -> impl Iterator<Item = (String, &Arg)> {
    command.get_arguments().filter_map(|arg| {
        let key = match arg.get_long() {
            Some(long) => long.to_owned(),
            None => arg.get_id().as_str().to_owned(),
        };
        (!NOT_IN_FILES.contains(&key.as_str())).then_some((key, arg))
    })
}
