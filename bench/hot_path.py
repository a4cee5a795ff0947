"""Measure rows 1, 3, 4 and 5: cached free answers over REST and MCP against a bare app, the SDK's server and FastMCP.

"Everything on" is a service as it is deployed: limits count each call, and a proxy is in front.
"""

import json
import os
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from urllib.request import Request, urlopen

from bench.judge import Bar, Effort, Table, Verdict
from bench.processes import CORES, Server, python, started
from bench.rows import LEGACY, Row, get, lines_of, measure, post

CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "btc_price", "arguments": {}}}
FLAGS = ("--port", "0", "--ready-json")
REST = "/api/btc-price"
EVERYTHING_ON = {  # limits that count each call and refuse none, behind a proxy
    "TOOLSERVER_LIMITS__DAILY": "1000000000",
    "TOOLSERVER_LIMITS__SPACING_S": "0.000001",
    "TOOLSERVER_LIMITS__TRUSTED_PROXIES": '["127.0.0.1/32"]',
}
BEHIND_PROXY = {"x-forwarded-for": "198.51.100.7"}
Bars = Mapping[str, float]
LEAST: tuple[tuple[int, str, str, Bars], ...] = (  # row, ours, peer, the multiple of the peer's CPU to reach
    (3, "MCP, everything on", "FastMCP tools/call", {"hypercorn": 6, "uvicorn": 25}),
    (4, "MCP, everything on", "python SDK tools/call", {"hypercorn": 2.5, "uvicorn": 8}),
    (5, "MCP, everything on", "REST hit, everything on", {"hypercorn": 0.90, "uvicorn": 0.90}),
)
OTHERS = ("bare app, the REST bytes", "bare app, the MCP bytes", "python SDK tools/call", "FastMCP tools/call")
MOST_OF_BARE: Bars = {"hypercorn": 1.12, "uvicorn": 1.35}


def reply_of(request: Request, path: Path) -> None:
    """Save one of our answers, headers and body, for the bare app to send."""
    with urlopen(request) as response:
        own = ("date", "transfer-encoding", "connection", "server")
        headers = [(k.lower(), v) for k, v in response.headers.items() if k.lower() not in own]
        path.write_text(json.dumps({"headers": headers, "body": response.read().decode()}), encoding="utf-8")


class Stacks:
    """Servers of one kind on one core, with the load on the others, until the block ends."""

    def __init__(self, kind: str, stack: ExitStack) -> None:
        self.kind, self._stack = kind, stack
        self.folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="toolserver-bench-")))
        self._core = CORES[0] if len(CORES) > 1 else None
        if len(CORES) > 1:
            os.sched_setaffinity(0, set(CORES[1:]))
        stack.callback(os.sched_setaffinity, 0, set(CORES))
        self._world = stack.enter_context(started(python("-m", "toolserver", "world", "--port", "0")))

    def service(self, name: str, **more: str) -> Server:
        """Start our service, with a cached answer."""
        data = str(self.folder / name)
        command = python("-m", "toolserver", "serve", "--server", self.kind, *FLAGS, "--data-dir", data)
        via = {"TOOLSERVER_UPSTREAM__VIA": f"http://127.0.0.1:{self._world.port}", "TOOLSERVER_LOGS__LEVEL": "error"}
        found = self._stack.enter_context(started(command, core=self._core, **via, **more))
        urlopen(f"http://127.0.0.1:{found.port}{REST}").read()
        return found

    def keep_replies(self, ours: Server) -> tuple[Path, Path, Path]:
        """Save the payload of our answer, and our complete answers over REST and MCP, as files for the peers."""
        rest = f"http://127.0.0.1:{ours.port}{REST}"
        payload, rest_reply, mcp_reply = (self.folder / name for name in ("payload.json", "rest.json", "mcp.json"))
        payload.write_bytes(urlopen(rest).read())
        reply_of(Request(rest), rest_reply)
        reply_of(Request(f"http://127.0.0.1:{ours.port}/api/mcp", json.dumps(CALL).encode(), LEGACY), mcp_reply)
        return payload, rest_reply, mcp_reply

    def peer(self, name: str, *, payload: Path, reply: Path | None = None) -> Server:
        """Start a peer of bench/stacks/serve.py, which answers with the payload or with one of our complete answers."""
        command = python("-m", "bench.stacks.serve", name, self.kind)
        given = {"REPLY": str(reply or payload), "PAYLOAD": str(payload)}
        return self._stack.enter_context(started(command, core=self._core, **given))


def measure_hot_path(kind: str, effort: Effort) -> dict[str, Row]:
    """Measure every stack under one HTTP server, in turn."""
    with ExitStack() as stack:
        stacks, requests = Stacks(kind, stack), effort.requests
        ours = stacks.service("plain", TOOLSERVER_LIMITS__ENABLED="false")
        deployed = stacks.service("deployed", **EVERYTHING_ON)
        payload, rest, mcp = stacks.keep_replies(ours)
        call = post("/api/mcp", CALL)
        runs: list[tuple[str, Server, bytes, int]] = [
            ("bare app, the REST bytes", stacks.peer("bare", payload=payload, reply=rest), get(REST), requests),
            ("REST hit", ours, get(REST), requests),
            ("REST hit, everything on", deployed, get(REST, **BEHIND_PROXY), requests),
            ("bare app, the MCP bytes", stacks.peer("bare", payload=payload, reply=mcp), call, requests),
            ("MCP tools/call", ours, call, requests),
            ("MCP, everything on", deployed, post("/api/mcp", CALL, **BEHIND_PROXY), requests),
            ("python SDK tools/call", stacks.peer("sdk", payload=payload), call, requests // 4),
            ("FastMCP tools/call", stacks.peer("fastmcp", payload=payload), call, requests // 8),
        ]
        rows = {name: Row(name) for name, *_ in runs}
        for _ in range(effort.rounds):
            for name, server, request, count in runs:
                measure(rows[name], server, request, count)
    return rows


def bars_of(kind: str, rows: Mapping[str, Row]) -> list[Bar]:
    """Return the rows that these figures decide."""
    costs = rows["REST hit, everything on"].cpu / rows["bare app, the REST bytes"].cpu
    found = [Bar(1, "REST hit, everything on: CPU of a bare app", costs, MOST_OF_BARE[kind], "x", server=kind)]
    for row, ours, peer, least in LEAST:
        times = rows[peer].cpu / rows[ours].cpu
        found.append(Bar(row, f"{ours} / {peer}", times, least[kind], "x", at_least=True, server=kind))
    return found


def judge(effort: Effort) -> Verdict:
    """Measure under each HTTP server."""
    found, lines, rates, waits = Verdict(), [], [], []
    for kind in effort.servers:
        rows = measure_hot_path(kind, effort)
        found.bars += bars_of(kind, rows)
        lines += lines_of(rows.values(), kind)
        rates += lines_of(rows.values(), kind, "per_s")
        waits += lines_of(rows.values(), kind, "p99_ms")
    note = "One core for the server, 32 kept connections, answers of 1 to 4 KB."
    found.tables += [
        Table(
            "hot-path-cpu",
            "A cached answer, and the same from peers: CPU of the server",
            "µs a call",
            lines,
            note,
            False,
            OTHERS,
        ),
        Table("hot-path-rate", "The same: answers a second", "calls/s", rates, note, True, OTHERS),
        Table("hot-path-p99", "The same: 99 of 100 callers wait at most", "ms", waits, note, False, OTHERS),
    ]
    return found
