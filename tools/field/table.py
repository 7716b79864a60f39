"""Results as Markdown, and the latency that each peer is to be told."""
import collections
import json
import statistics

import score

# A peer is told the latency with which half of its frames come out so long after the latency that is asked for.
AFTER_S = 0.015
# How much less than that a peer is told at most.
MOST_LESS_MS = 200


def results(work):
    """Returns the results that have figures, the newest of each name."""
    file = work / "results.jsonl"
    lines = file.read_text().splitlines() if file.exists() else []
    newest = {}
    for line in lines:
        result = json.loads(line)
        if "figures" in result:
            newest[result["name"]] = result
    return list(newest.values())


def told_ms(latency_ms, plain):
    """Returns the latency to tell a peer, by its run `plain` in which it was told `latency_ms`; the same if
    that says little."""
    figures = plain and plain["figures"]
    if not figures or figures["delay_p50_s"] is None or figures["video_ever"] < 0.5:
        return latency_ms
    excess = round(1000 * (figures["delay_p50_s"] - AFTER_S)) - latency_ms
    return latency_ms - min(max(excess, 0), MOST_LESS_MS)


def shown(found, systems):
    """Returns {(latency, clip, scenario): {system: results}}; of a peer that was tuned only the runs after that."""
    cells = collections.defaultdict(lambda: collections.defaultdict(list))
    for result in found:
        known = systems.get(result["system"])
        if not known or result["tuned"] or not known.own_buffer:
            cells[result["latency_ms"], result["clip"], result["scenario"]][result["system"]].append(result)
    return cells


def _percent(runs, figure, digits=1):
    values = [100 * run["figures"][figure] for run in runs]
    text = f"{statistics.mean(values):.{digits}f}"
    far = max(values) - min(values) > 0.15
    return f"{text} ({min(values):.{digits}f}–{max(values):.{digits}f})" if far else text


def _mean(values, digits=1):
    return f"{statistics.mean(values):.{digits}f}"


IDEAL = {"foresight": "oracle, all of the future known", "causal": "ideal sender, without foresight"}


def _ideal_row(title, it, columns):
    cells = [f"{100 * it[name]:.1f}" for name in ("video", "playable", "I", "P", "B", "audio")]
    return f"| {title} | | {cells[0]} | | {' | '.join(cells[1:])} |" + " |" * (columns - 10)


def cell_tables(cells, systems, ideal, titles):
    """Yields the lines of a table for each scenario, clip and latency."""
    for (latency, clip, scenario), by_system in sorted(cells.items()):
        first = next(iter(by_system.values()))[0]
        mbit = first["clip_bytes"] * 8 / 60 / 1e6
        yield f"\n**{scenario}: {titles.get(scenario, '')}; {clip}, {mbit:.2f} Mbit/s, {latency} ms**\n"
        wide = latency + round(1000 * score.WIDE_S)
        limit = latency + round(1000 * score.TOLERANCE_S)
        columns = [
            "system", "runs", f"video ≤ {limit} ms, %", f"≤ {wide} ms", "playable", "I", "P", "B", "audio", "told, ms",
            "p50, ms", "CPU-s", "MB per link"]
        yield "| " + " | ".join(columns) + " |"
        yield "|---|" + "---:|" * (len(columns) - 1)
        for name, title in IDEAL.items():
            if it := ideal.get(f"{scenario} {clip} {latency} {name}"):
                yield _ideal_row(title, it, len(columns) + 1)
        for name in [name for name in systems if name in by_system]:
            runs = by_system[name]
            shares = [_percent(runs, figure) for figure in ("video", "video_wide", "playable", "I", "P", "B", "audio")]
            megabytes = [_mean([count / 1e6 for count in link]) for link in zip(*(run["link_bytes"] for run in runs))]
            row = [
                systems[name].title, str(len(runs)), *shares, _mean([run["told_ms"] for run in runs], 0),
                _mean([1000 * (run["figures"]["delay_p50_s"] or 0) for run in runs], 0),
                _mean([run["cpu_ends_s"] for run in runs]), " + ".join(megabytes)]
            yield "| " + " | ".join(row) + " |"


def summary(cells, systems, ideal):
    """Yields the lines of one table: video on time / playable in %, a row for each system."""
    for latency in sorted({key[0] for key in cells}):
        keys = sorted(key for key in cells if key[0] == latency)
        heads = []
        for _, clip, scenario in keys:
            first = next(iter(cells[latency, clip, scenario].values()))[0]
            heads.append(f"{scenario}, {first['clip_bytes'] * 8 / 60 / 1e6:.2f} Mbit/s")
        yield f"\nVideo on time / playable, %, at {latency} ms\n"
        yield "| | " + " | ".join(heads) + " |"
        yield "|---|" + "---:|" * len(heads)
        for name, title in IDEAL.items():
            found = [ideal.get(f"{scenario} {clip} {latency} {name}") for _, clip, scenario in keys]
            if any(found):
                texts = [f"{100 * it['video']:.1f} / {100 * it['playable']:.1f}" if it else "" for it in found]
                yield f"| {title} | " + " | ".join(texts) + " |"
        for name, system in systems.items():
            rows = [cells[key].get(name) for key in keys]
            if any(rows):
                texts = [
                    f"{_mean([100 * run['figures']['video'] for run in runs])} / "
                    f"{_mean([100 * run['figures']['playable'] for run in runs])}" if runs else "" for runs in rows]
                yield f"| {system.title} | " + " | ".join(texts) + " |"


def origin(cells):
    """Yields lines about when, on what and of what these results are."""
    runs = [run for by_system in cells.values() for of in by_system.values() for run in of]
    dates = sorted({run["date"] for run in runs})
    loads = [load for run in runs for load in run["load"]]
    yield f"\n{' to '.join(dict.fromkeys((dates[0], dates[-1])))}, load average {min(loads):.1f} to {max(loads):.1f}"
    for processor in sorted({run["processor"] for run in runs}):
        yield f"processor: {processor}"
    yield "programs: " + ", ".join(sorted({version for run in runs for version in run["versions"]}))


def write(work, systems, titles, wanted=lambda result: True):
    """Prints the tables of the results that are wanted."""
    cells = shown([result for result in results(work) if wanted(result)], systems)
    if not cells:
        raise SystemExit(f"no results in {work}: `field.py run` makes some")
    file = work / "ideal.json"
    ideal = json.loads(file.read_text()) if file.exists() else {}
    for lines in (cell_tables(cells, systems, ideal, titles), summary(cells, systems, ideal), origin(cells)):
        for line in lines:
            print(line)
