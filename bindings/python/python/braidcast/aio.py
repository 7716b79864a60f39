"""Sockets on asyncio's loop: connect() and serve(), and messages by `async for`.

    paths = ["home.example:9000@wlan0", "home.example:9000@wwan0"]
    async with await braidcast.aio.connect(paths, key=KEY) as connection:
        await connection.send(b"hello", deadline=0.2)
        async for message in connection:
            ...

Everything is of one loop and its thread. A task that is cancelled while it waits loses no message, and
sends none twice.
"""

from __future__ import annotations

import asyncio
import collections
import types
from typing import Any, AsyncIterator, Callable, Dict, Iterable, List, Optional, Sequence, Tuple, Type, Union

from . import Event, Kind, Message, NoConnection, Reason
from . import Socket as BlockingSocket
from .errors import BufferFull, Error

Path = Union[str, Tuple[str, Optional[str]]]

__all__ = ["Closed", "Connection", "Socket", "connect", "serve"]


class Closed(Error):
    """The connection ended otherwise than in good order; event says how."""

    def __init__(self, event: Event) -> None:
        super().__init__(event.text or str(event.reason))
        self.event = event


class _Bell:
    """Wakes all who wait for it."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def ring(self) -> None:
        self._event.set()
        self._event = asyncio.Event()

    def next_ring(self) -> asyncio.Event:
        """Is set when it rings from now on: who looks for something meanwhile misses nothing."""
        return self._event

    async def wait(self) -> None:
        await self._event.wait()


class Connection:
    """A connection of a Socket, of connect() or accept()."""

    #: Called with each Event of the connection, on the loop; for example "discarded" and "path down".
    on_event: Optional[Callable[[Event], None]] = None

    def __init__(self, socket: Socket, number: int) -> None:
        self.socket = socket
        #: Its number in the events and calls of socket.blocking.
        self.id = number
        self._bell = _Bell()
        self._connected = False
        self._end: Optional[Event] = None
        self._owns_socket = False

    async def send(self, data: Any, **how: Any) -> None:
        """Takes a message to be sent as soon as there is room for it. how: as of braidcast.Socket.send.
        Raises NoConnection if the connection is over."""
        while True:
            self.socket._check()
            try:
                return self.send_now(data, **how)
            except BufferFull:
                await self._bell.wait()

    def send_now(self, data: Any, **how: Any) -> None:
        """The same without waiting; raises BufferFull if there is no room."""
        self.socket.blocking.send(self.id, data, **how)
        self.socket._run()

    async def recv(self) -> Optional[Message]:
        """The next message; None once the connection is over and all that came was received."""
        while True:
            self.socket._check()
            ring = self._bell.next_ring()
            message = self.socket.blocking.recv(self.id)
            if message is not None:
                self.socket._run()
                return message
            if self._end is not None:
                return None
            # What was read last may have been what held up the end.
            self.socket._run()
            if self._end is None:
                await ring.wait()

    async def __aiter__(self) -> AsyncIterator[Message]:
        while (message := await self.recv()) is not None:
            yield message

    async def closed(self) -> Event:
        """Waits for the event "closed": reason, code and unsettled say what came of it. It comes once all
        that came was received."""
        while self._end is None:
            self.socket._check()
            await self._bell.wait()
        return self._end

    async def shutdown(self) -> None:
        """Ends it once everything that was sent is acknowledged, and waits for that; what still comes is
        lost. Raises Closed if it ended otherwise."""
        if self._end is None:
            self.socket.blocking.shutdown(self.id)
            self.socket._run()
        while await self.recv() is not None:
            pass
        end = await self.closed()
        if end.reason != Reason.SHUTDOWN:
            raise Closed(end)

    def abort(self, reason: Any = None, *, code: int = 0) -> None:
        """Ends it at once; the other end is told both. reason is a str or bytes."""
        try:
            self.socket.blocking.abort(self.id, reason, code=code)
        except NoConnection:
            return
        self.socket._run()

    @property
    def peer(self) -> Optional[str]:
        """The fingerprint of the other end's key; None if nothing is encrypted, or the connection is over."""
        return None if self._end else self.socket.blocking.peer(self.id)

    def paths(self) -> List[Dict[str, Any]]:
        """Its paths as they are now, as of braidcast.Socket.paths."""
        return [] if self._end else self.socket.blocking.paths(self.id)

    def buffered(self) -> int:
        """Bytes of messages that wait or are not acknowledged yet."""
        return 0 if self._end else self.socket.blocking.buffered(self.id)

    async def __aenter__(self) -> Connection:
        return self

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], value: Optional[BaseException], trace: Optional[types.TracebackType]
    ) -> None:
        try:
            if kind is None:
                await self.shutdown()
            else:
                self.abort("an exception ended the program")
        finally:
            if self._owns_socket:
                self.socket._stop()


