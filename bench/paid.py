"""Measure rows 7, 8, 18, 19 and 20: the cost of a paid call compared with a free one, and the parts of signing, fsync
and headers.

The same call without books, and with books written in the usual way, are measured in the same run.
"""

import os
import tempfile
from contextlib import ExitStack
from pathlib import Path
from urllib.request import Request, urlopen

from bench.judge import Bar, Effort, Table, Verdict
from bench.load import FRESH
from bench.processes import CORES, Server, python, started
from bench.rows import Row, get, lines_of, measure, paid, post

WAYS = {
    "paid call": "ours",
    "the same, unsigned": "unsigned",
    "the same, no fsync": "unsynced",
    "the same, no books": "unbooked",
    "the same, aiosqlite": "usual",
}
MCP_CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "premium_briefing", "arguments": {}}}
UNBOOKED = "the same, no books"
PAID, FREE = "/api/pro/briefing", "/api/briefing"


def measure_paid_calls(kind: str, *, requests: int, rounds: int) -> dict[str, Row]:
    """Measure a cached answer sold in each way, and a free one, under one HTTP server, in turn."""
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
        token, unbooked = runs[0][1].ready["token"], next(found for name, found, *_ in runs if name == UNBOOKED)
        bearer = {"authorization": f"Bearer {token}"}
        other = {"authorization": f"Bearer {unbooked.ready['token']}"}
        runs.append((f"{UNBOOKED}, over MCP", unbooked, post("/api/mcp", MCP_CALL, **other), requests))
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
    """Print and return the parts of a paid call's extra cost over a free one, in CPU µs and in time per call."""
    whole, free = rows["paid call"], rows["free call"]
    parts = {"signing": "the same, unsigned", "fsync": "the same, no fsync", "header bytes": "the same, by reference"}
    print(f"\n{kind}: a paid call costs {whole.cpu - free.cpu:.1f} µs of CPU more than a free one; of a paid call are")
    found = {"more_us": whole.cpu - free.cpu}
    for name, without in parts.items():
        by_cpu, by_time = 1 - rows[without].cpu / whole.cpu, 1 - whole.rate / rows[without].rate
        print(f"  {name:14} {by_cpu:6.1%} of the CPU, {by_time:6.1%} of the time")
        found |= {f"{name} of cpu": by_cpu, f"{name} of time": by_time}
    return found


LEAST: tuple[tuple[int, str, str, dict[str, float]], ...] = (  # row, ours, the other, the share of its CPU to reach
    (7, "paid call", UNBOOKED, {"hypercorn": 0.90, "uvicorn": 0.75}),
    (7, "paid call over MCP", f"{UNBOOKED}, over MCP", {"hypercorn": 0.90, "uvicorn": 0.75}),
)
MOST: tuple[tuple[int, str, str, float], ...] = (  # row, ours, the other, the multiple of its CPU that is allowed
    (18, "paid call over MCP", "paid call", 1.15),
    (19, "the same, with a key", "paid call", 1.25),
)
OTHERS = (UNBOOKED, f"{UNBOOKED}, over MCP", "the same, aiosqlite", "free call")
TIMES_USUAL = {"hypercorn": 3.0, "uvicorn": 6.0}
MOST_US = 120.0


def bars_of(kind: str, rows: dict[str, Row]) -> list[Bar]:
    """Return the rows that these figures decide."""
    found = [
        Bar(row, f"{ours} / {other}, CPU", rows[other].cpu / rows[ours].cpu, least[kind], at_least=True, server=kind)
        for row, ours, other, least in LEAST
    ]
    usual = rows["paid call"].rate / rows["the same, aiosqlite"].rate
    found.append(Bar(8, "paid calls / aiosqlite, rate", usual, TIMES_USUAL[kind], "x", at_least=True, server=kind))
    found += [
        Bar(row, f"{ours} / {other}, CPU", rows[ours].cpu / rows[other].cpu, most, "x", server=kind)
        for row, ours, other, most in MOST
    ]
    if kind == "uvicorn":
        found.append(Bar(20, "a paid call over REST, CPU", rows["paid call"].cpu, MOST_US, "µs", server=kind))
    return found


def judge(effort: Effort) -> Verdict:
    """Measure under each HTTP server."""
    found, lines, waits = Verdict(), [], []
    for kind in effort.servers:
        rows = measure_paid_calls(kind, requests=effort.requests // 2, rounds=effort.rounds)
        found.bars += bars_of(kind, rows)
        lines += lines_of(rows.values(), kind)
        waits += lines_of(rows.values(), kind, "p99_ms")
        show_shares(kind, rows)
    note = "One core for the server, 32 kept connections, limits off."
    found.tables += [
        Table("paid-cpu", "A cached answer sold: CPU of the server", "µs a call", lines, note, False, OTHERS),
        Table("paid-p99", "The same: 99 of 100 callers wait at most", "ms", waits, note, False, OTHERS),
    ]
    return found
