//! Machines whose clocks are wrong.

use super::{Running, command};
use std::path::Path;
use std::process::{Command, Stdio};

/// `timerfd_settime` without libfaketime.
const STRAIGHT: &str = "#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>
int timerfd_settime(int fd, int flags, const struct itimerspec *to, struct itimerspec *from) {
    return (int)syscall(SYS_timerfd_settime, fd, flags, to, from);
}
";

/// Starts `braidcast` in `dir`, where libfaketime is told this of the clock; `None` if that is not possible.
pub(crate) fn start(dir: &Path, told: &[(&str, &str)], args: &str) -> Option<Running> {
    if Command::new("faketime").arg("--version").output().is_err() {
        assert!(std::env::var_os("BRAIDCAST_REQUIRE_TOOLS").is_none(), "faketime is not installed");
        eprintln!("skipped: faketime is not installed (tools/setup.sh test installs it)");
        return None;
    }
    // libfaketime 0.9.10 shifts absolute timers of CLOCK_BOOTTIME, which it does not shift itself: they
    // never expire. So timers go straight to the kernel.
    let straight = dir.join("straight.so");
    std::fs::write(dir.join("straight.c"), STRAIGHT).unwrap();
    let cc = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&straight).arg(dir.join("straight.c")).status();
    assert!(cc.is_ok_and(|status| status.success()), "a C compiler is needed");
    let mut command = command(dir);
    // Without `faketime` itself, which would stand between the test and the program.
    let preload = format!("{} /usr/$LIB/faketime/libfaketime.so.1", straight.display());
    command.env("LD_PRELOAD", preload).envs(told.iter().copied());
    command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1").args(args.split_whitespace());
    Some(Running::spawn(command, Stdio::null()))
}
