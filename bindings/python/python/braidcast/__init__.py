"""Messages over several networks at once, encrypted, and a lab that simulates networks.

Socket carries messages over several paths. run() runs a scenario of the lab; its Results become a pandas frame.
"""

from ._native import Error, Event, NoConnection, Socket
from .lab import Results, concat, run, scenarios

__all__ = ["Error", "Event", "NoConnection", "Results", "Socket", "concat", "run", "scenarios"]
