"""braidcast.aio, and examples/telemetry.py over lossy networks. Run by `make test` and `make python-test`."""

import asyncio
import os
import pathlib
import random
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import braidcast
import braidcast.aio

HERE = pathlib.Path(__file__).resolve().parent


async def echo(connection):
    async for message in connection:
        await connection.send(message, stream=message.stream)


class Loop(unittest.IsolatedAsyncioTestCase):
    async def test_many_clients_are_served(self):
        server = await braidcast.aio.serve(["127.0.0.1:0", "127.0.0.1:0"], echo, key="a passphrase of some length")

        async def client(number):
            async with await braidcast.aio.connect(server.addresses, key="a passphrase of some length") as connection:
                for n in range(20):
                    await connection.send(bytes([number, n]), stream=3)
                for n in range(20):
                    answer = await connection.recv()
                    self.assertEqual((answer, answer.stream), (bytes([number, n]), 3))
            self.assertEqual((await connection.closed()).reason, braidcast.Reason.SHUTDOWN)

        await asyncio.gather(*(client(number) for number in range(5)))
        self.assertTrue(await server.close())

    async def test_who_sends_more_than_fits_waits_for_room(self):
        server = await braidcast.aio.serve(["127.0.0.1:0"], plain=True)
        connection = await braidcast.aio.connect(server.addresses, plain=True)
        accepted = await server.accept()

        async def send():
            for _ in range(150):
                await connection.send(bytes(100_000))
            await connection.shutdown()

        sending = asyncio.create_task(send())
        await asyncio.sleep(0.3)
        self.assertFalse(sending.done(), "15 MB do not fit two buffers of 4 MiB")
        received = [len(message) async for message in accepted]
        self.assertEqual(received, [100_000] * 150)
        await sending

    async def test_a_task_that_is_cancelled_loses_nothing(self):
        server = await braidcast.aio.serve(["127.0.0.1:0"], plain=True)
        connection = await braidcast.aio.connect(server.addresses, plain=True)
        accepted = await server.accept()

        async def send():
            for n in range(50):
                await connection.send(bytes([n]))
                await asyncio.sleep(0.002)

        sending = asyncio.create_task(send())
        got = b""
        while len(got) < 50:
            try:
                got += await asyncio.wait_for(accepted.recv(), 0.0007)
            except asyncio.TimeoutError:
                pass
        self.assertEqual(got, bytes(range(50)))
        await sending

    async def test_a_callback_that_raises_breaks_nothing(self):
        server = await braidcast.aio.serve(["127.0.0.1:0"], plain=True)
        connection = await braidcast.aio.connect(server.addresses, plain=True)
        accepted = await server.accept()
        raised, said = [], asyncio.Event()

        def handler(loop, context):
            raised.append(context["exception"])
            said.set()

        asyncio.get_running_loop().set_exception_handler(handler)
        accepted.on_event = lambda event: 1 / 0
        await connection.send(b"once")
        await asyncio.wait_for(said.wait(), 10)
        self.assertIsInstance(raised[0], ZeroDivisionError)
        self.assertEqual(await accepted.recv(), b"once")
        await accepted.send(b"twice")
        self.assertEqual(await connection.recv(), b"twice")

    async def test_who_comes_and_goes_before_anybody_accepts_is_not_kept(self):
        server = await braidcast.aio.serve(["127.0.0.1:0"], plain=True)
        for _ in range(5):
            await (await braidcast.aio.connect(server.addresses, plain=True)).shutdown()
        while server.blocking.connections():
            await asyncio.sleep(0.01)
        await (await braidcast.aio.connect(server.addresses, plain=True)).send(b"I stay")
        self.assertEqual(await (await asyncio.wait_for(server.accept(), 10)).recv(), b"I stay")

    async def test_ends_have_reasons_and_codes(self):
        server = await braidcast.aio.serve(["127.0.0.1:0"], key="a passphrase of some length")
        with self.assertRaises(braidcast.aio.Closed) as refused:
            await braidcast.aio.connect(server.addresses, key="quite another passphrase")
        self.assertEqual(refused.exception.event.reason, braidcast.Reason.NOT_LET_IN)
        self.assertEqual(refused.exception.event.code, braidcast.Insecurity.NOT_LET_IN)
        with self.assertRaises(braidcast.aio.Closed) as nowhere:
            await braidcast.aio.connect(["no-such-host.invalid:9"])
        self.assertEqual(nowhere.exception.event.reason, braidcast.Reason.UNRESOLVED)
        connection = await braidcast.aio.connect(server.addresses, key="a passphrase of some length")
        accepted = await server.accept()
        self.assertEqual(accepted.peer, connection.peer)
        accepted.abort("enough", code=7)
        self.assertIsNone(await connection.recv())
        end = await connection.closed()
        self.assertEqual((end.reason, end.code, end.text), (braidcast.Reason.ABORTED_BY_PEER, 7, "enough"))
        self.assertEqual(end.data, b"enough")
        with self.assertRaises(braidcast.NoConnection):
            await connection.send(b"late")
        with self.assertRaisesRegex(braidcast.Misuse, "needs an identity"):
            await braidcast.aio.serve([], authorized=[])

    async def test_a_connection_whose_handler_raises_is_aborted(self):
        # asyncio logs what a task raised when the task is collected, which may be later.
        asyncio.get_running_loop().set_exception_handler(lambda _, context: None)

        async def handler(connection):
            raise ValueError(await connection.recv())

        server = await braidcast.aio.serve(["127.0.0.1:0"], handler, plain=True)
        connection = await braidcast.aio.connect(server.addresses, plain=True)
        await connection.send(b"seven")
        end = await asyncio.wait_for(connection.closed(), 10)
        self.assertEqual(end.reason, braidcast.Reason.ABORTED_BY_PEER)
        self.assertIn("handler", end.text)
        self.assertTrue(await server.close())


