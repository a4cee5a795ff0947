"""`python -m bench [--requests N] [--rounds N] [--json FILE]`: the hot path against its peers, as tables."""

import argparse
import asyncio
import json
import os
import statistics
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from bench.load import run
from bench.processes import CORES, Server, first_answer_s, python, started

CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "btc_price", "arguments": {}}}
LEGACY = {
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
    "mcp-protocol-version": "2025-11-25",
}
SERVERS = ("hypercorn", "uvicorn")
FLAGS = ("--port", "0", "--ready-json")


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


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: */*\r\n\r\n".encode()


def post(path: str, message: Any) -> bytes:
    body = json.dumps(message).encode()
    head = "".join(f"{name}: {value}\r\n" for name, value in LEGACY.items())
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


def reply_of(server: Server, request: Request, path: Path) -> None:
    """Keep one of our answers, headers and body, for the bare app to send."""
    with urlopen(request) as response:
        own = ("date", "transfer-encoding", "connection", "server")
        headers = [(k.lower(), v) for k, v in response.headers.items() if k.lower() not in own]
        path.write_text(json.dumps({"headers": headers, "body": response.read().decode()}), encoding="utf-8")


def hot_path(kind: str, *, requests: int, rounds: int) -> dict[str, Row]:
    """Every stack under one HTTP server, alternating."""
    folder = Path(tempfile.mkdtemp(prefix="toolserver-bench-"))
    core = CORES[0] if len(CORES) > 1 else None
    if len(CORES) > 1:
        os.sched_setaffinity(0, set(CORES[1:]))
    with ExitStack() as stack:
        world = stack.enter_context(started(python("-m", "toolserver", "world", "--port", "0")))
        ours = stack.enter_context(
            started(
                python("-m", "toolserver", "serve", "--server", kind, *FLAGS, "--data-dir", str(folder)),
                core=core,
                TOOLSERVER_UPSTREAM__VIA=f"http://127.0.0.1:{world.port}",
                TOOLSERVER_LIMITS__ENABLED="false",
                TOOLSERVER_LOGS__LEVEL="error",
            )
        )
        rest = f"http://127.0.0.1:{ours.port}/api/btc-price"
        urlopen(rest).read()
        payload, rest_reply, mcp_reply = (folder / name for name in ("payload.json", "rest.json", "mcp.json"))
        payload.write_bytes(urlopen(rest).read())
        reply_of(ours, Request(rest), rest_reply)
        mcp = Request(f"http://127.0.0.1:{ours.port}/api/mcp", json.dumps(CALL).encode(), LEGACY)
        reply_of(ours, mcp, mcp_reply)

        def peer(name: str, reply: Path) -> Server:
            command = python("-m", "bench.stacks.serve", name, kind)
            return stack.enter_context(started(command, core=core, REPLY=str(reply), PAYLOAD=str(payload)))

        call = post("/api/mcp", CALL)
        runs: list[tuple[str, Server, bytes, int]] = [
            ("bare app, the REST bytes", peer("bare", rest_reply), get("/api/btc-price"), requests),
            ("REST hit", ours, get("/api/btc-price"), requests),
            ("bare app, the MCP bytes", peer("bare", mcp_reply), call, requests),
            ("MCP tools/call", ours, call, requests),
            ("python SDK tools/call", peer("sdk", payload), call, requests // 4),
            ("FastMCP tools/call", peer("fastmcp", payload), call, requests // 8),
        ]
        rows = {name: Row(name) for name, *_ in runs}
        for _ in range(rounds):
            for name, server, request, count in runs:
                measure(rows[name], server, request, count)
    return rows


TARGETS = {  # (ours, peer): the share of the peer's rate or the multiple of it that must be reached, by server
    ("REST hit", "bare app, the REST bytes"): {"hypercorn": 0.95, "uvicorn": 0.80},
    ("MCP tools/call", "bare app, the MCP bytes"): {"hypercorn": 0.95, "uvicorn": 0.80},
    ("MCP tools/call", "REST hit"): {"hypercorn": 0.80, "uvicorn": 0.80},
    ("MCP tools/call", "python SDK tools/call"): {"hypercorn": 2, "uvicorn": 6},
    ("MCP tools/call", "FastMCP tools/call"): {"hypercorn": 5, "uvicorn": 18},
}


def show(kind: str, rows: dict[str, Row]) -> list[dict[str, Any]]:
    """Print one server's tables; return the comparisons."""
    print(f"\n{kind}, one core, 32 connections\n")
    print(f"{'':28} {'CPU µs/call':>12} {'calls/s':>10}")
    for row in rows.values():
        spread = f"[{min(row.cpu_us):.1f}..{max(row.cpu_us):.1f}]"
        print(f"{row.name:28} {row.cpu:12.1f} {row.rate:10,.0f}   {spread}")
    print(f"\n{'':52} {'by CPU':>8} {'by calls/s':>11} {'target':>8}")
    found = []
    for (ours, peer), target in TARGETS.items():
        by_cpu, by_rate = rows[peer].cpu / rows[ours].cpu, rows[ours].rate / rows[peer].rate
        print(f"{ours:16} / {peer:33} {by_cpu:8.2f} {by_rate:11.2f} {target[kind]:8.2f}")
        named = {"server": kind, "ours": ours, "peer": peer, "target": target[kind]}
        found.append(named | {"by_cpu": by_cpu, "by_rate": by_rate})
    return found


def start_up(rounds: int) -> dict[str, float]:
    """Spawn to first answer, and the memory of an idle server."""
    with tempfile.TemporaryDirectory() as folder, started(python("-m", "toolserver", "world", "--port", "0")) as world:
        via = {"TOOLSERVER_UPSTREAM__VIA": f"http://127.0.0.1:{world.port}", "TOOLSERVER_LOGS__LEVEL": "error"}
        command = python("-m", "toolserver", "serve", "--port", "0", "--ready-json", "--data-dir", folder)
        times = [first_answer_s(command, "/api/health", **via) for _ in range(rounds)]
        with started(command, **via) as server:
            memory = server.memory_mb()
    print(f"\nserve: spawn to first answer {statistics.median(times):.2f} s; idle memory {memory:.0f} MB")
    return {"first_answer_s": statistics.median(times), "idle_mb": memory}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="bench")
    parser.add_argument("--requests", type=int, default=8000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--server", choices=SERVERS, action="append")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args(arguments)
    found: dict[str, Any] = {"start": start_up(asked.rounds), "comparisons": []}
    for kind in asked.server or SERVERS:
        found["comparisons"] += show(kind, hot_path(kind, requests=asked.requests, rounds=asked.rounds))
    if asked.json:
        asked.json.write_text(json.dumps(found, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
