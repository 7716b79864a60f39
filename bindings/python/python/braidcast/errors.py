"""What goes wrong: every exception of the package is an Error."""


class Error(Exception):
    """What went wrong, in words."""


class NoConnection(Error):
    """There is no such connection, or it is over."""


class BufferFull(Error, BlockingIOError):
    """There is no room for the message: wait for the event "writable"."""


class Misuse(Error, ValueError):
    """An argument cannot be what it is."""


class SystemFailure(Error, OSError):
    """A system call failed."""


class Broken(Error, RuntimeError):
    """A bug in the library broke the socket: drop it."""
