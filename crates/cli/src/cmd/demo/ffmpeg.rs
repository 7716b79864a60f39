//! Calls to ffmpeg and ffprobe.

use crate::failure::{Failure, Outcome};
use std::ffi::OsStr;
use std::io;
use std::process::Stdio;

/// Runs ffmpeg and returns what it wrote to stdout and stderr.
pub(super) fn run<S: AsRef<OsStr>>(args: &[S]) -> Outcome<(String, String)> {
    call("ffmpeg", args)
}

/// Runs ffprobe and returns what it wrote to stdout.
pub(super) fn probe<S: AsRef<OsStr>>(args: &[S]) -> Outcome<String> {
    call("ffprobe", args).map(|(stdout, _)| stdout)
}

fn call<S: AsRef<OsStr>>(program: &str, args: &[S]) -> Outcome<(String, String)> {
    let out =
        crate::process::command(program).args(args).stdin(Stdio::null()).output().map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => Failure::new(
                format!("{program} is not installed"),
                "install it, for example with `apt-get install ffmpeg`, or run `make demo`, which does",
            ),
            _ => Failure::new(format!("cannot start {program}: {e}"), "check that it runs at all"),
        })?;
    let stderr = String::from_utf8_lossy(&out.stderr).into_owned();
    if out.status.success() {
        return Ok((String::from_utf8_lossy(&out.stdout).into_owned(), stderr));
    }
    let last = stderr.lines().rev().take(3).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join("; ");
    Err(Failure::new(
        format!("{program} failed ({}): {last}", out.status),
        "check the clip, and that ffmpeg has libx264 and aac (`ffmpeg -encoders`)",
    ))
}
