#!/usr/bin/env python3
"""Live video by Braidcast beside the tools that its users would pick instead, over the same emulated links,
and beside what foresight could do. README.md says how it measures and how peers are named.

  field.py run      measures what is not yet measured, and prints the tables; Ctrl-C ends it, and the next run goes on
  field.py table    prints the tables of what there is
  field.py clip     makes the clips alone
"""
import argparse
import json
import os
import queue
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.dont_write_bytecode = True
import cell
import oracle
import scenarios
import score
import systems as all_systems
import table
import ts

# kbit/s: mean, most, and the buffer that these are held within.
CLIPS = {"c2": (1750, 1900, 500), "c4": (3750, 4000, 1000)}
TEST_PATTERN = (
    "-f lavfi -i testsrc2=size=1280x720:rate=25,noise=alls=8:allf=t -f lavfi -i sine=frequency=330:sample_rate=48000")
ENCODE = (
    "-t {seconds} -vf \"scale=-2:'min(720,ih)',fps=25,format=yuv420p\" -map 0:v -map {audio} -c:v libx264 -preset veryfast "
    "-b:v {0}k -maxrate {1}k -bufsize {2}k -bf 2 -g 50 -sc_threshold 0 -c:a aac -b:a 96k -ac 2 -ar 48000 -sn -dn -f mpegts")
# Seconds of a cell beside the clip: start, the emulators' lead, the last frames.
AROUND_S = 8


def make_clip(name, work, source):
    """Returns the file of a clip; makes it with ffmpeg from `source`, or from a test pattern, if it is not there."""
    if name.endswith(".ts"):
        if not Path(name).exists():
            raise SystemExit(f"no clip {name}")
        return Path(name).resolve()
    file = work / "clips" / f"{name}.ts"
    if not file.exists():
        if name not in CLIPS:
            raise SystemExit(f"no clip {name}: there are {', '.join(CLIPS)}, and any .ts file of {scenarios.CLIP_S} s")
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(".part")
        words = ["-stream_loop", "-1", "-i", str(source)] if source else shlex.split(TEST_PATTERN)
        encode = ENCODE.format(*CLIPS[name], seconds=scenarios.CLIP_S, audio="0:a" if source else "1:a")
        command = ["ffmpeg", "-nostdin", "-y", "-v", "error", *words, *shlex.split(encode), str(part)]
        print("field: " + shlex.join(command), flush=True)
        if subprocess.run(command).returncode:
            raise SystemExit("ffmpeg failed: it needs libx264 and aac, and an input with audio and video")
        part.rename(file)
    return file


