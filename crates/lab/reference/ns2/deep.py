#!/usr/bin/env python3
"""ns-2.35's values for cmt-blocking and cmt-rtt-estimate: writes U_blocking.csv and V_srtt.csv next to this file.

usage: deep.py TRANSFER.TCL     (the one of the ns-2 reference runs; its README says what it sets up)

A stall is measured at the receiver's end of the links: from the arrival of the first packet that has to
wait for an earlier TSN until those that waited are complete. SRTT is the mean of the agent's own srtt_ at
each change of rto_, from 10 s on.
"""
import csv, os, re, statistics as st, subprocess, sys, tempfile

HERE, TMP = os.path.dirname(os.path.abspath(__file__)), tempfile.mkdtemp()
TRACE, AGENT, SCRIPT = TMP + "/links.tr", TMP + "/agent.tr", TMP + "/transfer.tcl"
CMT = {"cmt-sack": dict(dac=1, delsack=1), "sack": dict(dac=0, delsack=0)}
CHUNK, MTU, SECONDS, SEEDS = 1428, 1460, 60, 3      # 20 IP + 12 common + 16 chunk header + 1412 payload


def run(**kw):
    kw = dict(dict(chunk=CHUNK, mtu=MTU, dur=SECONDS, rtt1=0.02, bw1=1e6, trace=TRACE, agtrace=AGENT), **kw)
    subprocess.run(["ns", SCRIPT] + [f"{k}={v}" for k, v in kw.items()], check=True, timeout=60, capture_output=True)


def stalls():
    """Length of each stall in ms, and goodput in kbit/s."""
    paths, waiting, found, nxt, t0 = {}, {}, [], 1, None
    for line in open(TRACE):
        w = line.split()
        if w[0] == "#":
            paths[(w[3], w[4])] = int(w[2])
        elif len(w) >= 14 and w[6][7] == "D" and (w[2], w[3]) in paths:
            t = float(w[1])
            t0 = t if t0 is None else t0
            if w[0] == "r" and t <= t0 + SECONDS:
                waiting[int(w[11])] = t
                waits = []
                while nxt in waiting:
                    waits.append(t - waiting.pop(nxt))
                    nxt += 1
                if waits and max(waits) > 0:
                    found.append(1e3 * max(waits))
    return found, (nxt - 1) * (CHUNK - 16) * 8 / SECONDS / 1e3


def srtt():
    """Mean srtt_ in ms of each destination; the first one is path 1."""
    seen = {}
    for line in open(AGENT, errors="replace"):
        m = re.search(r"time: (\S+) .*daddr: (\d+) .*srtt: (\S+)", line)
        if m and float(m[1]) >= 10:
            seen.setdefault(int(m[2]), []).append(1e3 * float(m[3]))
    return [st.mean(seen[d]) for d in sorted(seen)]


def write(name, head, rows):
    with open(f"{HERE}/{name}.csv", "w", newline="") as f:
        out = csv.writer(f, lineterminator="\n")
        out.writerow(head)
        out.writerows(rows)


def blocking():
    points = [("RTT", r, "", dict(rtt2=r / 1e3)) for r in (20, 50, 100, 200, 300, 400, 500)]
    points += [("bandwidth", "", b, dict(rtt2=0.02, bw2=b * 1e3)) for b in (1000, 800, 600, 400, 200, 100)]
    points += [("3G and Wi-Fi", "", "", dict(rtt2=0.1, bw2=4e5))]
    variants = [("sack", CMT["sack"], 65536), ("cmt-sack", CMT["cmt-sack"], 65536)]
    variants += [("10 packets", CMT["sack"], 10 * CHUNK)]
    for asymmetry, rtt, rate, point in points:
        for name, variant, rwnd in variants:
            means, rates = [], []
            for seed in range(1, SEEDS + 1):
                run(seed=seed, rwnd=rwnd, **point, **variant)
                found, rate_ = stalls()
                means.append(st.mean(found) if found else 0.0)
                rates.append(rate_)
            yield [asymmetry, rtt, rate, name, f"{st.mean(means):.2f}", f"{st.stdev(means):.2f}", f"{st.mean(rates):.2f}", SEEDS]


def srtts():
    for name, sack in (("dac", "cmt-sack"), ("every-packet", "sack")):
        runs = []
        for seed in range(1, SEEDS + 1):
            run(seed=seed, rwnd=65536, rtt2=0.1, bw2=4e5, **CMT[sack])
            runs.append(srtt())
        yield [name, 100, "papers"] + [f"{st.mean(r[i] for r in runs):.2f}" for i in (0, 1)] + [SEEDS]


with open(sys.argv[1]) as f, open(SCRIPT, "w") as g:
    g.write(f.read().replace("$snd attach $af", "$snd trace rto_; $snd attach $af"))
write("V_srtt", ["sack", "rtt_3g_ms", "variant", "path1_ms_mean", "path2_ms_mean", "n"], srtts())
write("U_blocking", ["asymmetry", "rtt2_ms", "bw2_kbps", "variant", "stall_ms_mean", "stall_ms_sd", "goodput_kbps_mean", "n"], blocking())