class Network(threading.Thread):
    """Carries datagrams between whoever sends to `address` and a server, slowly, and loses three of a hundred."""

    def __init__(self, server, seed, test):
        super().__init__(daemon=True)
        self.server, self.random, self.alive = server, random.Random(seed), True
        self.near = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.near.bind(("127.0.0.1", 0))
        self.address = "%s:%d" % self.near.getsockname()
        self.far = {}
        self.start()
        test.addCleanup(self.close)

    def close(self):
        """Its sockets stay until then, so that nobody hears that the ports of one that is not alive are closed."""
        self.alive = False
        self.join()
        for it in (self.near, *self.far.values()):
            it.close()

    def run(self):
        far, clients = self.far, {}
        while self.alive:
            for it in select.select([self.near, *clients], [], [], 0.05)[0]:
                try:
                    data, source = it.recvfrom(65536)
                except OSError:
                    continue  # Nobody listens there now.
                if self.random.random() < 0.03:
                    continue
                if it is not self.near:
                    self.near.sendto(data, clients[it])
                    continue
                if source not in far:
                    far[source] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                    clients[far[source]] = source
                far[source].sendto(data, self.server)
                time.sleep(0.008)  # Some 150 kB/s.


class Program:
    """A program of its own, and what it prints."""

    def __init__(self, *command):
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        self.process = subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, text=True, env=environment)
        self.seen = []

    def wait_for(self, wanted):
        for line in self.process.stdout:
            self.seen.append(line)
            if found := wanted(line):
                return found
        raise AssertionError(f"it ended before it said that: {self.seen}")

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Telemetry(unittest.TestCase):
    def test_a_vehicle_goes_on_whatever_happens_to_its_server_and_networks(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        name = lambda it: str(pathlib.Path(folder.name) / it)
        home, car = (braidcast.fingerprint(name(it)) for it in ("home", "car"))
        data = random.Random(1).randbytes(700_000)
        pathlib.Path(name("data")).write_bytes(data)

        def start(*addresses):
            program = Program(str(HERE / "telemetry_server.py"), name("home"), car, name("came"), *addresses)
            self.addCleanup(program.end)
            return program, program.wait_for(lambda line: line.startswith("listening at ") and line.split()[2:])

        server, addresses = start("127.0.0.1:0", "127.0.0.1:0")
        networks = [Network((at.split(":")[0], int(at.split(":")[1])), seed, self) for seed, at in enumerate(addresses)]
        paths = [network.address for network in networks]
        vehicle = Program(str(HERE.parent / "examples" / "telemetry.py"), name("car"), home, "120", name("data"), *paths)
        self.addCleanup(vehicle.end)
        vehicle.wait_for(lambda line: "command: turn left" in line)
        vehicle.wait_for(lambda line: "'number': 50" in line)
        vehicle.wait_for(lambda line: line.startswith("the server has") and int(line.split()[3]) > 100_000)
        server.process.kill()
        server.process.wait()
        start(*addresses)
        vehicle.wait_for(lambda line: line.startswith("closed: "))
        networks[0].alive = False
        vehicle.wait_for(lambda line: line.startswith("the server has 700000 "))
        vehicle.wait_for(lambda line: "closed: it is all there Reason.ABORTED_BY_PEER 5" in line)
        self.assertEqual(pathlib.Path(name("came")).read_bytes(), data)


if __name__ == "__main__":
    unittest.main()
