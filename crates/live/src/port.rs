//! What a session's thread and the program's threads share: orders in, events out.

use crate::Error;
use braidcast_driver::{Clock, Driver, Waker};
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Bytes of orders that wait for the thread. It takes them at once, so there are as many only if it
/// hardly runs.
const MOST_WAITING: usize = 8 << 20;

/// Events that wait for the program at most, media aside, which has a bound of its own.
const MOST_EVENTS: usize = 1 << 16;
/// What an event takes beside its media, bytes.
const OVERHEAD: usize = 128;

/// What is measured against a bound.
pub(crate) trait Weight {
    /// Bytes of media in it.
    fn weight(&self) -> usize {
        0
    }

    /// It is not lost, however many wait.
    fn is_kept(&self) -> bool {
        true
    }
}

#[derive(Debug)]
struct State<C, E> {
    orders: VecDeque<C>,
    order_bytes: usize,
    events: VecDeque<E>,
    event_bytes: usize,
    /// The thread wants to know when events are taken.
    watched: bool,
    /// Interrupts so far.
    interrupts: u64,
    /// Polls that wait.
    polls: usize,
    /// The next poll is to end at once.
    interrupted: bool,
    end: Option<End>,
    /// It ended as it should.
    complete: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    Over,
    Panicked,
}

/// Orders `C` for a thread, and the events `E` that it reports.
#[derive(Debug)]
pub(crate) struct Port<C, E> {
    state: Mutex<State<C, E>>,
    changed: Condvar,
    waker: Waker,
    clock: Clock,
    /// The reading end is readable while events wait, and once nothing more comes. Both ends live as
    /// long as this, so that no write ever raises SIGPIPE.
    bell: (UnixStream, UnixStream),
    #[cfg(feature = "tokio")]
    news: Arc<tokio::sync::Notify>,
}

