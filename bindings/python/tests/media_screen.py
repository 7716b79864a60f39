"""What test_media.py runs as a process of its own, so that it can be killed: a receiver that counts frames.

python media_screen.py IDENTITY CAMERA_FINGERPRINT ADDRESS...
"""

import sys

from braidcast import media

own, camera, *addresses = sys.argv[1:]
screen = media.Receiver(addresses, identity=own, authorized=[camera], units=True)
print("listening at", *screen.addresses, flush=True)
frames, names = 0, {}
while event := screen.poll(60):
    if event.kind == "connected":
        names[event.stream] = event.text
    elif event.kind == "unit":
        frames += 1
        print(f"{names[event.stream]}: {frames} frames", flush=True)
    elif event.kind == "ended":
        print("ended", event.complete, event.reason.value, flush=True)
