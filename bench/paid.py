"""Measure rows 7, 8, 18, 19 and 20: the cost of a paid call compared with a free one, and the parts of signing, fsync
and headers.

The same call without books, and with books written in the usual way, are measured in the same run.
"""

import asyncio
import os
import tempfile
from contextlib import ExitStack
from pathlib import Path
from urllib.request import Request, urlopen

from bench.hot_path import reply_of
from bench.judge import Bar, Effort, Table, Verdict
from bench.load import FRESH
from bench.pairs import PIECE, Pair, Samples, Side, measure_pairs, ratio_of, reference_of
from bench.processes import CORES, Server, python, started
from bench.rows import call_side, get, lines_of, median_of, paid, post

WAYS = {
    "paid call": "ours",
    "the same, unsigned": "unsigned",
    "the same, no fsync": "unsynced",
    "the same, no books": "unbooked",
    "the same, aiosqlite": "usual",
}
MCP_CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "premium_briefing", "arguments": {}}}
UNBOOKED, USUAL, BARE = "the same, no books", "the same, aiosqlite", "bare app, the same bytes"
PAID, FREE = "/api/pro/briefing", "/api/briefing"


def sides_of(kind: str, stack: ExitStack, requests: int) -> dict[str, Side]:
    """Start a server for each way of selling, under one HTTP server, and return the ways to call them as sides."""
    core = CORES[0] if len(CORES) > 1 else None
    if len(CORES) > 1:
        os.sched_setaffinity(0, set(CORES[1:]))
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="toolserver-bench-")))
    world = stack.enter_context(started(python("-m", "toolserver", "world", "--port", "0")))
    via = {
        "TOOLSERVER_UPSTREAM__VIA": f"http://127.0.0.1:{world.port}",
        "TOOLSERVER_LIMITS__ENABLED": "false",
        "TOOLSERVER_SOURCES__LICENCE_POLICY": "any",
        "TOOLSERVER_LOGS__LEVEL": "error",
    }
    sides, servers = dict[str, Side](), dict[str, Server]()
    for name, way in WAYS.items():
        command = python("-m", "bench.stacks.paid", way, kind, str(folder / way))
        found = servers[name] = stack.enter_context(started(command, core=core, **via))
        auth = {"Authorization": f"Bearer {found.ready['token']}"}
        urlopen(Request(f"{found.url}{PAID}", headers=auth)).read()
        few = requests // (4 if way == "usual" else 1)
        sides[name] = call_side(name, found, paid(PAID, found.ready["token"]), few)
    ours, unbooked = servers["paid call"], servers[UNBOOKED]
    urlopen(f"{ours.url}{FREE}").read()
    token, reply = ours.ready["token"], folder / "reply.json"
    reply_of(Request(f"{ours.url}{PAID}", headers={"Authorization": f"Bearer {token}"}), reply)
    command = python("-m", "bench.stacks.serve", "bare", kind)
    bare = stack.enter_context(started(command, core=core, REPLY=str(reply)))
    bearer, other = ({"authorization": f"Bearer {server.ready['token']}"} for server in (ours, unbooked))
    more = (
        (f"{UNBOOKED}, over MCP", unbooked, post("/api/mcp", MCP_CALL, **other)),
        ("the same, with a key", ours, paid(PAID, token, **{"idempotency-key": FRESH})),
        ("the same, by reference", ours, paid(PAID, token, prefer="receipt=reference")),
        ("paid call over MCP", ours, post("/api/mcp", MCP_CALL, **bearer)),
        ("free call", ours, get(FREE)),
        (BARE, bare, paid(PAID, token)),
    )
    return sides | {name: call_side(name, server, request, requests) for name, server, request in more}


