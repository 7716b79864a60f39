#!/usr/bin/env python3
"""Braidcast beside other protocols and libraries on this machine, in one run: CPU seconds of both ends,
throughput, ratios.

  benches/run.py [bulk|live|paced|border|relay|fec|redundancy] [--runs 5] [--only NAME,NAME] [--nopin] [--json FILE]
  benches/run.py before --before PROGRAM [--runs 5] …
  benches/run.py bulk --without avx512,gfni,vaes      as on a processor without these instruction sets

Each round runs every peer once, in turn; each figure is the min, median and max over the rounds, each ratio
the median of the rounds' own ratios. Trust CPU seconds and ratios; Gbit/s depends on what else the machine
does. The server has CPU 1, the client CPU 0, unless --nopin.
  Ours encrypts (AES-128-GCM), unless it says --plain.
  bulk  one path over the loopback, reliable but for DCCP and datagrams, of which 99 % must arrive; usrsctp is Debian's tsctp,
        which formats a debug line for each event.
        Where ../shared/bench/peers has been built, its peers are run too.
  live  MPEG-TS at 20 and at 1.84 Mbit/s from a UDP source to a UDP sink; the CPU of the two processes between them is
        counted, and ours is compared end by end too.
  relay
        many streams in turn through `braidcast relay` and through coturn's TURN relay; the CPU of the relay
        alone is counted, for the bytes that came out.
  paced
        what a rate costs: bulk at 1 Gbit/s beside as fast as it goes.
  border
        SRT into a receiver that writes to /dev/null, at 20 and 300 Mbit/s, from the same srt-live-transmit; and 100
        senders by SRTLA at 2 Mbit/s each, over two links, into one `receive`. The receiver's CPU alone is counted.
  fec   erasure codes on one core, GB/s of source in 1400-byte symbols. ISA-L has its sources in place; ours keeps copies of them,
        so it decodes with and without.
  redundancy
        bulk at 1 Gbit/s with and without 10 % of redundancy, by each kind of code.
  before
        this version beside an older build of `braidcast`, in pairs, neither encrypting: what a change costs.
To add a peer: a line in bulk_peers, live_peers, paced_peers, border_peers, relay_peers, redundancy_peers or fec_peers.
"""
import argparse
import importlib.util
import json
import os
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
sys.dont_write_bytecode = True
import measure

SHARED_PEERS = ROOT.parent / "shared/bench/peers/peers.py"
TSCTP = "/usr/lib/usrsctp/tsctp"
OURS = "braidcast"
MB = 10**6
# Rates of live streams, Mbit/s, and for how many seconds each is measured: at the lower one, which most streams have,
# starting a program would be a large part of 10 s.
LIVE = {20: 10, 1.84: 30}
# Streams through a relay, the Mbit/s of each, and how many of its packets come one after the other: in the worst case
# no two, else a part of a frame. One core carries them by far, as CPU time is measured, not speed.
STREAMS = [(100, 3, 1), (100, 3, 4)]
RELAY_SECS = 10
# Rates of SRT into a receiver, Mbit/s, and for how many seconds.
BORDER = (20, 300)
BORDER_SECS = 10
# Senders by SRTLA, Mbit/s of each, and seconds.
PHONES = (100, 2, 10)
CODES = ["none", "block:10,9", "convolutional:10,9,20", "tetrys:10,9,200"]
# What the environment of all programs says besides: instruction sets that are hidden from them.
HIDDEN = {}
# Prints which of the sets that can be hidden it finds.
CHECK = """
#include <cpuid.h>
#include <stdio.h>
int main(void) {
    unsigned a, b, c, d;
    __cpuid_count(7, 0, a, b, c, d);
    printf("%s %s %s\\n", b >> 16 & 1 ? "avx512" : "", c >> 8 & 1 ? "gfni" : "", c >> 9 & 1 ? "vaes" : "");
}
"""
# True: programs are taken as they are in target/release, for example on a machine without compilers.
NO_BUILD = False
# A peer that takes longer than this hangs.
LIMIT_SECS = 120


@dataclass
class Bulk:
    """The server ends by itself, or when told to (`stop`), once the client has."""

    server: str
    client: str
    bytes: int
    stop: bool = False


@dataclass
class Live:
    """Two processes between the source, which sends to port `source`, and the sink, which listens on
    127.0.0.1:`sink`."""

    receiver: str
    sender: str
    source: int
    sink: int


@dataclass
class Carrier:
    """A relay, and what `relay-load` calls its protocol and is told."""

    relay: str
    load: str


