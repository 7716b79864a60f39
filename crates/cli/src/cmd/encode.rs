//! `braidcast encode`: an encoder that follows the network, and `send` behind it.
//!
//! The encoder is a program of its own (decision 23), so GStreamer and the encoders that it loads
//! are not linked to the sender and cannot bring it down. Its stdout is the transport stream. Every
//! 20 ms a line of JSON on its stdin says how large the next frame may be; the lines are those of
//! `--rate-report`.

use super::send::{self, Feed};
use crate::args::{Common, EncodeArgs};
use crate::failure::{Failure, Outcome};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;

/// The program.
const PROGRAM: &str = "braidcast-encode";
/// How to have it.
const HINT: &str = "install the package braidcast-gstreamer, or have `make gst` build it, beside braidcast or in PATH (docs/encode.md)";
/// Time that the encoder has to end once its input is closed, in units of 10 ms.
const PATIENCE: u32 = 200;

/// The program at work; it is killed when this is dropped.
pub(super) struct Encoder {
    child: Child,
    ended: bool,
}

pub(super) fn run(args: &EncodeArgs, common: &Common) -> Outcome {
    if args.how.reliable {
        return Err(Failure::usage(
            "--reliable does not go with encode: live frames arrive on time or are discarded",
            "leave --reliable out, or encode into a file and `send` that",
        ));
    }
    let feed = start(args, common)?;
    send::stream("encode", feed, &args.how, common)
}

/// Starts the program.
fn start(args: &EncodeArgs, common: &Common) -> Outcome<Feed<'static>> {
    let range = args.how.rates.range();
    let mut command = crate::process::command(program());
    command.arg(&args.input).args(["--profile", args.profile.name(), "--encoder", &args.encoder]);
    command.args(["--fps", &args.fps.to_string(), "--rate-range", &format!("{}-{}", range.least, range.greatest)]);
    command.args(["--audio", &args.audio, "--audio-encoder", &args.audio_encoder]);
    command.args(["--audio-rate", &args.audio_rate.0.to_string()]);
    if let Some((width, height)) = args.size {
        command.args(["--size", &format!("{width}x{height}")]);
    }
    if let Some(log) = &args.log {
        command.arg("--log").arg(log);
    }
    if common.quiet {
        command.arg("--quiet");
    }
    // Ctrl-C is for us: what is encoded then still goes out. Its input closes when we end.
    command.process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Failure::new(format!("there is no program {PROGRAM}, which encodes"), HINT),
        _ => Failure::new(format!("cannot start {PROGRAM}: {error}"), HINT),
    })?;
    let (Some(told), Some(stream)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(Failure::new(format!("cannot talk to {PROGRAM}"), "check limits on open files (`ulimit -n`)"));
    };
    Ok(Feed::Encoder {
        name: args.input.clone(),
        stream: File::from(OwnedFd::from(stream)),
        told: Box::new(told) as Box<dyn Write + Send>,
        encoder: Encoder { child, ended: false },
    })
}

/// Returns the path of the program: beside this one, else wherever the system finds it.
fn program() -> PathBuf {
    let beside = std::env::current_exe().ok().map(|it| it.with_file_name(PROGRAM));
    beside.filter(|it| it.is_file()).unwrap_or_else(|| PROGRAM.into())
}

impl Encoder {
    /// Its output is over.
    ///
    /// # Errors
    /// If it did not end well; it has said why.
    pub(super) fn end(&mut self) -> Outcome {
        let status = self.child.wait().map_err(|e| Failure::new(format!("{PROGRAM} is lost: {e}"), HINT))?;
        self.ended = true;
        if status.success() {
            return Ok(());
        }
        Err(Failure::new(format!("{PROGRAM} failed ({status})"), "its messages above say why, and what to do"))
    }
}

impl Drop for Encoder {
    #[allow(clippy::disallowed_methods, reason = "it waits for another process at the very end")]
    fn drop(&mut self) {
        // Its input is closed, so it ends by itself unless it hangs.
        for _ in 0..PATIENCE {
            self.ended = self.ended || !matches!(self.child.try_wait(), Ok(None));
            if self.ended {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        if !self.ended {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
