"""A transport stream over two paths of this machine: a camera that sends it, and a screen that takes it apart.

ffmpeg -re -f lavfi -i testsrc2=size=640x360:rate=25 -t 5 -c:v libx264 -tune zerolatency -f mpegts - | python media.py
"""

import sys
import threading
from typing import BinaryIO

from braidcast import media

KEY = "a passphrase that both ends know"


def camera(sender: media.Sender, source: BinaryIO) -> None:
    """Sends what comes, and says how much was on time."""
    with sender:
        while event := sender.poll(timeout=20):
            if event.kind == "connected":
                break
        while data := source.read1(65536):  # type: ignore[attr-defined]
            sender.write(data)
        print("all arrived:", sender.finish())
        for kind in sender.report()["kinds"]:
            print(kind["kind"], kind["on_time"], "of", kind["captured"], "on time")


screen = media.Receiver(["127.0.0.1:0", "127.0.0.1:0"], key=KEY, units=True)
# In the field: media.Sender([("192.0.2.1:9000", "wlan0"), ("192.0.2.1:9000", "wwan0")], key=KEY)
sender = media.Sender(screen.addresses, key=KEY, name="camera", latency=2.0)
thread = threading.Thread(target=camera, args=[sender, sys.stdin.buffer])
thread.start()
frames = keys = 0
while event := screen.poll(timeout=20):
    if event.kind == "connected":
        print(event.text, "is there")
    elif event.kind == "unit" and (unit := event.unit) and unit.coding == "h264":
        frames += 1
        keys += unit.key
    elif event.kind == "ended":
        break
thread.join()
print(frames, "frames,", keys, "of them keys")
