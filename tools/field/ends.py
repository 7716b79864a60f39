#!/usr/bin/env python3
"""An encoder and a player as the measurements see them, and the fork that senders by source address need.

  ends.py feed CLIP DUE PORT START LOG   sends a clip to 127.0.0.1:PORT, each packet when it is due after START (monotonic
                                         seconds). DUE has a double for each packet; LOG gets one: when it was sent
  ends.py sink PORT LOG                  notes each datagram that comes to 127.0.0.1:PORT: its time, its length, its bytes
  ends.py fork PORT DEST DEST …          what 127.0.0.2, .3 … send to 127.0.0.1:PORT goes to the first, second … DEST, and back

All end at SIGINT or SIGTERM; the feeder at the end of the clip."""
import select
import signal
import socket
import struct
import sys
import time

sys.dont_write_bytecode = True
import score
import ts

HERE = "127.0.0.1"
# Seven packets, as everyone sends them.
PACKETS = 7
# How fast an encoder hands out the packets of one frame.
BURST_BITS_PER_S = 30e6
BUFFER_BYTES = 8 << 20
# Linux's asm-generic/socket.h.
SO_TIMESTAMPNS = 35
SO_RCVBUFFORCE = 33


class Ended(Exception):
    pass


def end(*_):
    raise Ended


def receiver(port, address=HERE):
    """Returns a bound socket with a large buffer: a stall of this program must not lose anything."""
    it = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        it.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
    except PermissionError:
        it.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
    it.bind((address, port))
    return it


def groups(due):
    """Yields (first, end) of packets that go in one datagram: at most seven, all of one moment."""
    first = 0
    while first < len(due):
        stop = first + 1
        while stop < min(first + PACKETS, len(due)) and due[stop] == due[first]:
            stop += 1
        yield first, stop
        first = stop


def feed(path, due_file, port, start, log):
    """Prints how late the latest datagram was, in seconds after it was meant to go."""
    due, sent, latest = score.read_times(due_file), [], 0.0
    with open(path, "rb") as file:
        data = memoryview(file.read())
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    out.connect((HERE, port))
    free = start
    for first, stop in groups(due):
        when = max(start + due[first], free)
        wait = when - time.monotonic()
        if wait > 0:
            time.sleep(wait)
        now = time.monotonic()
        try:
            out.send(data[first * ts.PACKET : stop * ts.PACKET])
        except ConnectionRefusedError:
            pass  # nobody listens any more; a camera would not notice either
        sent += [now] * (stop - first)
        latest = max(latest, now - when)
        # From the moment that was meant, so that a late wake-up does not slow the rest down, but not from long ago.
        free = max(when, now - 0.005) + (stop - first) * ts.PACKET * 8 / BURST_BITS_PER_S
    with open(log, "wb") as file:
        file.write(score.pack_times(sent))
    print(f"{latest:.6f}", flush=True)


def clocks():
    """Returns by how much the clock of the day is ahead of the monotonic one, and true if that is exact enough."""
    before = time.monotonic()
    day = time.time()
    after = time.monotonic()
    return day - (before + after) / 2, after - before < score.CLOCKS_S / 10


def sink(port, log):
    """The kernel stamps what comes, so that this program may be late; the stamp is taken to the monotonic clock."""
    it = receiver(port)
    it.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    offset, exact = clocks()
    while not exact:
        offset, exact = clocks()
    with open(log, "wb", buffering=1 << 20) as file:
        try:
            while True:
                datagram, extra, _, _ = it.recvmsg(65_536, 64)
                came = time.monotonic()
                # Anew for each, as the clock of the day may be set; but not where this program was interrupted.
                now, exact = clocks()
                offset = now if exact else offset
                for level, kind, stamp in extra:
                    if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPNS):
                        seconds, nanos = struct.unpack("ll", stamp[:16])
                        came = min(came, seconds + nanos / 1e9 - offset)
                file.write(score.RECORD.pack(came, len(datagram)) + datagram)
        except Ended:
            pass


def fork(port, forward):
    """One socket towards each destination, so that answers are told apart."""
    front = receiver(port)
    back, peers = [], [None] * len(forward)
    for to in forward:
        it = receiver(0)
        it.connect((HERE, int(to.rsplit(":", 1)[-1])))
        back.append(it)
    for it in [front, *back]:
        it.setblocking(False)
    while True:
        for it in select.select([front, *back], [], [])[0]:
            try:
                while True:
                    if it is front:
                        datagram, peer = it.recvfrom(65_536)
                        which = int(peer[0].rsplit(".", 1)[1]) - 2
                        if 0 <= which < len(back):
                            peers[which] = peer
                            back[which].send(datagram)
                    else:
                        datagram = it.recv(65_536)
                        if peers[back.index(it)]:
                            front.sendto(datagram, peers[back.index(it)])
            except (BlockingIOError, ConnectionRefusedError):
                pass


def main():
    for sign in (signal.SIGINT, signal.SIGTERM):
        signal.signal(sign, end)
    try:
        what, *words = sys.argv[1:]
        if what == "feed":
            feed(words[0], words[1], int(words[2]), float(words[3]), words[4])
        elif what == "sink":
            sink(int(words[0]), words[1])
        elif what == "fork":
            fork(int(words[0]), words[1:])
        else:
            raise ValueError
    except (ValueError, IndexError):
        raise SystemExit(__doc__)
    except Ended:
        pass


if __name__ == "__main__":
    main()
