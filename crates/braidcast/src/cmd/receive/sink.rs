//! Where the stream goes: a file, stdout or UDP.

use crate::args::values::Output;
use crate::cmd::udp::UdpOutput;
use crate::failure::{Failure, Outcome};
use braidcast_driver::{Direction, Driver, InputId};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd};

/// What may wait for a slow reader of stdout before more is refused, in bytes.
const MAX_WAITING: usize = 8 << 20;
/// A pipe that can be written to takes at least so much without blocking (`PIPE_BUF`, pipe(7)).
const PIPE_PIECE: usize = 4096;

/// An open output.
pub(super) enum Sink {
    /// Something that takes bytes at once: a file or a device.
    File { name: String, file: File },
    /// A pipe or terminal, which takes them when its reader does.
    Pipe(Pipe),
    /// Datagrams.
    Udp(UdpOutput),
}

/// Stdout where it leads to another program.
pub(super) struct Pipe {
    file: File,
    token: InputId,
    waiting: Vec<u8>,
    /// How much of `waiting` is written already.
    written: usize,
    armed: bool,
}

impl Sink {
    /// Opens `output`; a file is made anew.
    pub(super) fn open(output: &Output, driver: &mut Driver) -> Outcome<Self> {
        match output {
            Output::File(path) => {
                let name = path.display().to_string();
                let file = File::create(path).map_err(|e| {
                    Failure::new(
                        format!("cannot write {name}: {e}"),
                        "check that the folder exists and may be written to",
                    )
                })?;
                Ok(Self::File { name, file })
            }
            Output::Stdout => Self::stdout(driver).map_err(|e| Failure::stdout(&e)),
            Output::Udp(address) => UdpOutput::open(address).map(Self::Udp),
        }
    }

    fn stdout(driver: &mut Driver) -> io::Result<Self> {
        let file = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        let kind = file.metadata()?.file_type();
        if kind.is_file() {
            return Ok(Self::File { name: "stdout".into(), file });
        }
        let token = driver.register(file.as_raw_fd(), Direction::Write)?;
        driver.pause(token)?;
        Ok(Self::Pipe(Pipe { file, token, waiting: Vec::new(), written: 0, armed: false }))
    }

    /// Writes `bytes`, or lets them wait for a slow reader.
    pub(super) fn write(&mut self, driver: &mut Driver, bytes: &[u8]) -> Outcome {
        match self {
            Self::File { name, file } => file.write_all(bytes).map_err(|e| full(name, &e)),
            Self::Pipe(pipe) => {
                pipe.waiting.extend_from_slice(bytes);
                pipe.arm(driver).map_err(|e| Failure::stdout(&e))
            }
            Self::Udp(socket) => {
                socket.send(bytes);
                Ok(())
            }
        }
    }

    /// Whether it takes more; if not, what comes must wait or be dropped.
    pub(super) fn has_room(&self) -> bool {
        !matches!(self, Self::Pipe(pipe) if pipe.waiting.len() - pipe.written >= MAX_WAITING)
    }

    /// The driver says that `id` can be written to.
    pub(super) fn on_ready(&mut self, driver: &mut Driver, id: InputId) -> Outcome {
        match self {
            Self::Pipe(pipe) if pipe.token == id => {
                pipe.write_piece().and_then(|()| pipe.arm(driver)).map_err(|e| Failure::stdout(&e))
            }
            _ => Ok(()),
        }
    }

    /// Whether nothing waits any more.
    pub(super) fn is_drained(&self) -> bool {
        !matches!(self, Self::Pipe(pipe) if pipe.written < pipe.waiting.len())
    }

    /// Makes sure that a file is on its disk as far as writing goes, so that a full one is noticed.
    pub(super) fn finish(&mut self) -> Outcome {
        match self {
            Self::File { name, file } => file.flush().map_err(|e| full(name, &e)),
            Self::Pipe(_) | Self::Udp(_) => Ok(()),
        }
    }

    /// Datagrams that could not be sent on.
    pub(super) fn unsent(&self) -> u64 {
        if let Self::Udp(socket) = self { socket.unsent() } else { 0 }
    }
}

impl Pipe {
    /// Writes no more than a pipe takes for sure: stdout is shared with other programs, so it cannot be made
    /// non-blocking.
    fn write_piece(&mut self) -> io::Result<()> {
        let end = self.waiting.len().min(self.written + PIPE_PIECE);
        match self.file.write(&self.waiting[self.written..end]) {
            Ok(n) => self.written += n,
            Err(e) if matches!(e.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => {}
            Err(e) => return Err(e),
        }
        if self.written == self.waiting.len() {
            self.waiting.clear();
            self.written = 0;
        } else if self.written >= MAX_WAITING / 8 {
            self.waiting.drain(..self.written);
            self.written = 0;
        }
        Ok(())
    }

    /// Waits for the reader exactly while something waits for it.
    fn arm(&mut self, driver: &mut Driver) -> io::Result<()> {
        let wanted = !self.waiting.is_empty();
        if wanted != self.armed {
            if wanted {
                driver.resume(self.token)?
            } else {
                driver.pause(self.token)?
            }
            self.armed = wanted;
        }
        Ok(())
    }
}

fn full(name: &str, error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return Failure::stdout(error);
    }
    Failure::new(format!("cannot write {name}: {error}"), "make room or choose another output")
}
