//! Our end of a test: a machine on real sockets.

use braidcast_core::{Instant, Machine};
use braidcast_driver::{Bind, Driver};
use std::fmt::Debug;
use std::time::Duration;

/// A machine with sockets and a driver of its own.
#[derive(Debug)]
pub struct Host<M: Machine> {
    pub(crate) driver: Driver,
    pub(crate) machine: M,
    /// Everything that was reported, oldest first.
    pub events: Vec<M::Event>,
}

impl<M: Machine<Event: Debug>> Host<M> {
    /// `machine` on these sockets, whose numbers are their places.
    ///
    /// # Panics
    /// If one of them cannot be opened.
    pub(crate) fn run(machine: M, binds: &[Bind]) -> Self {
        let mut driver = Driver::new().expect("a driver");
        for bind in binds {
            driver.bind(bind).unwrap_or_else(|error| panic!("{error}"));
        }
        Self { driver, machine, events: Vec::new() }
    }

    /// The time.
    pub fn now(&self) -> Instant {
        self.driver.now()
    }

    /// Runs for at most 20 ms, or until something came in.
    ///
    /// # Panics
    /// If the system's polling fails.
    pub fn turn(&mut self) {
        let until = self.driver.now() + Duration::from_millis(20);
        self.driver.drive(&mut self.machine, Some(until)).expect("polling works");
        self.events.extend(core::iter::from_fn(|| self.machine.poll_event()));
    }

    /// Turns until `done`, or panics after `limit`.
    ///
    /// # Panics
    /// If `limit` passes first.
    pub fn until(&mut self, limit: Duration, what: &str, mut done: impl FnMut(&mut Self) -> bool) {
        let end = self.driver.now() + limit;
        while !done(self) {
            assert!(self.driver.now() < end, "{what}: not within {limit:?}; events {:?}", self.events);
            self.turn();
        }
    }

    /// Runs while `work` goes on in a thread of its own, and calls `each` after each turn. Returns
    /// what `work` returns.
    ///
    /// # Panics
    /// If `work` does.
    pub fn meanwhile<R: Send>(&mut self, work: impl FnOnce() -> R + Send, mut each: impl FnMut(&mut Self)) -> R {
        std::thread::scope(|scope| {
            let thread = scope.spawn(work);
            while !thread.is_finished() {
                self.turn();
                each(self);
            }
            thread.join().expect("the other thread's work is done")
        })
    }
}
