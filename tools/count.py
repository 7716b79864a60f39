#!/usr/bin/env python3
"""Counts what a packet costs, and compares it with benches/count/baseline.json. Needs no quiet machine:
nothing is timed.

    tools/count.py              instructions of all rows of benches/count, and system calls; fails where a packet is dearer
    tools/count.py --update     writes the baseline anew: say why in the commit (tools/assertions.py asks for that)
    tools/count.py --rows A,B   these rows alone; nothing of system calls
    tools/count.py --calls      system calls alone

Instructions are counted by Valgrind's callgrind, in the profile of the tests (opt-level 1, with
assertions), not compiled incrementally: what a user pays is less, but what becomes dearer there becomes
dearer for him. malloc and memcpy count. Valgrind shows programs a processor with AVX2 at most, whatever the
machine has. A row fails if it is 2 % above its baseline, or below: what became cheaper is kept so. Counts
of another compiler, C library or processor cannot be compared: a line says so, and which. Allocations are
counted too, by the program itself, and compared everywhere: one clone of a buffer for each packet is one.
Of rows over sockets, in the driver and the library, allocations are compared and system calls, which
Valgrind counts where strace may not: their instructions depend on what the kernel has ready at once.

System calls are those of `braidcast send` and `receive` for 1,000 datagrams of a live stream of 20 Mbit/s
over two paths of the loopback, by strace, of two shapes: a file, of which a frame's packets come together,
into /dev/null; and `udp://` in and out, where datagrams come evenly spaced. They have ceilings, which are
written by hand and only ever fall: one for all, and one that counts wake-ups (`epoll_pwait2`). On a busy
machine these are fewer, as each finds more to do, and a call for each datagram more would be hidden below
the first ceiling.
"""

import argparse
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BASELINE = ROOT / "benches/count/baseline.json"
NOISE = 0.02
# Allocations for 1,000 that are none: a table that grows.
FEW = 5
# The same over sockets, where a busy machine makes for more acknowledgements: 20 were seen, and 2.3 % more calls.
FEW_OVER_SOCKETS = 60
CALLS_NOISE = 0.05
# What the baseline has of rows.
PARTS = ("instructions", "calls", "allocations")
# Not a call where Valgrind does not run: the kernel's page with the time answers.
NO_CALLS = ("clock_gettime", "gettimeofday")
SECONDS, MBIT = 4, 20
# What everyone sends of a transport stream in a datagram.
DATAGRAM = 7 * 188
SHAPES = ("frames", "even")
# Runs of a live stream before the machine is called too busy for one.
TRIES = 4
# One that waits, by the kernel's age.
WAITS = ("epoll_pwait2", "epoll_wait", "epoll_pwait")
# Seconds that such a stream may take on a busy machine.
LONGEST = 90
UPDATE = "make count-update, and say in the commit why a packet is dearer (a line `loosened: …`)"


@dataclasses.dataclass
class Row:
    """What was counted of a row: instructions of one packet, frame …; allocations and system calls for 1,000; and what
    one is. Instructions are `None` of rows over sockets, calls of others."""

    instructions: int | None
    allocations: int
    calls: int | None
    unit: str


