//! Waiting until something is ready or a deadline is over.

use super::Driver;
use braidcast_core::Instant;
use mio::Token;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use std::io;
use std::mem::MaybeUninit;
use std::time::Duration;

/// What epoll reports at once, at most.
const MOST_READY: usize = 64;
/// A deadline further off is left to the alarm, whose clock runs on while the machine sleeps, as
/// epoll's does not.
const FAR_OFF: Duration = Duration::from_secs(1);

/// What is ready.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ready {
    pub(super) token: Token,
    /// Or has failed.
    pub(super) readable: bool,
    pub(super) writable: bool,
}

/// What epoll reported, and how it is asked.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) ready: Vec<Ready>,
    /// Waiting with a time in nanoseconds, without a system call that sets a timer each time, needs
    /// Linux 5.11 (epoll_pwait2).
    old_kernel: bool,
    events: mio::Events,
}

impl Waiting {
    pub(super) fn new() -> Self {
        let events = mio::Events::with_capacity(MOST_READY);
        Self { ready: Vec::with_capacity(MOST_READY), old_kernel: false, events }
    }
}

impl Driver {
    /// Notes what is ready; waits for it, until `deadline` at most, only if it `may_wait` and is not
    /// `busy`. Returns `false` if a signal came meanwhile.
    ///
    /// Up to a second is waited for with a time in nanoseconds, and no timer is set: in steady state
    /// a wake-up costs one system call.
    pub(super) fn look(&mut self, busy: bool, may_wait: bool, deadline: Option<Instant>) -> io::Result<bool> {
        let left = deadline.map(|at| at.since(self.clock.now()));
        let waits = !busy && may_wait;
        // Whoever waits elsewhere is woken by the file descriptor alone.
        let by_alarm = !waits || self.waiting.old_kernel || left.is_some_and(|left| left > FAR_OFF);
        if !busy
            && by_alarm
            && let Some(at) = deadline
        {
            self.alarm.ring_by(at)?;
        }
        let timeout = if waits { left.filter(|_| !by_alarm) } else { Some(Duration::ZERO) };
        match self.ask(timeout) {
            // A filter that is older than the call forbids it (seccomp: EPERM in older containers).
            Err(Errno::NOSYS | Errno::PERM) if !self.waiting.old_kernel => {
                self.waiting.old_kernel = true;
                self.look(busy, may_wait, deadline)
            }
            // Its pipe is seen in the next turn.
            Err(Errno::INTR) => Ok(false),
            done => Ok(done.map(|()| true)?),
        }
    }

    fn ask(&mut self, timeout: Option<Duration>) -> Result<(), Errno> {
        let Waiting { ready, old_kernel, events } = &mut self.waiting;
        ready.clear();
        if *old_kernel {
            let asked = self.poll.poll(events, timeout);
            asked.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
            ready.extend(events.iter().map(|event| Ready {
                token: event.token(),
                readable: event.is_readable() || event.is_error(),
                writable: event.is_writable(),
            }));
            return Ok(());
        }
        let timeout = timeout.map(|it| Timespec {
            tv_sec: it.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: it.subsec_nanos().into(),
        });
        let mut room = [MaybeUninit::uninit(); MOST_READY];
        let (reported, _) = epoll::wait(self.poll.registry(), &mut room, timeout.as_ref())?;
        ready.extend(reported.iter().map(|&epoll::Event { flags, data, .. }| Ready {
            // As mio registers it.
            token: Token(data.u64() as usize),
            readable: flags.intersects(epoll::EventFlags::IN | epoll::EventFlags::PRI | epoll::EventFlags::ERR),
            writable: flags.contains(epoll::EventFlags::OUT),
        }));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::{Direction, Wake};
    use braidcast_core::{Datagram, Machine, Transmit};
    use std::io::Write;
    use std::os::fd::AsRawFd;

    /// Has a timer alone.
    struct Timer(Option<Instant>);

    impl Machine for Timer {
        type Event = ();

        fn handle_datagram(&mut self, _: Instant, _: Datagram<'_>) {}

        fn handle_timeout(&mut self, _: Instant) {
            self.0 = None;
        }

        fn poll_transmit(&mut self, _: Instant, _: &mut Vec<u8>) -> Option<Transmit> {
            None
        }

        fn poll_timeout(&self) -> Option<Instant> {
            self.0
        }

        fn poll_event(&mut self) -> Option<()> {
            None
        }
    }

    #[test]
    fn deadlines_are_kept_and_never_early_whatever_the_kernel_has() {
        for old_kernel in [false, true] {
            let mut driver = Driver::new().unwrap();
            driver.waiting.old_kernel = old_kernel;
            let (reader, mut writer) = std::io::pipe().unwrap();
            let input = driver.register(reader.as_raw_fd(), Direction::Read).unwrap();
            for micros in [0, 300, 2_000, 1_200_000] {
                let at = driver.now() + Duration::from_micros(micros);
                let mut machine = Timer(Some(at));
                assert_eq!(driver.drive(&mut machine, None).unwrap(), Wake::Machine, "{micros}");
                assert!(driver.now() >= at && machine.0.is_none(), "{micros}");
                let at = driver.now() + Duration::from_micros(micros);
                assert_eq!(driver.drive(&mut machine, Some(at)).unwrap(), Wake::Until, "{micros}");
                assert!(driver.now() >= at, "{micros}");
            }
            writer.write_all(b"a").unwrap();
            let far = driver.now() + Duration::from_secs(60);
            assert_eq!(driver.drive(&mut Timer(Some(far)), None).unwrap(), Wake::Input(input));
        }
    }
}
