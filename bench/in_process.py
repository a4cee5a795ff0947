"""Measure rows 2 and 21; `python -m bench.in_process`: the cost of routing, policies and refusals, without a server.

The whole service runs in this process on the simulated world. Requests go to its ASGI callable, and their CPU time is
measured. The rows "limits on", "behind a proxy" and "with a token" are configured like a deployed service.
"""

import asyncio
import gc
import json
import secrets
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

from bench.judge import Bar, Effort, Line, Table, Verdict
from bench.processes import python, started
from toolserver.app import Service, ServiceParts
from toolserver.settings import Settings

ROUNDS, CALLS, CLIENTS = 7, 1000, 500
FREE, SOLD = "/api/btc-price", "/api/pro/briefing"
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "btc_price", "arguments": {}}}
Scope = dict[str, Any]


class InProcessRow(NamedTuple):
    """The CPU time of one kind of call in microseconds, the minimum of the rounds, and its bar."""

    name: str
    us: float
    bar: float | None


def request(path: str, *headers: tuple[bytes, bytes], method: str = "GET", client: str = "192.0.2.7") -> Scope:
    """Return an ASGI scope as a server makes it."""
    plain = [(b"host", b"127.0.0.1"), (b"accept", b"*/*"), (b"user-agent", b"bench/1.0"), *headers]
    about = {"type": "http", "http_version": "1.1", "scheme": "http", "query_string": b"", "root_path": ""}
    return {**about, "method": method, "path": path, "headers": plain, "client": (client, 40000)}


def message_request(*headers: tuple[bytes, bytes]) -> Scope:
    """Return an ASGI scope of an MCP message."""
    json_headers = ((b"content-type", b"application/json"), (b"accept", b"application/json, text/event-stream"))
    return request("/api/mcp", *json_headers, (b"mcp-protocol-version", b"2025-11-25"), *headers, method="POST")


def calls_from(clients: int, path: str, *headers: tuple[bytes, bytes]) -> list[Scope]:
    """Return the same call behind one proxy, from this number of clients."""
    addresses = (f"198.51.{n // 250}.{n % 250 + 1}".encode() for n in range(clients))
    return [request(path, *headers, (b"x-forwarded-for", address), client="127.0.0.1") for address in addresses]


async def cost_of(app: Any, scopes: Sequence[Scope], status: int, body: bytes = b"", *, calls: int = CALLS) -> float:
    """Return the CPU microseconds of a call, the minimum of the rounds. Raises SystemExit for an unexpected status."""
    seen: dict[int, int] = {}
    given = False

    async def receive() -> dict[str, Any]:
        nonlocal given
        if given:  # the client stays connected
            await asyncio.sleep(3600)
        given = True
        return {"type": "http.request", "body": body}

    async def send(event: dict[str, Any]) -> None:
        if event["type"] == "http.response.start":
            seen[event["status"]] = seen.get(event["status"], 0) + 1

    turns: Iterator[Scope] = cycle(scopes)
    best = float("inf")
    for _ in range(ROUNDS):
        gc.collect()
        before = time.process_time()
        for _ in range(calls):
            given = False
            await app(next(turns), receive, send)
        best = min(best, (time.process_time() - before) / calls * 1e6)
    if seen.keys() != {status}:
        raise SystemExit(f"{scopes[0]['method']} {scopes[0]['path']}: answers were {seen}, not {status}")
    return best


def settings_for(folder: Path, via: str, **limits: Any) -> Settings:
    """Return settings with limits that count every call and refuse none."""
    about = {"data_dir": folder, "sources": {"licence_policy": "any"}, "upstream": {"via": via}}
    open_limits = {"daily": 10**9, "spacing_s": 1e-6, "premium_per_minute": 10**8}
    return Settings.model_validate({**about, "limits": {**open_limits, **limits}})


