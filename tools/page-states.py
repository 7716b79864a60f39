#!/usr/bin/env python3
"""Drives a real stream through the seven states of the page of `--web`, and takes screenshots at three widths.

    tools/page-states.py OUT [BRAIDCAST]   OUT: a folder; BRAIDCAST: the program [default: target/debug/braidcast]

Both ends run on this machine, with two networks of `braidcast emulate` between them; their figures
(`--stats`) say when a state is there. It fails if a state does not come within half a minute. Needs ffmpeg
and chromium; takes some two minutes.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

WIDTHS = (390, 820, 1400)
PATIENCE = 30
RECEIVER, WIFI, LTE, SENDER_PAGE, RECEIVER_PAGE = 46100, 46101, 46102, 46103, 46104


class Input(threading.Thread):
    """Live video with audio, unless it is paused."""

    def __init__(self, pipe):
        super().__init__(daemon=True)
        self.pipe, self.paused, self.ended = pipe, False, False

    def run(self):
        make = ["ffmpeg", "-v", "error", "-re", "-f", "lavfi", "-i", "testsrc2=s=640x360:r=25", "-f", "lavfi",
                "-i", "sine", "-c:a", "aac", "-c:v", "libx264",
                "-b:v", "1500k", "-maxrate", "1500k", "-bufsize", "500k", "-g", "50", "-f", "mpegts", "-"]
        with subprocess.Popen(make, stdout=subprocess.PIPE) as encoder:
            while not self.ended:
                data = encoder.stdout.read1(65536)
                if not self.paused:
                    self.pipe.write(data)
                    self.pipe.flush()
            encoder.kill()
        self.pipe.close()


def state(figures):
    """The state in the latest whole line of a file of figures."""
    lines = figures.read_text().splitlines() if figures.exists() else []
    for line in reversed(lines):
        try:
            streams = json.loads(line)["streams"]
        except json.JSONDecodeError:
            continue
        return streams[0]["state"] if streams else None
    return None


def shoot(out, name, port):
    for width in WIDTHS:
        with tempfile.TemporaryDirectory() as profile:
            subprocess.run(
                ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                 "--timeout=4000", f"--user-data-dir={profile}", f"--window-size={width},{1100 if width > 800 else 1600}",
                 f"--screenshot={out / f'{name}-{width}.png'}", f"http://127.0.0.1:{port}/"],
                check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def main(out, braidcast):
    out.mkdir(parents=True, exist_ok=True)
    running = []

    def start(*words, **how):
        running.append(subprocess.Popen([braidcast, *words], stderr=subprocess.DEVNULL, **how))
        return running[-1]

    def reach(wanted, who, figures, page):
        until = time.monotonic() + PATIENCE
        while state(figures) != wanted:
            if time.monotonic() > until:
                sys.exit(f"{who}: the state is {state(figures)} after {PATIENCE} s, not {wanted}")
            time.sleep(0.1)
        shoot(out, f"{who}-{wanted}", page)
        print(f"{who}: {wanted}", flush=True)

    def emulate(at, *how):
        return start("emulate", f"127.0.0.1:{at}", f"127.0.0.1:{RECEIVER}", *how, stdout=subprocess.DEVNULL)

    def end(*links):
        for link in links:
            link.kill()
            link.wait()

    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        sent, got = folder / "sent.json", folder / "got.json"
        try:
            sender = start("send", "-", "--to", f"127.0.0.1:{WIFI},127.0.0.1:{LTE}", "--plain", "--via",
                           "lo?name=Wi-Fi,lo?name=LTE", "--stats", f"500ms,{sent}", "--web", str(SENDER_PAGE), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
            feed = Input(sender.stdin)
            feed.start()
            reach("connecting", "sender", sent, SENDER_PAGE)
            start("receive", str(RECEIVER), str(folder / "out.ts"), "--plain", "--keep", "--stats", f"500ms,{got}",
                  "--web", str(RECEIVER_PAGE), stdout=subprocess.DEVNULL)
            reach("waiting", "receiver", got, RECEIVER_PAGE)
            wifi, lte = emulate(WIFI, "--rate", "3mbit", "--delay", "10ms"), emulate(LTE, "--rate", "700kbit", "--delay", "40ms")
            reach("live", "sender", sent, SENDER_PAGE)
            time.sleep(12)  # So that there is something to be seen.
            reach("live", "sender", sent, SENDER_PAGE)
            reach("live", "receiver", got, RECEIVER_PAGE)
            end(wifi)
            wifi = emulate(WIFI, "--rate", "400kbit", "--delay", "10ms")
            reach("degraded", "sender", sent, SENDER_PAGE)
            reach("degraded", "receiver", got, RECEIVER_PAGE)
            end(wifi, lte)
            reach("dark", "sender", sent, SENDER_PAGE)
            reach("dark", "receiver", got, RECEIVER_PAGE)
            emulate(WIFI, "--rate", "3mbit", "--delay", "10ms")
            emulate(LTE, "--rate", "700kbit", "--delay", "40ms")
            reach("live", "sender", sent, SENDER_PAGE)
            feed.paused = True
            reach("no_input", "sender", sent, SENDER_PAGE)
            reach("no_input", "receiver", got, RECEIVER_PAGE)
            feed.paused = False
            time.sleep(3)
            feed.ended = True
            reach("ended", "receiver", got, RECEIVER_PAGE)
        finally:
            for process in running:
                process.kill()


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 3:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]), sys.argv[2] if len(sys.argv) == 3 else "target/debug/braidcast")
