"""What is received, and what happens to connections."""

import enum


class Message(bytes):
    """A message that was received: its bytes, and what is known of it."""

    #: The stream it came on.
    stream: int
    #: What the sender said of its kind.
    ppid: int
    #: Whether it was sent outside the order of its stream.
    unordered: bool

    def __new__(cls, data=b"", *, stream=0, ppid=0, unordered=False):
        it = super().__new__(cls, data)
        it.stream, it.ppid, it.unordered = stream, ppid, unordered
        return it

    def __repr__(self):
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
    NO_ANSWER = "no answer"
    PATHS_FAILED = "paths failed"
    INSECURE = "insecure"
    VIOLATION = "violation"
    OTHER = "other"
