#!/usr/bin/env python3
"""Prints uplink.txt from the data set's table: compact.py uplink.csv > uplink.txt (README.md says what is in both)."""
import csv
import sys

STEP_MS, LEAST_MS = 500, 60_000


def steps(changes, end_ms):
    """Returns the mean rate of each whole step, in units of 10 kbit/s; a rate holds until the next change."""
    out, at = [], 0
    for start in range(0, end_ms - STEP_MS + 1, STEP_MS):
        total = 0
        while at + 1 < len(changes) and changes[at + 1][0] <= start:
            at += 1
        for i in range(at, len(changes)):
            since = max(start, changes[i][0] if i > at else start)
            until = min(start + STEP_MS, changes[i + 1][0] if i + 1 < len(changes) else end_ms)
            if since >= start + STEP_MS:
                break
            total += max(0, until - since) * changes[i][1]
        out.append(round(total / STEP_MS / 10))
    return out


def main():
    runs = {}
    with open(sys.argv[1], newline="") as file:
        for row in csv.DictReader(file):
            runs.setdefault(row["run"], []).append(row)
    for run, rows in runs.items():
        rows.sort(key=lambda row: int(row["t_ms"]))
        end_ms = int(rows[-1]["t_ms"]) + STEP_MS
        if end_ms < LEAST_MS:
            continue
        for operator in "ab":
            known = [(int(r["t_ms"]), int(r[f"{operator}_kbit"])) for r in rows if r[f"{operator}_kbit"]]
            handovers, start = [], None
            for row in rows:
                what, at = row[f"{operator}_handover"], int(row["t_ms"])
                if what == "start":
                    start = at
                elif what == "end" and start is not None:
                    # Longer ones are two events whose ends the log lacks.
                    if 0 < at - start <= 2000:
                        handovers.append(f"{start}-{at}")
                    start = None
            rates = ",".join(map(str, steps(known, end_ms)))
            print(run, operator, rates, ",".join(handovers) or "-")


main()
