//! What is checked before anything is opened.

use crate::args::values::Output;
use crate::failure::{Failure, Outcome};
use crate::process;
use std::io::{self, IsTerminal};
use std::path::Path;

/// Refuses a recording where none can be made.
pub(super) fn check_folder(output: &Output) -> Outcome {
    let Output::File(path) = output else { return Ok(()) };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    process::check_folder(folder.unwrap_or(Path::new(".")))
}

/// Refuses what would put something else into the stream on stdout, or the stream on a screen.
pub(super) fn check_stdout(is_output: bool, as_json: bool) -> Outcome {
    if is_output && as_json {
        return Err(Failure::usage(
            "--json would put its document into the stream on stdout",
            "leave out --json, or give another OUTPUT than -",
        ));
    }
    if is_output && io::stdout().is_terminal() {
        return Err(Failure::usage(
            "the OUTPUT - is this terminal, which cannot show a stream",
            "pipe it into a player: braidcast receive 9000 - | ffplay -probesize 200000 -",
        ));
    }
    Ok(())
}
