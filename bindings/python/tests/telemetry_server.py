"""What test_aio.py runs as a process of its own, so that it can be killed: a server for examples/telemetry.py.

python telemetry_server.py IDENTITY VEHICLE_FINGERPRINT FILE ADDRESS...
"""

import asyncio
import pathlib
import struct
import sys

import braidcast.aio

FILE, ACK, COMMAND, BEGIN = 2, 3, 4, 5


async def main(own, vehicle, name, *addresses):
    file = pathlib.Path(name)

    async def serve(connection):
        assert connection.peer == vehicle
        await connection.send(b"turn left", ppid=COMMAND)
        async for message in connection:
            there = file.stat().st_size if file.exists() else 0
            if message.ppid == FILE and struct.unpack_from(">Q", message) == (there,):
                with file.open("ab") as out:
                    out.write(message[8:])
                there += len(message) - 8
            if message.ppid in (FILE, BEGIN):
                await connection.send(struct.pack(">Q", there), stream=2, ppid=ACK)
            if there == 700_000:
                connection.abort("it is all there", code=5)

    socket = await braidcast.aio.serve(addresses, serve, identity=own, authorized=[vehicle])
    print("listening at", *socket.addresses, flush=True)
    await asyncio.Event().wait()


asyncio.run(main(*sys.argv[1:]))
