"""Live media: a transport stream, or access units, in at one end and out on time at the other.

Sender and Receiver run in threads of their own; events() hands out what they say on asyncio's loop.
"""

from __future__ import annotations

import asyncio
import enum
from typing import AsyncIterator, Union

from ._native import MediaEvent, Receiver, Sender, Unit
from .errors import NoConnection
from .message import Reason

__all__ = ["Coding", "Kind", "MediaEvent", "Reason", "Receiver", "Sender", "Unit", "events"]


class Coding(str, enum.Enum):
    """What a track is coded as."""

    #: H.264 with start codes.
    H264 = "h264"
    #: H.265 with start codes.
    H265 = "h265"
    #: AAC, each frame with its ADTS header.
    AAC = "aac"
    MPEG_AUDIO = "mpeg audio"
    AC3 = "ac3"
    #: Opus packets.
    OPUS = "opus"


class Kind(str, enum.Enum):
    """The kinds of events. Each equals its value, so that event.kind == "unit" is good too."""

    #: Sender: a receiver takes the stream from here on. Receiver: a sender is there; text is its stream's name.
    CONNECTED = "connected"
    #: The other end is gone, and is waited for.
    LOST = "lost"
    #: Receiver: the sender is back.
    BACK = "back"
    #: Receiver: another sender took the place of a silent one.
    RESTARTED = "restarted"
    #: Receiver: the sender's clock jumped.
    CLOCK_JUMPED = "clock jumped"
    #: Sender: another stream is being received; this one has its turn after it.
    IN_LINE = "in line"
    PATH_UP = "path up"
    PATH_DOWN = "path down"
    #: Somebody was turned away.
    REFUSED = "refused"
    #: Something did not go as asked.
    WARNING = "warning"
    #: Receiver: bytes of a stream are due.
    BYTES = "bytes"
    #: Receiver: an access unit of a stream is due.
    UNIT = "unit"
    #: It is over.
    ENDED = "ended"
    OTHER = "other"


async def events(end: Union[Sender, Receiver]) -> AsyncIterator[MediaEvent]:
    """The events of a Sender or Receiver as they come, until it is over."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    descriptor = end.fileno()
    loop.add_reader(descriptor, ready.set)
    try:
        while True:
            ready.clear()
            try:
                while event := end.poll(0):
                    yield event
            except NoConnection:
                return
            await ready.wait()
    finally:
        loop.remove_reader(descriptor)
