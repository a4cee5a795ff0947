"""`python -m bench.paid`: what a paid call costs beside a free one, and what of it signing, fsync and header bytes are.

The same call without books, and with the books written in the usual way, are measured beside it.
"""

import os
import tempfile
from contextlib import ExitStack
from pathlib import Path
from urllib.request import Request, urlopen

from bench.load import FRESH
from bench.processes import CORES, Server, python, started
from bench.rows import Row, Targets, get, measure, paid, post, show

WAYS = {
    "paid call": "ours",
    "the same, unsigned": "unsigned",
    "the same, no fsync": "unsynced",
    "the same, no books": "unbooked",
    "the same, aiosqlite": "usual",
}
MCP_CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "premium_briefing", "arguments": {}}}
TARGETS: Targets = {
    ("paid call", "the same, no books"): {"hypercorn": 0.80, "uvicorn": 0.55},
    ("paid call", "free call"): {"hypercorn": 0.80},
    ("paid call", "paid call over MCP"): {"hypercorn": 0.87, "uvicorn": 0.87},
    ("the same, with a key", "paid call"): {"hypercorn": 0.80, "uvicorn": 0.80},
    ("paid call", "the same, aiosqlite"): {"hypercorn": 3, "uvicorn": 6},
}
PAID, FREE = "/api/pro/briefing", "/api/briefing"


def paid_calls(kind: str, *, requests: int, rounds: int) -> dict[str, Row]:
    """A cached answer sold in each way, and a free one, under one HTTP server, alternating."""
    core = CORES[0] if len(CORES) > 1 else None
    if len(CORES) > 1:
        os.sched_setaffinity(0, set(CORES[1:]))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="toolserver-bench-")))
        world = stack.enter_context(started(python("-m", "toolserver", "world", "--port", "0")))
        via = {
            "TOOLSERVER_UPSTREAM__VIA": f"http://127.0.0.1:{world.port}",
            "TOOLSERVER_LIMITS__ENABLED": "false",
            "TOOLSERVER_SOURCES__LICENCE_POLICY": "any",
            "TOOLSERVER_LOGS__LEVEL": "error",
        }

        def server(way: str) -> Server:
            command = python("-m", "bench.stacks.paid", way, kind, str(folder / way))
            return stack.enter_context(started(command, core=core, **via))

        runs: list[tuple[str, Server, bytes, int]] = []
        for name, way in WAYS.items():
            found = server(way)
            auth = {"Authorization": f"Bearer {found.ready['token']}"}
            urlopen(Request(f"http://127.0.0.1:{found.port}{PAID}", headers=auth)).read()
            runs.append((name, found, paid(PAID, found.ready["token"]), requests // (4 if way == "usual" else 1)))
        urlopen(f"http://127.0.0.1:{runs[0][1].port}{FREE}").read()
        token = runs[0][1].ready["token"]
        bearer = {"authorization": f"Bearer {token}"}
        runs.append(("the same, with a key", runs[0][1], paid(PAID, token, **{"idempotency-key": FRESH}), requests))
        runs.append(("the same, by reference", runs[0][1], paid(PAID, token, prefer="receipt=reference"), requests))
        runs.append(("paid call over MCP", runs[0][1], post("/api/mcp", MCP_CALL, **bearer), requests))
        runs.append(("free call", runs[0][1], get(FREE), requests))
        rows = {name: Row(name) for name, *_ in runs}
        for _ in range(rounds):
            for name, found, request, count in runs:
                measure(rows[name], found, request, count)
    return rows


def show_shares(kind: str, rows: dict[str, Row]) -> dict[str, float]:
    """Print and return the parts of what a paid call costs more than a free one, in CPU µs and in time a call."""
    whole, free = rows["paid call"], rows["free call"]
    parts = {"signing": "the same, unsigned", "fsync": "the same, no fsync", "header bytes": "the same, by reference"}
    print(f"\n{kind}: a paid call costs {whole.cpu - free.cpu:.1f} µs of CPU more than a free one; of a paid call are")
    found = {"more_us": whole.cpu - free.cpu}
    for name, without in parts.items():
        by_cpu, by_time = 1 - rows[without].cpu / whole.cpu, 1 - whole.rate / rows[without].rate
        print(f"  {name:14} {by_cpu:6.1%} of the CPU, {by_time:6.1%} of the time")
        found |= {f"{name} of cpu": by_cpu, f"{name} of time": by_time}
    return found


if __name__ == "__main__":
    for server in ("hypercorn", "uvicorn"):
        measured = paid_calls(server, requests=4000, rounds=3)
        show(server, measured, TARGETS)
        show_shares(server, measured)