async def measure(folder: Path, via: str) -> list[InProcessRow]:
    """Measure every row, each on a service with the limits in its name."""
    rows: list[InProcessRow] = []
    proxies = ["127.0.0.1/32"]
    for name, limits in (("off", {"enabled": False}), ("on", {"trusted_proxies": proxies})):
        settings = settings_for(folder / name, via, **limits)
        async with Service.build(settings, ServiceParts(base_url="http://127.0.0.1")) as service:
            app = service.web_app()
            await cost_of(app, [request(FREE)], 200, calls=1)  # makes the answer
            rows += await hits(app, service, name)
            rows += [] if name == "on" else await refusals(app)
    settings = settings_for(folder / "spaced", via, spacing_s=3600)
    async with Service.build(settings, ServiceParts(base_url="http://127.0.0.1")) as service:
        app = service.web_app()
        await app(request(FREE), _nothing, _nothing)
        rows.append(InProcessRow("429", await cost_of(app, [request(FREE)], 429, calls=200), 40))
        with_message = cost_of(app, [message_request()], 200, json.dumps(CALL).encode(), calls=200)
        rows.append(InProcessRow("429 over MCP", await with_message, 40))
    return rows


async def _nothing(*_: Any) -> dict[str, Any]:
    return {"type": "http.request", "body": b""}


async def hits(app: Any, service: Service, name: str) -> list[InProcessRow]:
    """Measure cached free answers, over REST and MCP."""
    message = json.dumps(CALL).encode()
    mcp = message_request()
    rows = [
        InProcessRow(f"REST, limits {name}", await cost_of(app, [request(FREE)], 200), 5),
        InProcessRow(f"MCP, limits {name}", await cost_of(app, [mcp], 200, message), None),
    ]
    if name == "off":
        return rows
    token = f"svc_live_{secrets.token_hex(32)}"
    await service.money.ledger.mint(token, 10**9, cause="bench")
    bearer = (b"authorization", b"Bearer " + token.encode())
    behind = calls_from(CLIENTS, FREE)
    rows.append(InProcessRow("REST, behind a proxy", await cost_of(app, behind, 200), 5))
    rows.append(InProcessRow("REST, with a token", await cost_of(app, [request(FREE, bearer)], 200), 5))
    rows.append(InProcessRow("MCP, with a token", await cost_of(app, [message_request(bearer)], 200, message), None))
    return rows


async def refusals(app: Any) -> list[InProcessRow]:
    """Measure refusals, which anonymous clients can trigger without limit."""
    unknown = {**CALL, "params": {"name": "btc_prise", "arguments": {}}}
    mcp = message_request()
    rows = [
        InProcessRow("404", await cost_of(app, [request("/api/btc-prise")], 404, calls=50), 40),
        InProcessRow("402", await cost_of(app, [request(SOLD)], 402, calls=200), 40),
    ]
    rows.append(
        InProcessRow("unknown tool", await cost_of(app, [mcp], 200, json.dumps(unknown).encode(), calls=50), 40)
    )
    return rows


REFUSALS = ("404", "402", "429", "unknown tool", "429 over MCP")


def measure_all() -> list[InProcessRow]:
    """Measure all rows, on a world of their own."""
    with (
        tempfile.TemporaryDirectory(prefix="toolserver-bench-") as name,
        started(python("-m", "toolserver", "world", "--port", "0")) as world,
    ):
        return asyncio.run(measure(Path(name), f"http://127.0.0.1:{world.port}"))


def judge(effort: Effort) -> Verdict:
    """Judge routing, policies and refusals."""
    rows = measure_all()
    bars = [
        Bar(21 if row.name in REFUSALS else 2, f"{row.name}, in process", row.us, row.bar, "µs")
        for row in rows
        if row.bar is not None
    ]
    lines = [Line(row.name, row.us, row.us, row.us) for row in rows]
    return Verdict(bars, [Table("in-process", "What a call costs in process, without a server", "µs of CPU", lines)])


def main() -> None:
    """Print the table, and exit with 1 when a bar is missed."""
    rows = measure_all()
    print(f"{'in process, no server':28} {'CPU µs/call':>12} {'bar':>6}")
    for row in rows:
        print(f"{row.name:28} {row.us:12.1f} {'-' if row.bar is None else f'{row.bar:g}':>6}")
    sys.exit(any(row.bar is not None and row.us > row.bar for row in rows))


if __name__ == "__main__":
    main()
