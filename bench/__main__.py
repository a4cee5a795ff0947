"""`python -m bench [--requests N] [--rounds N] [--json FILE]`: the hot path against its peers, as tables.

The rows "everything on" are those of a deployed service: limits count, a proxy is in front. The exit code is 1 when a
target is missed by CPU time; what is missed is printed last, the worst first.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from bench.paid import TARGETS as PAID_TARGETS
from bench.paid import paid_calls, show_shares
from bench.processes import CORES, Server, first_answer_s, python, started
from bench.rows import LEGACY, Row, Targets, get, measure, post, show

CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "btc_price", "arguments": {}}}
SERVERS = ("hypercorn", "uvicorn")
FLAGS = ("--port", "0", "--ready-json")


EVERYTHING_ON = {  # limits that count each call and refuse none, behind a proxy
    "TOOLSERVER_LIMITS__DAILY": "1000000000",
    "TOOLSERVER_LIMITS__SPACING_S": "0.000001",
    "TOOLSERVER_LIMITS__TRUSTED_PROXIES": '["127.0.0.1/32"]',
}
BEHIND_PROXY = {"x-forwarded-for": "198.51.100.7"}


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

        def service(name: str, **limits: str) -> Server:
            command = python("-m", "toolserver", "serve", "--server", kind, *FLAGS, "--data-dir", str(folder / name))
            via = {"TOOLSERVER_UPSTREAM__VIA": f"http://127.0.0.1:{world.port}", "TOOLSERVER_LOGS__LEVEL": "error"}
            found = stack.enter_context(started(command, core=core, **via, **limits))
            urlopen(f"http://127.0.0.1:{found.port}/api/btc-price").read()
            return found

        ours, deployed = service("plain", TOOLSERVER_LIMITS__ENABLED="false"), service("deployed", **EVERYTHING_ON)
        rest = f"http://127.0.0.1:{ours.port}/api/btc-price"
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
            ("REST hit, everything on", deployed, get("/api/btc-price", **BEHIND_PROXY), requests),
            ("MCP, everything on", deployed, post("/api/mcp", CALL, **BEHIND_PROXY), requests),
        ]
        rows = {name: Row(name) for name, *_ in runs}
        for _ in range(rounds):
            for name, server, request, count in runs:
                measure(rows[name], server, request, count)
    return rows


TARGETS: Targets = {  # (ours, peer): the share of the peer's rate or the multiple of it that must be reached, by server
    ("REST hit, everything on", "bare app, the REST bytes"): {"hypercorn": 0.89, "uvicorn": 0.74},
    ("MCP, everything on", "python SDK tools/call"): {"hypercorn": 2.5, "uvicorn": 8},
    ("MCP, everything on", "FastMCP tools/call"): {"hypercorn": 6, "uvicorn": 25},
    ("MCP, everything on", "REST hit, everything on"): {"hypercorn": 0.90, "uvicorn": 0.90},
    ("REST hit", "bare app, the REST bytes"): {"hypercorn": 0.95, "uvicorn": 0.80},
    ("MCP tools/call", "bare app, the MCP bytes"): {"hypercorn": 0.95, "uvicorn": 0.80},
    ("MCP tools/call", "REST hit"): {"hypercorn": 0.80, "uvicorn": 0.80},
    ("MCP tools/call", "python SDK tools/call"): {"hypercorn": 2, "uvicorn": 6},
    ("MCP tools/call", "FastMCP tools/call"): {"hypercorn": 5, "uvicorn": 18},
}


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
        found["comparisons"] += show(kind, hot_path(kind, requests=asked.requests, rounds=asked.rounds), TARGETS)
        sold = paid_calls(kind, requests=asked.requests // 2, rounds=asked.rounds)
        found["comparisons"] += show(kind, sold, PAID_TARGETS)
        found[f"paid call, {kind}"] = show_shares(kind, sold)
    if asked.json:
        asked.json.write_text(json.dumps(found, indent=2), encoding="utf-8")
    missed = [each for each in found["comparisons"] if each["target"] and each["by_cpu"] < each["target"]]
    for each in sorted(missed, key=lambda each: each["by_cpu"] / each["target"]):
        print(f"missed on {each['server']}: {each['ours']} / {each['peer']} {each['by_cpu']:.2f}, {each['target']:.2f}")
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
