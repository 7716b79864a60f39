"""Which frames came out whole, how long after they went in, and which of them a player can show.

Packets are recognised by their content, so that no system's own statistics are believed."""
import collections
import struct

import ts

# A frame may be this much later than the latency that was asked for.
TOLERANCE_S = 0.05
# Peers whose buffer starts later than the capture are also held against this.
WIDE_S = 0.2
RECORD = struct.Struct("<dI")
# The kernel's clock of arrivals is taken to the feeder's this exactly, or better.
CLOCKS_S = 0.001
VIDEO = "IPRB"


def pack_times(seconds):
    return struct.pack(f"<{len(seconds)}d", *seconds)


def read_times(path):
    """Returns a time for each packet of the clip: when it is due, or when it was sent, in seconds."""
    with open(path, "rb") as file:
        return [time for (time,) in struct.iter_unpack("<d", file.read())]


def read_log(path):
    """Yields (seconds, datagram) as the sink noted them; a last record that was cut short is left out."""
    with open(path, "rb") as file:
        while len(head := file.read(RECORD.size)) == RECORD.size:
            time, length = RECORD.unpack(head)
            datagram = file.read(length)
            if len(datagram) < length:
                return
            yield time, datagram


def arrivals(clip, sent, log, latency_s):
    """Returns when each packet of the clip came out (None: never), and counts of unknown packets and of
    second copies."""
    places = collections.defaultdict(list)
    for number, key in enumerate(clip.keys):
        if key is not None:
            places[key].append(number)
    out, unknown, twice = [None] * len(clip.keys), 0, 0
    for time, datagram in log:
        for at in range(0, len(datagram) - ts.PACKET + 1, ts.PACKET):
            packet = datagram[at : at + ts.PACKET]
            numbers = places.get(ts.key(packet))
            if numbers is None:
                unknown += packet[0] != ts.SYNC or ts.pid(packet) not in clip.other_pids
                continue
            free = [number for number in numbers if out[number] is None and sent[number] <= time + CLOCKS_S]
            if free:
                # Of equal packets the one whose delay is then the nearest to the nominal one.
                out[min(free, key=lambda number: abs(time - sent[number] - latency_s))] = time
            else:
                twice += 1
    return out, unknown, twice


def delays(clip, sent, out):
    """Returns the delay of each frame in seconds: the largest of its packets', None if one never came."""
    found = []
    for frame in clip.frames:
        whole = all(out[number] is not None for number in frame.packets)
        found.append(max(out[number] - sent[number] for number in frame.packets) if whole else None)
    return found


def playable(kinds, good):
    """Returns for each frame in decoding order whether a player can show it: `good`, and so is all that it needs.

    I needs nothing, P and R the chain of I and P before them, B that chain and the R of its group if there is one."""
    shown, chain, middle = [], False, True
    for kind, is_good in zip(kinds, good):
        if kind == "A":
            can = is_good
        elif kind == "I":
            can = chain = is_good
            middle = True
        elif kind == "P":
            can = chain = chain and is_good
            middle = True
        elif kind == "R":
            can = middle = chain and is_good
        else:
            can = chain and middle and is_good
        shown.append(can)
    return shown


def share(values):
    """Returns the share of true values, 1 of none."""
    values = list(values)
    return sum(values) / len(values) if values else 1.0


def shares(kinds, delay, latency_s):
    """Returns the figures of a run from its frames' kinds and delays in seconds; shares are from 0 to 1."""
    good = [d is not None and d <= latency_s + TOLERANCE_S for d in delay]
    shown = playable(kinds, good)

    def of(which, values):
        return share(value for kind, value in zip(kinds, values) if kind in which)

    came = sorted(d for kind, d in zip(kinds, delay) if kind in VIDEO and d is not None)
    return {
        "video": of(VIDEO, good),
        "video_wide": of(VIDEO, [d is not None and d <= latency_s + WIDE_S for d in delay]),
        "video_ever": of(VIDEO, [d is not None for d in delay]),
        "playable": of(VIDEO, shown),
        "I": of("I", good),
        "P": of("P", good),
        "B": of("RB", good),
        "audio": of("A", good),
        "delay_p50_s": came[len(came) // 2] if came else None,
        "delay_p99_s": came[len(came) * 99 // 100] if came else None,
    }


def score(path, sent_file, log_file, latency_s):
    """Returns (figures, frames) of a run; each frame is (capture in s, bytes, kind, delay in s or None)."""
    clip, sent = ts.read(str(path)), read_times(sent_file)
    if len(sent) != len(clip.keys):
        raise ValueError(f"the feeder sent {len(sent)} of {len(clip.keys)} packets")
    out, unknown, twice = arrivals(clip, sent, read_log(log_file), latency_s)
    delay = delays(clip, sent, out)
    figures = shares([frame.kind for frame in clip.frames], delay, latency_s)
    figures.update(unknown_packets=unknown, second_copies=twice)
    frames = [(round(f.capture_s, 4), f.bytes, f.kind, d and round(d, 4)) for f, d in zip(clip.frames, delay)]
    return figures, frames
