"""Compresses what is shared or kept, and reads it back within a bound. What is large is done in a worker thread."""

import zlib
from collections.abc import Callable
from typing import TypeVar

import anyio.to_thread

T = TypeVar("T")

LARGE = 64 * 1024  # bytes from which a worker thread does it


class PackingDamaged(Exception):
    """Packed bytes are damaged, cut off, or more than they may be."""


async def pack(body: bytes) -> bytes:
    """Return the bytes compressed."""
    return await run_apart(len(body), lambda: zlib.compress(body, 1))


async def unpack(packed: bytes, most: int) -> bytes:
    """Return what was packed. Raises PackingDamaged, also when it is more than `most` bytes."""
    return await run_apart(len(packed), lambda: _decompress(packed, most))


async def run_apart(size: int, work: Callable[[], T]) -> T:
    """Do work on so many bytes, in a worker thread if they are many."""
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
