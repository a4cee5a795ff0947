"""Measure, beside row 1, the cost of answers of other sizes, of both versions of MCP, and of new connections.

Each is compared with a bare app that sends the same bytes; our service has everything on. There is no bar, only a
table.
"""

from contextlib import ExitStack
from urllib.request import Request, urlopen

from bench.hot_path import BEHIND_PROXY, CALL, EVERYTHING_ON, REST, Stacks, reply_of
from bench.judge import Effort, Line, Table, Verdict
from bench.processes import Server
from bench.rows import Row, get, lines_of, measure, post
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


def measure_answers(kind: str, effort: Effort) -> dict[str, Row]:
    """Measure each kind of answer, and the same bytes from a bare app under one HTTP server, in turn."""
    with ExitStack() as stack:
        stacks = Stacks(kind, stack)
        ours = stacks.service("deployed", **EVERYTHING_ON)
        payload, _, mcp = stacks.keep_replies(ours)
        runs: list[tuple[str, Server, bytes, int, bool]] = []
        for path in (REST, MIDDLE, LARGE):
            label = f"REST, {size_of(ours.url + path)}"
            reply_of(Request(ours.url + path), reply := stacks.folder / f"{path.replace('/', '-')}.json")
            bare = stacks.peer("bare", payload=payload, reply=reply)
            request = get(path, **BEHIND_PROXY)
            runs += [(label, ours, request, effort.requests, False)]
            runs += [(BARE + label, bare, request, effort.requests, False)]
            if path == REST:
                runs += [(f"{label}, new connections", ours, request, effort.requests // 2, True)]
                runs += [(f"{BARE}{label}, new connections", bare, request, effort.requests // 2, True)]
        bare = stacks.peer("bare", payload=payload, reply=mcp)
        for version, call in (("2025-11-25", post("/api/mcp", CALL, **BEHIND_PROXY)), (MODERN, modern_call())):
            runs += [(f"MCP {version}", ours, call, effort.requests, False)]
        runs += [(f"{BARE}MCP", bare, post("/api/mcp", CALL), effort.requests, False)]
        rows = {name: Row(name) for name, *_ in runs}
        for _ in range(effort.rounds):
            for name, server, request, count, is_new in runs:
                measure(rows[name], server, request, count, is_new=is_new)
    return rows


def modern_call() -> bytes:
    """Return a tool call of the newest version, which needs no initialization."""
    return post("/api/mcp", MODERN_CALL, **BEHIND_PROXY, **MODERN_HEADERS)


def judge(effort: Effort) -> Verdict:
    """Measure under each HTTP server."""
    lines: list[Line] = []
    others: set[str] = set()
    for kind in effort.servers:
        rows = measure_answers(kind, effort)
        lines += lines_of(rows.values(), kind)
        others |= {name for name in rows if name.startswith(BARE)}
    note = "Everything on, 32 connections; kept, unless they are said to be new: then each call opens and closes one."
    title = "Answers by size, version and connection: CPU of the server"
    return Verdict(tables=[Table("answers-cpu", title, "µs a call", lines, note, False, tuple(sorted(others)))])
