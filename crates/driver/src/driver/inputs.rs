//! The file descriptors that a program has its driver wait for.

use super::{Driver, FIRST_INPUT, Wake};
use braidcast_core::Instant;
use mio::unix::SourceFd;
use mio::{Interest, Token};
use std::io;
use std::os::fd::RawFd;

/// A registered file descriptor.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct InputId(pub(super) usize);

/// What to wait for on a registered file descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Until it can be read, or its other end was closed.
    Read,
    /// Until it can be written, or its other end was closed.
    Write,
}

#[derive(Debug)]
pub(super) struct Input {
    fd: RawFd,
    interest: Interest,
    /// A regular file, or another one that epoll cannot wait for because it never blocks.
    always_ready: bool,
    watch: InputWatch,
    /// Reported ready, and not looked at again since.
    pub(super) reported: bool,
}

/// `true` if epoll watches an input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum InputWatch {
    On,
    Paused,
    /// Not before this time.
    Rests(Instant),
    /// It has rested, and was reported; epoll is asked only if its caller still waits for it.
    Rested,
}

impl Driver {
    /// Waits for `fd` too: [`Wake::Input`] comes again and again for as long as it is ready, so
    /// read or write some of it each time, say that it is [`drained`](Self::drained), or
    /// [`pause`](Self::pause). Regular files are always ready.
    ///
    /// `fd` must stay open until [`unregister`](Self::unregister), and no other registered one may
    /// be the same.
    pub fn register(&mut self, fd: RawFd, direction: Direction) -> io::Result<InputId> {
        let id = InputId(self.input_count);
        let interest = match direction {
            Direction::Read => Interest::READABLE,
            Direction::Write => Interest::WRITABLE,
        };
        // epoll says EPERM of files that never block.
        let always_ready = match self.poll.registry().register(&mut SourceFd(&fd), input_token(id), interest) {
            Ok(()) => false,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => true,
            Err(error) => return Err(error),
        };
        self.input_count += 1;
        self.inputs.insert(id, Input { fd, interest, always_ready, watch: InputWatch::On, reported: false });
        Ok(id)
    }

    /// Notes that `id` was read or written until it would have blocked. epoll reports by itself
    /// when that changes and need not be asked again, which saves a system call each time.
    pub fn drained(&mut self, id: InputId) {
        if let Some(input) = self.inputs.get_mut(&id) {
            input.reported = false;
        }
    }

    /// Stops waiting for `id`, until [`resume`](Self::resume).
    pub fn pause(&mut self, id: InputId) -> io::Result<()> {
        let Some(input) = self.inputs.get_mut(&id) else { return Ok(()) };
        self.wakes.retain(|wake| *wake != Wake::Input(id));
        if input.watch == InputWatch::On && !input.always_ready {
            self.poll.registry().deregister(&mut SourceFd(&input.fd))?;
        }
        input.watch = InputWatch::Paused;
        input.reported = false;
        Ok(())
    }

    /// Waits for `id` again.
    pub fn resume(&mut self, id: InputId) -> io::Result<()> {
        let Some(input) = self.inputs.get_mut(&id) else { return Ok(()) };
        if input.watch != InputWatch::On && !input.always_ready {
            self.poll.registry().register(&mut SourceFd(&input.fd), input_token(id), input.interest)?;
        }
        input.watch = InputWatch::On;
        Ok(())
    }

    /// Reports `id` at `until`, ready or not, as network cards moderate their interrupts: what comes
    /// before is read together then, without waiting, since there may be nothing. As long as it is
    /// left to rest each time, epoll is not asked. Does nothing for one that is
    /// [paused](Self::pause).
    pub fn rest(&mut self, id: InputId, until: Instant) -> io::Result<()> {
        let Some(input) = self.inputs.get_mut(&id) else { return Ok(()) };
        if input.watch == InputWatch::Paused || input.always_ready {
            return Ok(());
        }
        self.wakes.retain(|wake| *wake != Wake::Input(id));
        if input.watch == InputWatch::On {
            self.poll.registry().deregister(&mut SourceFd(&input.fd))?;
        }
        input.watch = InputWatch::Rests(until);
        input.reported = false;
        Ok(())
    }

    /// Stops waiting for `id` for good; call it before the file is closed.
    pub fn unregister(&mut self, id: InputId) -> io::Result<()> {
        self.pause(id)?;
        self.inputs.remove(&id);
        Ok(())
    }

    /// Reports the inputs that have rested for long enough; when the next one has.
    pub(super) fn end_rests(&mut self, now: Instant) -> Option<Instant> {
        let mut next = None;
        for (&id, input) in &mut self.inputs {
            match input.watch {
                InputWatch::Rests(until) if until <= now => {
                    input.watch = InputWatch::Rested;
                    self.wakes.push_back(Wake::Input(id));
                }
                InputWatch::Rests(until) => next = Some(next.map_or(until, |at: Instant| at.min(until))),
                InputWatch::On | InputWatch::Paused | InputWatch::Rested => {}
            }
        }
        next
    }

    /// Asks epoll anew about the inputs that it reported, since it reports edges and callers want
    /// levels. Returns `true` if one of the inputs is always ready.
    pub(super) fn renew_inputs(&mut self) -> io::Result<bool> {
        let mut always_ready = false;
        for (&id, input) in &mut self.inputs {
            if input.watch == InputWatch::Rested {
                // Level: what is there already is reported too.
                self.poll.registry().register(&mut SourceFd(&input.fd), input_token(id), input.interest)?;
                input.watch = InputWatch::On;
            }
            if input.watch != InputWatch::On {
                continue;
            }
            if input.always_ready {
                always_ready = true;
                self.wakes.push_back(Wake::Input(id));
            } else if input.reported {
                input.reported = false;
                self.poll.registry().reregister(&mut SourceFd(&input.fd), input_token(id), input.interest)?;
            }
        }
        Ok(always_ready)
    }
}

pub(super) fn input_token(id: InputId) -> Token {
    Token(FIRST_INPUT + id.0)
}