def run(*command, **how):
    done = subprocess.run([str(it) for it in command], cwd=ROOT, capture_output=True, text=True, errors="replace", **how)
    if done.returncode != 0:
        raise SystemExit(f"count: {' '.join(map(str, command))} failed:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


def build(test, **environment):
    """Returns the programs of a test, and of the crate that it tests, by their names; as `cargo test` builds them."""
    # Of the whole workspace, so that features are those of `make test`, and nothing is compiled twice.
    command = ["cargo", "test", "--locked", "--workspace", "--no-run", "--quiet", "--message-format", "json", "--test", test]
    found = {}
    for line in run(*command, env=os.environ | environment).splitlines():
        message = json.loads(line)
        if message.get("executable") and not (message["target"]["kind"] == ["bin"] and message["profile"]["test"]):
            found[message["target"]["name"]] = message["executable"]
    return found


def surroundings(program):
    """Returns what counts depend on besides the code."""
    return {
        "compiler": run("rustc", "--version").split(" (")[0],
        "c_library": os.confstr("CS_GNU_LIBC_VERSION") or "unknown",
        "valgrind": run("valgrind", "--version").strip(),
        # What a program sees of the processor under Valgrind, which is what kernels and memcpy are chosen by.
        "processor": run("valgrind", "-q", "--tool=none", program, "--features").strip(),
    }


def count_rows(program, rows):
    """Returns what was counted of each row, by its name."""
    # Without Valgrind, for what each is.
    known = {line.split("\t")[0]: line.split("\t")[4] for line in run(program).splitlines() if line.count("\t") == 4}
    unknown = set(rows) - known.keys()
    if unknown:
        raise SystemExit(f"count: there is no row {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    rows = rows or list(known)
    count = lambda row: instructions_of(program, row) if known[row] == "exact" else calls_of(program, row)
    # Each in a process of its own: what the allocator does depends on what was allocated before.
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(rows, pool.map(count, rows)))


def read_row(line):
    """Returns how many a row has counted, its allocations for 1,000, and what one is, of the line that it prints."""
    _, number, unit, allocations, _ = line.strip().split("\t")
    return int(number), round(1000 * int(allocations) / int(number)), unit


def calls_of(program, row):
    """Returns what was counted of a row over sockets. Calls before the first packet are among them: they are few."""
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "log"
        said = run("valgrind", "--tool=none", "--trace-syscalls=yes", f"--log-file={log}", program, row)
        number, allocations, unit = read_row(said)
        called = re.findall(r"^SYSCALL\[.*?\]\(\s*\d+\) sys_(\w+)", log.read_text(errors="replace"), re.M)
        calls = sum(it not in NO_CALLS for it in called)
        if calls < number:
            raise SystemExit(f"count: Valgrind showed {calls} system calls of {row}, which makes {number} at least")
        return Row(None, allocations, round(1000 * calls / number), unit)


def instructions_of(program, row):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "out"
        said = run(
            "valgrind", "--tool=callgrind", "--collect-atstart=no", "--toggle-collect=*::counted*", "--dump-after=*::row_ends*",
            f"--callgrind-out-file={out}", program, row)
        number, allocations, unit = read_row(said)
        text = pathlib.Path(f"{out}.1").read_text()
        if "row_ends" not in re.search(r"^desc: Trigger: (.*)$", text, re.M)[1]:
            raise SystemExit(f"count: callgrind's part was not written at the end of {row}")
        total = int(re.search(r"^(?:totals|summary): (\d+)", text, re.M)[1])
        if not total:
            raise SystemExit(f"count: nothing was counted of {row}")
        return Row(round(total / number), allocations, None, unit)


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as it:
        it.bind(("0.0.0.0", 0))
        return it.getsockname()[1]


def transport_stream(path):
    """Writes SECONDS of MBIT Mbit/s, video that compresses badly."""
    picture = ["-f", "lavfi", "-i", "testsrc2=size=640x360:rate=25,noise=alls=50:allf=t", "-t", SECONDS]
    rate = f"{MBIT - 1}M"
    video = ["-c:v", "mpeg2video", "-b:v", rate, "-minrate", rate, "-maxrate", rate, "-bufsize", "4M", "-g", 25]
    run("ffmpeg", "-nostdin", "-v", "error", *picture, *video, "-f", "mpegts", "-muxrate", f"{MBIT}M", path)


def feed(path, port):
    """Sends what the file holds to a port of this machine, evenly spaced."""
    with open(path, "rb") as file, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as to:
        began, gap = time.monotonic(), DATAGRAM * 8 / (MBIT * 1e6)
        for n in range(int(SECONDS / gap)):
            time.sleep(max(began + n * gap - time.monotonic(), 0))
            to.sendto(file.read(DATAGRAM), ("127.0.0.1", port))


def traced(program, shape):
    """Returns the reports of both ends of a live stream, and the system calls of each: {end: (report,
    {call: number})}."""
    strace = ("strace", "-c", "-f", "-U", "calls,name", "-o")
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as player:
        transport_stream(f"{folder}/in.ts")
        player.bind(("127.0.0.1", 0))
        port, entrance = free_port(), free_port()
        even = shape == "even"
        to = dict(cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        output = f"udp://127.0.0.1:{player.getsockname()[1]}" if even else "/dev/null"
        given = f"udp://127.0.0.1:{entrance}" if even else "in.ts"
        args = {
            "receive": [str(port), output, "--json"],
            "send": [given, "--to", f"127.0.0.1:{port}", "--to", f"127.0.0.2:{port}", "--json"],
        }
        processes, reports = {}, {}
        try:
            for end, of_end in args.items():
                processes[end] = subprocess.Popen([*strace, f"{end}.txt", program, end, *of_end], start_new_session=True, **to)
                awaited = "listening" if end == "receive" else "connected"
                while awaited not in (line := processes[end].stderr.readline()):
                    if not line:
                        raise SystemExit(f"count: braidcast {end} never said that it was {awaited}")
            if even:
                feed(f"{folder}/in.ts", entrance)
                # strace itself does not heed it (-I 3).
                os.killpg(processes["send"].pid, signal.SIGINT)
            for end in ("send", "receive"):
                out, said = processes[end].communicate(timeout=LONGEST)
                if processes[end].returncode != 0:
                    raise SystemExit(f"count: braidcast {end} failed: {said[-2000:]}")
                table = pathlib.Path(folder, f"{end}.txt").read_text()
                calls = {name: int(count) for count, name in re.findall(r"^\s*(\d+) (\w+)$", table, re.M)}
                calls.pop("total", None)
                reports[end] = json.loads(out), calls
        except subprocess.TimeoutExpired:
            raise SystemExit(f"count: a stream of {SECONDS} s took {LONGEST} s")
        finally:
            for it in processes.values():
                if it.poll() is None:
                    os.killpg(it.pid, signal.SIGKILL)
    return reports


def system_calls(program, shape):
    """Returns for both ends the system calls and wake-ups for 1,000 datagrams, and which calls are most;
    `None` if there were few."""
    found = {}
    for end, (report, calls) in traced(program, shape).items():
        key = "sent_packets" if end == "send" else "received_packets"
        datagrams = sum(path[key] for path in paths_of(report))
        if datagrams < 500 * SECONDS:
            return None
        most = sorted(calls.items(), key=lambda it: -it[1])[:5]
        each = {name: round(count * 1000 / datagrams) for name, count in calls.items()}
        wakeups = sum(each.get(name, 0) for name in WAITS)
        found[f"{end}, {shape}"] = sum(each.values()), wakeups, ", ".join(f"{name} {each[name]}" for name, _ in most)
    return found


def paths_of(report):
    """Returns the paths of a report: a receiver's are those of its one stream."""
    return report["paths"] if "paths" in report else report["streams"][0]["paths"]


def figure(part, row):
    """Returns what a part of a row is a number of."""
    each = {"instructions": f"instructions a {row.unit}", "calls": f"system calls for 1,000 {row.unit}s"}
    return each.get(part, "allocations for 1,000")


def difference(part, row, was):
    """Returns how a part of a row differs from its baseline, and what to do; "" if it does not."""
    now = getattr(row, part)
    few = FEW if row.calls is None else FEW_OVER_SOCKETS
    noise, advice = {
        "instructions": (NOISE * was, "make it as cheap again"),
        "calls": (CALLS_NOISE * was, "batch them"),
        # These depend on nothing but the code.
        "allocations": (max(NOISE * was, few), f"is a buffer cloned? Keep it from one {row.unit} to the next"),
    }[part]
    if abs(now - was) <= noise:
        return ""
    advice = f"{advice}, or {UPDATE}" if now > was else "make count-update keeps it so cheap"
    return f"had {was:,} {figure(part, row)}, {noise:,.0f} more or less are allowed, and has {now:,} now: {advice}"


def compare_rows(found, baseline, here, partial):
    """Prints the rows beside the baseline. Returns how many differences there are."""
    other = [f"{key} is {here[key]}, there {was}" for key, was in baseline.get("surroundings", {}).items() if here[key] != was]
    if other:
        print(f"count: INSTRUCTIONS WERE NOT COMPARED: {'; '.join(other)} (make count-update where that is what CI has)")
    wrong = 0
    for name, row in found.items():
        counted = {part: now for part in PARTS if (now := getattr(row, part)) is not None}
        known = {part: was for part in counted if (was := baseline.get(part, {}).get(name)) is not None}
        changes = {part: f" ({counted[part] / was - 1:+.1%})" for part, was in known.items() if was}
        width = {next(iter(counted)): 12}
        figures = [f"{now:>{width.get(part, 1)},} {figure(part, row)}{changes.get(part, '')}" for part, now in counted.items()]
        print(f"  {name:22} {', '.join(figures)}")
        compared = [part for part in known if part != "instructions" or not other]
        said = [it for part in compared if (it := difference(part, row, known[part]))]
        for words in said if known.keys() == counted.keys() else [f"has no baseline: {UPDATE}"]:
            print(f"count: {name} {words}")
            wrong += 1
    if not partial:
        for name in baseline.get("allocations", {}).keys() - found.keys():
            print(f"count: {name} is in the baseline, and there is no such row: {UPDATE}")
            wrong += 1
    return wrong


def compare_calls(found, ceilings):
    """Prints the system calls beside their ceilings. Returns how many ends are above."""
    wrong = 0
    for end, (now, wakeups, which) in found.items():
        at_most, besides, each = (ceilings[f"{end}, {it}"] for it in ("at most", "besides wake-ups", "for a wake-up"))
        ceiling = min(at_most, round(besides + each * wakeups))
        print(f"  {end:22} {now:>12,} system calls for 1,000 datagrams, {ceiling:,} at most ({which})")
        if now > ceiling:
            print(
                f"count: braidcast {end} makes {now:,} system calls for 1,000 datagrams; with {wakeups:,} wake-ups {ceiling:,} are allowed. "
                f"Most are {which}: batch them, or raise the ceiling in benches/count/baseline.json, and say in the commit why "
                "(a line `loosened: …`)")
            wrong += 1
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--update", action="store_true", help="write the baseline anew")
    parser.add_argument("--rows", help="these rows alone, with commas between")
    parser.add_argument("--calls", action="store_true", help="system calls alone")
    args = parser.parse_args()
    lacking = [it for it in ("valgrind", "strace", "ffmpeg") if not shutil.which(it)]
    if lacking:
        raise SystemExit(f"count: {', '.join(lacking)} must be installed: tools/setup.sh test does that")
    began = time.monotonic()
    baseline = json.loads(BASELINE.read_text()) if BASELINE.exists() else {}
    wrong = 0
    if not args.calls:
        # Code is inlined otherwise where it is compiled incrementally: 4 % of a packet that is sent.
        program = build("count", CARGO_INCREMENTAL="0")["count"]
        here = surroundings(program)
        rows = count_rows(program, args.rows.split(",") if args.rows else [])
        if args.update:
            baseline["surroundings"] = here
            for part in PARTS:
                kept = baseline.get(part, {}) if args.rows else {}
                found = {name: getattr(row, part) for name, row in rows.items()}
                baseline[part] = kept | {name: it for name, it in found.items() if it is not None}
        wrong += compare_rows(rows, baseline, here, bool(args.rows))
    may_trace = subprocess.run(["strace", "-c", "true"], capture_output=True).returncode == 0
    if not args.rows and not may_trace:
        print("count: SYSTEM CALLS WERE NOT COUNTED: strace may trace nothing here (a container without CAP_SYS_PTRACE?)")
    elif not args.rows:
        # One that only `braidcast` has, so that cargo builds that.
        program = build("call")["braidcast"]
        for shape in SHAPES:
            calls = next(filter(None, (system_calls(program, shape) for _ in range(TRIES))), None)
            if calls:
                wrong += compare_calls(calls, baseline["system_calls"])
            else:
                print(f"count: SYSTEM CALLS WERE NOT COUNTED ({shape}): this machine is too busy for a live stream of 20 Mbit/s, {TRIES} times")
    if args.update:
        BASELINE.write_text(json.dumps(baseline, indent=2) + "\n")
    print(f"count: {'as the baseline has it' if not wrong else f'{wrong} differ from benches/count/baseline.json'} ({time.monotonic() - began:.0f} s)")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
