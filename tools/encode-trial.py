#!/usr/bin/env python3
"""What an encoder brings that follows the network: x264 over every pair of recorded links, beside fixed
rates and `aimd-rtt`.

usage: BRAIDCAST_TRACES=FOLDER encode-trial.py TRIAL --clip CLIP.y4m [--rule RULE] [--every N] [--others-every N] [--seconds 40] [--out FILE.json] [--jobs N]
       encode-trial.py TRIAL --report FILE.json

TRIAL is `braidcast-encode-trial`, built for release (gst/trial; docs/encode.md has the command). Without
--clip a model of x264's sizes encodes, and there is no PSNR. Time is simulated: a busy machine changes
nothing. Recordings are those of crates/lab/scenarios/recorded/README.md. Each pair begins elsewhere in its
recordings.

It prints for each rule, of the pairs on which foresight (the oracle, trial/src/oracle.rs) has 99 % of the
frames on time and no freeze over 300 ms: frames on time, the longest freeze, the rate that came on time
as a share of what foresight could have had, PSNR with the last frame shown for one that is missing and
with a white one. Then, of all pairs, what `follow` has more than each other rule, pair by pair, with 95 %
intervals (Student's t). With --rule it is about another rule of the trial in place of `follow`;
--others-every 0 leaves the others out. "best fixed" is for each pair the fixed rate with the highest PSNR
among those tried (without a clip: the one whose frames came on time most often), chosen with hindsight.

Pairs are run in an order that mixes recordings, so that the rows of a run that was stopped early are a
sample of all of them (--report prints them, --resume goes on).
"""
import argparse, concurrent.futures, itertools, json, math, os, pathlib, statistics, subprocess, sys, tempfile

FIXED = [500, 1000, 2000, 3500, 5500]
BEST = "best fixed"
# Multiples of it, without their whole part, spread evenly from the first on.
GOLDEN = (math.sqrt(5) - 1) / 2


def recordings(folder):
    files = [it for it in folder.iterdir() if it.suffix in (".up", ".down")]
    return sorted(str(it) for it in files + list(folder.glob("*/*.txt")))


def run(args, index, pair, rule):
    with tempfile.TemporaryDirectory() as folder:
        command = [args.trial, "--rule", rule, "--seconds", str(args.seconds), "--from", str((index * 2300 + 900) % 60000)]
        for link in pair:
            command += ["--link", link]
        if args.clip:
            command += ["--clip", args.clip, "--out", folder]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    return json.loads(done.stdout)


def one(args, place, index, pair):
    rules = {args.rule: run(args, index, pair, args.rule)}
    if args.others_every and place % args.others_every == 0:
        rules["aimd-rtt"] = run(args, index, pair, "aimd-rtt")
        fixed = [run(args, index, pair, f"fixed:{kbit}") for kbit in FIXED]
        rules[BEST] = max(fixed, key=lambda row: row.get("psnr", row["mbit"]))
    return {"pair": " + ".join(pathlib.Path(it).name for it in pair), "rules": rules}


def quantile(freedom):
    """97.5 % of Student's t, by Cornish and Fisher's expansion; good to 1 % from 3 degrees of freedom on."""
    z = 1.959964
    g1, g2 = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
    return z + g1 / freedom + g2 / freedom**2


