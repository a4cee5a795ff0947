"""Count the function calls of the most common calls and refusals, which do not depend on the speed of the machine.

`python -m bench.in_process` measures times. If a number here has to grow, every call has become more expensive.
"""

import json
import sys
from typing import Any

import pytest

from tests.calls.parts import RICH, engine
from tests.calls.toy import FIRST, REGISTRY
from toolserver.settings import LimitSettings

PROXY = "10.0.0.1"
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "number", "arguments": {}}}
UNKNOWN = CALL | {"params": {"name": "numbre", "arguments": {}}}
JSON = ((b"content-type", b"application/json"), (b"accept", b"application/json, text/event-stream"))
BEARER = (b"authorization", f"Bearer {RICH}".encode())
Scope = dict[str, Any]


def request(path: str, *headers: tuple[bytes, bytes], method: str = "GET", client: str = "192.0.2.7") -> Scope:
    """An ASGI scope as a server makes it."""
    plain = [(b"host", b"any.example"), (b"user-agent", b"tests/1.0"), *headers]
    about = {"type": "http", "http_version": "1.1", "scheme": "http", "query_string": b"", "root_path": ""}
    return {**about, "method": method, "path": path, "headers": plain, "client": (client, 40000)}


def post(*headers: tuple[bytes, bytes]) -> Scope:
    return request("/api/mcp", *JSON, *headers, method="POST")


async def count_calls(app: Any, scope: Scope, body: bytes = b"") -> tuple[int, int]:
    """The status of the answer, and how many functions were called for it, in Python and in C."""
    seen: list[int] = []
    calls = 0

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body}

    async def send(event: dict[str, Any]) -> None:
        seen.append(event.get("status", 0))

    def note(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        await app(scope, receive, send)
    finally:
        sys.setprofile(before)
    return int(seen[0]), calls


async def cost_of(scope: Scope, message: Any) -> tuple[int, int]:
    """The status and the function calls of a request that came before, on a service with limits that refuse nobody."""
    body = b"" if message is None else json.dumps(message).encode()
    chosen = LimitSettings(spacing_s=1e-3, trusted_proxies=["10.0.0.0/8"])
    async with engine(REGISTRY, limits=chosen) as e:
        e.internet.serves(FIRST, {"value": 3})
        app = e.service.web_app()
        for _ in range(3):  # the first makes the answer, the second what is kept of it and of the client
            await count_calls(app, scope, body)
            e.clock.advance(0.1)
        return await count_calls(app, scope, body)


HITS = {
    "REST": (request("/api/number"), None, 88),
    "REST behind a proxy": (request("/api/number", (b"x-forwarded-for", b"198.51.100.7"), client=PROXY), None, 91),
    "REST with a token": (request("/api/number", BEARER), None, 127),
    "MCP": (post(), CALL, 105),
    "MCP with a token": (post(BEARER), CALL, 171),  # it says what the token has left, and is told from a visitor
}


@pytest.mark.parametrize("name", HITS)
async def test_a_cached_answer_takes_no_more_calls_than_before(name: str) -> None:
    scope, message, most = HITS[name]

    status, calls = await cost_of(scope, message)

    assert status == 200
    assert calls <= most


REFUSALS = {
    "a path that there is not": (request("/api/numbre"), None, 404, 113),
    "a paid call without a token": (request("/api/pro/report"), None, 402, 141),
    "a tool that there is not": (post(), UNKNOWN, 200, 115),
}


@pytest.mark.parametrize("name", REFUSALS)
async def test_a_refusal_takes_no_more_calls_than_before(name: str) -> None:
    scope, message, expected, most = REFUSALS[name]

    status, calls = await cost_of(scope, message)

    assert status == expected
    assert calls <= most