@dataclass
class Border:
    """A receiver that writes all that comes, and those who send to it; the last of them ends by itself."""

    receiver: str
    senders: list
    bytes: int
    secs: float


def bulk_peers(bin_dir, ours, tmp):
    peers = {OURS: Bulk(f"{ours} perf server 127.0.0.1:7501", f"{ours} perf client 127.0.0.1:7501 --bytes {500 * MB}", 500 * MB)}
    plain = f"{ours} perf client 127.0.0.1:7500 --plain --bytes {500 * MB}"
    peers[f"{OURS} --plain"] = Bulk(f"{ours} perf server 127.0.0.1:7500 --plain", plain, 500 * MB)
    # Where nobody reads it: what it takes to tell and to write.
    peers[f"{OURS} --trace"] = Bulk(
        f"{ours} perf server 127.0.0.1:7509 --trace /dev/null",
        f"{ours} perf client 127.0.0.1:7509 --trace /dev/null --bytes {500 * MB}", 500 * MB)
    quinn = f"{bin_dir}/quinn-bulk"
    peers["quinn, AES-128"] = Bulk(
        f"{quinn} server 127.0.0.1:7502 {tmp}/cert", f"{quinn} client 127.0.0.1:7502 {tmp}/cert {500 * MB}", 500 * MB)
    for ccid, port in [("ccid2", 7506), ("ccid3", 7507)]:
        peers[f"{OURS} DCCP {ccid}"] = Bulk(
            f"{ours} perf server 127.0.0.1:{port} --dccp {ccid}",
            f"{ours} perf client 127.0.0.1:{port} --dccp {ccid} --bytes {500 * MB}", 500 * MB)
    peers["quinn datagrams"] = Bulk(
        f"{quinn} server 127.0.0.1:7508 {tmp}/cert", f"{quinn} client 127.0.0.1:7508 {tmp}/cert {500 * MB} datagrams", 500 * MB)
    (tmp / "received").mkdir()
    (tmp / "file").write_bytes(bytes(200 * MB))
    peers["srt-file-transmit"] = Bulk(
        f"srt-file-transmit -q srt://127.0.0.1:7503?mode=listener file://{tmp}/received/",
        f"srt-file-transmit -q file://{tmp}/file srt://127.0.0.1:7503?mode=caller", 200 * MB)
    peers["usrsctp tsctp"] = Bulk(
        f"{TSCTP} -E 7504 -R 4194304 -L 127.0.0.1",
        f"{TSCTP} -E 7505 -U 7504 -S 4194304 -n 20000 -l 1400 -L 127.0.0.1 127.0.0.1", 28 * MB, stop=True)
    peers.update(shared_peers())
    return peers


def redundancy_peers(ours):
    """The first is without; 1 Gbit/s is sent in any case, and redundancy comes on top of it."""
    return {
        f"{OURS}, {code}": Bulk(
            f"{ours} perf server 127.0.0.1:{port}",
            f"{ours} perf client 127.0.0.1:{port} --rate 1gbit --fec {code} --bytes {500 * MB}", 500 * MB)
        for port, code in enumerate(CODES, 7511)
    }


def relay_peers(ours):
    """Both on one thread: what a packet costs, not how many cores there are."""
    turn = "turnserver -n --no-auth --no-cli --no-tls --no-dtls --no-tcp --no-tcp-relay --allow-loopback-peers --relay-threads 1"
    turn += " -L 127.0.0.1 -E 127.0.0.1 --min-port 20000 --max-port 29999 --log-file /dev/null --simple-log --pidfile /dev/null"
    return {
        OURS: Carrier(f"{ours} relay 127.0.0.1:7801 --open --threads 1", "braidcast 127.0.0.1:7801"),
        "coturn": Carrier(f"{turn} -p 7802", "turn 127.0.0.1:7802"),
    }


def paced_peers(ours):
    """The first goes as fast as it can."""
    rates = {"as fast as it goes": "", "at 1 Gbit/s": "--rate 1gbit"}
    return {
        f"{OURS}, {row}": Bulk(
            f"{ours} perf server 127.0.0.1:{port}",
            f"{ours} perf client 127.0.0.1:{port} {rate} --bytes {500 * MB}", 500 * MB)
        for port, (row, rate) in enumerate(rates.items(), 7521)
    }


