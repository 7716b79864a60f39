"""Sockets and the lab. Run by `make test` with the Python that is there (package.rs), and by `make python-test` with
the wheel in an environment of its own, which has pandas."""

import array
import importlib.util
import os
import pathlib
import select
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import braidcast

EXAMPLES = pathlib.Path(__file__).resolve().parent.parent / "examples"

LINKS = """
name = "two-links"
title = "Two links that lose packets"
experiment = "transfer"
duration = "5s"
runs = 3

[link.first]
rate = "1mbit"
rtt = "100ms"
queue = "50p"
loss = "$loss"

[link.second]
rate = "1mbit"
rtt = "100ms"
queue = "50p"
loss = "$loss"

[sweep]
loss = ["0%", "3%"]

[[variant]]
name = "both"

[[variant]]
name = "one"
flow.main.paths = [["first"]]
"""


def setUpModule():
    # A shell that starts the tests in the background has them ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def wait(socket, kind):
    while event := socket.poll(timeout=20):
        if event.kind == kind:
            return event
        assert event.kind != "closed", event
    raise AssertionError(f"no {kind}")


def documented(front_end):
    """What docs/architecture.md says that this one runs with; crates/testing/src/front_ends.rs reads it too."""
    text = (EXAMPLES.parents[2] / "docs" / "architecture.md").read_text()
    _, section = text.split("\n### What front ends run\n")
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")]
    (row,) = (row for row in rows if f"`{front_end}`" in row[0].strip().split(", "))
    values = {"none": None, "yes": True, "no": False}
    cells = [cell.strip().strip("`") for cell in row[1:]]
    return dict(zip(("scheduler", "congestion", "queue", "reinject", "fec"), (values.get(it, it) for it in cells)))


