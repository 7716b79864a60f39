use crate::socket::is_orderly;
use crate::{ConnectionId, Error, Event, Socket};
use braidcast_core::Instant;
use braidcast_driver::{Clock, Waker};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A [`Socket`] that several threads use, each with a clone. One of them [polls](Self::poll); a call
/// of another one interrupts its wait, and goes first.
///
/// ```
/// use braidcast_socket::{Protection, SharedSocket, Socket};
///
/// let socket = SharedSocket::new(Socket::new(&Protection::Anyone)?)?;
/// let poller = socket.clone();
/// let thread = std::thread::spawn(move || poller.poll(None));
/// // Does not wait for an event, though the other thread does.
/// assert_eq!(socket.with(|socket| Ok(socket.connections().count()))?, 0);
/// socket.interrupt();
/// assert_eq!(thread.join().unwrap()?, None);
/// # Ok::<(), braidcast_socket::Error>(())
/// ```
#[derive(Debug)]
pub struct SharedSocket {
    shared: Arc<Shared>,
    /// The [interrupts](Turn::interrupts) that polls of this clone have answered.
    answered: AtomicU64,
}

/// A clone answers interrupts that come after it was made.
impl Clone for SharedSocket {
    fn clone(&self) -> Self {
        Self::of(self.shared.clone())
    }
}

#[derive(Debug)]
struct Shared {
    socket: Mutex<Socket>,
    turn: Mutex<Turn>,
    changed: Condvar,
    waker: Waker,
    clock: Clock,
    fd: RawFd,
}

/// Whose turn it is.
#[derive(Debug, Default)]
struct Turn {
    /// A thread has the socket.
    taken: bool,
    /// Calls that wait for it; who polls lets them go first.
    calls: usize,
    /// Interrupts so far.
    interrupts: u64,
    /// A call panicked, so that the socket may be in disorder.
    broken: bool,
}

/// The socket is this thread's until this is dropped.
struct Mine<'a>(&'a Shared);

impl Drop for Mine<'_> {
    fn drop(&mut self) {
        let mut turn = self.0.turn();
        turn.taken = false;
        turn.broken |= std::thread::panicking();
        self.0.changed.notify_all();
    }
}

