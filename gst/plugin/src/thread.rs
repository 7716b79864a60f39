//! A thread with an event loop in it, and how others reach it.

use crate::failure::Failure;
use crate::stats::Stats;
use braidcast_driver::{Direction, Driver};
use gst::ResourceError as Code;
use gstreamer as gst;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

/// Wakes an event loop. Both ends live as long as it does, so that no write ever raises SIGPIPE,
/// which would end a program that is not ours.
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

/// What is known of a session on both sides of its thread.
#[derive(Default)]
pub(crate) struct State<S> {
    /// What goes from one side to the other.
    pub(crate) data: S,
    /// Whoever waits is to come back.
    pub(crate) interrupted: bool,
    /// It has ended, and how.
    pub(crate) over: Option<Result<(), Failure>>,
}

/// What a session's thread shares with the element's functions.
pub(crate) struct Shared<S> {
    state: Mutex<State<S>>,
    changed: Condvar,
    pub(crate) bell: Arc<Bell>,
    stats: Mutex<Stats>,
}

/// Starts a thread that opens something and then works with it until it is over; opening is waited for.
///
/// # Errors
/// What `open` said.
pub(crate) fn spawn<W>(
    name: &str,
    open: impl FnOnce() -> Result<W, Failure> + Send + 'static,
    work: impl FnOnce(W) + Send + 'static,
    on_panic: impl FnOnce(Failure) + Send + 'static,
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
            on_panic(panicked());
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

impl<S: Default> Shared<S> {
    /// What a thread shares that `bell` wakes.
    pub(crate) fn new(bell: Arc<Bell>) -> Self {
        Self { state: Mutex::default(), changed: Condvar::new(), bell, stats: Mutex::default() }
    }
}

impl<S> Shared<S> {
    pub(crate) fn state(&self) -> MutexGuard<'_, State<S>> {
        lock(&self.state)
    }

    /// Waits while `so` holds, at most until the end or until someone interrupts.
    pub(crate) fn wait(&self, so: impl Fn(&S) -> bool) -> MutexGuard<'_, State<S>> {
        self.wait_while(|it| so(&it.data) && it.over.is_none() && !it.interrupted)
    }

    /// Waits for the end, and returns how it came; `None` if someone interrupts and `leave` agrees.
    pub(crate) fn wait_for_end(&self, leave: impl Fn() -> bool) -> Option<Result<(), Failure>> {
        self.wait_while(|it| it.over.is_none() && !(it.interrupted && leave())).over.clone()
    }

    fn wait_while(&self, so: impl FnMut(&mut State<S>) -> bool) -> MutexGuard<'_, State<S>> {
        self.changed.wait_while(self.state(), so).unwrap_or_else(PoisonError::into_inner)
    }

    /// Has whoever waits look again.
    pub(crate) fn notify(&self) {
        self.changed.notify_all();
    }

    /// Whoever waits in a call is to come back, or may wait again.
    pub(crate) fn interrupt(&self, interrupted: bool) {
        self.state().interrupted = interrupted;
        self.notify();
    }

    /// It is over; the first word about how counts.
    pub(crate) fn end(&self, how: Result<(), Failure>) {
        self.state().over.get_or_insert(how);
        self.notify();
    }

    pub(crate) fn stats(&self) -> Stats {
        lock(&self.stats).clone()
    }

    pub(crate) fn publish(&self, stats: Stats) {
        *lock(&self.stats) = stats;
    }
}

/// What a panic says instead.
fn panicked() -> Failure {
    Failure::new(
        Code::Failed,
        "braidcast's own thread failed",
        "this is a fault of braidcast: please report what stderr says",
    )
}

/// The value inside, also after a panic of who held it: each change of it is whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Who is told what happens; called in the thread, so it must not wait for the element.
pub(crate) type Tell<T> = Arc<dyn Fn(T) + Send + Sync>;