def interval(values):
    mean = statistics.mean(values)
    if len(values) < 4:
        return f"{mean:+.2f} ({len(values)} values)"
    half = quantile(len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    return f"{mean:+.2f} ± {half:.2f}"


def met(it):
    """On time, no long freeze, enough of the rate."""
    return it["on_time"] >= 99, it["freeze_ms"] <= 300, it["share"] >= 85


def report(rows):
    main_rule = next(iter(rows[0]["rules"]))
    main = [row["rules"][main_rule] for row in rows]
    possible = [row for row, it in zip(rows, main) if it["oracle_on_time"] >= 99 and it["oracle_freeze_ms"] <= 300]
    has_psnr = all("psnr" in it for it in main)
    print(f"{len(rows)} pairs; the table is of the {len(possible)} on which foresight has 99 % on time and no freeze over 300 ms")
    print(f"{'rule':11} pairs  on time, mean  worst  >=99 %  freeze <=300 ms  share, mean  median  >=85 %  all three" + ("   PSNR, frozen  white" if has_psnr else ""))
    for rule in [main_rule, "aimd-rtt", BEST]:
        of = [row["rules"][rule] for row in possible if rule in row["rules"]]
        if not of:
            continue
        column = lambda key: [it[key] for it in of]
        reached = [met(it) for it in of]
        count = lambda n: sum(it[n] for it in reached)
        line = f"{rule:11} {len(of):5} {statistics.mean(column('on_time')):14.2f} {min(column('on_time')):6.1f} {count(0):7} {count(1):16}"
        line += f" {statistics.mean(column('share')):12.1f} {statistics.median(column('share')):7.1f} {count(2):7} {sum(map(all, reached)):10}"
        if has_psnr:
            line += f" {statistics.mean(column('psnr')):14.2f} {statistics.mean(column('psnr_white')):6.2f}"
        print(line)
    reached = [met(row["rules"][main_rule]) for row in possible]
    only_rate = sum(on_time and no_freeze and not enough for on_time, no_freeze, enough in reached)
    print(f"{main_rule}: pictures late or frozen on {sum(not (it[0] and it[1]) for it in reached)} of them, only the rate below 85 % on {only_rate}")
    for rule in ["aimd-rtt", BEST]:
        both = [row["rules"] for row in rows if rule in row["rules"]]
        if both:
            print(f"{main_rule} less {rule}, pair by pair:")
        for key, what in [("on_time", "on time, points"), ("share", "share, points"), ("psnr", "PSNR, dB"), ("psnr_white", "PSNR with white, dB")]:
            if both and (key in ("on_time", "share") or has_psnr):
                differences = [it[main_rule][key] - it[rule][key] for it in both]
                better = sum(it > 0 for it in differences)
                print(f"  {what:20} {interval(differences)}; more on {better}, less on {sum(it < 0 for it in differences)}")
    print("the pairs with the fewest pictures on time (oracle), freeze (oracle), share of Mbit/s:")
    for row in sorted(rows, key=lambda row: row["rules"][main_rule]["on_time"])[:10]:
        it = row["rules"][main_rule]
        print(f"  {it['on_time']:.1f} ({it['oracle_on_time']:.1f}) {it['freeze_ms']} ({it['oracle_freeze_ms']}) {it['share']:.0f} % of {it['oracle_mbit']:.2f}  {row['pair']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trial", metavar="TRIAL")
    parser.add_argument("--clip")
    parser.add_argument("--rule", default="follow", help="follow, known (told what links carry) or known:MS (what they will carry in so many ms)")
    parser.add_argument("--every", type=int, default=1, help="every Nth pair only")
    parser.add_argument("--others-every", type=int, default=1, help="the other rules on every Nth of these only; 0: not at all")
    parser.add_argument("--seconds", type=int, default=40)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("target/encode-trial.json"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--resume", action="store_true", help="go on with what stands in the file of --out")
    parser.add_argument("--report", type=pathlib.Path, help="print the table of a file written before, and run nothing")
    args = parser.parse_args()
    if args.report:
        return report(json.loads(args.report.read_text()))
    folder = os.environ.get("BRAIDCAST_TRACES")
    if not folder:
        sys.exit("BRAIDCAST_TRACES is not set: name the folder of the recordings (crates/lab/scenarios/recorded/README.md says which)")
    pairs = list(enumerate(itertools.combinations(recordings(pathlib.Path(folder)), 2)))[:: args.every]
    if not pairs:
        sys.exit(f"no two recordings in {folder}")
    # Neighbours in the list share a recording.
    pairs.sort(key=lambda it: it[0] * GOLDEN % 1)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    rows = json.loads(args.out.read_text()) if args.resume else []
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for row in pool.map(lambda it: one(args, it[0], *it[1]), list(enumerate(pairs))[len(rows) :]):
            rows.append(row)
            args.out.write_text(json.dumps(rows))
    report(rows)


main()