impl<C: Weight + Send + 'static, E: Weight + Send + 'static> Port<C, E> {
    /// Of the thread that `driver` will run in.
    pub(crate) fn new(driver: &mut Driver) -> io::Result<Self> {
        let bell = UnixStream::pair()?;
        bell.0.set_nonblocking(true)?;
        bell.1.set_nonblocking(true)?;
        let state = State {
            orders: VecDeque::new(),
            order_bytes: 0,
            events: VecDeque::new(),
            event_bytes: 0,
            watched: false,
            interrupts: 0,
            polls: 0,
            interrupted: false,
            end: None,
            complete: false,
        };
        Ok(Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
            waker: driver.waker()?,
            clock: driver.clock(),
            bell,
            #[cfg(feature = "tokio")]
            news: Arc::default(),
        })
    }

    /// Runs `work` in a thread of its own; once it returns, or panics, nothing more comes.
    pub(crate) fn run(
        self: &Arc<Self>,
        name: &str,
        work: impl FnOnce() + Send + 'static,
    ) -> io::Result<JoinHandle<()>> {
        let port = Arc::clone(self);
        Builder::new().name(name.into()).spawn(move || {
            let worked = catch_unwind(AssertUnwindSafe(work));
            port.end(if worked.is_ok() { End::Over } else { End::Panicked });
        })
    }

    fn state(&self) -> MutexGuard<'_, State<C, E>> {
        // Each change of it is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn clock(&self) -> Clock {
        self.clock
    }

    /// Hands the thread an order.
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::Over`], [`Error::Broken`].
    pub(crate) fn order(&self, order: C) -> Result<(), Error> {
        let mut state = self.state();
        match state.end {
            Some(End::Over) => return Err(Error::Over),
            Some(End::Panicked) => return Err(Error::Broken),
            None => {}
        }
        let bytes = order.weight();
        if bytes > 0 && state.order_bytes + bytes > MOST_WAITING {
            return Err(Error::Full);
        }
        state.order_bytes += bytes;
        state.orders.push_back(order);
        let first = state.orders.len() == 1;
        drop(state);
        // With others before it the thread has been woken, and has not taken them yet.
        if first {
            self.waker.wake();
        }
        Ok(())
    }

    /// What the thread is to do.
    pub(crate) fn take_orders(&self) -> VecDeque<C> {
        let mut state = self.state();
        state.order_bytes = 0;
        std::mem::take(&mut state.orders)
    }

    /// Reports an event. Of too many that nobody takes those are lost that are [not
    /// kept](Weight::is_kept).
    pub(crate) fn report(&self, event: E) {
        let mut state = self.state();
        if state.events.len() >= MOST_EVENTS && !event.is_kept() {
            return;
        }
        state.event_bytes += event.weight() + OVERHEAD;
        state.events.push_back(event);
        if state.events.len() == 1 {
            self.ring();
        }
        drop(state);
        self.notify();
    }

    /// Bytes of events that wait; `watched`: the thread is woken when one is taken.
    pub(crate) fn waiting(&self, watched: bool) -> usize {
        let mut state = self.state();
        state.watched = watched;
        state.event_bytes
    }

    /// How it ends, before it does.
    pub(crate) fn set_complete(&self, complete: bool) {
        self.state().complete = complete;
    }

    /// How it ended.
    ///
    /// # Errors
    /// [`Error::Broken`].
    pub(crate) fn was_complete(&self) -> Result<bool, Error> {
        let state = self.state();
        if state.end == Some(End::Panicked) { Err(Error::Broken) } else { Ok(state.complete) }
    }

    fn end(&self, how: End) {
        let mut state = self.state();
        state.end.get_or_insert(how);
        // Answers that are waited for do not come.
        state.orders.clear();
        self.ring();
        drop(state);
        self.notify();
    }

    fn notify(&self) {
        self.changed.notify_all();
        #[cfg(feature = "tokio")]
        self.news.notify_waiters();
    }

    fn ring(&self) {
        // One that is full has rung.
        _ = (&self.bell.0).write(&[1]);
    }

    /// Takes the next event if there is one.
    fn take(&self, state: &mut State<C, E>) -> Result<Option<E>, Error> {
        let Some(event) = state.events.pop_front() else {
            return match state.end {
                Some(End::Over) => Err(Error::Over),
                Some(End::Panicked) => Err(Error::Broken),
                None => Ok(None),
            };
        };
        state.event_bytes -= event.weight() + OVERHEAD;
        if state.events.is_empty() && state.end.is_none() {
            let mut rung = [0; 16];
            while matches!((&self.bell.1).read(&mut rung), Ok(1..)) {}
        }
        if state.watched {
            self.waker.wake();
        }
        Ok(Some(event))
    }

    /// Waits for the next event at most for `timeout`, or for ever.
    ///
    /// # Errors
    /// [`Error::Over`] after the last, [`Error::Broken`].
    pub(crate) fn poll(&self, timeout: Option<Duration>) -> Result<Option<E>, Error> {
        let mut state = self.state();
        if std::mem::take(&mut state.interrupted) {
            return Ok(None);
        }
        let before = state.interrupts;
        state.polls += 1;
        let waits = |it: &mut State<C, E>| it.events.is_empty() && it.end.is_none() && it.interrupts == before;
        state = match timeout {
            Some(timeout) => {
                self.changed.wait_timeout_while(state, timeout, waits).unwrap_or_else(PoisonError::into_inner).0
            }
            None => self.changed.wait_while(state, waits).unwrap_or_else(PoisonError::into_inner),
        };
        state.polls -= 1;
        if state.interrupts != before {
            return Ok(None);
        }
        self.take(&mut state)
    }

    /// Waits until nothing more comes, at most for `timeout`. Returns `false` if it is not over then.
    pub(crate) fn wait_for_end(&self, timeout: Duration) -> bool {
        let waits = |it: &mut State<C, E>| it.end.is_none();
        let waited = self.changed.wait_timeout_while(self.state(), timeout, waits);
        waited.unwrap_or_else(PoisonError::into_inner).0.end.is_some()
    }

    /// Ends each wait in [`poll`](Self::poll), or the next one.
    pub(crate) fn interrupt(&self) {
        let mut state = self.state();
        state.interrupts += 1;
        state.interrupted = state.polls == 0;
        drop(state);
        self.changed.notify_all();
    }

    /// How often [`interrupt`](Self::interrupt) was called.
    pub(crate) fn interrupts(&self) -> u64 {
        self.state().interrupts
    }

    /// Waits for the next event. Dropping the future loses none.
    ///
    /// # Errors
    /// As [`poll`](Self::poll).
    #[cfg(feature = "tokio")]
    pub(crate) async fn next(&self) -> Result<E, Error> {
        loop {
            let waits = self.news.notified();
            if let Some(event) = self.take_next()? {
                return Ok(event);
            }
            waits.await;
        }
    }

    /// A stream's wait for events.
    #[cfg(feature = "tokio")]
    pub(crate) fn turns(&self) -> braidcast_driver::Waiting {
        braidcast_driver::Waiting::new(Arc::clone(&self.news))
    }

    /// The next event if there is one.
    ///
    /// # Errors
    /// As [`poll`](Self::poll).
    #[cfg(feature = "tokio")]
    pub(crate) fn take_next(&self) -> Result<Option<E>, Error> {
        self.take(&mut self.state())
    }
}

impl<C, E> AsFd for Port<C, E> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.1.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Piece(usize, bool);

    impl Weight for Piece {
        fn weight(&self) -> usize {
            self.0
        }

        fn is_kept(&self) -> bool {
            self.1
        }
    }

    #[test]
    fn what_nobody_takes_is_bounded() {
        let port = Port::<Piece, Piece>::new(&mut Driver::new().unwrap()).unwrap();
        let taken = (0..100).take_while(|_| port.order(Piece(1 << 20, true)).is_ok()).count();
        assert_eq!(taken, 8, "MiB of orders");
        assert!(matches!(port.order(Piece(1, true)), Err(Error::Full)));
        port.order(Piece(0, true)).unwrap();
        assert_eq!(port.take_orders().len(), 9);
        port.order(Piece(1 << 20, true)).unwrap();

        (0..2 * MOST_EVENTS).for_each(|_| port.report(Piece(0, false)));
        assert_eq!(port.waiting(false), MOST_EVENTS * OVERHEAD);
        port.report(Piece(5, true));
        assert_eq!(port.waiting(false), (MOST_EVENTS + 1) * OVERHEAD + 5);
        while port.poll(Some(Duration::ZERO)).unwrap().is_some() {}
        assert_eq!(port.waiting(false), 0);
    }

    #[test]
    fn a_thread_that_panics_ends_all_waits() {
        let port = Arc::new(Port::<Piece, Piece>::new(&mut Driver::new().unwrap()).unwrap());
        let thread = port.run("panics", || panic!("seven")).unwrap();
        assert!(matches!(port.poll(None), Err(Error::Broken)));
        assert!(matches!(port.order(Piece(0, true)), Err(Error::Broken)));
        assert!(matches!(port.was_complete(), Err(Error::Broken)));
        thread.join().unwrap();
    }
}
