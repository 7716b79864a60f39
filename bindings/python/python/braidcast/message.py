"""What is received, and what happens to connections."""

from __future__ import annotations

import enum
from typing import Any, NamedTuple, Optional


class Timing(NamedTuple):
    """How old a message is, and for how long its deadline was over when it came, in seconds."""

    #: From when it was given to the sender until it could be received.
    age: float
    #: 0: it came in time.
    late: float
    #: How far both may be off: there is no clock that both ends have.
    uncertainty: float


class Message(bytes):
    """A message that was received: its bytes, and what is known of it."""

    #: The stream it came on.
    stream: int
    #: What the sender said of its kind.
    ppid: int
    #: Whether it was sent outside the order of its stream.
    unordered: bool
    #: Known of most messages with a deadline; None of all others.
    timing: Optional[Timing]

    def __new__(
        cls,
        data: Any = b"",
        *,
        stream: int = 0,
        ppid: int = 0,
        unordered: bool = False,
        timing: Optional[tuple[float, float, float]] = None,
    ) -> Message:
        it = super().__new__(cls, data)
        it.stream, it.ppid, it.unordered = stream, ppid, unordered
        it.timing = None if timing is None else Timing(*timing)
        return it

    @property
    def is_late(self) -> bool:
        """Whether it is known to have come after its deadline, as the delay grew while it was under way."""
        return self.timing is not None and self.timing.late > 0

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
    #: The other end's transport ended it, for example as nobody listens there.
    BY_TRANSPORT = "by transport"
    VIOLATION = "violation"
    OTHER = "other"


class Insecurity(enum.IntEnum):
    """Why a connection would not be secure: Event.code of "closed"."""

    #: Another reason.
    OTHER = 0
    #: The other end has a key that this end does not let in.
    WRONG_KEY = 1
    #: The other end does not let in this end's key.
    NOT_LET_IN = 2
    #: The other end does not encrypt, and this end does.
    PLAIN_THERE = 3
    #: This end does not encrypt, and the other end does.
    PLAIN_HERE = 4
    #: The ends know no common way to agree on keys: use the same version.
    VERSION = 5
    #: Somebody in between changed what the ends offered each other, or their versions differ.
    ALTERED = 6
    #: This end has a key, and the other end has none.
    NO_KEY_THERE = 7
    #: The other end has a key, and this end has none.
    NO_KEY_HERE = 8
    #: This end has a certificate, and the other end has none.
    NO_CERTIFICATE_THERE = 9
    #: The other end has a certificate, and this end has none.
    NO_CERTIFICATE_HERE = 10
    #: This end takes only keys that it knows, and the other end has none of its own.
    UNKNOWN_THERE = 11
    #: The other end takes only keys that it knows, and this end has none of its own.
    UNKNOWN_HERE = 12
    #: A certificate is not valid at this time.
    CLOCK = 13
    #: The certificate is for another host.
    WRONG_HOST = 14
    #: A certificate is not good for another reason.
    CERTIFICATE = 15
    #: The other end agreed on no keys in time.
    SILENT = 16
    #: The other end showed another key in the middle of the connection.
    CHANGED = 17
    #: Keys were used up before new ones were agreed on.
    SPENT = 18
