"""Hold the rows of a table: a stack under a server, its request, and its comparison with the others."""

import asyncio
import json
import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from bench.judge import Line
from bench.load import run
from bench.processes import Server

LEGACY = {
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
    "mcp-protocol-version": "2025-11-25",
}


@dataclass
class Row:
    """One stack under one server, over the rounds: CPU µs of its process, answers a second, p50 and p99 in ms."""

    name: str
    cpu_us: list[float] = field(default_factory=list)
    per_s: list[float] = field(default_factory=list)
    p50_ms: list[float] = field(default_factory=list)
    p99_ms: list[float] = field(default_factory=list)

    @property
    def cpu(self) -> float:
        return statistics.median(self.cpu_us)

    @property
    def rate(self) -> float:
        return statistics.median(self.per_s)


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


def measure(
    row: Row, server: Server, request: bytes, requests: int, connections: int = 32, *, is_new: bool = False
) -> None:
    """Measure one round: a short warm-up, then the requests, each on a new connection if `is_new`.

    Raises SystemExit for answers that are not 200.
    """
    asyncio.run(run(server.port, request, total=max(500, requests // 10), connections=connections, is_new=is_new))
    before = server.cpu_us()
    load = asyncio.run(run(server.port, request, total=requests, connections=connections, is_new=is_new))
    if load.bad:
        raise SystemExit(f"{row.name}: {load.bad} of {load.done} answers were not 200")
    row.cpu_us.append((server.cpu_us() - before) / load.done)
    row.per_s.append(load.done / load.seconds)
    took = sorted(load.took_ms)
    row.p50_ms.append(took[len(took) // 2])
    row.p99_ms.append(took[int(len(took) * 0.99)])


def lines_of(rows: Iterable[Row], group: str, what: str = "cpu_us") -> list[Line]:
    """Return the lines of a table, one for the figures of each row."""
    found = [(row.name, getattr(row, what)) for row in rows]
    return [Line(name, statistics.median(values), min(values), max(values), group) for name, values in found]
