"""Read lines from standard input and write lines to standard output, without threads that could outlive us.

While the transport is in use, file descriptor 0 reads nothing and 1 is standard error, so that other code that reads
or prints in this process does not disturb the conversation.
"""

import os
import select
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import contextmanager

import anyio
import anyio.lowlevel
import anyio.to_thread

CHUNK = 65_536
SLICE = 4_096  # how much a pipe that is reported writable takes without blocking


@contextmanager
def claim_stdio() -> Iterator[tuple[int, int]]:
    """Yield private descriptors of the real standard input and output."""
    source, sink = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    sys.stdout.flush()
    try:
        os.dup2(nothing, 0)
        os.dup2(2, 1)
        yield source, sink
    finally:
        sys.stdout.flush()
        os.dup2(source, 0)
        os.dup2(sink, 1)
        for descriptor in (source, sink, nothing):
            os.close(descriptor)


async def lines(source: int, limit: int) -> AsyncGenerator[bytes | None, None]:
    """Yield the lines that arrive, without their line ends; None for a line that is longer than the limit."""
    rest, skipping = b"", False
    while chunk := await _read(source):
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield None if skipping or len(line) > limit else line
            skipping = False
        if len(rest) > limit:
            rest, skipping = b"", True
    if rest or skipping:
        yield None if skipping else rest


async def write(sink: int, data: bytes) -> None:
    """Write everything. Raises BrokenPipeError if nobody reads any more."""
    view = memoryview(data)
    while view:
        if not _writable(sink):
            await _ready(sink, anyio.wait_writable)
        view = view[os.write(sink, view[:SLICE]) :]


def _writable(sink: int) -> bool:
    """Return True if a slice can be written without blocking, as far as that is known now."""
    if sys.platform == "win32":
        return True
    poller = select.poll()
    poller.register(sink, select.POLLOUT)
    return bool(poller.poll(0))


async def _read(source: int) -> bytes:
    if sys.platform == "win32":
        return await anyio.to_thread.run_sync(os.read, source, CHUNK, abandon_on_cancel=True)
    await _ready(source, anyio.wait_readable)
    return os.read(source, CHUNK)


async def _ready(descriptor: int, wait: Callable[[int], Awaitable[None]]) -> None:
    try:
        await wait(descriptor)
    except PermissionError:  # a regular file: always ready
        await anyio.lowlevel.checkpoint()
