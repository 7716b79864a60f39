"""Live media. Run by `make test` and `make python-test`."""

import asyncio
import itertools
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import braidcast
from braidcast import media
from test_aio import Network, Program
from test_braidcast import documented

HERE = pathlib.Path(__file__).resolve().parent
CLIP = HERE.parents[2] / "crates" / "media" / "tests" / "clips" / "h264.ts"
KEY = "a passphrase that both ends know"
SLICE = b"\0\0\0\1\x65\x88\x84"


def wait(end, kind):
    while event := end.poll(timeout=20):
        if event.kind == kind:
            return event
        assert event.kind != "ended", event
    raise AssertionError(f"no {kind}")


class Media(unittest.TestCase):
    def test_it_runs_as_documented(self):
        with media.Sender(["127.0.0.1:9"]) as sender:
            self.assertEqual(sender.transport, documented("media.Sender"))

    def test_units_come_out_as_they_went_in(self):
        with media.Receiver(["127.0.0.1:0"] * 2, key=KEY, units=True, names=["door"]) as receiver:
            sender = media.Sender(receiver.addresses, key=KEY, name="door", latency=3)
            video, audio = sender.add_track(media.Coding.H264.value), sender.add_track("opus", channels=1)
            wait(sender, "connected")
            sender.send(video, bytearray(SLICE), 2.5, dts=2.0, key=True)
            sender.send(audio, b"\7", 2.5)
            units = [wait(receiver, "unit").unit for _ in range(2)]
            picture = next(unit for unit in units if unit.track == video)
            self.assertTrue(picture.data.endswith(SLICE) and picture.key and picture.whole)
            self.assertEqual((picture.coding, picture.pts, picture.dts, picture.layer), ("h264", 3.5, 3.0, 0))
            self.assertEqual(next(unit for unit in units if unit.track == audio).data, b"\7")
            self.assertEqual(receiver.latency(), 3.0)
            self.assertGreater(sender.rate_report()["rate_bits_per_second"], 0)
            self.assertTrue(sender.finish())
            with self.assertRaises(braidcast.NoConnection):
                sender.send(audio, b"\7", 3)
            kinds = {kind["kind"]: kind["on_time"] for kind in sender.report()["kinds"]}
            self.assertEqual((kinds["I"], kinds["audio"]), (1, 1))
            self.assertTrue(wait_end(receiver).complete)
            self.assertEqual(wait_end(sender).reason, braidcast.Reason.SHUTDOWN)

    def test_the_example_takes_a_stream_apart(self):
        example = HERE.parent / "examples" / "media.py"
        with open(CLIP, "rb") as clip:
            out = subprocess.run([sys.executable, example], stdin=clip, capture_output=True, text=True, timeout=60)
        self.assertEqual(out.returncode, 0, out.stderr)
        self.assertIn("all arrived: True", out.stdout)
        frames = len([line for line in CLIP.with_suffix(".frames").read_text().splitlines() if line])
        self.assertRegex(out.stdout, rf"\n{frames} frames, [1-9]")

    def test_frames_go_on_over_lossy_networks_though_the_receiver_is_killed_and_a_network_dies(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        identities = [os.path.join(folder.name, name) for name in ("screen", "camera")]
        screen_key, camera_key = map(braidcast.fingerprint, identities)

        def screen(*addresses):
            program = Program(str(HERE / "media_screen.py"), identities[0], camera_key, *addresses)
            self.addCleanup(program.end)
            return program, program.wait_for(lambda line: line.startswith("listening at ") and line.split()[2:])

        first, addresses = screen("127.0.0.1:0", "127.0.0.1:0")
        networks = [Network((at.split(":")[0], int(at.split(":")[1])), seed, self) for seed, at in enumerate(addresses)]
        sender = media.Sender([it.address for it in networks], identity=identities[1], authorized=[screen_key],
                              name="door", latency=1.0)
        self.addCleanup(sender.close)
        video = sender.add_track("h264")
        seen, numbers = [], itertools.count()

        def film(until=lambda: False, frames=1500):
            """Sends frames of 1500 bytes, 25 a second, until it is time."""
            for number in itertools.islice(numbers, frames):
                sender.send(video, SLICE + b"\x80" * 1500, number * 0.04, key=number % 25 == 0)
                time.sleep(0.04)
                while event := sender.poll(0):
                    seen.append((event.kind, event.text))
                if until():
                    return
            if frames == 1500:
                self.fail(f"it does not come: {seen}")

        film(lambda: any(kind == "connected" for kind, _ in seen))
        film(frames=50)
        first.wait_for(lambda line: line.startswith("door: 20 frames"))
        first.process.kill()
        first.process.wait()
        second, _ = screen(*addresses)
        film(lambda: [kind for kind, _ in seen].count("connected") == 2)
        lost = [kind for kind, _ in seen].index("lost")
        film(lambda: ("path up", networks[0].address) in seen[lost:])
        networks[0].alive = False
        film(lambda: ("path down", networks[0].address) in seen)
        film(frames=40)
        self.assertTrue(sender.finish(20))
        second.wait_for(lambda line: line.startswith("ended True shutdown"))
        self.assertIn("lost", {kind for kind, _ in seen})

    def test_one_thread_closes_what_others_wait_for(self):
        receiver = media.Receiver(["127.0.0.1:0"], key=KEY)
        ended = []

        def wait_for_ever():
            try:
                while True:
                    receiver.poll()
            except braidcast.NoConnection:
                ended.append(True)

        threads = [threading.Thread(target=wait_for_ever) for _ in range(3)]
        for thread in threads:
            thread.start()
        receiver.close()
        for thread in threads:
            thread.join(5)
        self.assertEqual(ended, [True] * 3)

    def test_events_come_on_asyncios_loop(self):
        async def run():
            receiver = media.Receiver(["127.0.0.1:0"], key=KEY)
            sender = media.Sender(receiver.addresses, key=KEY, latency=3)
            data = CLIP.read_bytes()
            came = b""
            async for event in media.events(sender):
                if event.kind == media.Kind.CONNECTED:
                    sender.write(data)
                    break
            async for event in media.events(receiver):
                came += event.data or b""
                if len(came) == len(data):
                    receiver.stop()
            self.assertEqual(came, data)

        asyncio.run(asyncio.wait_for(run(), 30))

    def test_a_wrong_key_ends_a_sender_and_waits_are_interrupted(self):
        receiver = media.Receiver(["127.0.0.1:0"], key=KEY)
        sender = media.Sender(receiver.addresses, key="another passphrase altogether")
        self.assertIn(wait_end(sender).reason, (braidcast.Reason.WRONG_KEY, braidcast.Reason.NOT_LET_IN))
        while receiver.poll(timeout=1):
            pass
        timer = threading.Timer(0.2, receiver.interrupt)
        timer.start()
        self.assertIsNone(receiver.poll())
        receiver.close()
        with self.assertRaises(braidcast.NoConnection):
            receiver.poll()

    def test_wrong_use_says_what_is_wrong(self):
        for arguments in ({}, {"paths": ["127.0.0.1:9"], "listen": ["127.0.0.1:0"]}, {"paths": ["nowhere"]},
                          {"paths": ["127.0.0.1:9"], "key": KEY, "plain": True}, {"paths": ["127.0.0.1:9"], "name": "a/b"},
                          {"paths": ["127.0.0.1:9"], "least": 2, "greatest": 1}):
            with self.assertRaises(braidcast.Misuse):
                media.Sender(**arguments)
        with self.assertRaises(braidcast.Misuse):
            media.Receiver(["127.0.0.1:0"], names=["a"], each=2)
        sender = media.Sender(["127.0.0.1:9"])
        with self.assertRaisesRegex(braidcast.Misuse, "coding"):
            sender.add_track("vhs")
        with self.assertRaisesRegex(braidcast.Misuse, "no track"):
            sender.send(256, b"\1", 0)
        video = sender.add_track("h264")
        with self.assertRaisesRegex(braidcast.Misuse, "start code"):
            sender.send(video, b"\1", 0)


def wait_end(end):
    while event := end.poll(timeout=20):
        if event.kind == "ended":
            return event
    raise AssertionError("it does not end")


if __name__ == "__main__":
    unittest.main()
