//! Names of recordings: fixed, or with the stream's name, the date, a number.

use crate::failure::{Failure, Outcome};
use std::fmt;
use std::path::{Path, PathBuf};

/// What may stand behind a `%`.
const TIMES: &str = "YmdHMS";
/// What stands for the stream's name.
const NAME: &str = "{name}";
/// Files of one name that are tried.
const MOST: u32 = 100_000;

/// Folder and names of the files of one stream.
pub(super) struct Place {
    /// With the stream's name in it, and the date not yet.
    pattern: String,
    dated: bool,
    numbered: bool,
}

impl Place {
    /// The place that `path` means for the stream `name`; `segmented` if it is one file after the other.
    pub(super) fn new(path: &Path, name: &str, segmented: bool) -> Outcome<Self> {
        let text = path.to_string_lossy();
        let dated = has_date(&text)?;
        // What a sender is called must not turn into a date.
        let name = if dated { name.replace('%', "%%") } else { name.to_owned() };
        Ok(Self { pattern: text.replace(NAME, &name), dated, numbered: segmented && !dated })
    }

    /// Returns `true` if each stream with a name has a file of its own there.
    pub(super) fn is_named(path: &Path) -> bool {
        path.to_string_lossy().contains(NAME)
    }

    /// The only file, if there is only one.
    pub(super) fn fixed(&self) -> Option<PathBuf> {
        (!self.dated && !self.numbered).then(|| PathBuf::from(&self.pattern))
    }

    /// Returns the folder of the files.
    pub(super) fn folder(&self) -> PathBuf {
        let path = self.next();
        path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned()
    }

    /// The next file: one that is not there, or is empty, unless the name is fixed.
    pub(super) fn next(&self) -> PathBuf {
        if let Some(path) = self.fixed() {
            return path;
        }
        let free = |path: &PathBuf| path.metadata().map_or(true, |there| there.len() == 0);
        self.candidates().find(free).unwrap_or_else(|| PathBuf::from(&self.pattern))
    }

    /// The name as it is now, then with numbers.
    pub(super) fn candidates(&self) -> impl Iterator<Item = PathBuf> + use<> {
        let path = PathBuf::from(if self.dated { dated(&self.pattern) } else { self.pattern.clone() });
        let plain = (!self.numbered).then(|| path.clone());
        let first = if self.numbered { 1 } else { 2 };
        plain.into_iter().chain((first..MOST).map(move |n| numbered(&path, n)))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.pattern)
    }
}

/// Returns `true` if there is a time in `text`.
///
/// # Errors
/// A `%` with something else behind it.
fn has_date(text: &str) -> Outcome<bool> {
    let (mut dated, mut chars) = (false, text.chars());
    while let Some(c) = chars.next() {
        if c != '%' {
            continue;
        }
        match chars.next() {
            Some('%') => dated = true,
            Some(c) if TIMES.contains(c) => dated = true,
            other => {
                let what = other.map_or_else(|| "%".to_owned(), |c| format!("%{c}"));
                return Err(Failure::usage(
                    format!("the name {text} has {what}, which is not a part of a time"),
                    "write %Y %m %d for the date, %H %M %S for the time, %% for a per cent sign",
                ));
            }
        }
    }
    Ok(dated)
}

/// The name at this time, by the clock on the wall.
fn dated(pattern: &str) -> String {
    let now = jiff::Zoned::now();
    let mut name = String::with_capacity(pattern.len() + 16);
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match if c == '%' { chars.next() } else { None } {
            Some('Y') => name += &format!("{:04}", now.year()),
            Some('m') => name += &format!("{:02}", now.month()),
            Some('d') => name += &format!("{:02}", now.day()),
            Some('H') => name += &format!("{:02}", now.hour()),
            Some('M') => name += &format!("{:02}", now.minute()),
            Some('S') => name += &format!("{:02}", now.second()),
            Some(other) => name.push(other),
            None => name.push(c),
        }
    }
    name
}

/// `show.ts` as `show-0007.ts`.
fn numbered(path: &Path, n: u32) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let ending = path.extension().map_or_else(String::new, |ending| format!(".{}", ending.to_string_lossy()));
    path.with_file_name(format!("{stem}-{n:04}{ending}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(text: &str, name: &str, segmented: bool) -> Place {
        Place::new(Path::new(text), name, segmented).unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn a_plain_name_is_fixed_and_names_and_dates_are_put_in() {
        assert_eq!(place("a/show.ts", "cam", false).fixed(), Some("a/show.ts".into()));
        assert_eq!(place("a/{name}.ts", "cam 1", false).fixed(), Some("a/cam 1.ts".into()));
        let dated = place("{name}-%Y%m%d-%H%M%S-100%%.ts", "c", false);
        assert_eq!(dated.fixed(), None);
        let name = dated.next().display().to_string();
        let digits = name.strip_prefix("c-20").and_then(|rest| rest.strip_suffix("-100%.ts")).unwrap();
        assert!(digits.len() == 13 && digits.chars().all(|c| c.is_ascii_digit() || c == '-'), "{name}");
        assert!(Place::new(Path::new("x-%k.ts"), "", false).is_err_and(|e| e.to_string().contains("%k")));
        assert!(Place::new(Path::new("100%"), "", false).is_err());
    }

    #[test]
    fn pieces_are_numbered_and_never_those_that_are_there() {
        let dir = tempfile::tempdir().unwrap();
        let place = place(dir.path().join("show.ts").to_str().unwrap(), "", true);
        assert_eq!(place.next(), dir.path().join("show-0001.ts"));
        std::fs::write(dir.path().join("show-0001.ts"), "x").unwrap();
        assert_eq!(place.next(), dir.path().join("show-0002.ts"));
        assert_eq!(place.folder(), dir.path());
    }
}
