use braidcast_core::Instant;
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime, timerfd_create,
    timerfd_settime,
};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// The real clock, in nanoseconds since the driver was made.
///
/// It is `CLOCK_BOOTTIME`: setting the wall clock does not move it, NTP only slews it, and unlike
/// `CLOCK_MONOTONIC` (which is what `std::time::Instant` reads) it runs on while the machine
/// sleeps. After a laptop lid was closed the far end has lived through that time, so deadlines and
/// path timers must have too.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// Nanoseconds since boot at which the origin lies.
    origin: u64,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self { origin: boot_nanos() }
    }

    /// The time now.
    pub fn now(&self) -> Instant {
        Instant::from_nanos(boot_nanos().saturating_sub(self.origin))
    }
}

fn boot_nanos() -> u64 {
    let t = clock_gettime(ClockId::Boottime);
    u64::try_from(t.tv_sec).unwrap_or(0) * NANOS_PER_SECOND + u64::try_from(t.tv_nsec).unwrap_or(0)
}

/// A kernel timer that makes its file descriptor readable at a point of a [`Clock`].
///
/// epoll's own timeout counts in milliseconds and the kernel may delay it by the thread's timer
/// slack (50 µs); a timerfd counts in nanoseconds and has no slack.
#[derive(Debug)]
pub(crate) struct Alarm {
    fd: OwnedFd,
    clock: Clock,
    /// What the kernel has been told and has not yet reported.
    armed: Option<Instant>,
}

impl Alarm {
    pub(crate) fn new(clock: Clock) -> io::Result<Self> {
        let fd = timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        Ok(Self { fd, clock, armed: None })
    }

    pub(crate) fn raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Makes sure that the alarm rings at `at` or before.
    ///
    /// An alarm that would ring too early stays as it is: acknowledgements move the next deadline
    /// back all the time, and one spurious wake-up costs less than a system call for each of them.
    pub(crate) fn ring_by(&mut self, at: Instant) -> io::Result<()> {
        if self.armed.is_some_and(|armed| armed <= at) {
            return Ok(());
        }
        let nanos = self.clock.origin.saturating_add(at.as_nanos()).clamp(1, i64::MAX as u64);
        let value = Timespec { tv_sec: (nanos / NANOS_PER_SECOND) as _, tv_nsec: (nanos % NANOS_PER_SECOND) as _ };
        let once = Itimerspec { it_interval: Timespec::default(), it_value: value };
        timerfd_settime(&self.fd, TimerfdTimerFlags::ABSTIME, &once)?;
        self.armed = Some(at);
        Ok(())
    }

    /// To be called when the file descriptor became readable. It need not be read: it is watched
    /// for edges, and setting it again clears it.
    pub(crate) fn rang(&mut self) {
        self.armed = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_starts_at_zero_and_goes_forward() {
        let clock = Clock::new();
        let first = clock.now();
        assert!(first < Instant::from_millis(1_000));
        assert!(clock.now() >= first);
    }

    #[test]
    fn an_alarm_set_for_later_keeps_the_earlier_time() {
        let mut alarm = Alarm::new(Clock::new()).unwrap();
        alarm.ring_by(Instant::from_millis(10_000)).unwrap();
        alarm.ring_by(Instant::from_millis(20_000)).unwrap();
        assert_eq!(alarm.armed, Some(Instant::from_millis(10_000)));
        alarm.ring_by(Instant::from_millis(5_000)).unwrap();
        assert_eq!(alarm.armed, Some(Instant::from_millis(5_000)));
    }
}