class Runner:
    """Runs cells, some at a time, and says how long the rest takes."""

    def __init__(self, slots, port, total):
        self.slots, self.port, self.total = slots, port, total
        self.ended, self.lock = 0, threading.Lock()

    def run(self, cells):
        """Returns the results of `cells`, fewer if it is stopped."""
        waiting, results = queue.Queue(), []
        for it in cells:
            waiting.put(it)

        def work(slot):
            # Apart, so that the feeders' bursts do not fall together.
            cell.STOP.wait(slot * 1.1)
            while not cell.STOP.is_set():
                try:
                    it = waiting.get_nowait()
                except queue.Empty:
                    return
                it.place(self.port + slot * cell.PORTS)
                result = it.run()
                with self.lock:
                    if result:
                        results.append(result)
                        self.say(cell.line(result))

        threads = [threading.Thread(target=work, args=(slot,)) for slot in range(min(self.slots, len(cells)))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if cell.STOP.is_set():
            raise SystemExit("\nfield: stopped; what ended is kept, and the next run goes on from there")
        return results

    def say(self, text):
        self.ended += 1
        rounds = -(-(self.total - self.ended) // self.slots)
        left = rounds * (scenarios.CLIP_S + AROUND_S) / 60
        print(f"[{self.ended}/{self.total}, {left:.0f} min left] {text}", flush=True)


def choose_systems(names):
    """Returns the systems to measure: those that are named, else all whose programs are there."""
    known = all_systems.systems()
    if strange := [name for name in names or () if name not in known]:
        raise SystemExit(f"no system {', '.join(strange)}; there are {', '.join(known)}")
    return {name: known[name] for name in names or [name for name, it in known.items() if not it.asked]}


def run(args):
    chosen, scenes = choose_systems(args.systems), scenarios.load(args.scenarios, args.links)
    args.braidcast = shutil.which(args.braidcast) or ""
    if not args.braidcast:
        raise SystemExit("no braidcast: `cargo build --release`, or name it with --braidcast")
    args.braidcast = str(Path(args.braidcast).resolve())
    clips = [make_clip(name, args.work, args.input) for name in args.clips]

    def make(name, scenario, clip, latency_ms, told_ms, tuned, rep):
        return cell.Cell(
            name, chosen[name], scenario, scenes[scenario], clip, latency_ms, told_ms, tuned, rep, args.braidcast,
            args.work, keep=args.keep)

    for name in list(chosen):
        try:
            make(name, args.scenarios[0], clips[0], args.latency[0], args.latency[0], False, 1).programs()
        except all_systems.Missing as error:
            if args.systems:
                raise SystemExit(f"field: {name}: {error}")
            print(f"field: without {name}: {error}")
            del chosen[name]
    known = {result["key"]: result for result in table.results(args.work)}
    # A peer is tuned with the clip that needs least, as there the median says most.
    lightest = min(clips, key=lambda clip: clip.stat().st_size)
    places = [(scenario, latency) for latency in args.latency for scenario in args.scenarios]
    tunes = [
        make(name, scenario, lightest, latency, latency, False, 1)
        for scenario, latency in places for name, it in chosen.items() if it.own_buffer]

    def measured():
        """The cells of the tables. What a peer is told is known once the cells before have run."""
        told = {(it.system_name, it.scenario_name, it.latency_ms): table.told_ms(it.latency_ms, known.get(it.key())) for it in tunes}
        for rep in range(1, args.reps + 1):
            for scenario, latency in places:
                for clip in clips:
                    for name, it in chosen.items():
                        ms = told.get((name, scenario, latency), latency)
                        yield make(name, scenario, clip, latency, ms, it.own_buffer, rep)

    def open_cells(cells):
        return [it for it in cells if args.again or it.key() not in known]

    first = open_cells(tunes)
    rest = len(open_cells(measured()))
    runner = Runner(args.slots, args.port, len(first) + rest)
    rounds = -(-len(first) // args.slots) + -(-rest // args.slots)
    minutes = rounds * (scenarios.CLIP_S + AROUND_S) / 60
    print(f"field: {len(first) + rest} cells, {args.slots} at a time, about {minutes:.0f} min; results in {args.work}", flush=True)
    if os.geteuid():
        print("field: not root, so without high priority: expect a wider spread")
    for sign in (signal.SIGINT, signal.SIGTERM):
        signal.signal(sign, lambda *_: cell.STOP.set())
    known.update((result["key"], result) for result in runner.run(first) if "figures" in result)
    second = open_cells(measured())
    runner.total = runner.ended + len(second)
    runner.run(second)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if not args.no_oracle:
        ideal(args, scenes, clips)
    show(args, scenes, lambda it: it["scenario"] in scenes and it["clip"] in {clip.stem for clip in clips})


def ideal(args, scenes, clips):
    """Writes what ideal senders reach to ideal.json; what is there is kept."""
    file = args.work / "ideal.json"
    found = json.loads(file.read_text()) if file.exists() else {}
    for scenario, it in scenes.items():
        for clip in clips:
            frames = ts.read(str(clip)).frames
            for latency in args.latency:
                name = f"{scenario} {clip.stem} {latency}"
                mark = f"{cell.fingerprint(clip)} {it.links}"
                if found.get(name) == mark:
                    continue
                print(f"field: what was possible in {name} ms", flush=True)
                limit = latency / 1000 + score.TOLERANCE_S
                links = [oracle.slots(link, scenarios.CLIP_S + limit) for link in it.links]
                most = oracle.most(frames, links, limit)
                most["playable"] = oracle.most_playable(frames, links, limit)["playable"]
                found[f"{name} foresight"] = most
                found[f"{name} causal"] = oracle.causal(frames, links, limit)
                found[name] = mark
                file.write_text(json.dumps(found, indent=1) + "\n")


def show(args, scenes, wanted=lambda result: True):
    titles = {name: it.title for name, it in scenes.items()}
    table.write(args.work, all_systems.systems(), titles, wanted)


def words(text):
    return text.split(",")


def milliseconds(text):
    return [int(word) for word in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "table", "clip"])
    default = os.environ.get("FIELD_WORK", str(scenarios.ROOT / "target/field"))
    parser.add_argument("--work", type=Path, default=Path(default), help="clips, logs and results (default: target/field)")
    parser.add_argument("--scenarios", type=words, default=list(scenarios.built_in()), help="for example S1,S3 (default: all)")
    parser.add_argument("--links", type=Path, metavar="FILE", help="more scenarios, as JSON")
    parser.add_argument("--clips", type=words, default=list(CLIPS), help="c2, c4, or .ts files of 60 s (default: c2,c4)")
    parser.add_argument("--input", type=Path, help="what clips are made of that are not there yet (default: a test pattern)")
    parser.add_argument("--latency", type=milliseconds, default=[500], help="ms, for example 500,1000 (default: 500)")
    parser.add_argument("--systems", type=words, help="for example braidcast,srt (default: all whose programs are there)")
    parser.add_argument("--reps", type=int, default=1, help="runs of each cell, each with seeds of its own (default: 1)")
    parser.add_argument("--slots", type=int, default=2 * (os.cpu_count() or 1), help="cells at a time (default: 2 for each CPU)")
    parser.add_argument("--braidcast", default=str(scenarios.ROOT / "target/release/braidcast"), help="the program to measure")
    parser.add_argument("--port", type=int, default=22_000, help=f"{cell.PORTS} UDP ports for each slot from here (default: 22000)")
    parser.add_argument("--again", action="store_true", help="also what there are results of")
    parser.add_argument("--keep", action="store_true", help="keep the log of every packet, 30 MB for each cell")
    parser.add_argument("--no-oracle", action="store_true", help="without what foresight could do")
    args = parser.parse_args()
    args.work = args.work.resolve()
    args.work.mkdir(parents=True, exist_ok=True)
    if args.input and not args.input.exists():
        parser.error(f"no file {args.input}")
    if args.reps < 1 or args.slots < 1 or min(args.latency) < 10:
        parser.error("--reps and --slots are at least 1, --latency at least 10")
    if args.what == "clip":
        for name in args.clips:
            print(make_clip(name, args.work, args.input))
    elif args.what == "run":
        run(args)
    else:
        show(args, scenarios.load(args.scenarios, args.links))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        raise SystemExit("\nfield: stopped; what ended is kept")
