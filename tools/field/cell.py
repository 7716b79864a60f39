"""One cell: a system in a scenario, with a clip and a latency, on the loopback. It ends only what it started."""
import hashlib
import json
import shutil
import sys
import threading
import time
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Optional

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import measure
import score
import ts
from scenarios import CLIP_S, LEAD_S, Scenario
from systems import HERE, System, at, configured, version

# Set: cells end early and leave no result.
STOP = threading.Event()
ENDS = [sys.executable, str(HERE / "ends.py")]
# How many ports a cell has, from its base on.
PORTS = 40
# How long an emulator may take to start, in seconds.
START_S = 20
# Above everything else that the machine does, where that is allowed: a stall of 100 ms is a loss of frames.
NICE = -15


@lru_cache(None)
def fingerprint(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:12]


@lru_cache(None)
def _version(program, ours):
    return version(program, ours)


@dataclass
class Cell:
    system_name: str
    system: System
    scenario_name: str
    scenario: Scenario
    clip: Path
    latency_ms: int
    told_ms: int  # the latency that the system is told
    tuned: bool
    rep: int
    braidcast: str
    work: Path
    port: int = 22_000
    keep: bool = False
    folder: Optional[Path] = None
    procs: list = field(default_factory=list)

    def __post_init__(self):
        told = "-tuned" if self.tuned else ""
        self.name = f"{self.scenario_name}-{self.clip.stem}-{self.latency_ms}-{self.system_name}{told}-r{self.rep}"
        self.folder = self.work / "runs" / self.name
        self.indexes = [self.scenario.best] if self.system.one_link else list(range(len(self.scenario.links)))
        self.place(self.port)

    def place(self, port):
        """Says from which port on this cell has its own."""
        self.port = port
        self.entries = [at(port + 10 + number) for number in range(len(self.indexes))]

    def programs(self):
        """Returns the programs that the system runs, each once.

        Raises `Missing` if one is not there."""
        receivers, senders = self.system.start(self)
        return list(dict.fromkeys(command[0] for _, command in receivers + senders if command[0] != sys.executable))

    def key(self):
        """Returns what a result is kept under: another build, clip or link makes it another one."""
        what = [self.told_ms, [self.scenario.links[i] for i in self.indexes], fingerprint(self.clip)]
        what += [fingerprint(program) for program in self.programs()]
        return f"{self.name} {hashlib.sha256(json.dumps(what).encode()).hexdigest()[:12]}"

    def start(self, name, command):
        out = open(self.folder / f"{name}.log", "w+b")
        process = measure.Process(command, nice=NICE, out=out, apart=True, env=configured(self))
        self.procs.append((name, process))
        return process

    def run(self):
        """Returns the result, or None if it was stopped. A system that fails is a result with `error`."""
        key = self.key()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        result = {
            "key": key, "name": self.name, "system": self.system_name, "scenario": self.scenario_name,
            "clip": self.clip.stem, "latency_ms": self.latency_ms, "told_ms": self.told_ms, "tuned": self.tuned,
            "rep": self.rep, "date": measure.today(), "processor": measure.processor(),
            "versions": [_version(program, self.system.ours) for program in self.programs()], "load": [measure.load()]}
        try:
            self._measure(result)
        except (OSError, RuntimeError, ValueError) as error:
            result["error"] = str(error)
        finally:
            for _, process in self.procs:
                process.stop(1)
                process.out.close()
        if STOP.is_set():
            return None
        if not self.keep:
            for log in ("due", "sent", "came"):
                (self.folder / log).unlink(missing_ok=True)
        with open(self.work / "results.jsonl", "a") as file:
            file.write(json.dumps(result) + "\n")
        return result

    def _measure(self, result):
        receivers, senders = self.system.start(self)
        (self.folder / "due").write_bytes(score.pack_times(ts.read(str(self.clip)).due_s))
        self.start("sink", [*ENDS, "sink", self.port + 1, self.folder / "came"])
        ends = [self.start(f"{name}-rx", command) for name, command in receivers]
        time.sleep(0.5)
        emulators = []
        for number, entry in zip(self.indexes, self.entries):
            words = [self.braidcast, "emulate", entry, at(self.port + 2), "--json", "--seed", self.rep * 10 + number + 1]
            emulators.append(self.start(f"emulate-{number}", words + self.scenario.links[number]))
        started = [emulator.wait_for("listening", START_S) for emulator in emulators]
        if None in started:
            raise RuntimeError(f"an emulator did not start: see {self.folder}/emulate-*.log")
        for name, command in senders:
            ends.append(self.start(f"{name}-tx", command))
            time.sleep(0.15)
        begin = started[-1] + LEAD_S
        words = [*ENDS, "feed", self.clip, self.folder / "due", self.port, f"{begin:.6f}", self.folder / "sent"]
        feeder = self.start("feed", words)
        while not feeder.is_over() and time.monotonic() < begin + CLIP_S + 15 and not STOP.is_set():
            time.sleep(0.1)
        end = time.monotonic() + self.latency_ms / 1000 + 2
        while time.monotonic() < end and not STOP.is_set():
            time.sleep(0.1)
        if STOP.is_set():
            return
        by_process = {id(process): name for name, process in self.procs}
        result["died"] = [by_process[id(process)] for process in ends if process.is_over()]
        for process in reversed(ends):
            process.stop()
        for process in emulators:
            process.stop()
        self.procs[0][1].stop()
        feeder.stop()
        result["feeder_late_ms"] = round(1000 * float(feeder.text() or "nan"), 1)
        result["cpu_s"] = {name: round(process.used, 3) for name, process in self.procs}
        result["cpu_ends_s"] = round(sum(p.used for p in ends if by_process[id(p)] != "fork-tx"), 3)
        result["link_bytes"] = [self._offered(emulator) for emulator in emulators]
        result["load"].append(measure.load())
        figures, frames = score.score(self.clip, self.folder / "sent", self.folder / "came", self.latency_ms / 1000)
        result.update(figures=figures, clip_bytes=len(ts.read(str(self.clip)).keys) * ts.PACKET)
        (self.folder / "frames.json").write_text(json.dumps(frames))

    def _offered(self, emulator):
        """Returns the bytes that were sent into a link towards the receiver, with UDP and IP headers."""
        _, brace, report = emulator.text().partition("{\n")
        if not brace:
            raise RuntimeError(f"an emulator has printed no report: see {self.folder}/emulate-*.log")
        return json.JSONDecoder().raw_decode(brace + report)[0]["to_forward"]["offered_bytes"]


def line(result):
    """Returns a result in one line."""
    figures = result.get("figures")
    if figures is None:
        return f"{result['name']}: failed: {result.get('error', 'no figures')}"
    megabytes = " + ".join(f"{count / 1e6:.1f}" for count in result["link_bytes"])
    died = f", ended early: {', '.join(result['died'])}" if result["died"] else ""
    return (
        f"{result['name']}: video {figures['video']:.1%}, playable {figures['playable']:.1%}, audio {figures['audio']:.1%}, "
        f"p50 {1000 * (figures['delay_p50_s'] or 0):.0f} ms, {result['cpu_ends_s']:.1f} CPU-s, {megabytes} MB, "
        f"load {result['load'][-1]:.1f}, feeder late by {result['feeder_late_ms']:.0f} ms at most{died}")
