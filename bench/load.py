"""Generate load: keep-alive connections with one request in flight on each."""

import asyncio
import gc
import re
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

FRESH = "<fresh>"  # in a request: a different value each time
LONGEST_S = 120.0
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


@dataclass(slots=True)
class Load:
    """The counts and times of a load. `spent` is what the given clock counted meanwhile."""

    done: int = 0
    bad: int = 0
    seconds: float = 0.0
    spent: float = 0.0
    took_ms: list[float] = field(default_factory=list)


class _Turn:
    """Requests that are handed out to connections until all are sent, and counted when they are answered."""

    def __init__(self, total: int) -> None:
        self.load, self._total, self._left = Load(), total, total
        self.finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def take(self) -> bool:
        """Return True if one more request is to be sent."""
        self._left -= 1
        return self._left >= 0

    def count(self, answer: bytes, took_ms: float) -> None:
        self.load.done += 1
        self.load.bad += not answer.startswith(b"HTTP/1.1 200")
        self.load.took_ms.append(took_ms)
        if self.load.done == self._total and not self.finished.done():
            self.finished.set_result(None)

    def fail(self, error: Exception) -> None:
        if not self.finished.done():
            self.finished.set_exception(error)


class _Connection(asyncio.Protocol):
    """A connection that asks in one turn after the other; if `again` is given, it closes after one answer."""

    def __init__(self, make: Callable[[], bytes], again: Callable[[], None] | None = None) -> None:
        self._make, self._again = make, again
        self._turn: _Turn | None = None
        self._buffer = b""
        self._asked_at = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def ask(self, turn: _Turn) -> None:
        self._turn, self._asked_at = turn, time.perf_counter()
        self.transport.write(self._make())  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head = self._buffer.find(b"\r\n\r\n")
        if head < 0:
            return
        length = _LENGTH.search(self._buffer, 0, head + 2)
        end = head + 4 + (int(length[1]) if length else 0)
        if len(self._buffer) < end or self._turn is None:
            return
        turn, self._turn = self._turn, None
        turn.count(self._buffer, (time.perf_counter() - self._asked_at) * 1e3)
        self._buffer = self._buffer[end:]
        if self._again is not None:
            self.transport.close()
            self._again()
        elif turn.take():
            self.ask(turn)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._turn is not None:
            self._turn.fail(exc or ConnectionError("the server closed a connection"))


def _prepare(request: bytes) -> Callable[[], bytes]:
    """Return a function that makes the request, with random letters in place of `FRESH`."""
    head, found, tail = request.partition(FRESH.encode())
    return (lambda: head + secrets.token_hex(16).encode() + tail) if found else (lambda: request)


async def _open(port: int, make: Callable[[], bytes], again: Callable[[], None] | None = None) -> _Connection:
    loop = asyncio.get_running_loop()
    _, made = await loop.create_connection(lambda: _Connection(make, again), "127.0.0.1", port)
    return made


async def _ask_kept(opened: list[_Connection], total: int) -> Load:
    """Send requests over open connections, until all are answered."""
    turn = _Turn(total)
    for connection in opened:
        if turn.take():
            connection.ask(turn)
    await asyncio.wait_for(turn.finished, LONGEST_S)
    return turn.load


async def _ask_anew(port: int, make: Callable[[], bytes], total: int, connections: int) -> Load:
    """Send each request over a new connection, this many at the same time, until all are answered."""
    turn, opening = _Turn(total), set[asyncio.Task[None]]()

    async def open_one() -> None:
        (await _open(port, make, open_next)).ask(turn)

    def finish(task: asyncio.Task[None]) -> None:
        opening.discard(task)
        if not task.cancelled() and (error := task.exception()):
            turn.fail(error if isinstance(error, Exception) else ConnectionError(str(error)))

    def open_next() -> None:
        if turn.take():
            opening.add(task := asyncio.create_task(open_one()))
            task.add_done_callback(finish)

    for _ in range(connections):
        open_next()
    await asyncio.wait_for(turn.finished, LONGEST_S)
    return turn.load


@contextmanager
def _no_garbage_search() -> Iterator[None]:
    """Keep this process from searching for garbage meanwhile: a pause of the load would count as the server's."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _no_clock() -> float:
    return 0.0


async def run(
    port: int,
    request: bytes,
    *,
    total: int,
    connections: int = 32,
    is_new: bool = False,
    clock: Callable[[], float] = _no_clock,
) -> Load:
    """Send `total` requests over this number of connections; if `is_new`, each request opens a new one.

    Kept connections are opened, and have had one answer each, before anything is counted; and nothing is in flight
    when the count ends. Raises ConnectionError when one is closed.
    """
    make = _prepare(request)
    opened = [] if is_new else [await _open(port, make) for _ in range(connections)]
    if opened:
        await _ask_kept(opened, connections)
    with _no_garbage_search():
        begun, before = time.perf_counter(), clock()
        load = await (_ask_anew(port, make, total, connections) if is_new else _ask_kept(opened, total))
        load.spent, load.seconds = clock() - before, time.perf_counter() - begun
    for connection in opened:
        connection.transport.abort()  # type: ignore[attr-defined]
    await asyncio.sleep(0)
    return load
