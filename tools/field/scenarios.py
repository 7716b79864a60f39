"""What the emulated links of each scenario are like. Times of links count from the emulators' start, LEAD_S
before the clip's."""
import json
import shlex
from pathlib import Path
from typing import Dict, List, NamedTuple

LEAD_S = 3.0
CLIP_S = 60
# How much longer than the clip a recording is replayed; its last rate holds after that.
AFTER_S = 10
ROOT = Path(__file__).resolve().parents[2]
OPERATORS = ROOT / "crates/lab/traces/two-operators/uplink.txt"
STEP_MS = 500


class Scenario(NamedTuple):
    title: str
    links: List[List[str]]  # the options of `braidcast emulate` for each link
    weights: List[int]  # the links' rates in proportion, for peers that have to be told
    best: int  # the link of systems that have one only, and the first of those that fail over


def recorded(run, operator, from_s, delay_ms, file=OPERATORS):
    """Returns a link as `operator` had it in `run`, from `from_s` on; during a handover packets wait."""
    for line in Path(file).read_text().splitlines():
        fields = line.split()
        if fields[:2] == [run, operator]:
            break
    else:
        raise SystemExit(f"{file} has no run {run} of operator {operator}")
    first = from_s * 1000 // STEP_MS
    # `emulate` takes no rate of 0; at 1 kbit/s no packet passes within a step either.
    rates = [max(1, int(rate) * 10) for rate in fields[2].split(",")][first:]
    if len(rates) * STEP_MS < (CLIP_S + LEAD_S) * 1000:
        raise SystemExit(f"run {run} ends {len(rates) * STEP_MS} ms after {from_s} s: too short for a clip")
    rates = rates[: (CLIP_S + AFTER_S) * 1000 // STEP_MS]
    words = ["--rate", ",".join(f"{number * STEP_MS}ms:{rate}kbit" for number, rate in enumerate(rates))]
    words += ["--delay", f"{delay_ms}ms"]
    for handover in fields[3].split(",") if fields[3] != "-" else []:
        begin, end = (int(ms) - from_s * 1000 for ms in handover.split("-"))
        if begin >= 0:
            words += ["--outage", f"{begin}ms-{end}ms,hold"]
    return words


def _fixed(*links):
    return [shlex.split(link) for link in links]


def built_in() -> Dict[str, Scenario]:
    """Returns the scenarios by name."""
    return {
        # A drive: alone, each link is below 2 Mbit/s for 35 and 20 % of the time, both together for 1 %; below 4 Mbit/s
        # both together are for 14 %.
        "S1": Scenario(
            "two operators on a drive, recorded, 3.0 and 4.5 Mbit/s",
            [recorded("4_run_19", "a", 20, 20), recorded("4_run_19", "b", 20, 40)], [2, 3], 1),
        "S3": Scenario(
            "3 Mbit/s with 5 % loss in bursts, 3 Mbit/s with 1 %",
            _fixed("--rate 3mbit --delay 8ms --loss burst:5%,3", "--rate 3mbit --delay 40ms --loss 1%"), [1, 1], 1),
        "S4": Scenario(
            "8 Mbit/s, and 1 Mbit/s 150 ms away with 5 % loss",
            _fixed("--rate 8mbit --delay 20ms", "--rate 1mbit --delay 150ms --loss 5%"), [8, 1], 0),
        "S5": Scenario(
            "two of 4 Mbit/s, the first dead from 20 to 40 s",
            _fixed("--rate 4mbit --delay 30ms --loss 0.5% --outage 23s-43s", "--rate 4mbit --delay 30ms --loss 0.5%"), [1, 1], 1),
        "X1": Scenario(
            "3.3 Mbit/s at 60 ms, 0.6 Mbit/s at 250 ms",
            _fixed("--rate 3.321mbit --delay 60ms --loss 0.5%", "--rate 0.601mbit --delay 250ms --loss 1%"), [5, 1], 0),
        "X2": Scenario(
            "3 Mbit/s at 20 ms, 1.3 Mbit/s at 250 ms",
            _fixed("--rate 2.97mbit --delay 20ms", "--rate 1.342mbit --delay 250ms --loss 0.5%"), [2, 1], 0),
        "X3": Scenario(
            "3.9 Mbit/s at 30 ms, 0.7 at 250 ms, 0.6 at 200 ms",
            _fixed("--rate 3.9mbit --delay 30ms --loss 1%", "--rate 0.7mbit --delay 250ms --loss 1%",
                   "--rate 0.6mbit --delay 200ms --loss 1%"), [6, 1, 1], 0),
        "X4": Scenario(
            "4.7 Mbit/s at 45 ms, 1.4 Mbit/s at 250 ms with 6 % loss",
            _fixed("--rate 4.7mbit --delay 45ms --loss 1%", "--rate 1.385mbit --delay 250ms --loss 6%"), [3, 1], 0),
    }


def load(names, file=None):
    """Returns {name: Scenario} for `names`. `file` is JSON that adds some (README.md has its form)."""
    known = built_in()
    for name, it in json.loads(Path(file).read_text()).items() if file else ():
        links = _fixed(*it["links"])
        known[name] = Scenario(it.get("title", name), links, it.get("weights", [1] * len(links)), it.get("best", 0))
    if strange := [name for name in names if name not in known]:
        raise SystemExit(f"no scenario {', '.join(strange)}; there are {', '.join(known)}, and --links FILE adds more")
    return {name: known[name] for name in names}
