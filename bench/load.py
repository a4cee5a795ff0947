"""Generate load: keep-alive connections with one request in flight on each."""

import asyncio
import re
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field

FRESH = "<fresh>"  # in a request: a different value each time
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


@dataclass(slots=True)
class Load:
    """The counts and times of a load."""

    done: int = 0
    bad: int = 0
    seconds: float = 0.0
    took_ms: list[float] = field(default_factory=list)


class _Connection(asyncio.Protocol):
    def __init__(
        self,
        make: Callable[[], bytes],
        load: Load,
        total: int,
        finished: asyncio.Future[None],
        again: Callable[[], None] | None = None,
    ) -> None:
        self._make, self._load, self._total, self._finished = make, load, total, finished
        self._again = again
        self._buffer = b""
        self._asked_at = 0.0
        self._is_over = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._ask()

    def _ask(self) -> None:
        self._asked_at = time.perf_counter()
        self._transport.write(self._make())  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head = self._buffer.find(b"\r\n\r\n")
        if head < 0:
            return
        length = _LENGTH.search(self._buffer, 0, head + 2)
        end = head + 4 + (int(length[1]) if length else 0)
        if len(self._buffer) < end:
            return
        if self._buffer[9:12] != b"200":
            self._load.bad += 1
        self._buffer = self._buffer[end:]
        self._load.done += 1
        self._load.took_ms.append((time.perf_counter() - self._asked_at) * 1e3)
        if self._load.done >= self._total:
            if not self._finished.done():
                self._finished.set_result(None)
        elif self._again is None:
            self._ask()
        else:
            again, self._again = self._again, None
            self._is_over = True
            self._transport.close()
            again()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._finished.done() and not self._is_over:
            self._finished.set_exception(exc or ConnectionError("the server closed a connection"))


def _prepare(request: bytes) -> Callable[[], bytes]:
    """Return a function that makes the request, with random letters in place of `FRESH`."""
    head, found, tail = request.partition(FRESH.encode())
    return (lambda: head + secrets.token_hex(16).encode() + tail) if found else (lambda: request)


async def run(port: int, request: bytes, *, total: int, connections: int = 32, is_new: bool = False) -> Load:
    """Send `total` requests over this number of connections; if `is_new`, each request opens a new one.

    Raises ConnectionError when one is closed.
    """
    loop = asyncio.get_running_loop()
    load, finished = Load(), loop.create_future()
    make = _prepare(request)
    opened = list[asyncio.BaseTransport]()
    opening = set[asyncio.Task[None]]()
    left = iter(range(total - connections))

    async def open_one() -> None:
        begin = open_next if is_new else None
        transport, _ = await loop.create_connection(
            lambda: _Connection(make, load, total, finished, begin), "127.0.0.1", port
        )
        opened.append(transport)

    def open_next() -> None:
        if next(left, None) is not None:
            opening.add(task := asyncio.create_task(open_one()))
            task.add_done_callback(opening.discard)

    started = loop.time()
    for _ in range(connections):
        await open_one()
    await asyncio.wait_for(finished, 120)
    load.seconds = loop.time() - started
    for transport in opened:
        transport.abort()  # type: ignore[attr-defined]
    await asyncio.sleep(0)
    return load
