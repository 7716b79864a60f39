"""A vehicle: 50 messages a second that are worth nothing after 200 ms, a file beside them that goes on
where it stopped, commands back, and a new connection whenever one ends.

    python telemetry.py IDENTITY SERVER_FINGERPRINT SECONDS FILE HOST:PORT[@INTERFACE]...
"""

import asyncio
import collections
import contextlib
import pathlib
import struct
import sys
import time

import braidcast
import braidcast.aio

TELEMETRY, FILE, ACK, COMMAND, BEGIN = 1, 2, 3, 4, 5
counts: "collections.Counter[str]" = collections.Counter()


async def sensor(connection: braidcast.aio.Connection) -> None:
    while True:
        counts["number"] += 1
        body = struct.pack(">QQ", counts["number"], time.time_ns() // 1000)
        await connection.send(body, stream=1, unordered=True, deadline=0.2, ppid=TELEMETRY)
        if counts["number"] % 50 == 0:
            paths = [f"{it['name']} {it['state']} {it['rtt_ms']} ms, {it['lost_chunks']} lost" for it in connection.paths()]
            print(dict(counts), *paths, sep="\n  ")
        await asyncio.sleep(0.02)


async def upload(connection: braidcast.aio.Connection, data: bytes, sent: int) -> None:
    for at in range(sent, len(data), 16_384):
        while connection.buffered() > 65_536:
            await asyncio.sleep(0.02)
        await connection.send(struct.pack(">Q", at) + data[at : at + 16_384], stream=2, priority=-3, ppid=FILE)


async def drive(connection: braidcast.aio.Connection, name: str, data: bytes) -> None:
    connection.on_event = lambda event: counts.update([event.kind.value])
    await connection.send(struct.pack(">Q", len(data)) + name.encode(), stream=2, ppid=BEGIN)
    tasks = [asyncio.create_task(sensor(connection))]
    try:
        async for message in connection:
            if message.ppid == COMMAND:
                print("command:", message.decode())
            elif message.ppid == ACK:
                (there,) = struct.unpack(">Q", message)
                print("the server has", there, "of", len(data), "bytes")
                if len(tasks) == 1:
                    tasks.append(asyncio.create_task(upload(connection, data, there)))
        raise braidcast.aio.Closed(await connection.closed())
    finally:
        [task.cancel() for task in tasks]
        await asyncio.gather(*tasks, return_exceptions=True)


async def main(own: str, server: str, seconds: str, name: str, *paths: str) -> None:
    end, data = time.monotonic() + float(seconds), pathlib.Path(name).read_bytes()
    who = {"identity": own, "authorized": [server], "longest_silence": 3}
    while time.monotonic() < end:
        try:
            async with await braidcast.aio.connect(paths, **who) as connection:
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(drive(connection, name, data), end - time.monotonic())
            print("ended in good order")
        except braidcast.aio.Closed as closed:
            print("closed:", closed, closed.event.reason, closed.event.code)
            await asyncio.sleep(0.5)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
