use crate::failure::{Failure, Outcome};
use std::io::Write;

/// Prints `text` and a line's end on stdout.
pub(crate) fn print(text: &str) -> Outcome {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).map_err(|e| Failure::stdout(&e))
}

/// `text` as a word of a command line: in quotes unless a shell takes it as it is.
pub(crate) fn quoted(text: &str) -> String {
    let is_plain = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.,=%/:".contains(c));
    if is_plain { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}
