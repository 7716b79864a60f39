//! A thread with an event loop in it, and how others reach it.

use crate::failure::Failure;
use braidcast_driver::{Direction, Driver};
use gst::ResourceError as Code;
use gstreamer as gst;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

/// Wakes an event loop. Both ends live as long as it does, so that no write ever raises SIGPIPE, which would end a program that is not ours.
#[derive(Debug)]
pub(crate) struct Bell {
    write: UnixStream,
    read: UnixStream,
}

impl Bell {
    pub(crate) fn new() -> Result<Self, Failure> {
        let made = UnixStream::pair().and_then(|(write, read)| {
            write.set_nonblocking(true)?;
            read.set_nonblocking(true)?;
            Ok(Self { write, read })
        });
        made.map_err(|error| Failure::broken(&error))
    }

    pub(crate) fn ring(&self) {
        // One that is full has rung.
        let _full = (&self.write).write(&[1]);
    }

    /// Has `driver` wake up when it rings.
    pub(crate) fn wake(&self, driver: &mut Driver) -> Result<(), Failure> {
        driver.register(self.read.as_raw_fd(), Direction::Read).map(|_| ()).map_err(|error| Failure::broken(&error))
    }

    /// It was heard.
    pub(crate) fn silence(&self) {
        let mut buf = [0; 64];
        while matches!((&self.read).read(&mut buf), Ok(1..)) {}
    }
}

/// What a panic says instead.
pub(crate) fn panicked() -> Failure {
    Failure::new(
        Code::Failed,
        "braidcast's own thread failed",
        "this is a fault of braidcast: please report what stderr says",
    )
}

/// Starts a thread that opens something and then works with it until it is over; opening is waited for.
///
/// # Errors
/// What `open` said.
pub(crate) fn start<T>(
    name: &str,
    open: impl FnOnce() -> Result<T, Failure> + Send + 'static,
    work: impl FnOnce(T) + Send + 'static,
    on_panic: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, Failure> {
    let (say, hear) = mpsc::channel();
    let run = move || {
        let worked = catch_unwind(AssertUnwindSafe(|| match open() {
            Ok(opened) => {
                let _ = say.send(Ok(()));
                work(opened);
            }
            Err(failure) => {
                let _ = say.send(Err(failure));
            }
        }));
        if worked.is_err() {
            on_panic();
        }
    };
    let thread = Builder::new().name(name.into()).spawn(run).map_err(|error| Failure::broken(&error))?;
    // Nothing is said if opening panicked.
    match hear.recv().unwrap_or_else(|_| Err(panicked())) {
        Ok(()) => Ok(thread),
        Err(failure) => {
            let _ = thread.join();
            Err(failure)
        }
    }
}

/// The value inside, also after a panic of who held it: each change of it is whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Who is told what happens; called in the thread, so it must not wait for the element.
pub(crate) type Tell<T> = Arc<dyn Fn(T) + Send + Sync>;
