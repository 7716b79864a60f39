//! The demo's own `send`, `receive` and `emulate` processes.

use crate::failure::{Failure, Outcome};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long a process may take to come up.
const START: Duration = Duration::from_secs(10);
/// The word by which `receive` and `emulate` say on stderr that their sockets are open.
const READY: &str = "listening";

/// A `braidcast` process; killed when dropped.
pub(super) struct Process {
    what: String,
    child: Child,
    stdout: Option<JoinHandle<String>>,
    stderr: Receiver<String>,
    said: Vec<String>,
}

impl Process {
    /// Starts `braidcast ARGS --json`.
    pub(super) fn start(program: &Path, args: &[String]) -> Outcome<Self> {
        let what = format!("braidcast {}", args.join(" "));
        let mut child = Command::new(program)
            .args(args)
            .arg("--json")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| {
                Failure::new(format!("cannot start `{what}`: {e}"), "check limits on processes (`ulimit -u`)")
            })?;
        let out = child.stdout.take();
        let stdout = std::thread::spawn(move || {
            let mut text = String::new();
            let _ = out.map(|mut out| out.read_to_string(&mut text));
            text
        });
        let (lines, stderr) = channel();
        if let Some(err) = child.stderr.take() {
            std::thread::spawn(move || {
                // Read to the end even if nobody listens any more, lest the process stand still.
                for line in BufReader::new(err).lines().map_while(Result::ok) {
                    let _ = lines.send(line);
                }
            });
        }
        Ok(Self { what, child, stdout: Some(stdout), stderr, said: Vec::new() })
    }

    /// Waits until its sockets are open.
    pub(super) fn ready(mut self) -> Outcome<Self> {
        loop {
            match self.stderr.recv_timeout(START) {
                Ok(line) => {
                    let ready = line.contains(READY);
                    self.said.push(line);
                    if ready {
                        return Ok(self);
                    }
                }
                Err(RecvTimeoutError::Timeout) => return Err(self.failure("did not come up")),
                Err(RecvTimeoutError::Disconnected) => return Err(self.failure("ended too soon")),
            }
        }
    }

    /// Returns `true` if it has ended.
    pub(super) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Returns `true` if it has ended, and not well.
    pub(super) fn failed(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(status)) if !status.success())
    }

    /// Asks it to end, as Ctrl-C does.
    pub(super) fn interrupt(&self) {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // It may have ended by itself meanwhile, which is as good.
            let _ = kill_process(pid, Signal::INT);
        }
    }

    /// Waits for its end and reads the document that it printed.
    pub(super) fn document(mut self) -> Outcome<serde_json::Value> {
        let status = self.child.wait();
        let text = self.stdout.take().and_then(|reader| reader.join().ok()).unwrap_or_default();
        if !status.is_ok_and(|status| status.success()) {
            return Err(self.failure("failed"));
        }
        serde_json::from_str(&text).map_err(|_| self.failure("printed no report"))
    }

    fn failure(&mut self, how: &str) -> Failure {
        self.said.extend(self.stderr.try_iter());
        let last = self.said.iter().rev().find(|line| line.contains("error:")).or(self.said.last());
        let said = last.map_or_else(|| "it said nothing".into(), |line| format!("it said: {line}"));
        Failure::new(format!("`{}` {how}; {said}", self.what), "run that command by itself to see all that it says")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
