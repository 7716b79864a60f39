//! `keys=@FILE` of `srt://` and `srtla://`: a passphrase for each stream.

use crate::args::values;
use crate::failure::{Failure, Outcome};
use crate::process;
use braidcast_gateway::srt::Passphrase;
use std::fs;
use std::path::{Path, PathBuf};

/// Bytes of the longest file: more streams than a command takes at a time.
const FILE: u64 = 256 * 1024;
/// What a line looks like, for people.
const FORM: &str =
    "a line is the name of a stream, a space, and its passphrase of 10 to 79 characters; or it begins with #";

/// The streams of a file, each with its passphrase.
pub(crate) struct Keys {
    path: PathBuf,
    pub(super) list: Vec<(String, Passphrase)>,
}

impl Keys {
    pub(super) fn read(path: &Path) -> Outcome<Self> {
        Ok(Self { path: path.to_owned(), list: read(path)? })
    }

    /// What the file says now.
    pub(crate) fn read_again(&self) -> Outcome<Self> {
        Self::read(&self.path)
    }

    /// Returns the name of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Names of the streams.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(|(name, _)| name.as_str())
    }
}

fn read(path: &Path) -> Outcome<Vec<(String, Passphrase)>> {
    let fail = |why: String| Failure::usage(format!("cannot read keys=@{}: {why}", path.display()), FORM);
    process::refuse_writable("keys=", path)?;
    let size = fs::metadata(path).map_err(|e| fail(e.to_string()))?.len();
    if size > FILE {
        return Err(fail(format!("it has {size} bytes")));
    }
    let text = fs::read_to_string(path).map_err(|e| fail(e.to_string()))?;
    let wrong = |(number, what)| Failure::usage(format!("{}:{number}: {what}", path.display()), FORM);
    let keys = parse(&text).map_err(wrong)?;
    if keys.is_empty() {
        return Err(fail("it has no stream, so nobody could come in".into()));
    }
    Ok(keys)
}

/// Reads the lines; an error is the number of a line and what is wrong with it, without what may be secret.
fn parse(text: &str) -> Result<Vec<(String, Passphrase)>, (usize, String)> {
    let mut keys: Vec<(String, Passphrase)> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let Some((name, secret)) = line.split_once(char::is_whitespace) else {
            return Err((number, "there is one word, and a line has a name and a passphrase".into()));
        };
        // Not with the word itself: it may be a passphrase whose name is missing.
        let name = values::name(name).map_err(|_| (number, "its first word is not the name of a stream".into()))?;
        if keys.iter().any(|(other, _)| *other == name) {
            return Err((number, "its stream is there twice".into()));
        }
        let secret = Passphrase::new(secret.trim_start().to_owned()).map_err(|why| (number, why.to_string()))?;
        if keys.iter().any(|(_, other)| *other == secret) {
            return Err((number, "another stream has the same passphrase: give each its own".into()));
        }
        keys.push((name, secret));
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_name_and_a_passphrase_which_may_have_spaces() {
        let keys = parse("# phones\n\ncam1 correct horse battery\n  cam2\tanother-secret # 1\n").unwrap();
        let secret = |text: &str| Passphrase::new(text.into()).unwrap();
        let (first, second) = (secret("correct horse battery"), secret("another-secret # 1"));
        assert_eq!(keys, [("cam1".to_owned(), first), ("cam2".to_owned(), second)]);
    }

    #[test]
    fn a_wrong_line_is_named_and_no_secret_is_said() {
        for (text, line, what) in [
            ("hunter2hunter2", 1, "one word"),
            ("cam1 correct horse\ncam2 hunter2", 2, "10 to 79 bytes; this one has 7"),
            ("cam1 correct horse\n\ncam1 hunter2hunter2", 3, "there twice"),
            ("hunter2/x correct horse", 1, "not the name of a stream"),
            ("cam1 hunter2hunter2\ncam2 hunter2hunter2", 2, "the same passphrase"),
        ] {
            let (number, why) = parse(text).unwrap_err();
            assert!(number == line && why.contains(what) && !why.contains("hunter2"), "{text:?}: {number}: {why}");
        }
    }
}
