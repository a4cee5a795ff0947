"""Measure, beside row 1, the cost of answers of other sizes, of both versions of MCP, and of new connections.

Each is compared with a bare app that sends the same bytes; our service has everything on. There is no bar, only a
table.
"""

import asyncio
from contextlib import ExitStack
from urllib.request import Request, urlopen

from bench.hot_path import BEHIND_PROXY, CALL, EVERYTHING_ON, REST, Stacks, reply_of
from bench.judge import Effort, Line, Table, Verdict
from bench.pairs import Pair, Samples, Side, measure_pairs, ratio_of
from bench.processes import Server
from bench.rows import call_side, get, lines_of, post
from toolserver.mcp.messages import CAPABILITIES_KEY, MODERN, VERSION_KEY

LARGE = "/api/climate/weather-alerts"
MIDDLE = "/api/severe-weather"
MODERN_META = {VERSION_KEY: MODERN, CAPABILITIES_KEY: {}}
MODERN_CALL = CALL | {"params": {"name": "btc_price", "arguments": {}, "_meta": MODERN_META}}
MODERN_HEADERS = {"mcp-protocol-version": MODERN, "mcp-method": "tools/call", "mcp-name": "btc_price"}
BARE = "bare app, "


def size_of(url: str) -> str:
    """Return the size of an answer as a label."""
    return f"{len(urlopen(url).read()) / 1000:.1f} KB"


def compare_answers(kind: str, effort: Effort) -> Samples:
    """Compare each kind of answer with the same bytes from a bare app, under one HTTP server."""
    with ExitStack() as stack:
        stacks = Stacks(kind, stack)
        ours = stacks.service("deployed", **EVERYTHING_ON)
        payload, _, mcp = stacks.keep_replies(ours)
        sides: list[tuple[Side, Side]] = []
        for path in (REST, MIDDLE, LARGE):
            label = f"REST, {size_of(ours.url + path)}"
            reply_of(Request(ours.url + path), reply := stacks.folder / f"{path.replace('/', '-')}.json")
            bare = stacks.peer("bare", payload=payload, reply=reply)
            for more, is_new in (("", False), (", new connections", True)):
                if path == REST or not is_new:
                    sides.append(compare(label + more, ours, bare, get(path, **BEHIND_PROXY), effort, is_new=is_new))
        bare = stacks.peer("bare", payload=payload, reply=mcp)
        for version, call in (("2025-11-25", post("/api/mcp", CALL, **BEHIND_PROXY)), (MODERN, modern_call())):
            sides.append(compare(f"MCP {version}", ours, bare, call, effort))
        pairs = [Pair(ours.name, (ours, bare), ratio_of("cpu_us"), is_judged=False) for ours, bare in sides]
        samples = asyncio.run(measure_pairs(pairs, effort.pairs // 2))
    return {side.name: samples[side.name] for both in sides for side in both}


def compare(
    label: str, ours: Server, bare: Server, request: bytes, effort: Effort, *, is_new: bool = False
) -> tuple[Side, Side]:
    """Return the sides of one request to both servers."""
    count = effort.requests // (2 if is_new else 1)
    return (
        call_side(label, ours, request, count, is_new=is_new),
        call_side(BARE + label, bare, request, count, is_new=is_new),
    )


def modern_call() -> bytes:
    """Return a tool call of the newest version, which needs no initialization."""
    return post("/api/mcp", MODERN_CALL, **BEHIND_PROXY, **MODERN_HEADERS)


def judge(effort: Effort) -> Verdict:
    """Measure under each HTTP server."""
    lines: list[Line] = []
    others: set[str] = set()
    for kind in effort.servers:
        samples = compare_answers(kind, effort)
        lines += lines_of(samples, kind)
        others |= {name for name in samples if name.startswith(BARE)}
    note = "Everything on, 32 connections; kept, unless they are said to be new: then each call opens and closes one."
    title = "Answers by size, version and connection: CPU of the server"
    return Verdict(tables=[Table("answers-cpu", title, "µs a call", lines, note, False, tuple(sorted(others)))])
