use crate::driver::{Driver, Wake};
use braidcast_core::{Instant, Machine};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use tokio::io::unix::AsyncFd;

/// Waits in tokio for the file descriptor of an event loop, as [`Driver`] has one.
#[derive(Debug)]
pub struct ReadyFd(AsyncFd<OwnedFd>);

impl ReadyFd {
    /// Waits for what `fd` refers to, which stays open as long as this value.
    ///
    /// # Errors
    /// Those of epoll.
    ///
    /// # Panics
    /// Outside of a tokio runtime, or in one without I/O (`enable_io`).
    pub fn new(fd: BorrowedFd<'_>) -> io::Result<Self> {
        let descriptor = fd.try_clone_to_owned()?;
        // SAFETY: the descriptor is open, belongs to this value alone, and is neither closed nor
        // replaced while it is registered.
        #[allow(unsafe_code, reason = "tokio leaves it to the caller that the descriptor stays the same")]
        let ready = unsafe { AsyncFd::register(descriptor) }.map_err(io::Error::from)?;
        Ok(Self(ready))
    }

    /// Waits until it is readable, then has `work` do all that there is to do. Dropping the future
    /// before that does nothing.
    ///
    /// # Errors
    /// Those of epoll.
    pub async fn drained<T>(&self, work: impl FnOnce() -> T) -> io::Result<T> {
        let mut ready = self.0.readable().await?;
        let done = work();
        // Edges are reported: what comes meanwhile is a new one.
        ready.clear_ready();
        Ok(done)
    }
}

/// A [`Driver`] that waits in tokio instead of blocking its thread.
///
/// Each driver belongs to one task, which owns its machine too; other tasks talk to it through channels
/// (`tokio::select!` over [`drive`](Self::drive) and a channel's `recv`).
#[derive(Debug)]
pub struct AsyncDriver {
    driver: Driver,
    /// The driver's epoll descriptor within tokio's: readable when any socket or timer of the driver is.
    ready: ReadyFd,
}

impl AsyncDriver {
    /// Takes over `driver`. Sockets may be opened before and after.
    ///
    /// # Errors
    /// Those of epoll.
    ///
    /// # Panics
    /// Outside of a tokio runtime, or in one without I/O (`enable_io`).
    pub fn new(driver: Driver) -> io::Result<Self> {
        let ready = ReadyFd::new(driver.as_fd())?;
        Ok(Self { driver, ready })
    }

    /// [`Driver::drive`] for tasks: runs `machine` until something happens that the caller may want
    /// to look at, or until `until`.
    ///
    /// Dropping the future loses nothing, so it may stand in `tokio::select!`. Under load it lets
    /// other tasks run in between.
    ///
    /// # Errors
    /// Those of the operating system's polling itself.
    pub async fn drive<M: Machine>(&mut self, machine: &mut M, until: Option<Instant>) -> io::Result<Wake> {
        // A machine that always has something to do would never wait, and so never yield.
        tokio::task::coop::consume_budget().await;
        loop {
            if let Some(wake) = self.driver.try_drive(machine, until)? {
                return Ok(wake);
            }
            let mut ready = self.ready.0.readable().await?;
            // Edges are reported: it is clear only once the driver has found nothing more.
            match self.driver.try_drive(machine, until)? {
                Some(wake) => return Ok(wake),
                None => ready.clear_ready(),
            }
        }
    }

    /// The driver within, for its clock and its sockets.
    pub fn get(&self) -> &Driver {
        &self.driver
    }

    /// The driver within, to open and close sockets.
    pub fn get_mut(&mut self) -> &mut Driver {
        &mut self.driver
    }
}
