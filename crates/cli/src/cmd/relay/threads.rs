//! The threads of a relay beside the first: each has a driver, sockets and a share of the relay.

use super::GATHER;
use crate::args::values::Listen;
use crate::cmd::common;
use crate::failure::{Failure, Outcome};
use braidcast_core::SocketId;
use braidcast_driver::{Driver, Wake, Waker};
use braidcast_relay::Relay;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::{io, process};

/// What a program that panics ends with.
const PANICKED: i32 = 101;

/// Threads that work until they are dropped.
pub(super) struct Threads {
    all: Vec<(JoinHandle<()>, Waker)>,
    over: Arc<AtomicBool>,
    /// Why one has ended.
    trouble: Arc<Mutex<Option<io::Error>>>,
}

/// The driver of another thread, with a socket beside each of `first`'s `sockets`, which are bound to `listen`. Some
/// ports need privileges.
pub(super) fn driver_beside(first: &mut Driver, sockets: &[SocketId], listen: &Listen) -> Outcome<Driver> {
    let mut driver = Driver::with_clock(first.clock()).map_err(|error| cannot_start(&error))?;
    driver.gather(GATHER);
    for (socket, place) in sockets.iter().zip(&listen.0) {
        let beside = driver.bind_beside(first, *socket, &place.bind());
        beside.map_err(|error| Failure::new(error.to_string(), "--threads 1 needs one socket for each LISTEN"))?;
    }
    Ok(driver)
}

impl Threads {
    /// Starts a thread for each of `drivers`, beside the one of `first`.
    pub(super) fn start(drivers: Vec<Driver>, first: &mut Driver, relay: &Relay) -> Outcome<Self> {
        let mut it = Self { all: Vec::new(), over: Arc::default(), trouble: Arc::default() };
        for mut driver in drivers {
            let waker = driver.waker().map_err(|error| cannot_start(&error))?;
            let first = first.waker().map_err(|error| cannot_start(&error))?;
            let (relay, over, trouble) = (relay.beside(), it.over.clone(), it.trouble.clone());
            let spawned = thread::Builder::new().name("relay".into()).spawn(move || {
                // What comes to a socket that nobody reads would be lost, so a panic ends the program.
                match panic::catch_unwind(AssertUnwindSafe(|| work(driver, relay, &over))) {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => {
                        *trouble.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                        first.wake();
                    }
                    Err(_) => process::exit(PANICKED),
                }
            });
            it.all.push((spawned.map_err(|error| cannot_start(&error))?, waker));
        }
        Ok(it)
    }

    /// Why a thread has ended, if one has.
    pub(super) fn trouble(&self) -> Outcome {
        let trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner).take();
        trouble.map_or(Ok(()), |error| Err(common::broken(&error)))
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for (thread, waker) in self.all.drain(..) {
            waker.wake();
            // What it ended with does not matter any more.
            let _ = thread.join();
        }
    }
}

fn work(mut driver: Driver, mut relay: Relay, over: &AtomicBool) -> io::Result<()> {
    loop {
        if driver.drive(&mut relay, None)? == Wake::Called && over.load(Ordering::Relaxed) {
            return Ok(());
        }
    }
}

fn cannot_start(error: &io::Error) -> Failure {
    Failure::new(format!("cannot start a thread: {error}"), "use fewer: --threads 1")
}
