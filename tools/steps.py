#!/usr/bin/env python3
"""Runs a command that consists of steps, and prints at the end how long it took and which ten steps took longest.

    tools/steps.py LIMIT COMMAND…   LIMIT: seconds that it should take at most; more is said. What takes twice that, and an hour,
                                    hangs: it is stopped, and the tests that had not ended are named
    tools/steps.py begin NAME       a step begins (the Makefile's `step`)
    tools/steps.py tests            passes the output of `cargo test` on, and notes how long each test binary ran

A step ends where the next one begins. What runs beside another command (tools/beside.sh) has a lane of its
own, named by BRAIDCAST_LANE. The notes are in the file that BRAIDCAST_STEPS names: "time, lane, name" for
steps, and for test binaries "seconds, `test`, name".
"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import time

LOG, LANE = "BRAIDCAST_STEPS", "BRAIDCAST_LANE"
SHOWN = 10


def note(*fields):
    if path := os.environ.get(LOG):
        with open(path, "a") as file:
            file.write("\t".join(str(it) for it in fields) + "\n")


def tests():
    """Copies standard input to standard output, and notes the time of each test binary."""
    crate = name = "?"
    slow = set()

    def stopped(*_):
        os.write(1, "".join(f"\n==> stopped in {name}: {it} had not ended" for it in slow or ["it"]).encode() + b"\n")
        os._exit(1)

    signal.signal(signal.SIGTERM, stopped)
    for line in sys.stdin:
        sys.stdout.write(line)
        sys.stdout.flush()
        if started := re.match(r"test (.*) has been running for over", line):
            slow.add(started[1])
        elif ended := re.match(r"test (.*) \.\.\. ", line):
            slow.discard(ended[1])
        if running := re.match(r"\s*Running (unittests )?.* \(.*/(\S+)-[0-9a-f]{16}\)", line):
            # Cargo does not say whose tests these are, unless they are unit tests, which come first.
            crate = running[2] if running[1] else crate
            name = f"unit tests of {crate}" if running[1] else f"tests `{running[2]}` of {crate}"
        elif documentation := re.match(r"\s*Doc-tests (\S+)", line):
            name = f"documentation of {documentation[1]}"
        elif took := re.match(r"test result: .* finished in ([\d.]+)s", line):
            note(took[1], "test", name)


def durations(lines, end):
    """Returns the seconds of each step and of each test binary, as (seconds, what)."""
    found, running = [], {}
    for line in lines:
        at, lane, name = line.rstrip("\n").split("\t")
        if lane == "test":
            found.append((float(at), f"  of that, {name}"))
            continue
        if lane in running:
            began, before = running[lane]
            found.append((float(at) - began, before))
        running[lane] = float(at), name
    return found + [(end - began, name) for began, name in running.values() if name != "end"]


def clock(seconds):
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def run(limit, command):
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", "target"))
    target.mkdir(parents=True, exist_ok=True)
    log = target.resolve() / f"steps-{os.getpid()}.log"
    log.write_text("")
    began = time.time()
    try:
        child = subprocess.Popen(command, env=os.environ | {LOG: str(log)})
        try:
            status = child.wait(max(2 * limit, 3600))
        except subprocess.TimeoutExpired:
            status = None
        took = time.time() - began
        steps = sorted(durations(log.read_text().splitlines(), time.time()), reverse=True)
    finally:
        log.unlink()
    print(f"\n==> {clock(took)} in all (at most {clock(limit)} is meant{', on two processors' if took > limit else ''}); longest were")
    for seconds, name in steps[:SHOWN]:
        print(f"    {clock(seconds):>6}  {name}")
    if status is None:
        print("==> stopped: it takes so long that something hangs", flush=True)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.killpg(0, signal.SIGTERM)
        child.wait()
        return 1
    return status


def main(args):
    if args[0] == "begin":
        note(time.time(), os.environ.get(LANE, "front"), args[1])
    elif args[0] == "tests":
        tests()
    else:
        return run(float(args[0]), args[1:])


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
