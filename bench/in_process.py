"""Measure rows 2 and 21; `python -m bench.in_process`: the cost of routing, policies and refusals, without a server.

The whole service runs in this process on the simulated world. Requests go to its ASGI callable, and their CPU time is
compared with that of a fixed piece of work, so that a slower machine does not count as a slower service. The rows
"limits on", "behind a proxy" and "with a token" are configured like a deployed service.
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

from bench.judge import Bar, Effort, Line, Table, Verdict, show_table, show_verdict
from bench.pairs import PIECE, Pair, Sample, Side, measure_pairs, reference_of
from bench.processes import python, started
from toolserver.app import Service, ServiceParts
from toolserver.settings import Settings

CALLS, CLIENTS = 500, 500
BARS = {"off": 3.0, "on": 5.0, "proxy": 6.5, "token": 7.5}  # µs
REFUSAL_US = 40.0
FREE, SOLD = "/api/btc-price", "/api/pro/briefing"
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "btc_price", "arguments": {}}}
Scope = dict[str, Any]


class Kind(NamedTuple):
    """A kind of call: what it sends, the status that it gets, its bar, and how many calls are one half."""

    name: str
    scopes: Sequence[Scope]
    status: int = 200
    body: bytes = b""
    bar: float | None = None
    calls: int = CALLS


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


def side_of(app: Any, kind: Kind) -> Side:
    """Return the side of a kind of call: `cpu_us` of one. Raises SystemExit for an unexpected status."""
    turns: Iterator[Scope] = cycle(kind.scopes)
    seen: set[int] = set()
    given = False

    async def receive() -> dict[str, Any]:
        nonlocal given
        if given:  # the client stays connected
            await asyncio.sleep(3600)
        given = True
        return {"type": "http.request", "body": kind.body}

    async def send(event: dict[str, Any]) -> None:
        if event["type"] == "http.response.start":
            seen.add(event["status"])

    async def measure() -> Sample:
        nonlocal given
        before = time.process_time()
        for _ in range(kind.calls):
            given = False
            await app(next(turns), receive, send)
        spent = time.process_time() - before
        if seen != {kind.status}:
            first = kind.scopes[0]
            raise SystemExit(f"{first['method']} {first['path']}: answers were {seen}, not {kind.status}")
        return {"cpu_us": spent / kind.calls * 1e6}

    return Side(kind.name, measure)


def settings_for(folder: Path, via: str, **limits: Any) -> Settings:
    """Return settings with limits that count every call and refuse none."""
    about = {"data_dir": folder, "sources": {"licence_policy": "any"}, "upstream": {"via": via}}
    open_limits = {"daily": 10**9, "spacing_s": 1e-6, "premium_per_minute": 10**8}
    return Settings.model_validate({**about, "limits": {**open_limits, **limits}})


async def compare_kinds(app: Any, kinds: Sequence[Kind], count: int) -> list[tuple[Pair, float | None]]:
    """Measure kinds of calls against a fixed piece of work. Return each with its bar."""
    gc.collect()
    pairs = [(Pair(kind.name, (PIECE, side_of(app, kind)), reference_of("cpu_us")), kind.bar) for kind in kinds]
    for pair, _ in pairs:
        await pair.sides[1].measure()  # type: ignore[misc]
    await measure_pairs([pair for pair, _ in pairs], count)
    return pairs


async def measure(folder: Path, via: str, count: int) -> list[tuple[Pair, float | None]]:
    """Measure every kind, each on a service with the limits in its name."""
    found: list[tuple[Pair, float | None]] = []
    for name, limits in (("off", {"enabled": False}), ("on", {"trusted_proxies": ["127.0.0.1/32"]})):
        settings = settings_for(folder / name, via, **limits)
        async with Service.build(settings, ServiceParts(base_url="http://127.0.0.1")) as service:
            app = service.web_app()
            await app(request(FREE), _nothing, _nothing)  # makes the answer
            kinds = hits(name) + (list_refusals() if name == "off" else await hits_of_clients(service))
            found += await compare_kinds(app, kinds, count)
    settings = settings_for(folder / "spaced", via, spacing_s=3600)
    async with Service.build(settings, ServiceParts(base_url="http://127.0.0.1")) as service:
        app = service.web_app()
        await app(request(FREE), _nothing, _nothing)
        message = json.dumps(CALL).encode()
        kinds = [
            Kind("429", [request(FREE)], 429, bar=REFUSAL_US, calls=200),
            Kind("429 over MCP", [message_request()], 200, message, REFUSAL_US, 200),
        ]
        found += await compare_kinds(app, kinds, count)
    return found


async def _nothing(*_: Any) -> dict[str, Any]:
    return {"type": "http.request", "body": b""}


def hits(name: str) -> list[Kind]:
    """Return cached free answers, over REST and MCP."""
    return [
        Kind(f"REST, limits {name}", [request(FREE)], bar=BARS[name]),
        Kind(f"MCP, limits {name}", [message_request()], body=json.dumps(CALL).encode()),
    ]


async def hits_of_clients(service: Service) -> list[Kind]:
    """Return cached free answers behind a proxy, and of a client with a token."""
    token = f"svc_live_{secrets.token_hex(32)}"
    await service.money.ledger.mint(token, 10**9, cause="bench")
    bearer = (b"authorization", b"Bearer " + token.encode())
    return [
        Kind("REST, behind a proxy", calls_from(CLIENTS, FREE), bar=BARS["proxy"]),
        Kind("REST, with a token", [request(FREE, bearer)], bar=BARS["token"]),
        Kind("MCP, with a token", [message_request(bearer)], body=json.dumps(CALL).encode()),
    ]


def list_refusals() -> list[Kind]:
    """Return refusals, which anonymous clients can trigger without limit."""
    unknown = json.dumps({**CALL, "params": {"name": "btc_prise", "arguments": {}}}).encode()
    return [
        Kind("404", [request("/api/btc-prise")], 404, bar=REFUSAL_US, calls=100),
        Kind("402", [request(SOLD)], 402, bar=REFUSAL_US, calls=200),
        Kind("unknown tool", [message_request()], 200, unknown, REFUSAL_US, 100),
    ]


def judge(effort: Effort) -> Verdict:
    """Judge routing, policies and refusals, on a world of their own."""
    with (
        tempfile.TemporaryDirectory(prefix="toolserver-bench-") as name,
        started(python("-m", "toolserver", "world", "--port", "0")) as world,
    ):
        found = asyncio.run(measure(Path(name), f"http://127.0.0.1:{world.port}", 3 * effort.pairs))
    bars = [
        Bar.of_pair(pair, 21 if bar == REFUSAL_US else 2, bar, "µs", what=f"{pair.name}, in process")
        for pair, bar in found
        if bar is not None
    ]
    lines = [Line.of_pair(pair) for pair, _ in found]
    return Verdict(bars, [Table("in-process", "What a call costs in process, without a server", "µs of CPU", lines)])


def main() -> None:
    """Print the table, and exit with 1 when a bar is missed."""
    found = judge(Effort())
    show_table(found.tables[0])
    sys.exit(not show_verdict(found.bars, {}))


if __name__ == "__main__":
    main()
