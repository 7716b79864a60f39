#!/usr/bin/env python3
"""Tries each neighbour that is installed, in each direction, and writes the table of docs/features.md.

  tools/neighbours.py run [--only WORD] [--tried plain,loss] [--soak SECONDS] [--jobs N]
  tools/neighbours.py write        puts the results into docs/features.md
  tools/neighbours.py list         names all cases
  tools/neighbours.py obs PORT URL KEY     has OBS stream there, by its WebSocket

A case is a program of others that sends to `braidcast receive`, or fetches what it hands on, by itself (plain), with a
secret (encrypted), killed and started again half of the time through (reconnect), over a network that loses 2 % in
each direction and takes 20 ms (loss), and for a minute (soak). It passes if the frames that were played come out, less
two seconds at each beginning. Results are kept in target/neighbours, so that `run` can be done in parts.
"""
import argparse
import concurrent.futures
import importlib
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from datetime import date
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "target/neighbours/results.json"
PAGE = ROOT / "docs/features.md"
BEGIN, END = "<!-- neighbours: tools/neighbours.py write -->", "<!-- /neighbours -->"
TRIED = {"plain": "plain", "encrypted": "encrypted", "reconnect": "reconnect", "loss": "loss of 2 %", "soak": "60 s"}
FPS = 25
# Seconds of the shorter cases.
SHORT = 10
# Frames that may be missing at each beginning: what is sent before both ends know of each other, and up to the first
# frame that needs no other.
LEAD = 2 * FPS
SECRET = "correct horse battery"


class Neighbour(NamedTuple):
    """A program, and how it is called. Words in braces: `at` is host and port, `port` the port, `clip`, `hevc` the clip
    with H.265, `out`, `braidcast`, and `fed` a port of its own."""

    name: str
    version: str
    protocol: str
    inward: bool
    command: str
    # What Braidcast is told: LISTEN or OUTPUT.
    ours: str
    # What is added to each for a secret; without it there is none.
    secret: tuple = ()
    lossy: bool = True
    # Ports that it takes, of which the first is even.
    ports: int = 1
    # It makes its own frames once it has started, which takes a while.
    films: bool = False


FFMPEG = "ffmpeg -nostdin -v error -re -i {clip} -c copy -f mpegts"
FED = FFMPEG + " udp://127.0.0.1:{fed}?pkt_size=1316"
GST_IN = "gst-launch-1.0 -q filesrc location={clip} ! tsparse set-timestamps=true ! identity sync=true !"
SRT_OPEN, RIST_OPEN = "srt://:{port}?latency=300{secret}", "rist://:{port}?buffer=500{secret}"
RIST_MAIN = RIST_OPEN.replace("{secret}", "&profile=main{secret}")
# VLC refuses to run as root. What it sends by SRT is nothing, to srt-live-transmit too.
AS_NOBODY = "setpriv --reuid 65534 --regid 65534 --clear-groups"
VLC = f"env HOME=$PWD {AS_NOBODY} cvlc -I dummy"
VLC_SECRET = ("&passphrase=" + SECRET.replace(" ", "%20"), f" --passphrase '{SECRET}' --key-length 16")
# OBS on a display that nobody sees, told by its WebSocket to stream to a server of the user's own.
OBS = ("mkdir -p run .config/obs-studio/basic/profiles/R .config/obs-studio/basic/scenes && cd .config/obs-studio && "
       "printf '[General]\\nFirstRun=true\\nEnableAutoUpdates=false\\nInfoIncrement=999\\n[Basic]\\nProfile=R\\nProfileDir=R\\n"
       "SceneCollection=R\\nSceneCollectionFile=R\\n[BasicWindow]\\nPreviewEnabled=false\\n[OBSWebSocket]\\nFirstLoad=false\\nServerEnabled=true\\n"
       "ServerPort={fed}\\nAuthRequired=true\\nServerPassword=secret\\n' >global.ini && "
       "printf '[General]\\nName=R\\n[Video]\\nBaseCX=640\\nBaseCY=360\\nOutputCX=640\\nOutputCY=360\\nFPSCommon=25 PAL\\n[Output]\\nMode=Simple\\n"
       "[SimpleOutput]\\nVBitrate=2000\\nStreamEncoder=x264\\nPreset=ultrafast\\n' >basic/profiles/R/basic.ini; cd - >/dev/null; rm -f display; "
       "(exec Xvfb -displayfd 3 -noreset -screen 0 1024x768x24 3>display) & until [ -s display ]; do sleep 0.1; done; "
       "HOME=$PWD DISPLAY=:$(cat display) XDG_RUNTIME_DIR=$PWD/run QT_QPA_PLATFORM=xcb LIBGL_ALWAYS_SOFTWARE=1 obs --multi --disable-updater & "
       f"until {sys.executable} {Path(__file__).resolve()} obs {{fed}} 'URL' 'KEY'; do sleep 1; done; wait")
