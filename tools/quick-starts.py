#!/usr/bin/env python3
"""Follows the quick starts of docs/start word by word in a clean Debian 12 that has no compiler, only the
packages they ask for.

    tools/quick-starts.py [--deb FILE] [--wheel FILE] [--only stream,relay,many,tunnel,lab,python]

The commands are read from the pages; a block that is neither run nor listed below is an error. Field and
home are network namespaces with three links between them (wlan0 and wwan0 5 and 3 Mbit/s, wwan1 2 Mbit/s).
There is no camera: the root has an `ffmpeg` that puts a test pattern in the place of /dev/video0 and hands
on all else. Needs root and debootstrap (or an unpacked root in BRAIDCAST_ROOT, which is changed), some 1.5
GB, and ten minutes. docs/start/library.md and c.md need compilers: the examples they show are run by `make
test` and `make c-test`.
"""

import argparse
import glob
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", HERE / "target")).resolve()
ROOT = pathlib.Path(os.environ.get("BRAIDCAST_ROOT", BUILD / "dist" / "quick-starts")).resolve()
LOGS = BUILD / "dist" / "quick-starts-logs"
# What the pages show without asking for it to be typed.
SHOWN = {
    ("stream", "3. In the field: send", 1): "what the sender prints",
    ("relay", "Who may use the relay", 1): "a line of a list; the test puts the fingerprint there",
    ("many", "Who may send and who may watch", 1): "lines of a list; the test puts the fingerprints there",
    ("many", "As a service", 0): "settings of a unit, and there is no systemd",
    ("many", "As a service", 1): "the same",
    ("many", "As a service", 2): "there are no containers in the root",
}
CAMERA = """#!/bin/sh
# There is no camera and no microphone here: a test video and a tone take their place.
for argument; do
    shift
    case $argument in
    v4l2 | alsa) argument=lavfi ;;
    /dev/video0) argument=testsrc2=size=640x360:rate=25,realtime ;;
    default) argument=sine=frequency=440:sample_rate=48000,arealtime ;;
    esac
    set -- "$@" "$argument"
done
exec /usr/bin/ffmpeg "$@"
"""
# Answers each datagram; or sends 150, 50 a second, and says how many were answered.
ECHO = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("127.0.0.1", int(sys.argv[1])))
while True:
    data, who = s.recvfrom(2048)
    s.sendto(data, who)
"""
ASK = """
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(("127.0.0.1", int(sys.argv[1])))
s.settimeout(0.02)
answers = set()
for n in range(200):
    if n < 150:
        s.send(b"%-60d" % n)
    end = time.monotonic() + 0.02
    while time.monotonic() < end:
        try:
            answers.add(int(s.recv(2048)))
        except (TimeoutError, ConnectionRefusedError):
            pass
print(len(answers))
"""
COUNT = """
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("127.0.0.1", 5000))
s.settimeout(1)
count, end = 0, time.monotonic() + 10
while time.monotonic() < end:
    try:
        s.recv(2048)
        count += 1
    except TimeoutError:
        pass
