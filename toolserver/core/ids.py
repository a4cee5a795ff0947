"""Makes identifiers: cheap ones for requests, random ones for everything else."""

import itertools
import secrets
import time

_process = secrets.token_hex(6)
_count = itertools.count(1)
_random: list[str] = []


def request_id() -> str:
    """Return an id that is unique in this process and hard enough to guess for a log, without a system call."""
    return f"req_{_process}{next(_count):010x}"


def call_id() -> str:
    """Return an id that names one paid call everywhere: reservation, settlement, receipt.

    It begins with the time in ms, so that calls are stored in the order in which they are
    made, which makes writing a large ledger four times as fast. 80 random bits follow.
    """
    if not _random:
        drawn = secrets.token_bytes(10 * 256)  # one system call for many ids
        _random.extend(drawn[at : at + 10].hex() for at in range(0, len(drawn), 10))
    return f"call_{time.time_ns() // 1_000_000:012x}{_random.pop()}"


def sane(request_id: str) -> bool:
    """Return True if a caller's own request id may be used unchanged."""
    return 8 <= len(request_id) <= 128 and all(c.isalnum() or c in "-_.:" for c in request_id) and request_id.isascii()