OBS_SRT = OBS.replace("URL", "srt://{at}?latency=300000{secret}").replace("KEY", "")
OBS_RTMP = OBS.replace("URL", "rtmp://{at}/live").replace("KEY", "key")
NEIGHBOURS = [
    Neighbour("ffmpeg", "ffmpeg -version", "SRT", True, FFMPEG + " 'srt://{at}?latency=300000{secret}'", SRT_OPEN,
              ("&passphrase=" + SECRET.replace(" ", "%20"), f"&passphrase={SECRET}&pbkeylen=32")),
    Neighbour("srt-live-transmit", "srt-live-transmit -version", "SRT", True,
              FED + " & srt-live-transmit -q -a no -chunk:1316 udp://:{fed} 'srt://{at}?latency=300{secret}'", SRT_OPEN,
              ("&passphrase=" + SECRET.replace(" ", "%20"), f"&passphrase={SECRET}")),
    Neighbour("GStreamer srtsink", "gst-launch-1.0 --version", "SRT", True,
              GST_IN + " srtsink uri='srt://{at}?latency=300' wait-for-connection=true{secret}", SRT_OPEN,
              ("&passphrase=" + SECRET.replace(" ", "%20"), f" passphrase='{SECRET}' pbkeylen=16")),
    Neighbour("OBS", "obs --version", "SRT", True, OBS_SRT, SRT_OPEN,
              ("&passphrase=" + SECRET.replace(" ", ""), f"&passphrase={SECRET.replace(' ', '')}&pbkeylen=16"), films=True),
    Neighbour("ffmpeg", "ffmpeg -version", "RIST", True, FFMPEG + " -rist_profile main -buffer_size 500{secret} rist://{at}", RIST_MAIN,
              ("&secret=" + SECRET.replace(" ", "%20"), f" -encryption 256 -secret '{SECRET}'")),
    Neighbour("ristsender, main profile", "ristsender --help", "RIST", True,
              "(sleep 1; exec " + FED + ") & ristsender -p 1 -b 500 -i udp://@127.0.0.1:{fed} -o rist://{at}{secret}", RIST_MAIN,
              ("&secret=" + SECRET.replace(" ", "%20"), f" -s '{SECRET}' -e 128")),
    Neighbour("ristsender, simple profile", "ristsender --help", "RIST", True,
              FED + " & ristsender -p 0 -b 500 -i udp://@127.0.0.1:{fed} -o rist://{at}", RIST_OPEN, ports=2),
    Neighbour("GStreamer ristsink", "gst-launch-1.0 --version", "RIST", True,
              GST_IN + " rtpmp2tpay ! ristsink address=127.0.0.1 port={port}", RIST_OPEN, ports=2),
    Neighbour("ffmpeg", "ffmpeg -version", "RTP", True, "ffmpeg -nostdin -v error -re -i {clip} -c copy -f rtp_mpegts rtp://{at}?pkt_size=1328",
              "rtp://:{port}", lossy=False, ports=2),
    Neighbour("ffmpeg", "ffmpeg -version", "RTMP", True, "ffmpeg -nostdin -v error -re -i {clip} -c copy -f flv rtmp://{at}/live/key",
              "rtmp://:{port}/live/key", lossy=False),
    Neighbour("OBS", "obs --version", "RTMP", True, OBS_RTMP, "rtmp://:{port}/live/key", lossy=False, films=True),
    # No program of Debian's publishes H.265 by RTMP, so our own output does, out of ffmpeg's MPEG-TS.
    Neighbour("our own output, H.265", "{braidcast} --version", "RTMP", True,
              "{braidcast} receive {fed} rtmp://{at}/live/key & sleep 1; exec {braidcast} send {hevc} --to 127.0.0.1:{fed}",
              "rtmp://:{port}/live/key", lossy=False),
    Neighbour("ffmpeg", "ffmpeg -version", "SRT", False, "ffmpeg -nostdin -v error -y -i 'srt://{at}?latency=300000{secret}' -c copy -flush_packets 1 -f mpegts {out}",
              "srt://127.0.0.1:{port}?mode=listener&latency=300{secret}", ("&passphrase=" + SECRET.replace(" ", "%20"), f"&passphrase={SECRET}")),
    Neighbour("srt-live-transmit", "srt-live-transmit -version", "SRT", False,
              "srt-live-transmit -q -a no -chunk:1316 'srt://{at}?latency=300{secret}' file://con >>{out}",
              "srt://127.0.0.1:{port}?mode=listener&latency=300{secret}", ("&passphrase=" + SECRET.replace(" ", "%20"), f"&passphrase={SECRET}")),
    Neighbour("GStreamer srtsrc", "gst-launch-1.0 --version", "SRT", False,
              "gst-launch-1.0 -q srtsrc uri='srt://{at}?latency=300'{secret} ! filesink append=true location={out}",
              "srt://127.0.0.1:{port}?mode=listener&latency=300{secret}",
              ("&passphrase=" + SECRET.replace(" ", "%20"), f" passphrase='{SECRET}' pbkeylen=16")),
    Neighbour("VLC", AS_NOBODY + " cvlc --version", "SRT", False, VLC + " --latency 300{secret} srt://{at} --sout '#std{{access=file,mux=ts,dst={out}}}'",
              "srt://127.0.0.1:{port}?mode=listener&latency=300{secret}", VLC_SECRET),
    Neighbour("ristreceiver, main profile", "ristsender --help", "RIST", False,
              "ffmpeg -nostdin -v error -y -analyzeduration 1000000 -i 'udp://127.0.0.1:{fed}?fifo_size=100000' -c copy -flush_packets 1 -f mpegts {out} & "
              "ristreceiver -p 1 -b 500 -i rist://@127.0.0.1:{port}{secret} -o udp://127.0.0.1:{fed}",
              "rist://{from}?buffer=500&profile=main{secret}", ("&aes-type=128&secret=" + SECRET.replace(" ", "%20"), f" -s '{SECRET}' -e 128")),
    Neighbour("ristreceiver, simple profile", "ristsender --help", "RIST", False,
              "ffmpeg -nostdin -v error -y -analyzeduration 1000000 -i 'udp://127.0.0.1:{fed}?fifo_size=100000' -c copy -flush_packets 1 -f mpegts {out} & "
              "ristreceiver -p 0 -b 500 -i rist://@127.0.0.1:{port} -o udp://127.0.0.1:{fed}", "rist://{from}?buffer=500", ports=2),
    Neighbour("GStreamer ristsrc", "gst-launch-1.0 --version", "RIST", False,
              "gst-launch-1.0 -q ristsrc address=0.0.0.0 port={port} receiver-buffer=500 ! rtpmp2tdepay ! filesink append=true location={out}",
              "rist://{from}?buffer=500", ports=2),
]


