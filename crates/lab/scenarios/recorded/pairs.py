#!/usr/bin/env python3
"""Every pair of recorded links: goodput and frames on time with the default scheduler, beside the best of the others.

usage: BRAIDCAST_TRACES=FOLDER pairs.py BRAIDCAST [--runs N] [--duration 40s] [--out FOLDER] [--kind bulk|live] [--only WORD]

Writes a scenario for bulk data and one for live video at three quarters of what both links carry, has BRAIDCAST run them, and prints a
line for each pair: the default's value, the best of the others and whose it is, and their ratio. Recordings: README.md beside this file;
text files of "seconds Mbit/s" are taken too. No pair is chosen, none is left out.
"""
import argparse, itertools, json, os, pathlib, subprocess, sys

DEFAULT = "earliest-delivery"
OTHERS = ["lowest-delay", "daps", "blest", "ecf", "by-rate", "round-robin", "fill-in-turn", "redundant"]
SECONDS = 60

HEAD = """name = "{name}"
title = "Every pair of recorded links"
experiment = "{experiment}"
runs = 1
duration = "{duration}"
[network]
vary_start = "2s"
[link.first]
delay = "30ms"
queue = "300ms"
[link.second]
delay = "45ms"
queue = "300ms"
"""


class Link:
    """A recording: its name, how a scenario says it, and its mean rate over the first minute in Mbit/s."""

    def __init__(self, path):
        self.name = path.name.removesuffix(".txt").replace("_", "-")
        lines = path.read_text().split("\n")
        if path.suffix == ".txt":
            steps = [line.split() for line in lines if line]
            steps = [(float(at), float(mbit)) for at, mbit in steps if float(at) <= SECONDS + 20]
            schedule = ",".join(f"{round(at * 1000)}ms:{max(round(mbit * 1000), 1)}kbit" for at, mbit in steps)
            self.key, self.value = "rate", schedule
            self.mbit = sum(mbit for _, mbit in steps) / len(steps)
        else:
            chances = sum(1 for line in lines if line and int(line) < SECONDS * 1000)
            self.key, self.value = "trace", str(path)
            self.mbit = chances * 1500 * 8 / 1e6 / SECONDS

    def lines(self, place):
        return f'link.{place}.{self.key} = "{self.value}"\n'


def recordings(folder):
    files = [it for it in folder.iterdir() if it.suffix in (".up", ".down")]
    files += folder.glob("*/*.txt")
    return [Link(path) for path in sorted(files)]


def scenario(name, experiment, pairs, duration):
    live = experiment == "live"
    text = HEAD.format(name=name, experiment=experiment, duration=duration)
    text += '[live]\nclip = "test-3.6"\nlatency = "500ms"\n' if live else '[traffic]\nmessage = 1000\nwarmup = "5s"\n[sctp]\npreset = "live"\n'
    for first, second in pairs:
        text += f'[[case]]\nparams = {{ pair = "{first.name} + {second.name}" }}\n{first.lines("first")}{second.lines("second")}'
        if live:
            text += f'live.rate = "{max(round(750 * (first.mbit + second.mbit)), 300)}kbit"\n'
    for scheduler in [DEFAULT, *OTHERS]:
        text += f'[[variant]]\nname = "{scheduler}"\n{"live" if live else "sctp"}.scheduler = "{scheduler}"\n'
    return text


def run(program, path, runs):
    command = [program, "lab", "run", str(path), "--runs", str(runs), "--seed", "1", "--json", "--quiet"]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)["rows"]


def table(rows, metric):
    """(pair, default, best of the others, whose) for each pair."""
    values = {}
    for row in rows:
        if row["metric"] == metric:
            values.setdefault(row["params"]["pair"], {})[row["variant"]] = row["mean"]
    for pair, of in values.items():
        best = max(OTHERS, key=lambda name: of[name])
        yield pair, of[DEFAULT], of[best], best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", metavar="BRAIDCAST", help="the program, built for release")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--duration", default="40s")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("target/pairs"))
    parser.add_argument("--kind", choices=["bulk", "live"], help="one of the two scenarios only")
    parser.add_argument("--only", default="", help="pairs with this word in their name")
    args = parser.parse_args()
    folder = os.environ.get("BRAIDCAST_TRACES")
    if not folder:
        sys.exit("BRAIDCAST_TRACES is not set: name the folder of the recordings (README.md says which)")
    links = recordings(pathlib.Path(folder))
    pairs = [pair for pair in itertools.combinations(links, 2) if args.only in f"{pair[0].name} + {pair[1].name}"]
    if not pairs:
        sys.exit(f"no two recordings in {folder}{' with ' + args.only if args.only else ''}")
    args.out.mkdir(parents=True, exist_ok=True)
    for experiment, name, metric in [("live", "pairs-live", "on time"), ("transfer", "pairs-bulk", "goodput")]:
        if args.kind and not name.endswith(args.kind):
            continue
        path = args.out / f"{name}.toml"
        path.write_text(scenario(name, experiment, pairs, args.duration))
        rows = list(table(run(args.program, path, args.runs), metric))
        print(f"\n{metric} of {DEFAULT}, of the best other one, ratio ({len(rows)} pairs, {args.runs} run(s) of {args.duration})")
        worse = 0
        for pair, default, best, whose in sorted(rows, key=lambda row: row[1] / max(row[2], 1e-9)):
            ratio = default / max(best, 1e-9)
            worse += ratio < 0.97
            print(f"{ratio:6.3f} {default:9.1f} {best:9.1f} {whose:17} {pair}", flush=True)
        print(f"{worse} of {len(rows)} are more than 3 % below the best of the others")


main()
