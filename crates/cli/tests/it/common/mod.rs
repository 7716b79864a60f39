//! Runs `braidcast` as its users do.
#![allow(dead_code, reason = "each test file uses a part")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "these tests are about real processes and sockets"
)]

pub(crate) mod between;
pub(crate) mod browser;
pub(crate) mod clock;
pub(crate) mod network;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Longest time that a test waits for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A command about to be run in a folder of its own.
#[must_use]
pub(crate) struct Test {
    dir: tempfile::TempDir,
    args: Vec<String>,
    stdin: Vec<u8>,
    env: Vec<(String, String)>,
}

/// What came of it.
pub(crate) struct Ran {
    pub(crate) status: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Test {
    /// `braidcast` with these arguments, split at spaces.
    pub(crate) fn new(args: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self { dir, args: args.split_whitespace().map(Into::into).collect(), stdin: Vec::new(), env: Vec::new() }
    }

    /// A file in the folder.
    pub(crate) fn file(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        std::fs::write(self.dir.path().join(name), content).unwrap();
        self
    }

    pub(crate) fn stdin(mut self, content: impl AsRef<[u8]>) -> Self {
        self.stdin = content.as_ref().to_vec();
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Runs it to its end.
    pub(crate) fn run(self) -> Ran {
        let mut child = command(self.dir.path())
            .args(&self.args)
            .envs(self.env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = self.stdin;
        let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
        let out = child.wait_with_output().unwrap();
        writer.join().unwrap();
        Ran {
            status: out.status.code().unwrap_or(-1),
            stdout: out.stdout,
            stderr: String::from_utf8(out.stderr).expect("messages are UTF-8"),
        }
    }
}

impl Ran {
    /// Its stdout as text.
    pub(crate) fn out(&self) -> &str {
        std::str::from_utf8(&self.stdout).expect("UTF-8 on stdout")
    }

    /// Its stdout as the one JSON document that it must be.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.stdout)
            .unwrap_or_else(|e| panic!("{e} in {:?}; stderr: {}", self.out(), self.stderr))
    }

    /// Insists on the exit status and on words in what it said.
    pub(crate) fn says(&self, status: i32, words: &[&str]) {
        assert_eq!(self.status, status, "stderr: {}", self.stderr);
        for word in words {
            assert!(self.stderr.contains(word), "{word:?} is not in: {}", self.stderr);
        }
    }
}

/// `braidcast` in this folder.
pub(crate) fn command(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_braidcast"));
    command.current_dir(dir).env_remove("BRAIDCAST_KEY").env_remove("NO_COLOR").env("COLUMNS", "100");
    command.env("XDG_CONFIG_HOME", dir.join("config"));
    command
}

/// A command that runs beside the test; killed if the test ends first.
pub(crate) struct Running {
    child: Child,
    lines: Receiver<String>,
    seen: String,
    stdout: Option<std::thread::JoinHandle<Vec<u8>>>,
}

impl Running {
    /// Starts `braidcast` in `dir` with these arguments, split at spaces.
    pub(crate) fn start(dir: &Path, args: &str) -> Self {
        Self::start_with(dir, args, Stdio::null())
    }

    /// The same with a stdin of its own.
    pub(crate) fn start_with(dir: &Path, args: &str, stdin: Stdio) -> Self {
        let mut command = command(dir);
        command.args(args.split_whitespace());
        Self::spawn(command, stdin)
    }

    /// Starts any command of `braidcast`, for example one in another network namespace.
    pub(crate) fn spawn(mut command: Command, stdin: Stdio) -> Self {
        let mut child = command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut out = child.stdout.take().unwrap();
        let stdout = std::thread::spawn(move || {
            let mut all = Vec::new();
            let _ = out.read_to_end(&mut all);
            all
        });
        let lines = read_lines(child.stderr.take().unwrap());
        Self { child, lines, seen: String::new(), stdout: Some(stdout) }
    }

    /// Waits until stderr says `word`.
    pub(crate) fn wait_for(mut self, word: &str) -> Self {
        let end = Instant::now() + PATIENCE;
        while !self.seen.contains(word) {
            let left = end.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => self.seen += &(line + "\n"),
                Err(e) => panic!("waiting for {word:?}: {e}; so far: {}", self.seen),
            }
        }
        self
    }

    /// Its stdin, if it was given a pipe.
    pub(crate) fn stdin(&mut self) -> std::process::ChildStdin {
        self.child.stdin.take().expect("a pipe was asked for")
    }

    /// What it has said on stderr while it was waited for.
    pub(crate) fn said(&self) -> &str {
        &self.seen
    }

    /// Its number.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends SIGINT, as Ctrl-C does.
    pub(crate) fn interrupt(&self) {
        self.signal("INT");
    }

    /// Sends the signal of this name.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &pid]).status().unwrap().success());
    }

    /// Ends it as a power cut does.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Returns `true` if it is still running.
    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits for its end.
    pub(crate) fn finish(mut self) -> Ran {
        let end = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > end {
                self.child.kill().unwrap();
                self.child.wait().unwrap();
                self.seen.extend(self.lines.try_iter().map(|line| line + "\n"));
                panic!("it did not end; stderr: {}", self.seen);
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        let stdout = self.stdout.take().unwrap().join().unwrap();
        self.seen.extend(self.lines.iter().map(|line| line + "\n"));
        Ran { status: status.code().unwrap_or(-1), stdout, stderr: std::mem::take(&mut self.seen) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read_lines(stderr: ChildStderr) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    receiver
}

/// Returns a UDP port of 127.0.0.1 that was free a moment ago. It lies outside the range that
/// systems use for sockets that ask for any port (Linux begins at 32,768), and no other test of
/// this process got it.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let first = std::process::id() as usize * 64;
    let ports = std::iter::repeat_with(|| 16_384 + ((first + NEXT.fetch_add(1, Relaxed)) % 16_384) as u16);
    ports.take(16_384).find(|&port| UdpSocket::bind(("127.0.0.1", port)).is_ok()).expect("a free port")
}

/// `N` different free ports.
pub(crate) fn free_ports<const N: usize>() -> [u16; N] {
    [(); N].map(|()| free_port())
}

/// Waits until `holds`.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "waiting for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The size of a file; 0 if it is not there.
pub(crate) fn len(path: &Path) -> u64 {
    path.metadata().map_or(0, |there| there.len())
}

/// Bytes that look random and are the same each time.
pub(crate) fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let words = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    });
    words.flat_map(u64::to_le_bytes).take(len).collect()
}

/// Seconds of H.264 with B frames and AAC in MPEG-TS, about 1 Mbit/s, made once per test binary run.
pub(crate) fn transport_stream(dir: &Path, seconds: u32) -> PathBuf {
    let path = dir.join("clip.ts");
    let length = seconds.to_string();
    let args = [
        "-y",
        "-nostdin",
        "-v",
        "error",
        "-f",
        "lavfi",
        "-i",
        "testsrc2=size=640x360:rate=25",
        "-f",
        "lavfi",
        "-i",
        "sine=frequency=330:sample_rate=48000",
        "-t",
        &length,
        "-c:v",
        "libx264",
        "-preset",
        "ultrafast",
        "-pix_fmt",
        "yuv420p",
        "-b:v",
        "900k",
        "-maxrate",
        "1000k",
        "-bufsize",
        "1000k",
        "-bf",
        "2",
        "-g",
        "25",
        "-c:a",
        "aac",
        "-b:a",
        "64k",
        "-f",
        "mpegts",
    ];
    let status = Command::new("ffmpeg").args(args).arg(&path).status().expect("ffmpeg is installed");
    assert!(status.success());
    path
}
