"""Messages over several networks at once, encrypted, and a lab that simulates networks.

Socket carries messages over several paths; braidcast.aio does so on asyncio's loop. run() runs a scenario
of the lab; its Results become a pandas frame.
"""

from ._native import Event, Socket, __version__, fingerprint
from .errors import Broken, BufferFull, Error, Misuse, NoConnection, SystemFailure
from .lab import Results, concat, run, scenarios
from .message import Insecurity, Kind, Message, Reason, Timing

__all__ = [
    "Broken", "BufferFull", "Error", "Event", "Insecurity", "Kind", "Message", "Misuse", "NoConnection", "Reason", "Results",
    "Socket", "SystemFailure", "Timing", "__version__", "concat", "fingerprint", "run", "scenarios",
]
