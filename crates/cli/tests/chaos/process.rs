//! Processes that are stopped, killed and started again, and what they and the machine are like meanwhile.

use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A `braidcast`, or whatever else, whose stderr goes to a file.
pub(crate) struct Process {
    child: Child,
    said: PathBuf,
    begun: Instant,
    memory: Memory,
}

/// Resident memory in KiB.
#[derive(Clone, Copy, Default)]
pub(crate) struct Memory {
    /// The most within the first half minute.
    pub(crate) early: u64,
    /// The most ever.
    pub(crate) most: u64,
}

impl Process {
    /// Starts it with pipes for stdin and stdout; `said` gets its stderr behind what is there.
    pub(crate) fn start(mut command: Command, said: &Path) -> Self {
        let stderr = File::options().create(true).append(true).open(said).unwrap();
        command.env_remove("BRAIDCAST_KEY").env_remove("NO_COLOR");
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(stderr).spawn();
        let child = child.unwrap_or_else(|error| panic!("{command:?}: {error}"));
        Self { child, said: said.into(), begun: Instant::now(), memory: Memory::default() }
    }

    pub(crate) fn stdin(&mut self) -> ChildStdin {
        self.child.stdin.take().expect("taken once")
    }

    pub(crate) fn stdout(&mut self) -> ChildStdout {
        self.child.stdout.take().expect("taken once")
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let _gone = kill_process(Pid::from_child(&self.child), signal);
    }

    /// Ends it as a power cut does.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Its exit status once it has ended, -1 for a signal.
    pub(crate) fn status(&mut self) -> Option<i32> {
        self.child.try_wait().unwrap().map(|status| status.code().unwrap_or(-1))
    }

    /// Waits for its end; panics if that takes longer.
    pub(crate) fn wait(&mut self, patience: Duration) -> i32 {
        let end = Instant::now() + patience;
        loop {
            if let Some(status) = self.status() {
                return status;
            }
            assert!(Instant::now() < end, "it did not end: {}", self.said());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until its stderr has these words.
    pub(crate) fn wait_for(&mut self, words: &str) {
        let end = Instant::now() + Duration::from_secs(30);
        while !self.said().contains(words) {
            assert!(self.status().is_none() && Instant::now() < end, "waiting for {words:?}: {}", self.said());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// All that it, and those before it with the same file, have said.
    pub(crate) fn said(&self) -> String {
        std::fs::read_to_string(&self.said).unwrap_or_default()
    }

    /// The last lines of that.
    pub(crate) fn last_words(&self) -> String {
        let said = self.said();
        let lines: Vec<&str> = said.lines().collect();
        lines[lines.len().saturating_sub(12)..].join("\n")
    }

    /// Looks at its memory.
    pub(crate) fn sample(&mut self) -> Memory {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let now = resident.and_then(|it| it.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0);
        if self.begun.elapsed() < Duration::from_secs(30) {
            self.memory.early = self.memory.early.max(now);
        }
        self.memory.most = self.memory.most.max(now);
        self.memory
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Times when this machine did not run who was to run: nobody can be on time then.
#[derive(Clone, Default)]
pub(crate) struct Stalls(Arc<Mutex<Vec<(Instant, Duration)>>>);

impl Stalls {
    /// Begins to watch, until the last handle is dropped.
    pub(crate) fn watch() -> Self {
        let stalls = Self::default();
        let seen = Arc::downgrade(&stalls.0);
        let nap = Duration::from_millis(10);
        std::thread::spawn(move || {
            let mut before = Instant::now();
            while let Some(seen) = seen.upgrade() {
                std::thread::sleep(nap);
                let late = before.elapsed().saturating_sub(nap);
                before = Instant::now();
                if late > 2 * nap {
                    seen.lock().unwrap().push((before, late));
                }
            }
        });
        stalls
    }

    /// How long the machine stood still within this time.
    pub(crate) fn during(&self, from: Instant, to: Instant) -> Duration {
        let within = |(at, late): &&(Instant, Duration)| *at > from && *at < to + *late;
        self.0.lock().unwrap().iter().filter(within).map(|(_, late)| *late).sum()
    }

    /// How long it stood still all in all, short times apart.
    pub(crate) fn longer_than(&self, least: Duration) -> Duration {
        self.0.lock().unwrap().iter().map(|(_, late)| *late).filter(|late| *late > least).sum()
    }

    /// How long the machine stood still since then.
    pub(crate) fn since(&self, then: Instant) -> Duration {
        self.0.lock().unwrap().iter().rev().take_while(|(at, _)| *at > then).map(|(_, late)| *late).sum()
    }
}
