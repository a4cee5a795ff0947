"""Measure row 11: 1,000 simultaneous callers for an answer that is not cached: each upstream gets one request.

The service runs in this process on the simulated world; its requests to upstreams are counted on the way.
"""

import asyncio
import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import httpx

from bench.in_process import message_request, request, settings_for
from bench.judge import Bar, Effort, Verdict
from bench.processes import python, started
from toolserver.app import Service, ServiceParts

CALLERS, SLOW_S = 1000, 0.05
REST = "/api/btc-price"
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "fear_greed", "arguments": {}}}


class CountingTransport(httpx.AsyncBaseTransport):
    """Counts requests by address, and delays every upstream."""

    def __init__(self) -> None:
        self._inner = httpx.AsyncHTTPTransport()
        self.asked: Counter[str] = Counter()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.asked[str(request.url)] += 1
        await asyncio.sleep(SLOW_S)
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        await self._inner.aclose()


async def ask(app: Any, scope: dict[str, Any], body: bytes) -> int:
    """Return the status of one answer."""
    seen: list[int] = []
    given = False

    async def receive() -> dict[str, Any]:
        nonlocal given
        if given:  # the client stays connected
            await asyncio.sleep(3600)
        given = True
        return {"type": "http.request", "body": body}

    async def send(event: dict[str, Any]) -> None:
        seen.append(event.get("status", 0))

    await app(scope, receive, send)
    return seen[0]


async def count_requests(folder: Path, via: str) -> Counter[str]:
    """Return the number of requests to each upstream while many callers requested the same two answers at once."""
    transport = CountingTransport()
    parts = ServiceParts(base_url="http://127.0.0.1", transport=transport, background=False)
    async with Service.build(settings_for(folder, via, enabled=False), parts) as service:
        app, message = service.web_app(), json.dumps(CALL).encode()
        calls = [ask(app, request(REST), b"") for _ in range(CALLERS // 2)]
        calls += [ask(app, message_request(), message) for _ in range(CALLERS // 2)]
        statuses = Counter(await asyncio.gather(*calls))
    if set(statuses) != {200}:
        raise SystemExit(f"answers were {dict(statuses)}")
    return transport.asked


def judge(effort: Effort) -> Verdict:
    """Measure once, on a service without cached answers."""
    with (
        tempfile.TemporaryDirectory(prefix="toolserver-bench-") as name,
        started(python("-m", "toolserver", "world", "--port", "0")) as world,
    ):
        asked = asyncio.run(count_requests(Path(name), f"http://127.0.0.1:{world.port}"))
    most = max(asked.values(), default=0)
    what = f"requests to an upstream while {CALLERS:,} callers ask at once"
    return Verdict([Bar(11, what, most if asked else CALLERS, 1)])
