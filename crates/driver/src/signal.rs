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
        catch_once(&mut caught.actions)?;
        for signal in [SIGINT, SIGTERM] {
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

/// A flag that SIGINT and SIGTERM set, for work that no [`Driver`](crate::Driver) drives; the second one ends the process
/// at once, with exit status 128 + signal.
pub fn interrupt_flag() -> io::Result<Arc<AtomicBool>> {
    catch_once(&mut Vec::new())
}

/// Makes both signals set a flag, and end the process if it is set already.
fn catch_once(actions: &mut Vec<signal_hook::SigId>) -> io::Result<Arc<AtomicBool>> {
    let seen = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // Order matters: the shutdown tests the flag before the next action sets it. 128 + signal is what
        // shells report for a process that a signal ended.
        actions.push(flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&seen))?);
        actions.push(flag::register(signal, Arc::clone(&seen))?);
    }
    Ok(seen)
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        for &action in &self.actions {
            unregister(action);
        }
    }
}
