"""Rows of a table: a stack under a server, what it was asked, and how it compares."""

import asyncio
import json
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bench.load import run
from bench.processes import Server

LEGACY = {
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
    "mcp-protocol-version": "2025-11-25",
}
Targets = Mapping[tuple[str, str], Mapping[str, float]]
"""(ours, peer): the share of the peer's rate, or the multiple of it, that must be reached, by server."""


@dataclass
class Row:
    """One stack under one server, over the rounds."""

    name: str
    cpu_us: list[float] = field(default_factory=list)
    per_s: list[float] = field(default_factory=list)

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


def measure(row: Row, server: Server, request: bytes, requests: int) -> None:
    """One round: a short warm-up, then so many requests."""
    asyncio.run(run(server.port, request, total=max(500, requests // 10)))
    before = server.cpu_us()
    load = asyncio.run(run(server.port, request, total=requests))
    if load.bad:
        raise SystemExit(f"{row.name}: {load.bad} of {load.done} answers were not 200")
    row.cpu_us.append((server.cpu_us() - before) / load.done)
    row.per_s.append(load.done / load.seconds)


def show(kind: str, rows: dict[str, Row], targets: Targets) -> list[dict[str, Any]]:
    """Print one server's tables; return the comparisons."""
    print(f"\n{kind}, one core, 32 connections\n")
    print(f"{'':28} {'CPU µs/call':>12} {'calls/s':>10}")
    for row in rows.values():
        spread = f"[{min(row.cpu_us):.1f}..{max(row.cpu_us):.1f}]"
        print(f"{row.name:28} {row.cpu:12.1f} {row.rate:10,.0f}   {spread}")
    print(f"\n{'':52} {'by CPU':>8} {'by calls/s':>11} {'target':>8}")
    found = []
    for (ours, peer), target in targets.items():
        by_cpu, by_rate = rows[peer].cpu / rows[ours].cpu, rows[ours].rate / rows[peer].rate
        wanted = f"{target[kind]:8.2f}" if kind in target else f"{'-':>8}"
        print(f"{ours:16} / {peer:33} {by_cpu:8.2f} {by_rate:11.2f} {wanted}")
        named = {"server": kind, "ours": ours, "peer": peer, "target": target.get(kind)}
        found.append(named | {"by_cpu": by_cpu, "by_rate": by_rate})
    return found
