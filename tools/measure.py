"""What measurements of programs have in common: processes whose CPU time counts, and what machine this is."""
import datetime
import os
import platform
import re
import shlex
import signal
import subprocess
import tempfile
import time


class Process:
    """A program with its output, both kinds, in a file, and its own CPU time.

    `command` is a list of words or a line; `pin` a CPU; `nice` is added to the priority where that is
    allowed. One that is `apart` does not get the Ctrl-C that is meant for the program that started it.
    `env` is its whole environment, if given."""

    def __init__(self, command, pin=None, nice=0, out=None, apart=False, env=None):
        self.used = None
        self.out = out or tempfile.TemporaryFile()
        words = shlex.split(command) if isinstance(command, str) else [str(word) for word in command]

        def prepare():
            if apart:
                os.setpgrp()
            if pin is not None:
                os.sched_setaffinity(0, {pin})
            try:
                os.nice(nice)
            except PermissionError:
                pass

        self.process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=self.out, stderr=subprocess.STDOUT, preexec_fn=prepare,
            env=env or None)

    def text(self):
        """Returns what it has printed so far."""
        end = os.fstat(self.out.fileno()).st_size
        return os.pread(self.out.fileno(), end, 0).decode(errors="replace")

    def is_over(self):
        """Returns true once it has ended; `used` then has its CPU seconds, user and system."""
        if self.used is None:
            pid, status, usage = os.wait4(self.process.pid, os.WNOHANG)
            if pid:
                self.used = usage.ru_utime + usage.ru_stime
                self.process.returncode = os.waitstatus_to_exitcode(status)
        return self.used is not None

    def wait(self, secs):
        """Waits until it ends, `secs` at most; returns true if it did."""
        end = time.monotonic() + secs
        while not self.is_over() and time.monotonic() < end:
            time.sleep(0.01)
        return self.is_over()

    def wait_for(self, text, secs):
        """Waits until it has printed `text` or has ended, `secs` at most; returns the monotonic time of
        that text or None."""
        end = time.monotonic() + secs
        while time.monotonic() < end and not self.is_over():
            if text in self.text():
                return time.monotonic()
            time.sleep(0.005)
        return None

    def stop(self, secs=3):
        """Ends it: SIGINT, then SIGTERM, then SIGKILL, with these seconds between."""
        for sign in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            if self.is_over():
                return
            self.process.send_signal(sign)
            self.wait(secs)


# What changes figures most: codes, ciphers and copies have kernels for them.
FEATURES = {"avx512f": "AVX-512", "gfni": "GFNI", "vaes": "VAES", "avx2": "AVX2", "asimd": "NEON"}
# Those that some processors of today lack.
TELLING = ("avx512f", "gfni", "vaes")


def _processor(cpuinfo=None):
    """Returns (name, number of CPUs, flags) of this machine, or of the text of a /proc/cpuinfo."""
    if cpuinfo is None:
        try:
            with open("/proc/cpuinfo") as file:
                cpuinfo = file.read()
        except OSError:
            cpuinfo = ""

    def field(name):
        found = re.search(rf"^{name}\s*: (.*)", cpuinfo, re.M)
        return found[1].strip() if found else ""

    name = field("model name") or platform.processor() or platform.machine()
    name = name.replace("(R)", "").replace("(TM)", "")
    if field("cpu family"):
        name += f" (family {field('cpu family')}, model {field('model')})"
    count = len(re.findall(r"^processor\s*:", cpuinfo, re.M)) or os.cpu_count()
    return name, count, (field("flags") or field("Features")).split()


def features(flags, hidden=""):
    """Returns which of the telling instruction sets programs find; `hidden` names those that are hidden from them."""
    short = {flag: flag.replace("512f", "512") for flag in TELLING}
    found = [FEATURES[flag] for flag in TELLING if flag in flags and short[flag] not in hidden.split(",")]
    lacks = [FEATURES[flag] for flag in TELLING if flag not in flags or short[flag] in hidden.split(",")]
    if "avx2" not in flags:
        return ", ".join(words for flag, words in FEATURES.items() if flag in flags) or "no vectors known"
    text = ", ".join(found) or "AVX2"
    return text + (f"; {'hidden' if hidden else 'without'} {', '.join(lacks)}" if lacks else "")


def processor(cpuinfo=None, hidden=""):
    """Returns the processor in one line: its name, how many CPUs, and which instruction sets it has of
    those that matter here."""
    name, count, flags = _processor(cpuinfo)
    return f"{name}, {count} CPU{'s' if count != 1 else ''}; {features(flags, hidden)}"


def brief(hidden=""):
    """Returns date and processor as one cell of a table."""
    name, _, flags = _processor()
    return f"{today()}, {name}; {features(flags, hidden)}"


def today():
    return datetime.date.today().isoformat()


def load():
    """Returns the load average of the last minute."""
    return os.getloadavg()[0]


def here(hidden=""):
    """Returns one line that says when and on what this was measured, for below a table."""
    return f"{today()}, {processor(hidden=hidden)}, Linux {platform.release()}, load average {load():.1f}"


if __name__ == "__main__":
    print(here())
