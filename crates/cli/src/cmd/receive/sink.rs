//! Destinations of a stream: a file, a device, stdout, a named pipe, UDP, SRT or a server that it is published to.

use super::pipe::Pipe;
use super::place::Place;
use super::recording::{Existing, Recording};
use crate::args::values::Output;
use crate::cmd::common;
use crate::cmd::neighbour::{Neighbour, Role};
use crate::cmd::rtmp::Push;
use crate::cmd::udp::UdpOutput;
use crate::failure::{Failure, Outcome, broken};
use braidcast_driver::{Direction, Driver, InputId};
use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// An open output.
pub(super) enum Sink {
    /// A file.
    Recording(Recording),
    /// Something that takes bytes at once and keeps none, or stdout led into a file: its own concern.
    Device { name: String, file: File },
    /// A pipe or terminal, which takes them when its reader does.
    Pipe(Pipe),
    /// Datagrams.
    Udp(UdpOutput),
    /// Whoever speaks SRT, and what the driver calls its socket.
    Neighbour(Box<Neighbour>, InputId),
    /// A server that it is published to by RTMP.
    Push(Push),
}

impl Sink {
    /// Opens `output` for the stream `name`. No file is made before there is a stream.
    pub(super) fn open(
        output: &Output,
        name: &str,
        existing: Existing,
        segmented: bool,
        driver: &mut Driver,
    ) -> Outcome<Self> {
        match output {
            Output::File(path) => Self::file(path, name, existing, segmented),
            Output::Stdout => Self::stdout(driver).map_err(|e| Failure::stdout(&e)),
            Output::Udp(address) => UdpOutput::open(address).map(Self::Udp),
            Output::Neighbour(neighbour) => {
                let neighbour = Neighbour::open(neighbour, Role::Sink, driver.now())?;
                let id = driver.register(neighbour.as_raw_fd(), Direction::Read).map_err(|e| broken(&e))?;
                Ok(Self::Neighbour(Box::new(neighbour), id))
            }
            Output::Publish(to) => Push::open(to, common::rng(None)?).map(Self::Push),
        }
    }

    fn file(path: &Path, name: &str, existing: Existing, segmented: bool) -> Outcome<Self> {
        if let Ok(kind) = path.metadata().map(|there| there.file_type())
            && !kind.is_file()
            && !kind.is_dir()
        {
            if kind.is_fifo() {
                return Ok(Self::Pipe(Pipe::named(path.to_owned())));
            }
            let name = path.display().to_string();
            let file = OpenOptions::new().write(true).open(path).map_err(|e| full(&name, &e))?;
            return Ok(Self::Device { name, file });
        }
        Recording::new(Place::new(path, name, segmented)?, existing).map(Self::Recording)
    }

    fn stdout(driver: &mut Driver) -> io::Result<Self> {
        let file = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        let kind = file.metadata()?.file_type();
        // A device that is no terminal, /dev/null above all, takes bytes at once: nothing of it
        // waits for its turn in pieces that a pipe has room for.
        if kind.is_file() || (kind.is_char_device() && !file.is_terminal()) {
            return Ok(Self::Device { name: "stdout".into(), file });
        }
        Pipe::stdout(file, driver).map(Self::Pipe)
    }

    /// Writes `bytes`, or lets them wait for a slow reader.
    pub(super) fn write(&mut self, driver: &mut Driver, bytes: &[u8]) -> Outcome {
        match self {
            Self::Recording(recording) => recording.write(bytes),
            Self::Device { name, file } => file.write_all(bytes).map_err(|e| full(name, &e)),
            Self::Pipe(pipe) => pipe.write(driver, bytes),
            Self::Udp(socket) => {
                socket.send(driver.now(), bytes);
                Ok(())
            }
            Self::Neighbour(neighbour, _) => {
                neighbour.push(driver.now(), bytes);
                Ok(())
            }
            Self::Push(push) => {
                push.write(bytes);
                Ok(())
            }
        }
    }

    /// Returns `true` if it takes more; if not, what comes must wait or be dropped.
    pub(super) const fn has_room(&self) -> bool {
        match self {
            Self::Pipe(pipe) => pipe.has_room(),
            _ => true,
        }
    }

    /// Returns `true` if nothing waits any more.
    pub(super) fn is_drained(&self) -> bool {
        match self {
            Self::Pipe(pipe) => pipe.is_drained(),
            Self::Neighbour(neighbour, _) => neighbour.is_drained(),
            _ => true,
        }
    }

    /// Makes sure that a file is on its disk, so that a full one is noticed.
    pub(super) fn flush(&mut self) -> Outcome {
        match self {
            Self::Recording(recording) => recording.flush(),
            Self::Device { name, file } => file.flush().map_err(|e| full(name, &e)),
            Self::Pipe(_) | Self::Udp(_) | Self::Neighbour(..) | Self::Push(_) => Ok(()),
        }
    }

    /// Datagrams that could not be sent on.
    pub(super) const fn unsent(&self) -> u64 {
        match self {
            Self::Udp(socket) => socket.unsent(),
            Self::Neighbour(neighbour, _) => neighbour.unsent(),
            _ => 0,
        }
    }
}

fn full(name: &str, error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return Failure::reader_gone();
    }
    Failure::new(format!("cannot write {name}: {error}"), "make room or choose another output")
}
