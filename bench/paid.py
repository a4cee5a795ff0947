"""What the books cost: a paid call against the same call without them, and against the usual way of writing them."""

import os
import tempfile
from contextlib import ExitStack
from pathlib import Path
from urllib.request import Request, urlopen

from bench.processes import CORES, Server, python, started
from bench.rows import Row, Targets, get, measure, paid

WAYS = {"paid call": "ours", "the same, no books": "unbooked", "the same, aiosqlite": "usual"}
TARGETS: Targets = {
    ("paid call", "the same, no books"): {"hypercorn": 0.80, "uvicorn": 0.55},
    ("paid call", "free call"): {"hypercorn": 0.80},
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
        runs.append(("free call", runs[0][1], get(FREE), requests))
        rows = {name: Row(name) for name, *_ in runs}
        for _ in range(rounds):
            for name, found, request, count in runs:
                measure(rows[name], found, request, count)
    return rows