class Socket:
    """Runs a braidcast.Socket on the running loop. `async for connection in socket` accepts."""

    #: Where it listens, of serve().
    addresses: List[str]
    _server: Optional[asyncio.Future[None]] = None

    def __init__(self, blocking: BlockingSocket) -> None:
        self.addresses = []
        #: What it runs, for calls that do not wait.
        self.blocking = blocking
        self._loop = asyncio.get_running_loop()
        self._connections: Dict[int, Connection] = {}
        self._accepted: collections.deque[Connection] = collections.deque()
        self._bell = _Bell()
        self._failure: Optional[BaseException] = None
        self._closing = self._stopped = self._running = False
        self._loop.add_reader(blocking.fileno(), self._run)

    async def accept(self) -> Connection:
        """Waits for the next connection that another end begins."""
        while not self._accepted:
            self._check()
            await self._bell.wait()
        return self._accepted.popleft()

    async def __aiter__(self) -> AsyncIterator[Connection]:
        while not self._closing:
            yield await self.accept()

    async def connect(self, paths: Sequence[Path]) -> Connection:
        """Connects over these paths. Raises Closed with what came of it."""
        number = self.blocking.connect(paths)
        connection = self._connections[number] = Connection(self, number)
        self._run()
        try:
            while not connection._connected and connection._end is None:
                self._check()
                await connection._bell.wait()
        except asyncio.CancelledError:
            connection.abort("it took too long")
            raise
        if connection._end is not None:
            raise Closed(connection._end)
        return connection

    async def close(self, timeout: float = 5.0) -> bool:
        """Ends all connections once everything that was sent is acknowledged. What still comes is lost.
        Returns whether all ended in good order within timeout seconds."""
        self._closing = True
        all_of_them = list(self._connections.values())
        for connection in all_of_them:
            self.blocking.shutdown(connection.id)
            while self.blocking.recv(connection.id) is not None:
                pass
        self._run()
        try:
            ends = await asyncio.wait_for(asyncio.gather(*(it.closed() for it in all_of_them)), timeout)
            return all(end.reason == Reason.SHUTDOWN for end in ends)
        except asyncio.TimeoutError:
            return False
        finally:
            self._stop()

    async def __aenter__(self) -> Socket:
        return self

    async def __aexit__(self, *exception: Any) -> None:
        await self.close()

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._stopped:
            raise Error("the socket is closed")

    def _stop(self) -> None:
        self._stopped = True
        if self._server is not None:
            self._server.cancel()
        self._loop.remove_reader(self.blocking.fileno())
        self._wake_all()

    def _wake_all(self) -> None:
        self._bell.ring()
        for connection in self._connections.values():
            connection._bell.ring()

    def _run(self) -> None:
        """Does what there is to do."""
        if self._stopped or self._running:
            return
        self._running = True
        try:
            while (event := self.blocking.poll(0)) is not None:
                self._happened(event)
        except Exception as failure:  # Whoever waits gets it; asyncio would only log it.
            self._failure = failure
            self._loop.remove_reader(self.blocking.fileno())
            self._wake_all()
        finally:
            self._running = False

    def _happened(self, event: Event) -> None:
        connection = self._connections.get(event.connection)
        if connection is None:
            connection = self._connections[event.connection] = Connection(self, event.connection)
            self._accepted.append(connection)
            self._bell.ring()
        if event.kind == Kind.CONNECTED:
            connection._connected = True
        elif event.kind == Kind.READABLE and self._closing:
            while self.blocking.recv(event.connection) is not None:
                pass
        elif event.kind == Kind.CLOSED:
            connection._end = event
            del self._connections[event.connection]
            if connection in self._accepted:
                # Nothing is left to read: who accepts late need not hear of it.
                self._accepted.remove(connection)
        connection._bell.ring()
        if connection.on_event is not None:
            try:
                connection.on_event(event)
            except Exception as error:  # One connection's, and no reason for others to end.
                self._loop.call_exception_handler({"message": "braidcast: on_event failed", "exception": error})


async def connect(paths: Sequence[Path], **how: Any) -> Connection:
    """Connects over these paths with a socket of its own. how: as braidcast.Socket takes it. Leaving its
    `async with` shuts it down. Raises Closed with what came of it."""
    socket = Socket(await asyncio.to_thread(lambda: BlockingSocket(**how)))
    try:
        connection = await socket.connect(paths)
    except BaseException:
        socket._stop()
        raise
    connection._owns_socket = True
    return connection


async def serve(
    addresses: Iterable[str], handler: Optional[Callable[[Connection], Any]] = None, **how: Any
) -> Socket:
    """Listens at these addresses; the socket's addresses has them with their ports. how: as
    braidcast.Socket takes it. With a handler, a coroutine function, each connection gets a task of its own;
    one whose handler raises is aborted."""
    blocking = await asyncio.to_thread(lambda: BlockingSocket(**how))
    # Before the loop knows of it: an address that is taken leaves nothing behind.
    bound = [blocking.bind(address) for address in addresses]
    blocking.listen()
    socket = Socket(blocking)
    socket.addresses = bound
    if handler is not None:
        socket._server = asyncio.ensure_future(_serve(socket, handler))
    return socket


async def _serve(socket: Socket, handler: Callable[[Connection], Any]) -> None:
    tasks = set()
    async for connection in socket:
        task = asyncio.ensure_future(_handle(handler, connection))
        tasks.add(task)
        task.add_done_callback(tasks.discard)


async def _handle(handler: Callable[[Connection], Any], connection: Connection) -> None:
    try:
        await handler(connection)
    except BaseException:
        # Nobody has it any more who could end it.
        connection.abort("an exception ended its handler")
        raise