impl Shared {
    fn turn(&self) -> MutexGuard<'_, Turn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nobody else has it: this is never waited for.
    fn socket(&self, _: &Mine<'_>) -> MutexGuard<'_, Socket> {
        self.socket.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the socket for a call.
    fn take(&self) -> Result<Mine<'_>, Error> {
        let mut turn = self.turn();
        turn.calls += 1;
        while turn.taken {
            self.waker.wake();
            turn = self.changed.wait(turn).unwrap_or_else(PoisonError::into_inner);
        }
        turn.calls -= 1;
        if turn.broken {
            self.changed.notify_all();
            return Err(Error::Broken);
        }
        turn.taken = true;
        Ok(Mine(self))
    }

    /// Takes the socket to wait for events once no call wants it; `None` at `end`, or after more
    /// interrupts than were `answered`.
    fn take_to_poll(&self, end: Option<Instant>, answered: u64) -> Result<Option<Mine<'_>>, Error> {
        let mut turn = self.turn();
        loop {
            if turn.broken {
                return Err(Error::Broken);
            }
            if turn.interrupts != answered {
                return Ok(None);
            }
            if !turn.taken && turn.calls == 0 {
                turn.taken = true;
                return Ok(Some(Mine(self)));
            }
            turn = match end.map(|end| end - self.clock.now()) {
                Some(Duration::ZERO) => return Ok(None),
                Some(left) => self.changed.wait_timeout(turn, left).unwrap_or_else(PoisonError::into_inner).0,
                None => self.changed.wait(turn).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}

impl SharedSocket {
    /// Shares `socket`.
    ///
    /// # Errors
    /// [`Error::Io`] if the system has no file descriptors left.
    pub fn new(mut socket: Socket) -> Result<Self, Error> {
        let (waker, clock, fd) = (socket.waker()?, socket.clock(), socket.as_raw_fd());
        let (socket, turn) = (Mutex::new(socket), Mutex::default());
        Ok(Self::of(Arc::new(Shared { socket, turn, changed: Condvar::new(), waker, clock, fd })))
    }

    fn of(shared: Arc<Shared>) -> Self {
        let answered = shared.turn().interrupts.into();
        Self { shared, answered }
    }

    /// Calls `call` with the socket as soon as no other thread has it; one that polls gives way.
    /// `call` must not wait for long.
    ///
    /// # Errors
    /// Those of `call`, and [`Error::Broken`].
    pub fn with<T>(&self, call: impl FnOnce(&mut Socket) -> Result<T, Error>) -> Result<T, Error> {
        let mine = self.shared.take()?;
        let mut socket = self.shared.socket(&mine);
        call(&mut socket)
    }

    /// [`Socket::poll`]: waits for the next event while other threads may use the socket. If
    /// several threads poll, each event goes to one of them.
    ///
    /// # Errors
    /// As [`Socket::poll`], and [`Error::Broken`].
    pub fn poll(&self, timeout: Option<Duration>) -> Result<Option<(ConnectionId, Event)>, Error> {
        let answered = self.answered.load(Relaxed);
        let end = timeout.map(|timeout| self.shared.clock.now() + timeout);
        let mut first = true;
        loop {
            let left = end.map(|end| end - self.shared.clock.now());
            if !first && left == Some(Duration::ZERO) {
                return Ok(None);
            }
            first = false;
            let Some(mine) = self.shared.take_to_poll(end, answered)? else {
                self.answered.store(self.shared.turn().interrupts, Relaxed);
                return Ok(None);
            };
            let event = self.shared.socket(&mine).poll(left)?;
            if event.is_some() {
                return Ok(event);
            }
        }
    }

    /// [`Socket::close`], beside threads that still poll. They may get the events that it waits
    /// for.
    ///
    /// # Errors
    /// As [`Socket::close`], and [`Error::Broken`].
    pub fn close(&self, timeout: Duration) -> Result<bool, Error> {
        let end = self.shared.clock.now() + timeout;
        let mut closing = self.begin_close()?;
        loop {
            let left = end - self.shared.clock.now();
            match closing.wait(left)? {
                Some(orderly) => return Ok(orderly),
                None if left.is_zero() => return Ok(false),
                None => {}
            }
        }
    }

    /// Begins to close all connections, for programs that look at other things while they wait for
    /// that.
    ///
    /// # Errors
    /// [`Error::Broken`].
    pub fn begin_close(&self) -> Result<Closing, Error> {
        self.with(Socket::begin_close)?;
        Ok(Closing { socket: self.clone(), orderly: true })
    }

    /// Ends the [poll](Self::poll) that each clone is in, or else its next one, with `None`: a thread
    /// that is between two polls misses no interrupt. Threads that poll by one clone all end their
    /// waits; if none is in a poll, the next one answers for all.
    pub fn interrupt(&self) {
        self.shared.turn().interrupts += 1;
        self.shared.changed.notify_all();
        self.shared.waker.wake();
    }
}

/// As of [`Socket`].
impl AsRawFd for SharedSocket {
    fn as_raw_fd(&self) -> RawFd {
        self.shared.fd
    }
}

/// Connections that are being closed, of [`SharedSocket::begin_close`].
#[derive(Debug)]
#[must_use = "it closes nothing unless it is waited for"]
pub struct Closing {
    socket: SharedSocket,
    orderly: bool,
}

impl Closing {
    /// Waits at most `timeout`. Returns what [`Socket::close`] would, or `None` if connections are
    /// left.
    ///
    /// # Errors
    /// As [`SharedSocket::poll`].
    pub fn wait(&mut self, timeout: Duration) -> Result<Option<bool>, Error> {
        let none_left = |socket: &mut Socket| {
            socket.discard_received();
            Ok(socket.connections().next().is_none())
        };
        if self.socket.with(none_left)? {
            return Ok(Some(self.orderly));
        }
        let event = self.socket.poll(Some(timeout))?;
        self.orderly &= is_orderly(event.as_ref());
        Ok(self.socket.with(none_left)?.then_some(self.orderly))
    }
}
