use crate::failure::{Failure, Outcome};
use std::io::Write;

/// Prints `text` and a line's end on stdout.
pub(crate) fn print(text: &str) -> Outcome {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).map_err(|e| Failure::stdout(&e))
}
