"""Measure rows 1, 3, 4 and 5: cached free answers over REST and MCP against a bare app, the SDK's server and FastMCP.

"Everything on" is a service as it is deployed: limits count each call, and a proxy is in front.
"""

import asyncio
import json
import os
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from urllib.request import Request, urlopen

from bench.judge import Bar, Effort, Table, Verdict
from bench.pairs import Pair, Samples, Side, measure_pairs, ratio_of
from bench.processes import CORES, Server, python, started
from bench.rows import LEGACY, call_side, get, lines_of, post

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
BARE_REST, BARE_MCP = "bare app, the REST bytes", "bare app, the MCP bytes"
OTHERS = (BARE_REST, BARE_MCP, "python SDK tools/call", "FastMCP tools/call")
MOST_OF_BARE: Bars = {"hypercorn": 1.12, "uvicorn": 1.30}


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


def sides_of(stacks: Stacks, requests: int) -> dict[str, Side]:
    """Start every stack under one HTTP server, and return them as sides."""
    ours = stacks.service("plain", TOOLSERVER_LIMITS__ENABLED="false")
    deployed = stacks.service("deployed", **EVERYTHING_ON)
    payload, rest, mcp = stacks.keep_replies(ours)
    call = post("/api/mcp", CALL)
    sides = (
        call_side(BARE_REST, stacks.peer("bare", payload=payload, reply=rest), get(REST), requests),
        call_side("REST hit", ours, get(REST), requests),
        call_side("REST hit, everything on", deployed, get(REST, **BEHIND_PROXY), requests),
        call_side(BARE_MCP, stacks.peer("bare", payload=payload, reply=mcp), call, requests),
        call_side("MCP tools/call", ours, call, requests),
        call_side("MCP, everything on", deployed, post("/api/mcp", CALL, **BEHIND_PROXY), requests),
        # Halves of the SDK are long: its searches for garbage, of 60 ms, would be in one half and not in the other.
        call_side("python SDK tools/call", stacks.peer("sdk", payload=payload), call, requests),
        call_side("FastMCP tools/call", stacks.peer("fastmcp", payload=payload), call, requests // 4),
    )
    return {side.name: side for side in sides}


def compare_hot_path(kind: str, effort: Effort) -> tuple[list[Bar], Samples]:
    """Compare every stack under one HTTP server with ours."""
    with ExitStack() as stack:
        sides = sides_of(Stacks(kind, stack), effort.requests)
        first = (sides["REST hit, everything on"], sides[BARE_REST])
        most = MOST_OF_BARE[kind]
        judged = [(1, Pair("REST hit, everything on: CPU of a bare app", first, ratio_of("cpu_us")), most, False)]
        for row, ours, peer, times in LEAST:
            pair = Pair(f"{ours} / {peer}", (sides[peer], sides[ours]), ratio_of("cpu_us"))
            judged.append((row, pair, times[kind], True))
        shown = [
            Pair(ours, (sides[ours], sides[bare]), ratio_of("cpu_us"), is_judged=False)
            for ours, bare in (("REST hit", BARE_REST), ("MCP tools/call", BARE_MCP))
        ]
        samples = asyncio.run(measure_pairs([*(pair for _, pair, *_ in judged), *shown], effort.pairs))
    bars = [Bar.of_pair(pair, row, bar, "x", at_least=least, server=kind) for row, pair, bar, least in judged]
    return bars, {name: samples[name] for name in sides}


def judge(effort: Effort) -> Verdict:
    """Measure under each HTTP server."""
    found, lines, rates, waits = Verdict(), [], [], []
    for kind in effort.servers:
        bars, samples = compare_hot_path(kind, effort)
        found.bars += bars
        lines += lines_of(samples, kind)
        rates += lines_of(samples, kind, "per_s")
        waits += lines_of(samples, kind, "p99_ms")
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