class Sockets(unittest.TestCase):
    def test_the_example_sends_over_two_paths(self):
        out = subprocess.run([sys.executable, EXAMPLES / "two_paths.py"], capture_output=True, text=True, timeout=60)
        self.assertEqual(out.returncode, 0, out.stdout + out.stderr)
        self.assertEqual(out.stdout.count("is up"), 2)
        for number in range(10):
            self.assertIn(f"answer: message {number}\n", out.stdout)

    def test_select_wakes_both_ends(self):
        server, client = braidcast.Socket(plain=True), braidcast.Socket(plain=True)
        address = server.bind("127.0.0.1:0")
        server.listen()
        connection = client.connect([(address, "127.0.0.1")])
        received = []
        while not received:
            for socket in (server, client):
                while event := socket.poll(0):
                    if event.kind == "connected" and socket is client:
                        client.send(connection, b"x" * 50_000, unordered=True, ppid=7)
                    elif event.kind == "readable":
                        received.append(server.recv(event.connection))
            ready, _, _ = select.select([server, client], [], [], 20)
            self.assertTrue(ready, "neither was readable for 20 s")
        self.assertEqual(received, [b"x" * 50_000])
        self.assertIsNone(server.recv(server.connections()[0]))
        (path,) = client.paths(connection)
        self.assertEqual((path["name"], path["remote"], path["state"]), ("127.0.0.1", address, "active"))
        self.assertGreater(path["sent_bytes"], 50_000)

    def test_pictures_are_as_large_as_they_may_be(self):
        server, client = braidcast.Socket(plain=True), braidcast.Socket(plain=True)
        address = server.bind("127.0.0.1:0")
        server.listen()
        connection = client.connect([address])
        client.follow_rate(connection, least=500_000, greatest=4_000_000, interval=0.02)
        self.assertIsNone(client.rate_report(connection), "it is not connected yet")
        received, pictures, report, timings = 0, 0, None, []
        for _ in range(500):
            while event := client.poll(0):
                pass
            while event := server.poll(0):
                while event.kind == "readable" and (message := server.recv(event.connection)):
                    received += len(message)
                    timings += [message.timing] if message.timing else []
                    self.assertEqual(message.is_late, bool(message.timing and message.timing.late > 0))
            if report := client.rate_report(connection):
                self.assertTrue(500_000 <= report["rate_bits_per_second"] <= 4_000_000, report)
                self.assertEqual((report["frame_interval_ms"], report["below_least"]), (20, False))
                if bits := report["next_frame_bits"]:
                    client.send(connection, bytes(bits // 8), deadline=0.25)
                    pictures += 1
                if report["rate_bits_per_second"] == 4_000_000 and pictures > 25:
                    break
            time.sleep(0.02)
        self.assertEqual(report["rate_bits_per_second"], 4_000_000, report)
        self.assertGreater(received, 50_000)
        self.assertGreater(len(timings), 5, "the age of messages with a deadline is known")
        self.assertTrue(all(0 <= it.age < 60 and 0 <= it.uncertainty < 60 for it in timings), timings)
        client.set_rate_limits(connection, 100_000, 600_000)
        self.assertEqual(client.rate_report(connection)["rate_bits_per_second"], 600_000)
        with self.assertRaisesRegex(ValueError, "least is 2, more than greatest, 1"):
            client.follow_rate(connection, least=2, greatest=1)
        with self.assertRaisesRegex(braidcast.NoConnection, "no connection 77"):
            client.rate_report(77)

    def test_another_key_does_not_get_in(self):
        server, client = braidcast.Socket(key="a passphrase of some length"), braidcast.Socket(key="quite another passphrase")
        address = server.bind("127.0.0.1:0")
        server.listen()
        threading.Thread(target=lambda: [server.poll(0.2) for _ in range(20)], daemon=True).start()
        client.connect([address])
        seen = []
        while (event := client.poll(timeout=20)) and event.kind != "closed":
            seen.append(event.kind)
        self.assertIn("no secure connection", event.text)
        self.assertNotIn("connected", seen)

    def pair(self):
        server, client = braidcast.Socket(plain=True), braidcast.Socket(plain=True)
        address = server.bind("127.0.0.1:0")
        server.listen()
        connection = client.connect([address])
        connected = 0
        while connected < 2:
            for socket in (server, client):
                if (event := socket.poll(0.01)) and event.kind == "connected":
                    connected += 1
        return server, client, connection

    def test_every_last_word_arrives_and_only_then_a_connection_is_closed(self):
        server = braidcast.Socket(plain=True)
        address = server.bind("127.0.0.1:0")
        server.listen()
        ends = []

        def client():
            socket = braidcast.Socket(plain=True)
            connection = socket.connect([address])
            for word in (b"last", b"words"):
                socket.send(connection, word)
            socket.shutdown(connection)
            while (event := socket.poll(20)) and event.kind != "closed":
                pass
            ends.append((event.reason, event.unsettled))

        threads = [threading.Thread(target=client) for _ in range(10)]
        for thread in threads:
            thread.start()
        got, over = [], 0
        while over < 10:
            event = server.poll(20)
            if event.kind == braidcast.Kind.READABLE:
                got.append(server.recv(event.connection))
            over += event.kind == braidcast.Kind.CLOSED
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(got), [b"last"] * 10 + [b"words"] * 10)
        self.assertEqual(ends, [(braidcast.Reason.SHUTDOWN, [])] * 10)
        self.assertEqual(server.connections(), [])

    def test_redundancy_and_the_scheduler_have_names(self):
        for wrong, said in (({"fec": "much"}, "is not a code"), ({"scheduler": "best"}, "earliest-delivery"), ({"queue": "best"}, "in-time")):
            with self.assertRaisesRegex(braidcast.Misuse, said):
                braidcast.Socket(**wrong)
        braidcast.Socket(fec="tetrys:10,9,200", scheduler="earliest-delivery", queue="in-time").close(0)

    def test_it_runs_as_documented(self):
        with braidcast.Socket() as it:
            self.assertEqual(it.transport, documented("braidcast.Socket"))
        changed = braidcast.Socket(fec="tetrys:10,9,200", scheduler="earliest-delivery", queue="in-time", profile="voice")
        expected = {"scheduler": "earliest-delivery", "queue": "in-time", "reinject": True, "fec": "tetrys:10,9,200"}
        self.assertEqual(changed.transport, {"congestion": "veno", **expected})

    def test_limits_are_kept(self):
        server = braidcast.Socket(plain=True, buffers=(200_000, 100_000), max_connections=2)
        address = server.bind("127.0.0.1:0")
        server.listen()
        client = braidcast.Socket(plain=True, max_message=1000)
        connection = client.connect([address])
        client.send(connection, bytes(1000))
        with self.assertRaisesRegex(braidcast.Error, "1000"):
            client.send(connection, bytes(1001))
        while not (event := server.poll(0.01)) or event.kind != "readable":
            client.poll(0.01)
        # The longest message fits the smaller buffer.
        server.send(event.connection, bytes(100_000))
        with self.assertRaisesRegex(braidcast.Error, "100000"):
            server.send(event.connection, bytes(100_001))
        with self.assertRaisesRegex(braidcast.Error, "max_message"):
            braidcast.Socket(plain=True, buffers=(200_000, 100_000), max_message=100_001)
        nobody = braidcast.Socket(plain=True, max_connections=0)
        address = nobody.bind("127.0.0.1:0")
        nobody.listen()
        client.connect([address])
        while not (event := client.poll(0.01)) or event.kind != "closed":
            nobody.poll(0.01)
        self.assertEqual(nobody.connections(), [])

    def test_sockets_of_ones_own_are_used_and_others_prepared(self):
        server, client = braidcast.Socket(plain=True), braidcast.Socket(plain=True)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
            own.bind(("127.0.0.1", 0))
            address = server.adopt(own)
            self.assertEqual(address, "127.0.0.1:%d" % own.getsockname()[1])
        server.listen()
        opened = []
        client.on_open(lambda descriptor: opened.append(os.fstat(descriptor)))
        connection = client.connect([address])
        client.send(connection, b"to a socket of its own")
        while not (event := server.poll(0.01)) or event.kind != "readable":
            client.poll(0.01)
        self.assertEqual(server.recv(event.connection), b"to a socket of its own")
        self.assertEqual([stat.S_ISSOCK(it.st_mode) for it in opened], [True])

        def refuse(descriptor):
            raise PermissionError("not with this one")

        client.on_open(refuse)
        with self.assertRaisesRegex(braidcast.Error, "not with this one"):
            client.connect([address])
        client.on_open(None)
        client.connect([address])
        with open(os.devnull) as file, self.assertRaisesRegex(braidcast.Error, "non-socket"):
            server.adopt(file)
        with self.assertRaises(braidcast.Misuse):
            server.adopt(-1)
        with self.assertRaises(braidcast.SystemFailure):
            server.adopt(1 << 20)

    def test_a_thread_sends_while_another_one_waits(self):
        server, client, connection = self.pair()
        thread = threading.Thread(target=lambda: [None for _ in iter(client.poll, None)])
        thread.start()
        start = time.monotonic()
        for number in range(50):
            client.send(connection, b"%d" % number)
            while server.recv(connection) is None:
                server.poll(20)
        self.assertLess(time.monotonic() - start, 15)
        self.assertEqual([path["state"] for path in client.paths(connection)], ["active"])
        client.interrupt()
        thread.join(20)
        self.assertFalse(thread.is_alive())

    def test_messages_have_attributes_and_any_buffer_can_be_sent(self):
        server, client, connection = self.pair()
        data = [b"bytes", bytearray(b"bytearray"), memoryview(b"memoryview"), array.array("B", b"array")]
        for number, it in enumerate(data):
            client.send(connection, it, stream=3, ppid=number, context=number, report=True, priority=2)
        with self.assertRaises(TypeError):
            client.send(connection, 5)
        got, delivered = [], []
        while len(got) < 4 or len(delivered) < 4:
            if (event := client.poll(0.01)) and event.kind == "delivered":
                delivered.append(event.context)
            server.poll(0.01)
            while (message := server.recv(connection)) is not None:
                got.append(message)
        self.assertEqual(got, [b"bytes", b"bytearray", b"memoryview", b"array"])
        self.assertEqual([(it.stream, it.ppid, it.unordered) for it in got], [(3, n, False) for n in range(4)])
        self.assertEqual((delivered, client.buffered(connection)), ([0, 1, 2, 3], 0))

    def test_a_long_reason_is_cut_and_the_socket_works_on(self):
        server, client, connection = self.pair()
        client.abort(connection, "r" * 70_000, code=7)
        # It leaves in the next poll.
        while (event := client.poll(20)).kind != "closed":
            pass
        self.assertEqual((event.reason, event.code), ("aborted", 0))
        while (event := server.poll(20)).kind != "closed":
            pass
        self.assertEqual(event.reason, braidcast.Reason.ABORTED_BY_PEER)
        self.assertEqual((event.text, event.code), ("r" * (256 - len("#7 ")), 7))
        with self.assertRaises(braidcast.NoConnection):
            client.send(connection, b"x")

    def test_a_block_closes_in_good_order_or_aborts(self):
        server, client, connection = self.pair()
        thread = threading.Thread(target=lambda: [None for _ in iter(server.poll, None)])
        thread.start()
        with client:
            client.send(connection, b"x" * 100_000)
        self.assertEqual(client.connections(), [])
        server.interrupt()
        self.assertEqual(len(server.recv(connection)), 100_000)
        thread.join()
        server, client, connection = self.pair()
        with self.assertRaises(ZeroDivisionError), client:
            1 / 0
        while (event := server.poll(20)).kind != "closed":
            pass
        self.assertIn("an exception", event.text)

    def test_ctrl_c_ends_close(self):
        _server, client, connection = self.pair()
        client.send(connection, b"x" * 1_000_000)
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        start = time.monotonic()
        with self.assertRaises(KeyboardInterrupt):
            client.close(30)
        self.assertLess(time.monotonic() - start, 10)

    def test_every_exception_is_an_error(self):
        socket = braidcast.Socket(plain=True)
        wrong = [
            (braidcast.Misuse, lambda: socket.bind("here")),
            (braidcast.Misuse, lambda: socket.poll(-1)),
            (braidcast.NoConnection, lambda: socket.send(5, b"x")),
            (braidcast.Error, lambda: socket.connect([("127.0.0.1:9", "nothere0")])),
        ]
        for kind, call in wrong:
            with self.assertRaises(kind) as caught:
                call()
            self.assertIsInstance(caught.exception, braidcast.Error)
        self.assertTrue(issubclass(braidcast.BufferFull, (braidcast.Error, BlockingIOError)))
        self.assertRegex(braidcast.__version__, r"^\d+\.\d+\.\d+$")

    def test_wrong_uses_say_what_is_wrong(self):
        socket = braidcast.Socket(plain=True)
        with self.assertRaisesRegex(ValueError, "not an address with a port"):
            socket.bind("here")
        with self.assertRaisesRegex(braidcast.NoConnection, "no connection 5"):
            socket.send(5, b"x")
        with self.assertRaisesRegex(braidcast.Error, "there is no nothere0"):
            socket.connect([("127.0.0.1:9", "nothere0")])
        with self.assertRaisesRegex(ValueError, "timeout is -1"):
            socket.poll(-1)
        with self.assertRaisesRegex(ValueError, "deadline is NaN"):
            socket.send(5, b"x", deadline=float("nan"))
        with self.assertRaisesRegex(ValueError, "leave out key, or plain"):
            braidcast.Socket(key="a", plain=True)
        with self.assertRaisesRegex(braidcast.Error, "key"):
            braidcast.Socket(key="")
        connection = socket.connect(["127.0.0.1:9"])
        with self.assertRaises(BlockingIOError):
            for _ in range(10_000):
                socket.send(connection, bytes(60_000))

    def test_ctrl_c_ends_a_wait(self):
        socket = braidcast.Socket(plain=True)
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        start = time.monotonic()
        with self.assertRaises(KeyboardInterrupt):
            socket.poll()
        self.assertLess(time.monotonic() - start, 10)


has_pandas = unittest.skipUnless(importlib.util.find_spec("pandas"), "make python-test has pandas")


class Lab(unittest.TestCase):
    @has_pandas
    def test_results_become_pandas(self):
        results = braidcast.run("two-links.toml", text=LINKS)
        frame = results.to_pandas()
        goodput = frame[frame.metric == "goodput"].set_index(["variant", "loss"])["mean"]
        self.assertEqual(len(goodput), 4)
        self.assertGreater(goodput["both", "0%"], 1.5 * goodput["one", "0%"])
        self.assertGreater(goodput["both", "0%"], goodput["both", "3%"])
        self.assertEqual(set(frame.n), {3})
        runs = results.to_pandas(runs=True)
        self.assertEqual(sorted(set(runs.seed)), [1, 2, 3])
        one = runs[(runs.metric == "goodput") & (runs.variant == "both") & (runs.loss == "3%")]
        self.assertAlmostEqual(one.value.mean(), goodput["both", "3%"], places=6)

    @has_pandas
    def test_seeds_apart_and_together_are_the_same(self):
        together = braidcast.run("two-links.toml", text=LINKS, runs=3).to_pandas()
        apart = braidcast.concat(braidcast.run("two-links.toml", text=LINKS, runs=1, seed=seed) for seed in (1, 2, 3))
        self.assertEqual(len(together), len(apart))
        key = ["variant", "loss", "metric"]
        means = together.set_index(key)["mean"] - apart.set_index(key)["mean"]
        self.assertLess(means.abs().max(), 1e-6)
        widths = together.set_index(key)["ci95"] - apart.set_index(key)["ci95"]
        self.assertLess(widths.abs().max(), 1e-6)

    def test_choices_and_progress(self):
        seen = []
        results = braidcast.run("two-links.toml", text=LINKS, runs=2, duration=2, variant="one", params={"loss": "3%"},
                                progress=lambda done, of: seen.append((done, of)))
        self.assertEqual({row["variant"] for row in results.rows}, {"one"})
        self.assertEqual({row["params"]["loss"] for row in results.rows}, {"3%"})
        self.assertTrue(seen and all(of == 2 and done <= 2 for done, of in seen))

    def test_scenarios_have_names_and_titles(self):
        self.assertIn("cmt-loss", braidcast.scenarios())
        self.assertTrue(all(braidcast.scenarios().values()))

    def test_wrong_uses_say_what_is_wrong(self):
        with self.assertRaisesRegex(braidcast.Error, "did you mean 'cmt-loss'"):
            braidcast.run("cmt-lossy")
        with self.assertRaisesRegex(braidcast.Error, "two-links.toml:"):
            braidcast.run("two-links.toml", text=LINKS.replace("duration", "durration"))
        with self.assertRaisesRegex(braidcast.Error, "no variant 'two'"):
            braidcast.run("two-links.toml", text=LINKS, variant="two")
        with self.assertRaisesRegex(ValueError, "seconds above 0"):
            braidcast.run("two-links.toml", text=LINKS, duration=0)

    def test_ctrl_c_stops_the_runs(self):
        threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        start = time.monotonic()
        with self.assertRaises(KeyboardInterrupt):
            braidcast.run("cmt-loss", runs=10_000)
        self.assertLess(time.monotonic() - start, 60)


@unittest.skipUnless(os.environ.get("BRAIDCAST_EXAMPLES"), "make python-test has what the examples need")
class Examples(unittest.TestCase):
    def test_dask_spreads_seeds_over_two_workers(self):
        out = subprocess.run([sys.executable, EXAMPLES / "sweep_dask.py"], capture_output=True, text=True, timeout=300)
        self.assertEqual(out.returncode, 0, out.stdout + out.stderr)
        self.assertIn("4 runs by 2 workers", out.stdout)
        self.assertIn("goodput", out.stdout)

    def test_the_notebook_runs_and_plots(self):
        import nbclient
        import nbformat

        notebook = nbformat.read(EXAMPLES / "loss.ipynb", as_version=4)
        with tempfile.TemporaryDirectory() as folder:
            nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": folder}}).execute()
            picture = (pathlib.Path(folder) / "loss.png").read_bytes()
        self.assertTrue(picture.startswith(b"\x89PNG") and len(picture) > 10_000)


if __name__ == "__main__":
    unittest.main()