class Failed(Exception):
    """A case did not come out as it must."""


# Ports that cases of this run have had: one that is free now may be another case's in a moment.
GIVEN, GIVING = set(), threading.Lock()


def free_port(count=1):
    """Returns the first of free ports that follow each other; an even one if there are several. None comes twice."""
    while True:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1] & ~1 if count > 1 else one.getsockname()[1]
        try:
            for number in range(count):
                for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
                    with socket.socket(socket.AF_INET, kind) as one:
                        one.bind(("127.0.0.1", port + number))
            with GIVING:
                if GIVEN.isdisjoint(wanted := range(port, port + count)):
                    GIVEN.update(wanted)
                    return port
        except OSError:
            continue


class Programs:
    """What a case runs; all of it ends with the case."""

    def __init__(self, folder):
        self.folder, self.running, self.logs = folder, [], 0

    def start(self, command):
        self.logs += 1
        log = open(self.folder / f"log{self.logs}", "w+")
        program = subprocess.Popen(command, shell=isinstance(command, str), cwd=self.folder, stdin=subprocess.DEVNULL,
                                   stdout=log, stderr=log, start_new_session=True)
        self.running.append(program)
        return program

    def stop(self, program, how=signal.SIGKILL):
        try:
            os.killpg(program.pid, how)
        except ProcessLookupError:
            pass
        try:
            program.wait(8)
        except subprocess.TimeoutExpired:
            os.killpg(program.pid, signal.SIGKILL)
            program.wait()

    def text(self):
        return "\n".join((self.folder / f"log{number + 1}").read_text(errors="replace")[-600:] for number in range(self.logs))


def make_clip(folder, seconds, codec="libx264"):
    """Returns a clip with H.264, or H.265 of libx265, and AAC, with an I frame each second; made once."""
    clip = folder / f"clip{seconds}{codec.removeprefix('libx264')}.ts"
    if not clip.exists():
        part = clip.with_suffix(".part")
        subprocess.run(shlex.split(
            f"ffmpeg -nostdin -y -v error -f lavfi -i testsrc2=size=640x360:rate={FPS} -f lavfi -i sine -t {seconds} -c:v {codec} "
            f"-preset ultrafast -b:v 2M -g {FPS} -pix_fmt yuv420p -c:a aac -f mpegts {part}"), check=True)
        part.rename(clip)
    return clip


