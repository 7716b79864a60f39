"""What an MPEG transport stream holds: its frames, their sizes, capture times and kinds, packet by packet
(ISO/IEC 13818-1)."""
import functools
from pathlib import Path
from typing import List, NamedTuple, Optional, Set

PACKET = 188
SYNC = 0x47
CLOCK_HZ = 90_000


class Frame(NamedTuple):
    """A coded picture, or one PES packet of audio."""

    kind: str  # I, P, R (a B frame that others need), B, or A for audio
    packets: List[int]  # where its packets are in the file
    capture_s: float  # seconds since the first frame, never falling

    @property
    def bytes(self):
        return len(self.packets) * PACKET


class Clip(NamedTuple):
    frames: List[Frame]
    keys: List[Optional[bytes]]  # what each packet is recognised by; None where a packet belongs to no frame
    due_s: List[float]  # when each packet leaves the encoder
    other_pids: Set[int]  # PIDs of packets that belong to no frame, for example tables

    @property
    def seconds(self):
        return self.due_s[-1] if self.due_s else 0.0


def pid(packet):
    return (packet[1] & 0x1F) << 8 | packet[2]


def payload(packet):
    """Returns what follows the header and the adaptation field (§2.4.3.2)."""
    control = packet[3] >> 4 & 3
    if not control & 1:
        return b""
    return packet[5 + packet[4] :] if control & 2 else packet[4:]


def key(packet):
    """Returns what a packet is recognised by. Continuity counters and clocks are left out: a multiplexer
    may rewrite them."""
    return bytes(packet[1:3]) + payload(packet)


def decoding_time(pes):
    """Returns the DTS of a PES header in ticks of 90 kHz, else its PTS, else None (§2.4.3.7)."""
    if len(pes) < 19 or pes[:3] != b"\0\0\1" or not pes[7] & 0x80:
        return None
    five = pes[14:19] if pes[7] & 0x40 else pes[9:14]
    bits = int.from_bytes(five, "big")
    return bits >> 3 & 0x1C000_0000 | bits >> 2 & 0x3FFF_8000 | bits >> 1 & 0x7FFF


class _Bits:
    """Unsigned Exp-Golomb numbers at the start of a slice header (ITU-T H.264 §9.1)."""

    def __init__(self, data):
        self.text = "".join(f"{byte:08b}" for byte in data)

    def ue(self):
        zeros = len(self.text) - len(self.text.lstrip("0"))
        number = int(self.text[zeros : 2 * zeros + 1] or "1", 2) - 1
        self.text = self.text[2 * zeros + 1 :]
        return number


def picture_kind(data):
    """Returns the kind of an H.264 frame by its first slice (§7.3.3), or `?` where there is none."""
    at = data.find(b"\0\0\1")
    while at >= 0 and at + 4 < len(data):
        importance, unit = data[at + 3] >> 5 & 3, data[at + 3] & 31
        if unit in (1, 5):
            bits = _Bits(data[at + 4 : at + 16])
            bits.ue()  # first_mb_in_slice
            slice_type = bits.ue() % 5
            if unit == 5 or slice_type in (2, 4):
                return "I"
            if slice_type in (0, 3):
                return "P"
            return "R" if importance else "B"
        at = data.find(b"\0\0\1", at + 3)
    return "?"


@functools.lru_cache(None)
def read(path):
    """Returns the `Clip` in a file. Audio and video with a PES header count; tables belong to no frame."""
    data = Path(path).read_bytes()
    packets = [data[at : at + PACKET] for at in range(0, len(data) - PACKET + 1, PACKET)]
    if not packets or any(packet[0] != SYNC for packet in packets):
        raise SystemExit(f"{path} is not an MPEG-TS file of whole packets: make one with `field.py clip`")
    keys, due, units, current = [None] * len(packets), [], [], {}
    first, latest = None, 0
    for number, packet in enumerate(packets):
        if packet[1] & 0x40:
            pes = payload(packet)
            time = decoding_time(pes)
            current.pop(pid(packet), None)
            if time is not None and 0xC0 <= pes[3] <= 0xEF:
                first = time if first is None else first
                latest = max(latest, time - first)
                unit = ["V" if pes[3] >= 0xE0 else "A", [], latest / CLOCK_HZ]
                current[pid(packet)] = unit
                units.append(unit)
        due.append(latest / CLOCK_HZ)
        if pid(packet) in current:
            current[pid(packet)][1].append(number)
            keys[number] = key(packet)
    frames = []
    for kind, numbers, time in units:
        if kind == "V":
            kind = picture_kind(b"".join(payload(packets[number]) for number in numbers))
        frames.append(Frame(kind, numbers, time))
    other = {pid(packet) for packet, known in zip(packets, keys) if known is None}
    return Clip(frames, keys, due, other)
