//! Words for people, on stderr.

/// Prints a line as `eprintln!` does, but goes on if that would panic: a full disk or a reader
/// that went away ends no stream.
macro_rules! say {
    ($($words:tt)*) => {{
        use std::io::Write as _;
        let _nobody_reads_it = writeln!(std::io::stderr().lock(), $($words)*);
    }};
}