def frames(file):
    """Returns how many frames of video are in a file."""
    if not file.exists():
        return 0
    shown = subprocess.run(
        ["ffprobe", "-v", "error", "-select_streams", "v", "-count_packets", "-show_entries", "stream=nb_read_packets", "-of", "csv=p=0", str(file)],
        capture_output=True, text=True).stdout
    found = re.search(r"\d+", shown)
    return int(found[0]) if found else 0


def wait_for_more(neighbour, out):
    """Waits until one that makes its own frames has begun to."""
    size = lambda: out.stat().st_size if out.exists() else 0
    before, end = size(), time.monotonic() + 60
    while neighbour.films and size() == before and time.monotonic() < end:
        time.sleep(0.2)


def run(neighbour, tried, braidcast, seconds):
    """Runs a case; returns a word for the table."""
    folder = Path(tempfile.mkdtemp(prefix="neighbour-"))
    # Who does not run as root writes here too.
    folder.chmod(0o777)
    programs = Programs(folder)
    port, gate, own, fed = (free_port(neighbour.ports), free_port(neighbour.ports), free_port(), free_port())
    hidden, theirs = neighbour.secret if tried == "encrypted" else ("", "")
    # Who calls comes through the network: our output calls by RIST, all others call us or what we listen on.
    we_call = not neighbour.inward and neighbour.protocol == "RIST"
    listens, called = port, gate if tried == "loss" else port
    out, clip = folder / "out.ts", make_clip(ROOT / "target/neighbours", seconds)
    hevc = make_clip(ROOT / "target/neighbours", seconds, "libx265") if "{hevc}" in neighbour.command else None
    words = {"clip": clip, "hevc": hevc, "braidcast": braidcast, "out": out, "fed": fed, "port": listens if we_call else called, "at": f"127.0.0.1:{called}"}
    told = {"port": listens, "from": f"127.0.0.1:{called}", "secret": hidden}
    try:
        if tried == "loss":
            for number in range(neighbour.ports):
                programs.start([braidcast, "emulate", str(gate + number), f"127.0.0.1:{port + number}", "--delay", "20ms", "--loss", "2%", "--both"])
        ours = neighbour.ours.format(**told)
        command = neighbour.command.format(**words, secret=theirs)
        if neighbour.inward:
            receiver = programs.start([braidcast, "receive", ours, "out.ts", "--give-up", "20s"])
            time.sleep(1)
            other = programs.start(command)
            wait_for_more(neighbour, out)
            until = time.monotonic() + seconds + 4
        else:
            receiver = programs.start([braidcast, "receive", str(own), ours])
            time.sleep(1)
            other = programs.start(command)
            time.sleep(1.5)
            programs.start([braidcast, "send", str(clip), "--to", f"127.0.0.1:{own}"])
            until = time.monotonic() + seconds + 5
        begins, cut = 1, 0
        if tried == "reconnect":
            time.sleep(seconds / 2)
            programs.stop(other)
            # Who comes back sooner finds its place taken, as with a second caller.
            time.sleep(1.5)
            begins, cut = 2, seconds / 2
            other, since = programs.start(command), time.monotonic()
            wait_for_more(neighbour, out)
            until += (seconds / 2 if neighbour.inward else 0) + time.monotonic() - since
        while time.monotonic() < until:
            time.sleep(0.2)
        programs.stop(other, signal.SIGINT)
        programs.stop(receiver, signal.SIGINT)
        came = frames(out)
        # What played twice, up to where it was cut, or what was not cut off.
        played = int((seconds + (cut if neighbour.inward else 0)) * FPS)
        if tried == "reconnect" and not neighbour.inward and ">>" not in neighbour.command and "append" not in neighbour.command:
            # What came before is overwritten.
            played, begins = int((seconds - cut) * FPS), 1
        if tried == "reconnect" and not neighbour.inward:
            played -= int(1.5 * FPS)
        if came < played - begins * LEAD:
            raise Failed(f"{came} of {played} frames: {programs.text()}")
        return f"{min(came, played)} of {played}"
    finally:
        for program in programs.running:
            programs.stop(program)
        shutil.rmtree(folder, ignore_errors=True)


