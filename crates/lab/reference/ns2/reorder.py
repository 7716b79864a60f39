#!/usr/bin/env python3
"""TFRC over a link that delivers some packets late, in ns-2.35: writes W_reordering.csv.

The network of reference G (the steering repository's reference/ns2) with reordering: reorder.tcl. Agents:
Agent/DCCP/TFRC ("dccp", a loss after three later packets) and Agent/TFRC with TFRCSink ("tfrc", a loss with
the first later packet). Payload 1000 bytes in 1032 on the wire, queue of 50 packets, 5 % late by THESIS
table 5.1's amounts, 20 s of warm-up, then 120 s; seeds 1 to 10.
"""
import csv, os, re, statistics, subprocess, sys, tempfile

ROWS = [(50, 25, 8), (100, 50, 20), (200, 100, 40), (300, 150, 80), (400, 200, 160)]
WARM, DUR, PAYLOAD, SEEDS = 20, 120, 1000, range(1, 11)


def run(agent, rtt, late, spread, share, seed, folder):
    trace, samples = os.path.join(folder, "t"), os.path.join(folder, "s")
    args = dict(agent=agent, rtt=rtt / 1e3, late=late / 1e3, spread=spread / 1e3, reorder=share, seed=seed,
                wire=PAYLOAD + 32, warm=WARM, dur=DUR, trace=trace, samples=samples)
    here = os.path.dirname(os.path.abspath(__file__))
    out = subprocess.run(["ns", os.path.join(here, "reorder.tcl")] + [f"{k}={v}" for k, v in args.items()],
                         capture_output=True, text=True, check=True).stdout
    start = float(re.search(r"T0 ([\d.]+)", out)[1]) + WARM
    kind = "tcpFriend" if agent == "tfrc" else "DCCP_Data"
    packets = 0
    with open(trace) as f:
        for line in f:
            if line[0] == "r" and kind in line:
                at = float(line.split(None, 2)[1])
                packets += start <= at < start + DUR
    if agent == "tfrc":
        rates = [(float(t), float(p)) for t, p in re.findall(r"time: ([\d.]+) loss_rate: ([\d.]+)", out)]
        losses = [p for t, p in rates if t >= start]
    else:
        with open(samples) as f:
            losses = [float(line.split()[2]) for line in f]
    return packets * PAYLOAD * 8e-3 / DUR, 100 * statistics.mean(losses or [0])


def main():
    with tempfile.TemporaryDirectory() as folder, open("W_reordering.csv", "w", newline="") as f:
        out = csv.writer(f, lineterminator="\n")
        out.writerow("agent,variant,rtt_ms,payload_kbps_mean,payload_kbps_sd,p_event_pct_mean,p_event_pct_sd,n".split(","))
        for agent in ("dccp", "tfrc"):
            for variant, share in (("none", 0), ("late", 0.05)):
                for rtt, late, spread in ROWS:
                    got = [run(agent, rtt, late, spread, share, seed, folder) for seed in SEEDS]
                    cells = []
                    for values in zip(*got):
                        cells += [f"{statistics.mean(values):.5g}", f"{statistics.stdev(values):.3g}"]
                    out.writerow([agent, variant, rtt, *cells, len(got)])
                    f.flush()
                    print(agent, variant, rtt, *cells, file=sys.stderr)


main()