def compare_paid_calls(kind: str, *, requests: int, count: int) -> tuple[list[Bar], Samples]:
    """Compare a cached answer sold in each way, and a free one, under one HTTP server."""
    with ExitStack() as stack:
        sides = sides_of(kind, stack, requests)
        judged: list[tuple[int, Pair, float, str, bool]] = []
        for row, ours, other, share in LEAST:
            pair = Pair(f"{ours} / {other}, CPU", (sides[other], sides[ours]), ratio_of("cpu_us"))
            judged.append((row, pair, share[kind], "", True))
        usual = Pair("paid calls / aiosqlite, rate", (sides["paid call"], sides[USUAL]), ratio_of("per_s"), often=2)
        judged.append((8, usual, TIMES_USUAL[kind], "x", True))
        for row, ours, other, most in MOST:
            pair = Pair(f"{ours} / {other}, CPU", (sides[ours], sides[other]), ratio_of("cpu_us"))
            judged.append((row, pair, most, "x", False))
        if kind == "uvicorn":
            alone = Pair("a paid call over REST, CPU", (PIECE, sides["paid call"]), reference_of("cpu_us"))
            judged.append((20, alone, MOST_US, "µs", False))
            many = Pair(
                "a paid call over REST: CPU of a bare app", (sides["paid call"], sides[BARE]), ratio_of("cpu_us")
            )
            judged.append((20, many, MOST_OF_BARE, "x", False))
        names = ("the same, unsigned", "the same, no fsync", "the same, by reference", "free call")
        pairs = [Pair(name, (sides["paid call"], sides[name]), ratio_of("cpu_us"), is_judged=False) for name in names]
        samples = asyncio.run(measure_pairs([pair for _, pair, *_ in judged] + pairs, count))
    bars = [Bar.of_pair(pair, row, bar, unit, at_least=least, server=kind) for row, pair, bar, unit, least in judged]
    return bars, {name: samples[name] for name in sides}


def show_shares(kind: str, samples: Samples) -> None:
    """Print the parts of a paid call's extra cost over a free one, in CPU µs and in time per call."""
    whole, free = median_of(samples, "paid call"), median_of(samples, "free call")
    parts = {"signing": "the same, unsigned", "fsync": "the same, no fsync", "header bytes": "the same, by reference"}
    print(f"\n{kind}: a paid call costs {whole - free:.1f} µs of CPU more than a free one; of a paid call are")
    for name, without in parts.items():
        by_cpu = 1 - median_of(samples, without) / whole
        by_time = 1 - median_of(samples, "paid call", "per_s") / median_of(samples, without, "per_s")
        print(f"  {name:14} {by_cpu:6.1%} of the CPU, {by_time:6.1%} of the time")


LEAST: tuple[tuple[int, str, str, dict[str, float]], ...] = (  # row, ours, the other, the share of its CPU to reach
    (7, "paid call", UNBOOKED, {"hypercorn": 0.85, "uvicorn": 0.75}),
    (7, "paid call over MCP", f"{UNBOOKED}, over MCP", {"hypercorn": 0.85, "uvicorn": 0.75}),
)
MOST: tuple[tuple[int, str, str, float], ...] = (  # row, ours, the other, the multiple of its CPU that is allowed
    (18, "paid call over MCP", "paid call", 1.15),
    (19, "the same, with a key", "paid call", 1.25),
)
OTHERS = (UNBOOKED, f"{UNBOOKED}, over MCP", "the same, aiosqlite", "free call", BARE)
TIMES_USUAL = {"hypercorn": 3.0, "uvicorn": 6.0}
MOST_US = 110.0
MOST_OF_BARE = 3.93  # 110 µs where a bare app takes 28


def judge(effort: Effort) -> Verdict:
    """Measure under each HTTP server."""
    found, lines, waits = Verdict(), [], []
    for kind in effort.servers:
        bars, samples = compare_paid_calls(kind, requests=effort.requests // 2, count=effort.pairs)
        found.bars += bars
        lines += lines_of(samples, kind)
        waits += lines_of(samples, kind, "p99_ms")
        show_shares(kind, samples)
    note = "One core for the server, 32 kept connections, limits off."
    found.tables += [
        Table("paid-cpu", "A cached answer sold: CPU of the server", "µs a call", lines, note, False, OTHERS),
        Table("paid-p99", "The same: 99 of 100 callers wait at most", "ms", waits, note, False, OTHERS),
    ]
    return found
