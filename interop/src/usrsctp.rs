//! usrsctp's example programs (Debian `libusrsctp-examples`); `README.md` says what each prints and needs.

use braidcast_testing::peers;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

/// What the summary calls it.
const PEER: &str = "usrsctp";
const FOLDER: &str = "/usr/lib/usrsctp";

/// Returns the path of `program`, or `None` if it is not installed and the caller may skip.
///
/// # Panics
/// If it is not installed although `BRAIDCAST_REQUIRE_TOOLS` is set, as in `make test`.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = Path::new(FOLDER).join(program);
    if path.exists() {
        peers::met(PEER);
        return Some(path);
    }
    peers::lacks(PEER, "libusrsctp-examples is not installed");
    assert!(std::env::var_os("BRAIDCAST_REQUIRE_TOOLS").is_none(), "{} is not installed", path.display());
    eprintln!("skipped: {} is not installed (tools/setup.sh test installs it)", path.display());
    None
}

/// Builds the program of ours in `programs/NAME.c`, on `libusrsctp-dev`, into `folder`; `None`
/// if the library or a C compiler is not installed and the caller may skip.
///
/// # Panics
/// As [`find`]; if it cannot be built.
pub fn build(name: &str, folder: &Path) -> Option<PathBuf> {
    let missing = if Path::new("/usr/include/usrsctp.h").exists() {
        None
    } else {
        Some("libusrsctp-dev is not installed (tools/setup.sh test installs it)")
    };
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs").join(name).with_extension("c");
    let program = folder.join(name);
    let built =
        || Command::new("cc").arg("-O1").arg("-o").arg(&program).arg(&source).args(["-lusrsctp", "-lpthread"]).status();
    let missing = missing.or_else(|| match built() {
        Ok(status) => {
            assert!(status.success(), "cc {}: {status}", source.display());
            None
        }
        Err(_) => Some("there is no cc"),
    });
    let Some(missing) = missing else {
        peers::met(PEER);
        return Some(program);
    };
    peers::lacks(PEER, missing);
    assert!(std::env::var_os("BRAIDCAST_REQUIRE_TOOLS").is_none(), "{missing}");
    eprintln!("skipped: {missing}");
    None
}

/// A program of ours that runs until it is dropped, and what it says, line by line.
#[derive(Debug)]
pub struct Telling {
    child: Child,
    lines: Receiver<String>,
}

impl Telling {
    /// Starts `program`.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(program: &Path, args: &[&str]) -> io::Result<Self> {
        let mut child = Command::new(program).args(args).stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let output = child.stdout.take().map(BufReader::new).ok_or(io::ErrorKind::BrokenPipe)?;
        let (found, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if found.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Self { child, lines })
    }

    /// The next line, if it has said one.
    pub fn line(&self) -> Option<String> {
        self.lines.try_recv().ok()
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port for UDP encapsulation that nothing on the loopback uses now.
#[expect(clippy::disallowed_types, reason = "real peers need real ports")]
pub fn free_port() -> io::Result<u16> {
    std::net::UdpSocket::bind("127.0.0.1:0")?.local_addr().map(|addr| addr.port())
}

/// A program that runs until it ends or is dropped.
#[derive(Debug)]
pub struct Running {
    child: Child,
    /// What `tsctp` as a server says about each association that ended.
    received: Receiver<Received>,
}

/// What a `tsctp` server counted over one association.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Received {
    /// Length of the first message.
    pub first_len: u64,
    /// Messages that came whole.
    pub messages: u64,
    /// Bytes of all messages.
    pub bytes: u64,
}

impl Running {
    /// Starts `program`. Its output is read all the time, or it would stall.
    pub fn start(program: &Path, args: &[&str]) -> io::Result<Self> {
        let mut child = Command::new(program)
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()?;
        let output = child.stdout.take().map(BufReader::new).ok_or(io::ErrorKind::BrokenPipe)?;
        let (found, received) = mpsc::channel();
        std::thread::spawn(move || {
            let counts = output.split(b'\n').map_while(Result::ok).filter_map(|line| counts(&line));
            for counts in counts {
                if found.send(counts).is_err() {
                    break;
                }
            }
        });
        Ok(Self { child, received })
    }

    /// Waits at most `at_most` for the counts of the next association that ends, and returns them.
    pub fn received(&self, at_most: Duration) -> Option<Received> {
        self.received.recv_timeout(at_most).ok()
    }

    /// How it ended, or `None` while it runs.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself; then neither call has anything to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads `first_length, messages, recv_calls, bytes, seconds, bytes/s, notifications`, perhaps behind a debug line of
/// another thread that had not ended yet.
fn counts(line: &[u8]) -> Option<Received> {
    let is_number = |c: &u8| c.is_ascii_digit() || b"., ".contains(c);
    let start = line.len() - line.iter().rev().take_while(|c| is_number(c)).count();
    let text = core::str::from_utf8(&line[start..]).ok()?.trim_start_matches(['.', ' ']);
    let fields: Vec<&str> = text.split(", ").collect();
    let [first_len, messages, _calls, bytes, _seconds, _rate, _notifications] = fields[..] else { return None };
    Some(Received { first_len: first_len.parse().ok()?, messages: messages.parse().ok()?, bytes: bytes.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_with_the_counts_is_found_among_debug_lines() {
        let expected = Some(Received { first_len: 1316, messages: 4000, bytes: 5_264_000 });
        assert_eq!(counts(b"1316, 4000, 4000, 5264000, 0.172905, 30444463.722854, 0"), expected);
        assert_eq!(counts(b"[S][0.5] Received 120 bytes.1316, 4000, 4000, 5264000, 0.17, 30444463.7, 0"), expected);
        assert_eq!(counts(b"[S][0.506] IP output returns 0"), None);
    }
}
