"""Measures how long a TCP connection takes: the one exchange with an upstream that is not HTTP."""

import math
import socket
import statistics
import time

import anyio

TRIES, GAP_S, TIMEOUT_S = 3, 0.15, 2.0


async def connect_ms(host: str, port: int) -> int | None:
    """Return the median of the successful tries in milliseconds, rounded up, at least 1; None if all fail.

    The name is resolved before the clock starts.
    """
    try:
        with anyio.fail_after(TIMEOUT_S):
            found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, TimeoutError):
        return None
    address = found[0][4][0]
    taken = []
    for number in range(TRIES):
        if number:
            await anyio.sleep(GAP_S)
        started = time.perf_counter()
        try:
            with anyio.fail_after(TIMEOUT_S):
                stream = await anyio.connect_tcp(address, port)
        except (OSError, TimeoutError):
            continue
        taken.append(time.perf_counter() - started)
        await stream.aclose()
    return max(1, math.ceil(statistics.median(taken) * 1000)) if taken else None
