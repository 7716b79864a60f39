"""What is received, and what happens to connections."""

from __future__ import annotations

import enum
from typing import Any


class Message(bytes):
    """A message that was received: its bytes, and what is known of it."""

    #: The stream it came on.
    stream: int
    #: What the sender said of its kind.
    ppid: int
    #: Whether it was sent outside the order of its stream.
    unordered: bool

    def __new__(cls, data: Any = b"", *, stream: int = 0, ppid: int = 0, unordered: bool = False) -> Message:
        it = super().__new__(cls, data)
        it.stream, it.ppid, it.unordered = stream, ppid, unordered
        return it

    def __repr__(self) -> str:
        return f"<braidcast.Message of {len(self)} bytes, stream={self.stream} ppid={self.ppid}>"


class Kind(str, enum.Enum):
    """The kinds of events. Each equals its value, so that event.kind == "closed" is good too."""

    CONNECTED = "connected"
    READABLE = "readable"
    WRITABLE = "writable"
    PATH_UP = "path up"
    PATH_DOWN = "path down"
    DISCARDED = "discarded"
    DELIVERED = "delivered"
    RESTARTED = "restarted"
    CLOSED = "closed"
    OTHER = "other"


class Reason(str, enum.Enum):
    """Why a connection is over: Event.reason of "closed"."""

    SHUTDOWN = "shutdown"
    ABORTED = "aborted"
    ABORTED_BY_PEER = "aborted by peer"
    PEER_RESTARTED = "peer restarted"
    NO_ANSWER = "no answer"
    UNRESOLVED = "unresolved"
    PATHS_FAILED = "paths failed"
    WRONG_KEY = "wrong key"
    NOT_LET_IN = "not let in"
    INSECURE = "insecure"
    VIOLATION = "violation"
    OTHER = "other"
