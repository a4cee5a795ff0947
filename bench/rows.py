"""Hold what a row compares: a stack under a server and its request, as a side of pairs, and the lines of its table."""

import json
import statistics
from collections.abc import Callable, Iterable
from typing import Any

from bench.judge import Line
from bench.load import run
from bench.pairs import PIECE, Sample, Samples, Side
from bench.processes import Server

LEGACY = {
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
    "mcp-protocol-version": "2025-11-25",
}


def get(path: str, **headers: str) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: */*\r\n{lines}\r\n".encode()


def paid(path: str, token: str, **headers: str) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {token}\r\n{lines}\r\n".encode()


def post(path: str, message: Any, **headers: str) -> bytes:
    body = json.dumps(message).encode()
    head = "".join(f"{name}: {value}\r\n" for name, value in (LEGACY | headers).items())
    return f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n{head}content-length: {len(body)}\r\n\r\n".encode() + body


def call_side(
    name: str,
    server: Server,
    request: bytes,
    requests: int,
    *,
    connections: int = 32,
    is_new: bool = False,
    clock: Callable[[], float] | None = None,
) -> Side:
    """Return the side of a stack under a server: `cpu_us` a call, `per_s` in wall time, and `p99_ms` of its callers.

    Its `clock` is that of the server's own CPU time. Answers that are not 200 raise SystemExit.
    """

    async def measure() -> Sample:
        load = await run(
            server.port,
            request,
            total=requests,
            connections=connections,
            is_new=is_new,
            clock=clock or server.cpu_us,
        )
        if load.bad:
            raise SystemExit(f"{name}: {load.bad} of {load.done} answers were not 200")
        p99 = sorted(load.took_ms)[int(len(load.took_ms) * 0.99)]
        return {"cpu_us": load.spent / load.done, "per_s": load.done / load.seconds, "p99_ms": p99}

    return Side(name, measure)


def lines_of(samples: Samples, group: str = "", what: str = "cpu_us", names: Iterable[str] | None = None) -> list[Line]:
    """Return the lines of a table, one for the figures of each side: the median and the quartiles."""
    chosen = names if names is not None else [name for name in samples if name != PIECE.name]
    return [Line.of_values(name, [sample[what] for sample in samples[name]], group) for name in chosen]


def median_of(samples: Samples, name: str, what: str = "cpu_us") -> float:
    """Return the median of a figure of one side."""
    return statistics.median(sample[what] for sample in samples[name])
