use rustix::net::{SendFlags, send};
use rustix::time::{ClockId, clock_gettime};
use signal_hook::SigId;
use signal_hook::consts::signal::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::{exit, register, unregister};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// What the user, a service manager or a terminal that goes away ends a program with.
const SIGNALS: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];
/// Signals within this time after one that counted are that one, sent again, in ns: `timeout`
/// signals its child and its group.
const SAME: u64 = 1_000_000_000;
/// What goes through the pipe.
const INTERRUPT: u8 = 1;
const RELOAD: u8 = 2;
/// So many that count end the process at once, whatever it is busy with.
const ENOUGH: u32 = 3;

/// These signals as bytes in a pipe; the third that counts ends the process at once.
#[derive(Debug)]
pub(crate) struct Interrupts {
    presses: Arc<Presses>,
    pipe: UnixStream,
    actions: Vec<SigId>,
}

/// Signals so far: how many counted, and when the last one of these came.
#[derive(Debug, Default)]
struct Presses {
    /// The system ends the program, and not its user.
    terminated: AtomicBool,
    /// SIGHUP ends nothing, and asks for what is configured to be read again.
    reloads: AtomicBool,
    reload: AtomicBool,
    count: AtomicU32,
    last: AtomicU64,
}

impl Presses {
    /// Counts a signal at `now`, in ns; the number of it, or `None` if it is the one before again.
    fn count(&self, now: u64) -> Option<u32> {
        let last = self.last.load(Ordering::Relaxed);
        if last != 0 && now.saturating_sub(last) < SAME {
            return None;
        }
        self.last.store(now, Ordering::Relaxed);
        Some(self.count.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

impl Interrupts {
    pub(crate) fn catch() -> io::Result<Self> {
        let (read, write) = UnixStream::pair()?;
        read.set_nonblocking(true)?;
        let (presses, write) = (Arc::new(Presses::default()), Arc::new(write));
        let mut caught = Self { presses: Arc::clone(&presses), pipe: read, actions: Vec::with_capacity(SIGNALS.len()) };
        for signal in SIGNALS {
            let (presses, write) = (Arc::clone(&presses), Arc::clone(&write));
            let action = move || {
                if signal == SIGTERM {
                    presses.terminated.store(true, Ordering::Relaxed);
                }
                if signal == SIGHUP && presses.reloads.load(Ordering::Relaxed) {
                    presses.reload.store(true, Ordering::Relaxed);
                    let _ = send(&*write, &[RELOAD], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
                    return;
                }
                match presses.count(now()) {
                    None => {}
                    // 128 + signal is what shells report for a process that a signal ended.
                    Some(ENOUGH..) => exit(128 + signal),
                    Some(_) => {
                        // A full pipe has been told enough.
                        let _ = send(&*write, &[INTERRUPT], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
                    }
                }
            };
            // SAFETY: the action uses atomics, clock_gettime(2), send(2) and _exit(2) only, which
            // signal handlers may use (signal-safety(7)). It neither allocates nor locks nor
            // panics.
            #[allow(unsafe_code, reason = "what a signal does is unsafe to say")]
            let id = unsafe { register(signal, action) }?;
            caught.actions.push(id);
        }
        Ok(caught)
    }

    pub(crate) fn raw_fd(&self) -> RawFd {
        self.pipe.as_raw_fd()
    }

    /// Returns `true` if SIGTERM has come.
    pub(crate) fn is_terminated(&self) -> bool {
        self.presses.terminated.load(Ordering::Relaxed)
    }

    /// SIGHUP is no interrupt from now on.
    pub(crate) fn reload_on_hangup(&self) {
        self.presses.reloads.store(true, Ordering::Relaxed);
    }

    /// Returns `true` if SIGHUP has come since the last call.
    pub(crate) fn take_reload(&self) -> bool {
        self.presses.reload.swap(false, Ordering::Relaxed)
    }

    /// Empties the pipe; `true` if an interrupt had come.
    pub(crate) fn take(&mut self) -> bool {
        let mut seen = false;
        let mut buf = [0; 16];
        while matches!(self.pipe.read(&mut buf), Ok(n) if n > 0) {
            seen |= buf[..].contains(&INTERRUPT);
            buf.fill(0);
        }
        seen
    }
}

/// Nanoseconds of the monotonic clock, never 0.
fn now() -> u64 {
    let t = clock_gettime(ClockId::Monotonic);
    (t.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(t.tv_nsec as u64).max(1)
}

/// A flag that SIGINT, SIGTERM and SIGHUP set, for work that no [`Driver`](crate::Driver) drives.
/// One within a second after another is the same one; the second that counts ends the process at
/// once, with exit status 128 + signal.
pub fn interrupt_flag() -> io::Result<Arc<AtomicBool>> {
    let (seen, presses) = (Arc::new(AtomicBool::new(false)), Arc::new(Presses::default()));
    for signal in SIGNALS {
        let (seen, presses) = (Arc::clone(&seen), Arc::clone(&presses));
        let action = move || match presses.count(now()) {
            None => {}
            Some(1) => seen.store(true, Ordering::Relaxed),
            Some(_) => exit(128 + signal),
        };
        // SAFETY: the action uses atomics, clock_gettime(2) and _exit(2) only, which signal
        // handlers may use (signal-safety(7)). It neither allocates nor locks nor panics.
        #[allow(unsafe_code, reason = "what a signal does is unsafe to say")]
        unsafe { register(signal, action) }?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_signals_within_a_second_are_one() {
        let presses = Presses::default();
        let at = |ms: u64| presses.count(5_000_000_000 + ms * 1_000_000);
        assert_eq!(
            [at(0), at(1), at(900), at(1100), at(1500), at(2200)],
            [Some(1), None, None, Some(2), None, Some(3)]
        );
    }
}
