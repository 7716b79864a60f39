#!/usr/bin/env python3
"""Every pair of recorded links: goodput and frames on time with the default scheduler, beside the best of the others.

usage: BRAIDCAST_TRACES=FOLDER pairs.py BRAIDCAST [--runs N] [--again M] [--duration 40s] [--out FOLDER] [--kind bulk|live] [--only WORD] [--every K]
       [--load 0.75] [--playable]

Writes a scenario for bulk data and one for live video at three quarters of what both links carry (--load),
has BRAIDCAST run them, and prints a line for each pair: the default's value, the best of the others and
whose it is, and their ratio. Recordings: README.md beside this file; text files of "seconds Mbit/s" are
taken too. No pair is chosen, none is left out without --only or --every.

The best of eight that differ by chance is better than each of them is. --again M so runs each pair whose
default was below 0.98 of the best M times more, on seeds of its own, beside the one that was the best
before, and prints the mean ratio of the two with its 95 % interval.
"""
import argparse, itertools, json, os, pathlib, statistics, subprocess, sys

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


def scenario(name, experiment, pairs, args, schedulers=(DEFAULT, *OTHERS)):
    live = experiment == "live"
    text = HEAD.format(name=name, experiment=experiment, duration=args.duration)
    text += '[live]\nclip = "test-3.6"\nlatency = "500ms"\n' if live else '[traffic]\nmessage = 1000\nwarmup = "5s"\n[sctp]\npreset = "live"\n'
    for first, second in pairs:
        text += f'[[case]]\nparams = {{ pair = "{first.name} + {second.name}" }}\n{first.lines("first")}{second.lines("second")}'
        if live:
            text += f'live.rate = "{max(round(1000 * args.load * (first.mbit + second.mbit)), 300)}kbit"\n'
    for scheduler in schedulers:
        text += f'[[variant]]\nname = "{scheduler}"\n{"live" if live else "sctp"}.scheduler = "{scheduler}"\n'
    return text


def run(program, path, runs, seed=1):
    command = [program, "lab", "run", str(path), "--runs", str(runs), "--seed", str(seed), "--json", "--quiet"]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)["rows"]


def by_pair(rows, metric):
    """The mean of each scheduler, by pair."""
    values = {}
    for row in rows:
        if row["metric"] == metric:
            values.setdefault(row["params"]["pair"], {})[row["variant"]] = row["mean"]
    return values


def table(rows, metric):
    """(pair, default, best of the others, whose) for each pair."""
    for pair, of in by_pair(rows, metric).items():
        best = max(OTHERS, key=lambda name: of[name])
        yield pair, of[DEFAULT], of[best], best


# Two-sided 95 % quantiles of Student's t by degrees of freedom, from 1; beyond, the last.
T95 = [12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086]


def again(args, name, experiment, metric, rivals, first_seed):
    """Runs each pair of `rivals` beside its rival alone, and prints the mean ratio with its interval.
    `rivals`: (pair of links, whose) for each."""
    print(f"\n{metric} of {DEFAULT} over that of the best other of before, {args.again} runs on seeds of their own")
    lines = []
    for whose in sorted({whose for _, whose in rivals}):
        path = args.out / f"{name}-again-{whose}.toml"
        path.write_text(scenario(f"{name}-again-{whose}", experiment, [pair for pair, it in rivals if it == whose], args, (DEFAULT, whose)))
        ratios = {}
        for seed in range(first_seed, first_seed + args.again):
            for pair, of in by_pair(run(args.program, path, 1, seed), metric).items():
                ratios.setdefault(pair, []).append(of[DEFAULT] / max(of[whose], 1e-9))
        for pair, of in ratios.items():
            spread = T95[min(len(of) - 1, len(T95)) - 1] * statistics.stdev(of) / len(of) ** 0.5
            lines.append((statistics.mean(of), spread, whose, pair))
    for ratio, spread, whose, pair in sorted(lines):
        print(f"{ratio:6.3f} ± {spread:5.3f} {whose:17} {pair}", flush=True)
    print(f"of {len(lines)}: {sum(ratio + spread < 0.97 for ratio, spread, *_ in lines)} below 0.97 for certain, "
          f"{sum(ratio < 0.97 for ratio, *_ in lines)} by their mean, {sum(ratio - spread >= 0.97 for ratio, spread, *_ in lines)} not below for certain")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", metavar="BRAIDCAST", help="the program, built for release")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--again", type=int, default=0, metavar="M", help="runs of each pair whose default was below 0.98 of the best, 2 or more")
    parser.add_argument("--duration", default="40s")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("target/pairs"))
    parser.add_argument("--kind", choices=["bulk", "live"], help="one of the two scenarios only")
    parser.add_argument("--only", default="", help="pairs with this word in their name")
    parser.add_argument("--every", type=int, default=1, metavar="K", help="every K-th pair in the order of their names")
    parser.add_argument("--load", type=float, default=0.75, metavar="SHARE", help="video of such a share of what both links carry on the average")
    parser.add_argument("--playable", action="store_true", help="compare playable frames, not those on time: where more comes in than the links carry")
    args = parser.parse_args()
    folder = os.environ.get("BRAIDCAST_TRACES")
    if not folder:
        sys.exit("BRAIDCAST_TRACES is not set: name the folder of the recordings (README.md says which)")
    links = recordings(pathlib.Path(folder))
    pairs = [pair for pair in itertools.combinations(links, 2) if args.only in f"{pair[0].name} + {pair[1].name}"][:: args.every]
    if not pairs:
        sys.exit(f"no two recordings in {folder}{' with ' + args.only if args.only else ''}")
    args.out.mkdir(parents=True, exist_ok=True)
    for experiment, name, metric in [("live", "pairs-live", "playable" if args.playable else "on time"), ("transfer", "pairs-bulk", "goodput")]:
        if args.kind and not name.endswith(args.kind):
            continue
        path = args.out / f"{name}.toml"
        path.write_text(scenario(name, experiment, pairs, args))
        rows = list(table(run(args.program, path, args.runs), metric))
        print(f"\n{metric} of {DEFAULT}, of the best other one, ratio ({len(rows)} pairs, {args.runs} run(s) of {args.duration})")
        worse = 0
        for pair, default, best, whose in sorted(rows, key=lambda row: row[1] / max(row[2], 1e-9)):
            ratio = default / max(best, 1e-9)
            worse += ratio < 0.97
            print(f"{ratio:6.3f} {default:9.1f} {best:9.1f} {whose:17} {pair}", flush=True)
        print(f"{worse} of {len(rows)} are more than 3 % below the best of the others", flush=True)
        if args.again > 1:
            of_name = {f"{first.name} + {second.name}": (first, second) for first, second in pairs}
            rivals = [(of_name[pair], whose) for pair, default, best, whose in rows if default < 0.98 * best]
            again(args, name, experiment, metric, rivals, args.runs + 1)


main()
