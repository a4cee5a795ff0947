"""Compresses shared or kept data and unpacks it within a size limit; large data is handled in a worker thread."""

import zlib
from collections.abc import Callable
from typing import TypeVar

import anyio.to_thread

T = TypeVar("T")

LARGE = 64 * 1024  # bytes from which a worker thread does the work


class PackingDamaged(Exception):
    """Packed bytes are damaged, cut off, or too large."""


async def pack(body: bytes) -> bytes:
    """Return the compressed bytes."""
    return await run_apart(len(body), lambda: zlib.compress(body, 1))


async def unpack(packed: bytes, most: int) -> bytes:
    """Return the unpacked bytes. Raise PackingDamaged, also for more than `most` bytes."""
    return await run_apart(len(packed), lambda: _decompress(packed, most))


async def run_apart(size: int, work: Callable[[], T]) -> T:
    """Do work on `size` bytes, in a worker thread if that is large."""
    return work() if size < LARGE else await anyio.to_thread.run_sync(work)


def _decompress(packed: bytes, most: int) -> bytes:
    reader = zlib.decompressobj()
    try:
        body = reader.decompress(packed, most + 1)
    except zlib.error as error:
        raise PackingDamaged(str(error)) from error
    if len(body) > most or not reader.eof:
        raise PackingDamaged(f"cut off, or more than {most} bytes")
    return body