def border_peers(bin_dir, ours, mbit):
    """SRT from Debian's sender, for both receivers alike. It has the stream by UDP, evenly spaced; beyond 100 Mbit/s
    through a pipe, as it drops most of what comes to it by UDP then, and how much depends on who receives."""
    receivers = {
        OURS: f"{ours} receive 127.0.0.1:7801,srt://:7802?latency=120 -",
        "srt-live-transmit": 'srt-live-transmit -loglevel:error -chunk:1316 "srt://:7803?mode=listener&latency=120" file://con',
    }
    found = {}
    for number, (name, receiver) in enumerate(receivers.items()):
        to, source = f"srt://127.0.0.1:{7802 + number}?mode=caller&latency=120", 7811 + number
        send = "srt-live-transmit -q -loglevel:error -chunk:1316"
        pace = f"{bin_dir}/udp-pace nulls {BORDER_SECS}"
        senders = [f"{send} udp://127.0.0.1:{source} {to}", f"{pace} 127.0.0.1:{source} {mbit}"]
        if mbit > 100:
            # It does not end with what it reads.
            senders = [f"sh -c '{pace} - {mbit} | timeout {BORDER_SECS + 1} {send} file://con \"{to}\"; true'"]
        found[name] = Border(f"sh -c 'exec {receiver} >/dev/null'", senders, mbit * MB // 8 * BORDER_SECS, BORDER_SECS)
    return found


def phones_peers(examples, ours, tmp):
    count, mbit, secs = PHONES
    receiver = f"{ours} receive 127.0.0.1:7831,srtla://:7832?latency=500 {tmp}/{{name}}.ts --keep --overwrite --streams {count}"
    sender = f"{examples}/phone many {count} {mbit} {secs} 127.0.0.1:7832 127.0.0.2:7832"
    return {f"{OURS}, {count} senders by SRTLA at {mbit} Mbit/s": Border(receiver, [sender], count * mbit * MB // 8 * secs, secs)}


def before_peers(ours, before):
    """Each row by the older program, then by ours; (bulk, live). Programs from before there was encryption
    know no `--plain`."""
    programs = {"before": before, "now": ours}
    text = {name: subprocess.run([path, "perf", "client", "--help"], capture_output=True, text=True).stdout for name, path in programs.items()}
    plain = {name: "--plain" if "--plain" in text[name] else "" for name in programs}
    rows = {"SCTP": ("", ""), "DCCP ccid2": ("--dccp ccid2", ""), "DCCP ccid3": ("--dccp ccid3", "")}
    rows |= {f"SCTP, {code}, 1 Gbit/s": ("", f"--rate 1gbit --fec {code}") for code in CODES}
    bulk, live = {}, {}
    for port, (row, (both, sender)) in enumerate(rows.items(), 7701):
        for name, program in programs.items():
            both_too = f"{both} {plain[name]}"
            bulk[row, name] = Bulk(
                f"{program} perf server 127.0.0.1:{port} {both_too}",
                f"{program} perf client 127.0.0.1:{port} --bytes {500 * MB} {both_too} {sender}", 500 * MB)
    for row, ports in {"live, two paths": [7751, 7752], "live, one path": [7753]}.items():
        for name, program in programs.items():
            at = ",".join(f"127.0.0.1:{port}" for port in ports)
            to = " ".join(f"--to 127.0.0.1:{port}" for port in ports)
            source, sink = ports[0] + 10, ports[0] + 20
            live[row, name] = Live(
                f"{program} receive {at} udp://127.0.0.1:{sink} {plain[name]}",
                f"{program} send udp://127.0.0.1:{source} {to} {plain[name]}", source, sink)
    return bulk, live


def before_table(results, cost, unit):
    head("row", f"CPU-s per {unit} before", "now", "now : before (min / median / max of the pairs)")
    for row in dict.fromkeys(row for row, _ in results):
        pairs = [pair for pair in zip(results[row, "before"], results[row, "now"]) if all(pair)]
        if not pairs:
            line(row, "failed", "", "")
            continue
        old, new = (statistics.median(figures[cost] for figures in side) for side in zip(*pairs))
        line(row, f"{old:.3g}", f"{new:.3g}", spread([new[cost] / old[cost] for old, new in pairs], "%.2f"))


def paced_table(results):
    """What each rate costs beside none, in the same rounds."""
    head("bulk", "CPU-s per GB, both ends", "tx", "rx", "Gbit/s", "times the first")
    first = next(iter(results.values()), [])
    for name, found in results.items():
        pairs = [(mine, its) for mine, its in zip(found, first) if mine and its]
        if not pairs:
            line(name, "failed", "", "", "", "")
            continue
        three = [f"{statistics.median(mine[key] for mine, _ in pairs):.3g}" for key in ("tx", "rx", "gbit_per_s")]
        times = spread([mine["cpu_per_gb"] / its["cpu_per_gb"] for mine, its in pairs], "%.2f")
        line(name, spread([mine["cpu_per_gb"] for mine, _ in pairs], "%.3g"), *three, times)


def redundancy_table(results):
    """What each code adds to the CPU time of the same round without one."""
    head("redundancy", "CPU-s per GB, both ends", "tx", "rx", "Gbit/s", "added CPU, %")
    without = next(iter(results.values()), [])
    for name, found in results.items():
        pairs = [(mine, its) for mine, its in zip(found, without) if mine and its]
        if not pairs:
            line(name, "failed", "", "", "", "")
            continue
        median = {key: statistics.median(mine[key] for mine, _ in pairs) for key in ("tx", "rx", "gbit_per_s")}
        added = spread([100 * (mine["cpu_per_gb"] / its["cpu_per_gb"] - 1) for mine, its in pairs], "%.1f")
        costs = spread([mine["cpu_per_gb"] for mine, _ in pairs], "%.3g")
        three = [f"{median[key]:.3g}" for key in ("tx", "rx", "gbit_per_s")]
        line(name, costs, *three, "" if found is without else added)


def shared_peers():
    """Peers that only some machines have: SRT and usrsctp as libraries, bare UDP."""
    if not SHARED_PEERS.exists():
        return {}
    spec = importlib.util.spec_from_file_location("peers", SHARED_PEERS)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    names = ["udp-plain", "udp-gso", "srt-file", "srt-live-msgs", "usrsctp-0.9.5-own", "pion-sctp"]
    found = {name: module.bulk_peers()[name] for name in names}
    local = {"ip": "127.0.0.1", "cip": "127.0.0.1"}
    return {
        f"{name} (shared)": Bulk(server.format(**local), client.format(**local), size)
        for name, (server, client, size) in found.items()
        if Path(shlex.split(server)[0]).exists()
    }


def live_peers(ours, slice=None):
    ends = {
        f"{OURS}, two paths": Live(
            f"{ours} receive 127.0.0.1:7601,127.0.0.1:7602 udp://127.0.0.1:7612",
            f"{ours} send udp://127.0.0.1:7610 --to 127.0.0.1:7601 --to 127.0.0.1:7602", 7610, 7612),
        f"{OURS} --plain, two paths": Live(
            f"{ours} receive 127.0.0.1:7605,127.0.0.1:7606 udp://127.0.0.1:7618 --plain",
            f"{ours} send udp://127.0.0.1:7617 --to 127.0.0.1:7605 --to 127.0.0.1:7606 --plain", 7617, 7618),
        f"{OURS} --trace, two paths": Live(
            f"{ours} receive 127.0.0.1:7608,127.0.0.1:7609 udp://127.0.0.1:7624 --trace /dev/null",
            f"{ours} send udp://127.0.0.1:7623 --to 127.0.0.1:7608 --to 127.0.0.1:7609 --trace /dev/null", 7623, 7624),
        f"{OURS}, one path": Live(
            f"{ours} receive 127.0.0.1:7603 udp://127.0.0.1:7615",
            f"{ours} send udp://127.0.0.1:7613 --to 127.0.0.1:7603", 7613, 7615),
        "srt-live-transmit, one path": Live(
            "srt-live-transmit -loglevel:error srt://127.0.0.1:7621?mode=listener&latency=500 udp://127.0.0.1:7622",
            "srt-live-transmit -loglevel:error udp://127.0.0.1:7620 srt://127.0.0.1:7621?mode=caller&latency=500", 7620, 7622),
    }
    with_slice = lambda end: f"{end} --slice {slice}" if slice and end.startswith(str(ours)) else end
    return {name: Live(with_slice(it.receiver), with_slice(it.sender), it.source, it.sink) for name, it in ends.items()}


def fec_peers(bin_dir, speed):
    """Programs that print lines of `RATE what value`, GB/s, or `NONE why`. What they measure alike they call alike."""
    others = {name: f"{bin_dir}/fec-peers {name.lower()}" for name in ("ISA-L", "reed-solomon-simd", "cu-fec")}
    return {OURS: f"{speed} --rates", **others}


# Versions 0.1.0 and 0.1.1 of this crate need `vandermonde_lc`, which the crate registry does not
# have: no build, no figures.
NOT_MEASURED = {"networkcoding": "does not build: the crate registry has no `vandermonde_lc`, which it needs"}


def run_fec(command):
    process = launch(command, 0 if (os.cpu_count() or 1) > 1 else None)
    if not process.wait(LIMIT_SECS) or process.process.returncode:
        process.stop()
        raise Failed(process.text()[-300:])
    if why := re.search(r"^NONE (.*)", process.text(), re.M):
        raise Failed(why[1])
    return {name: float(rate) for name, rate in re.findall(r"^RATE (.*) ([\d.]+)$", process.text(), re.M)}


def fec_table(results):
    """One row for each thing that a program measures, and how ours compares in the same rounds."""
    head("program", "what", "GB/s", "ours : peer")
    ours = results.get(OURS, [])
    for name, found in results.items():
        good = [rates for rates in found if rates]
        for what in good[0] if good else []:
            ratios = [mine[what] / its[what] for mine, its in zip(ours, found) if mine and its and what in mine]
            ratio = "%.2f" % statistics.median(ratios) if ratios and name != OURS else ""
            line(name, what, spread([rates[what] for rates in good], "%.3g"), ratio)
        if not good:
            line(name, "failed, see above", "", "")
    for name, why in NOT_MEASURED.items():
        line(name, why, "", "")


def launch(command, pin=None):
    return measure.Process(command, pin, env=HIDDEN)


def wait_for_ready(process):
    """Until it says READY; a program that never says so gets a moment to bind."""
    process.wait_for("READY", 0.7)


class Failed(Exception):
    pass


def result(text):
    """The figures that a server printed: a RESULT line, or tsctp's own."""
    if found := re.search(r"^RESULT (.*)", text, re.M):
        return {key: float(value) for key, value in (pair.split("=") for pair in found[1].split())}
    if found := re.search(r"^\d+, \d+, \d+, (\d+), ([\d.]+), ", text, re.M):
        return {"bytes": float(found[1]), "secs": float(found[2])}
    return {}


def run_bulk(peer, pins):
    server = launch(peer.server, pins[1])
    try:
        wait_for_ready(server)
        start = time.monotonic()
        client = launch(peer.client, pins[0])
        if not client.wait(LIMIT_SECS):
            client.stop()
            raise Failed(f"no end after {LIMIT_SECS} s: {client.text()[-300:]}")
        secs = time.monotonic() - start
        server.wait(0.5 if peer.stop else 10)
    finally:
        server.stop()
    got = result(server.text())
    if client.process.returncode or got.get("bytes", peer.bytes) < 0.99 * peer.bytes:
        raise Failed(f"client: {client.text()[-300:]} server: {server.text()[-300:]}")
    gigabytes = peer.bytes / 1e9
    return {
        "cpu_per_gb": (client.used + server.used) / gigabytes,
        "tx": client.used / gigabytes,
        "rx": server.used / gigabytes,
        "gbit_per_s": 8 * gigabytes / got.get("secs", secs),
    }


def run_live(peer, bin_dir, file, mbit):
    secs = LIVE[mbit]
    sink = launch(f"{bin_dir}/udp-pace sink 127.0.0.1:{peer.sink} 2")
    between = []
    try:
        wait_for_ready(sink)
        for command in (peer.receiver, peer.sender):
            between.append(launch(command))
            wait_for_ready(between[-1])
        source = launch(f"{bin_dir}/udp-pace source {file} 127.0.0.1:{peer.source} {mbit}")
        if not source.wait(secs + 10) or source.process.returncode:
            source.stop()
            raise Failed(f"source: {source.text()[-300:]}")
        sink.wait(5)
    finally:
        for process in [*reversed(between), sink]:
            process.stop()
    got = result(sink.text()).get("bytes", 0)
    if not got:
        raise Failed(" ".join(process.text()[-300:] for process in between))
    receiver, sender = (process.used * 30 / secs for process in between)
    return {"cpu_per_30s": receiver + sender, "tx": sender, "rx": receiver, "delivered": got / file.stat().st_size}


def run_relay(peer, bin_dir, pins, streams, mbit, burst):
    relay = launch(peer.relay, pins[1])
    try:
        wait_for_ready(relay)
        load = launch(f"{bin_dir}/relay-load {peer.load} {streams} {mbit} {burst} {RELAY_SECS}", pins[0])
        if not load.wait(LIMIT_SECS) or load.process.returncode:
            load.stop()
            raise Failed(f"load: {load.text()[-300:]} relay: {relay.text()[-300:]}")
    finally:
        relay.stop()
    got = result(load.text())
    return {"cpu_per_gb": relay.used / (got["bytes"] / 1e9), "share": got["share"], "mbit_per_s": got["bytes"] * 8e-6 / RELAY_SECS}


def run_border(peer, pins):
    receiver, senders = launch(peer.receiver, pins[1]), []
    try:
        wait_for_ready(receiver)
        for command in peer.senders:
            senders.append(launch(command, pins[0]))
            wait_for_ready(senders[-1])
        if not senders[-1].wait(LIMIT_SECS) or senders[-1].process.returncode:
            raise Failed(f"sender: {senders[-1].text()[-300:]}")
        # What came last waits for its time.
        time.sleep(1)
        written = int(re.search(r"^wchar: (\d+)", Path(f"/proc/{receiver.process.pid}/io").read_text(), re.M)[1])
    finally:
        for process in [*reversed(senders), receiver]:
            process.stop()
    if written < 0.5 * peer.bytes:
        raise Failed(f"{written} of {peer.bytes} bytes: {receiver.text()[-300:]}")
    return {"cpu_per_30s": receiver.used * 30 / peer.secs, "delivered": written / peer.bytes}


def border_table(results):
    """Ours beside the other one in the same rounds, and how much of a core the receiver takes."""
    head("border", "CPU-s per 30 s, receiver", "share of a core", "delivered, share", "ours : peer")
    ours = next((found for name, found in results.items() if name.startswith(OURS)), [])
    for name, found in results.items():
        good = [figures for figures in found if figures]
        if not good:
            line(name, *["failed"] * 4)
            continue
        costs, share = ([figures[key] for figures in good] for key in ("cpu_per_30s", "delivered"))
        ratios = [mine["cpu_per_30s"] / its["cpu_per_30s"] for mine, its in zip(ours, found) if mine and its and found is not ours]
        ratio = "%.2f" % statistics.median(ratios) if ratios else ""
        line(name, spread(costs, "%.3g"), "%.2f" % (statistics.median(costs) / 30), spread(share, "%.3g"), ratio)


def rounds(peers, runs, measure):
    results = {name: [] for name in peers}
    for number in range(runs):
        for name, peer in peers.items():
            try:
                results[name].append(measure(peer))
                figures = ", ".join(f"{key} {value:.3g}" for key, value in results[name][-1].items())
                print(f"round {number + 1}: {name}: {figures}", file=sys.stderr)
            except (Failed, OSError) as error:
                results[name].append(None)
                print(f"round {number + 1}: {name} failed: {error}", file=sys.stderr)
    return results


def line(*cells):
    """One line of a table. Each says when and on what processor it was measured, so that it can be copied alone."""
    print(f"| {' | '.join(map(str, cells))} | {measure.brief(hidden())} |")


def head(*cells):
    print(f"\n| {' | '.join(cells)} | measured |\n|{'---|' * (len(cells) + 1)}")


def hidden():
    return HIDDEN.get("WITHOUT", "")


def hide(names):
    """Hides instruction sets from the programs that are measured, as if the processor lacked them (without.c)."""
    library = ROOT / "target/bench/without.so"
    library.parent.mkdir(parents=True, exist_ok=True)
    source = ROOT / "benches/without.c"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    HIDDEN.update(os.environ, LD_PRELOAD=str(library), WITHOUT=names)
    if "avx512" in names:
        # glibc has chosen its copies before a preloaded library runs.
        sets = ("F", "VL", "BW", "DQ", "CD")
        HIDDEN["GLIBC_TUNABLES"] = "glibc.cpu.hwcaps=" + ",".join(f"-AVX512{it}" for it in sets)
    # What a program sees with it: a set that it still finds would make every figure a wrong one.
    check = library.with_name("without-check")
    subprocess.run(["cc", "-x", "c", "-o", str(check), "-"], input=CHECK, text=True, check=True)
    seen = launch(str(check))
    if not seen.wait(LIMIT_SECS) or set(seen.text().split()) & set(names.split(",")):
        raise SystemExit(f"{library} hides nothing from a program, which sees {seen.text().strip() or 'nothing'}")


def spread(values, form):
    return " / ".join(form % value for value in (min(values), statistics.median(values), max(values)))


def table(results, cost, unit, last, last_unit):
    head("peer", f"CPU-s per {unit}, both ends", "tx", "rx", last_unit, "ours : peer, CPU")
    ours = next((found for name, found in results.items() if name.startswith(OURS)), [])
    for name, found in results.items():
        good = [figures for figures in found if figures]
        if not good:
            line(name, "failed", "", "", "", "")
            continue
        median = {key: statistics.median(figures[key] for figures in good) for key in ("tx", "rx")}
        ratios = [mine[cost] / its[cost] for mine, its in zip(ours, found) if mine and its]
        ratio = "%.2f" % statistics.median(ratios) if ratios else ""
        two = [f"{median[key]:.3g}" for key in ("tx", "rx")]
        line(name, spread([f[cost] for f in good], "%.3g"), *two, spread([f[last] for f in good], "%.3g"), ratio)


def relay_table(results):
    """Each beside the first, which is ours, in the same rounds."""
    head("relay", "CPU-s per GB", "came out, share", "Mbit/s", "ours : peer, CPU")
    ours = next(iter(results.values()), [])
    for name, found in results.items():
        good = [figures for figures in found if figures]
        if not good:
            line(name, "failed", "", "", "")
            continue
        ratios = [mine["cpu_per_gb"] / its["cpu_per_gb"] for mine, its in zip(ours, found) if mine and its]
        ratio = spread(ratios, "%.2f") if ratios and found is not ours else ""
        costs, shares, rates = ([figures[key] for figures in good] for key in ("cpu_per_gb", "share", "mbit_per_s"))
        line(name, spread(costs, "%.3g"), spread(shares, "%.3g"), f"{statistics.median(rates):.0f}", ratio)


def live_table(results):
    """Each of ours beside SRT in the same rounds: both ends, and each alone."""
    head("live", "CPU-s per 30 s, both ends", "tx", "rx", "delivered, share", "ours : SRT", "tx alone", "rx alone")
    srt = next((found for name, found in results.items() if name.startswith("srt")), [])
    for name, found in results.items():
        good = [figures for figures in found if figures]
        if not good:
            line(name, *["failed"] * 7)
            continue
        two = [f"{statistics.median(figures[key] for figures in good):.3g}" for key in ("tx", "rx")]
        pairs = [pair for pair in zip(found, srt) if all(pair) and name.startswith(OURS)]
        ratios = [
            "%.2f" % statistics.median(mine[key] / its[key] for mine, its in pairs) if pairs else ""
            for key in ("cpu_per_30s", "tx", "rx")]
        costs, share = ([figures[key] for figures in good] for key in ("cpu_per_30s", "delivered"))
        line(name, spread(costs, "%.3g"), *two, spread(share, "%.3g"), *ratios)


def build(package, manifest=None, example=None):
    """Builds in release mode; the folder of the programs."""
    if NO_BUILD:
        return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / ("examples" if example else "")
    args = ["--manifest-path", str(manifest)] if manifest else []
    args += ["--example", example] if example else []
    if "CARGO_TARGET_DIR" not in os.environ:
        args += ["--target-dir", str(ROOT / "target")]
    messages = subprocess.run(
        ["cargo", "build", "--release", "--locked", "--message-format=json-render-diagnostics", "-p", package, *args],
        cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    programs = [json.loads(line).get("executable") for line in messages.splitlines()]
    return Path(next(program for program in programs if program)).parent


def live_file(mbit):
    """MPEG-TS at a constant rate, so that pacing by bytes is pacing by time."""
    file = ROOT / f"target/bench/live-{mbit}mbit-{LIVE[mbit]}s.ts"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(".part")
        rate, size = f"{mbit * 850:.0f}k", "1280x720" if mbit > 5 else "480x270"
        video = ["-c:v", "libx264", "-preset", "ultrafast", "-b:v", rate, "-maxrate", rate, "-bufsize", f"{mbit * 200:.0f}k", "-g", "50"]
        subprocess.run(
            ["ffmpeg", "-y", "-nostdin", "-v", "error", "-f", "lavfi", "-i", f"testsrc2=size={size}:rate=25,noise=alls=20:allf=t",
             "-f", "lavfi", "-i", "sine=frequency=330:sample_rate=48000", "-t", str(LIVE[mbit]), "-pix_fmt", "yuv420p", *video,
             "-c:a", "aac", "-b:a", "128k", "-f", "mpegts", "-muxrate", f"{mbit * 1000:.0f}k", str(part)], check=True)
        part.rename(file)
    return file


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=["bulk", "live", "paced", "border", "relay", "fec", "redundancy", "before", "all"], default="all")
    parser.add_argument("--before", metavar="PROGRAM", help="an older build of braidcast, for `before`")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", help="these peers, by name, with commas between")
    parser.add_argument("--slice", metavar="TIME", help="live: ours in slices of this time, for example 10ms")
    parser.add_argument("--nopin", action="store_true")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--no-build", action="store_true", help="take the programs that are in target/release")
    parser.add_argument("--without", metavar="SETS", help="as on a processor without these: avx512,gfni,vaes or some of them")
    args = parser.parse_args()
    if (args.what == "before") != (args.before is not None):
        parser.error("`before` needs --before PROGRAM, an older build of braidcast; no other table takes it")

    if strange := set((args.without or "avx512").split(",")) - {"avx512", "gfni", "vaes"}:
        parser.error(f"--without knows avx512, gfni and vaes, not {', '.join(strange)}")
    if args.without and (os.uname().sysname, os.uname().machine) != ("Linux", "x86_64"):
        parser.error("--without needs Linux on x86-64")
    if args.without:
        hide(args.without)
    global NO_BUILD
    NO_BUILD = args.no_build

    chosen = lambda peers: {name: peer for name, peer in peers.items() if not args.only or name in args.only.split(",")}
    pins = (None, None) if args.nopin or os.cpu_count() < 2 else (0, 1)
    # In memory, so that the disk is not measured.
    tmp = Path(tempfile.mkdtemp(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
    everything = {}
    try:
        bin_dir = build("bench-peers", ROOT / "benches/peers/Cargo.toml")
        if args.what in ("fec", "all"):
            speed = build("braidcast-fec", example="fec_speed") / "fec_speed"
            everything["fec"] = rounds(chosen(fec_peers(bin_dir, speed)), args.runs, run_fec)
            print("\n## Erasure codes, one core")
            fec_table(everything["fec"])
        if args.what != "fec":
            ours = build("braidcast-cli") / "braidcast"
        if args.what in ("bulk", "all"):
            everything["bulk"] = rounds(chosen(bulk_peers(bin_dir, ours, tmp)), args.runs, lambda peer: run_bulk(peer, pins))
            print("\n## Bulk, one path, loopback")
            table(everything["bulk"], "cpu_per_gb", "GB", "gbit_per_s", "Gbit/s")
        if args.what in ("redundancy", "all"):
            peers = chosen(redundancy_peers(ours))
            everything["redundancy"] = rounds(peers, args.runs, lambda peer: run_bulk(peer, pins))
            print("\n## Redundancy, bulk at 1 Gbit/s, one path, loopback")
            redundancy_table(everything["redundancy"])
        for streams, mbit, burst in STREAMS if args.what in ("relay", "all") else []:
            key = f"relay, {streams} streams of {mbit} Mbit/s, {burst} packets at a time"
            everything[key] = rounds(chosen(relay_peers(ours)), args.runs, lambda peer: run_relay(peer, bin_dir, pins, streams, mbit, burst))
            print(f"\n## Relay, {streams} streams of {mbit} Mbit/s, {burst} packets at a time, loopback")
            relay_table(everything[key])
        if args.what == "before":
            bulk, live = before_peers(str(ours), args.before)
            mbit = next(iter(LIVE))
            file = live_file(mbit)
            print("\n## Before and now, neither encrypts")
            found = rounds(bulk, args.runs, lambda peer: run_bulk(peer, pins))
            before_table(found, "cpu_per_gb", "GB")
            found_live = rounds(live, args.runs, lambda peer: run_live(peer, bin_dir, file, mbit))
            before_table(found_live, "cpu_per_30s", "30 s")
            everything["before"] = {f"{row}, {name}": runs for (row, name), runs in {**found, **found_live}.items()}
        if args.what in ("paced", "all"):
            everything["paced"] = rounds(chosen(paced_peers(ours)), args.runs, lambda peer: run_bulk(peer, pins))
            print("\n## What a rate costs, bulk, one path, loopback")
            paced_table(everything["paced"])
        if args.what in ("border", "all"):
            for mbit in BORDER:
                key = f"SRT, {mbit} Mbit/s"
                everything[key] = rounds(chosen(border_peers(bin_dir, ours, mbit)), args.runs, lambda peer: run_border(peer, pins))
                print(f"\n## {key}, into a receiver that writes to /dev/null, loopback")
                border_table(everything[key])
            examples = build("braidcast-gateway", example="phone")
            everything["SRTLA"] = rounds(chosen(phones_peers(examples, ours, tmp)), args.runs, lambda peer: run_border(peer, pins))
            print("\n## SRTLA, many senders over two links each, into files in memory")
            border_table(everything["SRTLA"])
        for mbit in LIVE if args.what in ("live", "all") else []:
            file = live_file(mbit)
            key = f"live, {mbit} Mbit/s"
            everything[key] = rounds(chosen(live_peers(ours, args.slice)), args.runs, lambda peer: run_live(peer, bin_dir, file, mbit))
            print(f"\n## Live, {mbit} Mbit/s, loopback")
            live_table(everything[key])
    finally:
        shutil.rmtree(tmp)
    print(f"\n{measure.here(hidden())}")
    if args.json:
        args.json.write_text(json.dumps({"measured": measure.here(hidden()), **everything}, indent=1))


if __name__ == "__main__":
    main()
