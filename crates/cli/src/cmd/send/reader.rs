//! What an input's bytes come from: a file, a pipe, UDP, RTP, or a neighbour.

use crate::args::values;
use crate::cmd::fifo;
use crate::cmd::neighbour::{Neighbour, Role};
use crate::cmd::rtp::RtpInput;
use crate::cmd::udp::UdpInput;
use crate::failure::{Failure, Outcome};
use braidcast_core::Instant;
use braidcast_driver::{Direction, Driver, InputId};
use braidcast_media::Framing;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// A byte stream that is no transport stream goes in messages of this size.
pub(super) const PLAIN_MESSAGE: usize = 16 * 1024;

/// An open file descriptor, and what is done with its bytes.
pub(super) enum Reader {
    File(File),
    /// A pipe that never makes us wait.
    Pipe(File),
    /// One that does, and so is read only when the driver says that something is there: a terminal, a
    /// device.
    Slow(File),
    Udp(Box<UdpInput>),
    Rtp(Box<RtpInput>),
    Neighbour(Box<Neighbour>),
}

impl Reader {
    /// Opens `input` at `now`.
    pub(super) fn open(input: &values::Input, now: Instant) -> Outcome<Self> {
        match input {
            values::Input::File(path) => {
                let fail = |e: io::Error| {
                    Failure::new(format!("cannot open {}: {e}", path.display()), "check the path and its permissions")
                };
                let file = File::open(path).map_err(fail)?;
                let kind = file.metadata().map_err(fail)?.file_type();
                if kind.is_dir() {
                    return Err(Failure::new(format!("{} is a folder", path.display()), "give a file in it"));
                }
                Ok(if kind.is_file() { Self::File(file) } else { Self::pipe(file) })
            }
            values::Input::Stdin => {
                let fail = |e: io::Error| {
                    Failure::new(
                        format!("cannot read stdin: {e}"),
                        "give it something to read: PROGRAM | braidcast send - …",
                    )
                };
                // Its own handle: std's has a buffer that the driver cannot see into.
                let file = File::from(io::stdin().as_fd().try_clone_to_owned().map_err(fail)?);
                let is_file = file.metadata().map_err(fail)?.file_type().is_file();
                Ok(if is_file { Self::File(file) } else { Self::pipe(file) })
            }
            values::Input::Udp(address) if address.rtp => RtpInput::open(address).map(Box::new).map(Self::Rtp),
            values::Input::Udp(address) => UdpInput::open(address).map(Box::new).map(Self::Udp),
            values::Input::Neighbour(neighbour) => {
                Neighbour::open(neighbour, Role::Source, now).map(Box::new).map(Self::Neighbour)
            }
        }
    }

    /// What comes through `pipe`.
    pub(super) fn pipe(pipe: File) -> Self {
        fifo::reader(&pipe).map_or(Self::Slow(pipe), Self::Pipe)
    }

    /// Where the boundaries between its messages come from.
    pub(super) const fn framing(&self) -> Framing {
        match self {
            Self::Udp(_) | Self::Rtp(_) | Self::Neighbour(_) => Framing::Datagrams,
            Self::File(_) | Self::Pipe(_) | Self::Slow(_) => Framing::Stream(PLAIN_MESSAGE),
        }
    }

    /// Has the driver tell when it can be read; files always can.
    pub(super) fn register(&self, driver: &mut Driver) -> Outcome<Option<InputId>> {
        let fd = match self {
            Self::File(_) => return Ok(None),
            Self::Pipe(file) | Self::Slow(file) => file.as_raw_fd(),
            Self::Udp(socket) => socket.as_raw_fd(),
            Self::Rtp(input) => input.as_raw_fd(),
            Self::Neighbour(neighbour) => neighbour.as_raw_fd(),
        };
        driver.register(fd, Direction::Read).map(Some).map_err(|e| broken("the input", &e))
    }
}

/// The failure of reading the input `name`.
pub(super) fn broken(name: &str, error: &io::Error) -> Failure {
    Failure::new(format!("reading {name} failed: {error}"), "check the device or the program that it comes from")
}