print(count)
"""


def say(*words):
    print("quick-starts:", *words, flush=True)


def die(what):
    sys.exit(f"quick-starts: {what}")


def check(holds, what):
    if not holds:
        die(f"FAILED: {what}; the output of each command is in {LOGS}")
    say("ok:", what)


def run(*command, **more):
    return subprocess.run([str(word) for word in command], check=True, **more)


class Page:
    """The fenced blocks of a page, by heading and number."""

    def __init__(self, name, folder="docs/start"):
        self.name, self.blocks, self.used = name, {}, set()
        text = (HERE / folder / f"{name}.md").read_text()
        heading = ""
        for part in re.finditer(r"^## ([^\n]+)$|^```(\w*)\n(.*?)^```$", text, re.M | re.S):
            if part[1]:
                heading = part[1]
            else:
                number = sum(1 for known in self.blocks if known[0] == heading)
                self.blocks[heading, number] = part[3]

    def __call__(self, heading, number=0):
        if (heading, number) not in self.blocks:
            die(f"{self.name}.md has no block {number} under '{heading}'")
        self.used.add((heading, number))
        return self.blocks[heading, number]

    def prompts(self, heading):
        """The commands of a block with prompts: {'here': ..., 'there': ...}."""
        return dict(re.findall(r"^(here|there)\$ +(.+)$", self(heading), re.M))

    def all_used(self):
        missing = [key for key in self.blocks if key not in self.used and (self.name, *key) not in SHOWN]
        if missing:
            die(f"{self.name}.md has blocks that are not followed: {missing}")


class Running:
    """A command that was started in the root; `text()` is what it printed."""

    def __init__(self, place, command):
        self.log = LOGS / f"{len(started) + 1:02}-{place}.log"
        self.log.write_text(f"$ {command}\n")
        home = f"/{place}"
        (ROOT / place).mkdir(exist_ok=True)
        environment = ["PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", f"HOME={home}", "LANG=C.UTF-8", "TERM=dumb",
                       "SDL_VIDEODRIVER=dummy", "SDL_AUDIODRIVER=dummy", "MPLBACKEND=agg"]
        inside = ["ip", "netns", "exec", place, "chroot", str(ROOT), "/usr/bin/env", "-i", *environment, "sh", "-c",
                  f"cd {home}\n{command}"]
        with open(self.log, "a") as log:
            self.process = subprocess.Popen(inside, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        started.append(self)

    def text(self):
        return self.log.read_text(errors="replace").replace("\r", "\n")

    def wait(self, seconds):
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            die(f"still runs after {seconds} s; see {self.log}")

    def stop(self, how=signal.SIGINT, seconds=15):
        """As Ctrl-C in a terminal, which reaches all of a pipeline; what goes on after that is ended."""
        try:
            os.killpg(self.process.pid, how)
        except ProcessLookupError:
            pass
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.alive():
            time.sleep(0.1)
        self.end()

    def alive(self):
        self.process.poll()
        try:
            os.killpg(self.process.pid, 0)
            return True
        except ProcessLookupError:
            return False

    def end(self):
        if self.alive():
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


started = []


def do(place, command, seconds=120):
    """Runs a command to its end; it must succeed."""
    running = Running(place, command)
    code = running.wait(seconds)
    check(code == 0, f"{place}$ {' '.join(command.split())[:110]}")
    return running.text()


def plain(place, program, *arguments):
    """A program of this test in a namespace, outside of the root: an application of the tunnel."""
    return subprocess.Popen(["ip", "netns", "exec", place, sys.executable, "-c", program, *map(str, arguments)],
                            stdout=subprocess.PIPE, text=True)


def wait_for(running, word, seconds=20):
    end = time.monotonic() + seconds
    while word not in running.text():
        if time.monotonic() > end or running.process.poll() is not None:
            die(f"FAILED: no '{word}' in {running.log} within {seconds} s")
        time.sleep(0.1)


def networks():
    """field and home, and three links through `net` between them."""
    os.makedirs("/run/netns", exist_ok=True)
    run("mount", "-t", "tmpfs", "tmpfs", "/run/netns")
    for place in ("home", "net", "field"):
        run("ip", "netns", "add", place)
        run("ip", "-n", place, "link", "set", "lo", "up")
    run("ip", "netns", "exec", "net", "sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward", stdout=subprocess.DEVNULL)
    # Rates that the field sends at; home receives and answers at 20 Mbit/s.
    links = [("home", "eth0", "10.9.0", 20), ("field", "wlan0", "10.1.0", 5), ("field", "wwan0", "10.2.0", 3), ("field", "wwan1", "10.3.0", 2)]
    for metric, (place, name, net, mbit) in enumerate(links, 1):
        run("ip", "link", "add", name, "netns", place, "type", "veth", "peer", "name", f"to-{name}", "netns", "net")
        run("ip", "-n", place, "address", "add", f"{net}.2/24", "dev", name)
        run("ip", "-n", "net", "address", "add", f"{net}.1/24", "dev", f"to-{name}")
        run("ip", "-n", place, "link", "set", name, "up")
        run("ip", "-n", "net", "link", "set", f"to-{name}", "up")
        run("ip", "-n", place, "route", "add", "default", "via", f"{net}.1", "dev", name, "metric", metric)
        run("tc", "-n", place, "qdisc", "add", "dev", name, "root", "tbf", "rate", f"{mbit}mbit", "burst", "5kb", "latency", "200ms")


def prepare(deb):
    if not (ROOT / "etc/debian_version").exists():
        say("making a Debian 12 in", ROOT)
        run("debootstrap", "--variant=minbase", "--include=ffmpeg,python3-venv", "bookworm", ROOT, stdout=subprocess.DEVNULL)
    # What an earlier run left.
    for place in ("home", "field"):
        shutil.rmtree(ROOT / place, ignore_errors=True)
        (ROOT / place).mkdir()
    shutil.rmtree(LOGS, ignore_errors=True)
    LOGS.mkdir(parents=True)
    camera = ROOT / "usr/local/bin/ffmpeg"
    camera.write_text(CAMERA)
    camera.chmod(0o755)
    (ROOT / "etc/hosts").write_text("127.0.0.1 localhost\n10.9.0.2 home.example there.example relay.example hub.example\n")
    run("mount", "-t", "proc", "proc", ROOT / "proc")
    networks()
    shutil.copy(deb, ROOT / "home")
    page = Page("install", "docs")
    install = page("As a Debian package").replace("sudo ", "").replace("apt install", "apt install -y")
    do("home", "command -v cc gcc clang && exit 1; command -v ffmpeg ffplay")
    do("home", install)
    do("home", "braidcast --version && man -w braidcast-send 2>/dev/null || test -e /usr/share/man/man1/braidcast-send.1.gz")
    do("home", "ffmpeg -loglevel error -f lavfi -i testsrc2=size=640x360:rate=25 -f lavfi -i sine -t 12 -c:v libx264 -preset veryfast -tune zerolatency "
               "-b:v 1500k -g 50 -c:a aac -f mpegts clip.ts")


def played(running):
    """Seconds on the clock of the last line that ffplay wrote."""
    clocks = re.findall(r"^ *(\d+\.\d+) +(?:A-V|M-V|M-A)", running.text(), re.M)
    return float(clocks[-1]) - float(clocks[0]) if clocks else 0.0


def shares(text):
    """What the last summary says of each kind of frame: on time, in per cent."""
    rows = re.findall(r"^(audio|I frame|P frame|B frame|I|P|B|video|tables)\S* +\d+ .* ([\d.]+) %$", text, re.M)
    return {kind: float(share) for kind, share in rows}


def stream():
    page = Page("stream")
    do("home", page("1. Make a key"))
    shutil.copy2(ROOT / "home/stream.key", ROOT / "field/stream.key")

    viewer = Running("home", page("2. At home: receive"))
    camera = Running("field", page("3. In the field: send"))
    time.sleep(25)
    camera.stop()
    viewer.stop()
    say("sender:\n    " + "\n    ".join(camera.text().splitlines()[-12:]))
    for path in ("wwan0", "wwan1"):
        check(re.search(rf"^{path} +active .* [\d.]+ [kM]B$", camera.text(), re.M), f"{path} carried data")
    timely = shares(camera.text())
    check(timely and min(timely.values()) > 90, f"frames were on time: {timely}")
    check(played(viewer) > 12, f"ffplay played {played(viewer):.1f} s")

    recorder = Running("home", page("5. Keep it running"))
    screen = plain("home", COUNT)
    first = Running("field", page("3. In the field: send"))
    time.sleep(8)
    first.stop(signal.SIGKILL)
    second = Running("field", page("3. In the field: send"))
    time.sleep(10)
    second.stop()
    recorder.stop()
    check(int(screen.communicate(timeout=30)[0]) > 300, "udp://127.0.0.1:5000 was played to")
    files = sorted((ROOT / "home").glob("show-*-*.ts"))
    seconds = sum(float(do("home", f"ffprobe -v error -show_entries format=duration -of csv=p=0 {file.name}").splitlines()[-1]) for file in files)
    check(seconds > 12, f"{len(files)} recordings with {seconds:.1f} s, though the sender was killed and started again")

    both = Running("home", page("Try it on one machine first"))
    wait_for(both, "captured", 60)
    time.sleep(3)
    both.stop(signal.SIGTERM)
    here, there = ((ROOT / "home" / name).stat().st_size for name in ("clip.ts", "out.ts"))
    check(there > 0.9 * here, f"out.ts has {there} of {here} bytes")
    page.all_used()


def seconds_of(place, file):
    return float(do(place, f"ffprobe -v error -show_entries format=duration -of csv=p=0 {file}").splitlines()[-1])


def fed(command):
    """A command that sends `camera.ts`: the clip at its own speed, as a camera makes it."""
    return "ffmpeg -loglevel error -re -i clip.ts -c copy -f mpegts - | " + command.replace("camera.ts", "-")


def relay():
    page = Page("relay")
    shutil.copy2(ROOT / "home/clip.ts", ROOT / "field/clip.ts")
    rented = Running("home", page("1. On the rented machine: relay"))
    time.sleep(1)

    def ticket_of(server):
        wait_for(server, "braid:")
        ticket = re.search(r"braid:\S+", server.text())[0]
        (ROOT / "field/ticket.txt").write_text(ticket + "\n")

    def through(receive, file):
        receiver = Running("home", receive)
        ticket_of(receiver)
        do("field", fed(page("3. In the field: send")), 60)
        receiver.stop()
        (got,) = (ROOT / "home").glob(file)
        check(seconds_of("home", got.name) > 10, f"{got.name} came through the relay")

    through(page("2. At home: receive"), "show.ts")
    make, last = page("A ticket that lasts").splitlines()
    do("home", make)
    through(last, "show-2*.ts")
    [path.unlink() for path in (ROOT / "home").glob("show*")]
    server = Running("home", page("Measure first"))
    ticket_of(server)
    do("field", page("Measure first", 1))
    check(server.wait(20) == 0, "perf server measured by the relay")
    rented.stop()
    fingerprint = do("home", page("Who may use the relay")).split()[-1]
    rights = page("Who may use the relay", 1).split("… ")[-1]
    (ROOT / "home/receivers.txt").write_text(f"{fingerprint} {rights}")
    rented = Running("home", page("Who may use the relay", 2))
    time.sleep(1)
    through(page("2. At home: receive").replace("show.ts", "show.ts --relay-key relay.key"), "show.ts")
    rented.stop()
    (ROOT / "home/show.ts").unlink()
    page.all_used()


def many():
    page = Page("many")
    shutil.copy2(ROOT / "home/clip.ts", ROOT / "field/clip.ts")
    do("home", page("1. Make a key"))
    shutil.copy2(ROOT / "home/stream.key", ROOT / "field/stream.key")
    send = fed(page("3. In the field: send"))
    receive = page("4. Anywhere: receive")

    def serve(hub, send, *receivers):
        """A hub, receivers in both places, and a camera; each receiver has the stream to its end."""
        hub = Running("home", hub)
        wait_for(hub, "serving at")
        all = [Running(place, command) for place, command in receivers]
        time.sleep(2)
        do("field", send, 60)
        time.sleep(2)
        for (place, command), receiver in zip(receivers, all):
            receiver.stop()
            file = re.search(r"\w+\.ts", command)[0]
            check(seconds_of(place, file) > 10, f"{place}: {file} came by the hub")
            (ROOT / place / file).unlink()
        hub.stop()

    serve(page("2. On the rented machine: the hub"), send, ("home", receive), ("field", receive), ("field", receive.replace("show", "second")))
    named = receive.replace("show.ts", "show.ts --name cam1")
    serve(page("Several cameras"), send.replace("send -", "send - --name cam1"), ("field", named))
    (ROOT / "home/cam1.ts").unlink()
    keys = {}
    for place in ("home", "field"):
        keys[place] = do(place, page("Who may send and who may watch")).split()[-1]
    names = re.findall(r"… (\w+.*)$", page("Who may send and who may watch", 1), re.M)
    (ROOT / "home/receivers.txt").write_text(f"{keys['field']} {names[0]}\n")
    (ROOT / "home/cameras.txt").write_text(f"{keys['field']} cam1\n")
    own = f"--identity own.key --peer-key {keys['home']}"
    by_key = lambda command: command.replace("--key-file stream.key", own)
    serve(page("Who may send and who may watch", 2), by_key(send), ("field", by_key(receive)))
    page.all_used()


def tunnel_of(page, heading, port):
    commands = page.prompts(heading)
    server = Running("home", commands["there"])
    time.sleep(0.5)
    client = Running("field", commands["here"])
    wait_for(client, "connected")
    echoes = [plain("home", ECHO, port)]
    time.sleep(0.5)
    answers = int(plain("field", ASK, port).communicate(timeout=30)[0])
    [echo.kill() for echo in echoes]
    client.stop()
    server.stop()
    check(answers >= 145, f"{heading}: {answers} of 150 datagrams to port {port} were answered")


def tunnel():
    page = Page("tunnel")
    if not (ROOT / "home/stream.key").exists():
        do("home", "braidcast key new >stream.key && chmod 600 stream.key")
        shutil.copy2(ROOT / "home/stream.key", ROOT / "field/stream.key")
    tunnel_of(page, "A call over a satellite", 4569)
    tunnel_of(page, "Audio before video, nothing too late", 5006)
    tunnel_of(page, "Over several networks, encrypted", 51820)
    both = Running("home", page("On one machine"))
    time.sleep(16)
    both.stop(signal.SIGTERM)
    check(played(both) > 5, f"ffplay played {played(both):.1f} s of RTP through the tunnel")
    page.all_used()


def lab():
    page = Page("lab")
    do("home", page("1. Run an experiment that is there"), 900)
    links = page("2. Describe your own links")
    (ROOT / "home/my-links.toml").write_text(links)
    do("home", page("2. Describe your own links", 1), 900)
    check((ROOT / "home/lab-report.html").stat().st_size > 50_000, "lab-report.html is there")
    do("home", page("2. Describe your own links", 2), 300)
    check((ROOT / "home/lab-results/my-links.main.html").exists(), "a page shows the inside of one run")
    sweep, line = page("3. Vary something"), page("3. Vary something", 1)
    phone = "[link.phone]\n"
    check(phone in links, "my-links.toml has [link.phone]")
    (ROOT / "home/my-links.toml").write_text(links.replace(phone, phone + line) + sweep)
    swept = do("home", "braidcast lab run my-links.toml --runs 1 --duration 5s", 300)
    check(all(re.search(f"^{value}% ", swept, re.M) for value in (0, 2, 5)), "each value of the sweep has its rows")
    page.all_used()


def python(wheel):
    page = Page("python")
    (ROOT / "home/wheels").mkdir(exist_ok=True)
    shutil.copy(wheel, ROOT / "home/wheels")
    shutil.copy("/etc/resolv.conf", ROOT / "etc/resolv.conf")
    # Of the first block only the last line: there is no compiler here, and the wheel is built.
    install = page("1. Build and install it").splitlines()[-1]
    # pip reaches its index from outside of the namespaces.
    inside = ["chroot", str(ROOT), "/usr/bin/env", *(f"{key}={os.environ[key]}" for key in ("PIP_CERT", "PIP_INDEX_URL", "https_proxy") if key in os.environ)]
    for ca in (os.environ.get("PIP_CERT"), "/etc/pip.conf"):
        if ca and pathlib.Path(ca).exists():
            (ROOT / ca[1:]).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ca, ROOT / ca[1:])
    run(*inside, "sh", "-c", f"cd /home && python3 -m venv clean && . clean/bin/activate && {install} --quiet")
    (ROOT / "home/message.py").write_text(page("2. Send messages"))
    check("answer: message 9" in do("home", "clean/bin/python message.py"), "messages go over two paths")
    (ROOT / "home/plot.py").write_text(page("3. Run a scenario") + "import matplotlib.pyplot\nmatplotlib.pyplot.savefig('plot.png')\nprint(goodput)\n")
    say(do("home", "clean/bin/python plot.py", 300))
    check((ROOT / "home/plot.png").stat().st_size > 5000, "plot.png is there")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--deb", help="the package; by default the newest of target/dist")
    parser.add_argument("--wheel", help="the Python package; by default that of `make python-test`")
    parser.add_argument("--only", default="stream,relay,many,tunnel,lab,python", help="which pages")
    args = parser.parse_args()
    if os.geteuid() != 0:
        die("needs root, for namespaces and the clean system")
    if os.environ.get("BRAIDCAST_UNSHARED") != "1":
        # Mounts of its own, which are gone with it.
        os.execvpe("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable, *sys.argv], {**os.environ, "BRAIDCAST_UNSHARED": "1"})
    newest = lambda pattern: max(glob.glob(str(BUILD / pattern)), key=os.path.getmtime, default=None)
    deb = args.deb or newest(f"dist/braidcast_*_{subprocess.check_output(['dpkg', '--print-architecture'], text=True).strip()}.deb")
    if not deb:
        die("there is no package: make dist")
    pages = args.only.split(",")
    wheel = args.wheel or newest("python/wheels/braidcast-*.whl")
    if "python" in pages and not wheel:
        die("there is no wheel: make python-test; or name other pages with --only")
    try:
        prepare(deb)
        for name, follow in [("stream", stream), ("relay", relay), ("many", many), ("tunnel", tunnel), ("lab", lab), ("python", lambda: python(wheel))]:
            if name in pages:
                say(f"docs/start/{name}.md")
                follow()
        say("each page works")
    finally:
        for running in started:
            running.end()


if __name__ == "__main__":
    main()
