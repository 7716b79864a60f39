use signal_hook::consts::signal::{SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::low_level::{pipe, unregister};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// SIGINT and SIGTERM as bytes in a pipe; the second one ends the process at once.
#[derive(Debug)]
pub(crate) struct Interrupts {
    pipe: UnixStream,
    actions: Vec<signal_hook::SigId>,
}

impl Interrupts {
    pub(crate) fn catch() -> io::Result<Self> {
        let (read, write) = UnixStream::pair()?;
        read.set_nonblocking(true)?;
        let mut caught = Self { pipe: read, actions: Vec::with_capacity(6) };
        let seen = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // Order matters: the shutdown tests the flag before the next action sets it. 128 + signal is what
            // shells report for a process that a signal ended.
            caught.actions.push(flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&seen))?);
            caught.actions.push(flag::register(signal, Arc::clone(&seen))?);
            caught.actions.push(pipe::register(signal, write.try_clone()?)?);
        }
        Ok(caught)
    }

    pub(crate) fn raw_fd(&self) -> RawFd {
        self.pipe.as_raw_fd()
    }

    /// Empties the pipe; `true` if a signal had come.
    pub(crate) fn take(&mut self) -> bool {
        let mut seen = false;
        let mut buf = [0; 16];
        while matches!(self.pipe.read(&mut buf), Ok(n) if n > 0) {
            seen = true;
        }
        seen
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        for &action in &self.actions {
            unregister(action);
        }
    }
}