def version(neighbour, braidcast):
    """Returns the version that a program prints; nothing if it is not installed."""
    try:
        shown = subprocess.run(neighbour.version.format(braidcast=braidcast).split(), capture_output=True, text=True, timeout=20)
    except OSError:
        return None
    found = re.search(r"\b\d+\.\d+\.\d+\b", shown.stdout + shown.stderr)
    return found[0] if found else None


def cases(only, tried):
    """Returns each neighbour with what is tried with it."""
    for neighbour in NEIGHBOURS:
        name = key(neighbour)
        if only and only.lower() not in name.lower():
            continue
        for what in tried:
            possible = {"encrypted": bool(neighbour.secret), "loss": neighbour.lossy}.get(what, True)
            if possible:
                yield neighbour, what


def key(neighbour):
    return f"{neighbour.name}, {'in' if neighbour.inward else 'out'} by {neighbour.protocol}"


def kept():
    return json.loads(KEPT.read_text()) if KEPT.exists() else {}


def run_all(args):
    braidcast = args.braidcast or str(ROOT / "target/debug/braidcast")
    tried = args.tried.split(",") if args.tried else list(TRIED)
    wanted = list(cases(args.only, tried))
    versions = {neighbour.name: version(neighbour, braidcast) for neighbour, _ in wanted}
    clips = ROOT / "target/neighbours"
    clips.mkdir(parents=True, exist_ok=True)
    for seconds in {args.soak if what == "soak" else SHORT for _, what in wanted}:
        make_clip(clips, seconds)
    failed = 0

    def one(case):
        neighbour, what = case
        if versions[neighbour.name] is None:
            return case, "not installed", None
        try:
            return case, run(neighbour, what, braidcast, args.soak if what == "soak" else SHORT), None
        except Failed as why:
            return case, "failed", str(why)

    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for (neighbour, what), result, why in pool.map(one, wanted):
            print(f"{key(neighbour)}, {what}: {result}", flush=True)
            if why:
                failed += 1
                print(why, flush=True)
            if result == "not installed":
                continue
            results = kept()
            row = results.setdefault(key(neighbour), {"tried": {}})
            row["version"], row["date"] = versions[neighbour.name], date.today().isoformat()
            row["tried"][what] = result
            KEPT.parent.mkdir(parents=True, exist_ok=True)
            KEPT.write_text(json.dumps(results, indent=1))
    return 1 if failed else 0


def table(results):
    """Returns the lines of the table."""
    yield "| neighbour | version | direction | " + " | ".join(TRIED.values()) + " | date |"
    yield "|---" * (4 + len(TRIED)) + "|"
    for neighbour in NEIGHBOURS:
        row = results.get(key(neighbour))
        if not row:
            continue
        cells = [row["tried"].get(what, "–") for what in TRIED]
        direction = f"{'in' if neighbour.inward else 'out'} by {neighbour.protocol}"
        yield "| " + " | ".join([neighbour.name, row["version"], direction, *cells, row["date"]]) + " |"


def write(_):
    text = PAGE.read_text()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    PAGE.write_text(before + BEGIN + "\n" + "\n".join(table(kept())) + "\n" + END + after)
    return 0


def show(args):
    for neighbour, what in cases(None, list(TRIED)):
        print(f"{key(neighbour)}, {what}")
    return 0


def obs(args):
    """Has OBS stream; returns another number than 0 while it does not listen yet."""
    sys.path.insert(0, str(ROOT / "docs/examples"))
    follow = importlib.import_module("obs-follow")
    try:
        socket = follow.connect(f"127.0.0.1:{args.port}", "secret")
    except OSError:
        return 1
    settings = {"streamServiceType": "rtmp_custom", "streamServiceSettings": {"server": args.url, "key": args.key}}
    follow.request(socket, "SetStreamServiceSettings", **settings)
    return 0 if follow.request(socket, "StartStream")["requestStatus"]["result"] else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    runs = commands.add_parser("run")
    runs.add_argument("--only", help="those in whose name this word is")
    runs.add_argument("--tried", help="with commas: " + ", ".join(TRIED))
    runs.add_argument("--soak", type=int, default=60, metavar="SECONDS")
    runs.add_argument("--jobs", type=int, default=4, help="cases at a time")
    runs.add_argument("--braidcast", help="the program; otherwise that of target/debug")
    runs.set_defaults(do=run_all)
    commands.add_parser("write").set_defaults(do=write)
    commands.add_parser("list").set_defaults(do=show)
    to_obs = commands.add_parser("obs")
    to_obs.add_argument("port", type=int)
    to_obs.add_argument("url")
    to_obs.add_argument("key")
    to_obs.set_defaults(do=obs)
    args = parser.parse_args()
    sys.exit(args.do(args))


if __name__ == "__main__":
    main()
