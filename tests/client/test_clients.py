"""The two clients: the same conversation over blocking calls and awaited ones."""

import json
import subprocess
import sys
import time

import anyio
import httpx
import pytest

from tests.calls.parts import RICH
from tests.served import served
from toolserver.client import AsyncToolClient, ToolClient, Unreachable, clients
from toolserver.errors import InvalidArguments, MissingToken

ROUTES = {"routes": {"sights": {"method": "GET", "path": "/api/sights", "auth": "none", "arguments": {"n": "query"}}}}


def answer(request):
    found = ROUTES if request.url.path == "/api/llm-tools" else {"seen": dict(request.url.params)}
    return httpx.Response(200, json=found)


def client(handler=answer, **more):
    return ToolClient("https://data.example", http=httpx.Client(transport=httpx.MockTransport(handler)), **more)


def test_a_call_with_blocking_calls():
    with client() as c:
        assert c.sights(n=3).payload == c.call("sights", {"n": 3}).payload == {"seen": {"n": "3"}}


def test_what_httpx_raises_is_unreachable_and_the_cause_is_kept():
    def fail(request):
        raise httpx.ReadTimeout("slow", request=request)

    with client(fail, retries=0) as c, pytest.raises(Unreachable, match="ReadTimeout: slow") as caught:
        c.sights()
    assert isinstance(caught.value.__cause__, httpx.ReadTimeout)


def test_pauses_are_slept_through_by_both(monkeypatch):
    slept = []

    async def sleep(seconds):
        slept.append(seconds)

    monkeypatch.setattr(time, "sleep", slept.append)
    monkeypatch.setattr(anyio, "sleep", sleep)

    def busy():
        refusals = [httpx.Response(503, json={"error": "shutting_down", "detail": "", "retry_after_seconds": 2})]
        return lambda request: refusals.pop() if refusals else answer(request)

    with client(busy()) as c:
        c.sights()

    async def awaited():
        transport = httpx.MockTransport(busy())
        async with AsyncToolClient("https://data.example", http=httpx.AsyncClient(transport=transport)) as c:
            await c.sights()

    anyio.run(awaited)
    assert slept == [2, 2]


async def test_a_redirect_is_not_followed_because_the_token_would_go_along():
    def redirect(request):
        return httpx.Response(302, headers={"location": "https://evil.example"})

    async with AsyncToolClient(
        "https://data.example", token=RICH, http=httpx.AsyncClient(transport=httpx.MockTransport(redirect))
    ) as c:
        with pytest.raises(Unreachable, match="302"):
            await c.call("sights")


async def test_free_paid_and_refused_calls_of_a_whole_service():
    async with served() as s:
        async with AsyncToolClient("https://data.example/api/mcp", token=RICH, http=s.client) as c:
            price = await c.btc_price()
            paid = await c.premium_briefing(include="btc")
            with pytest.raises(InvalidArguments) as wrong:
                await c.call("weather", {"plac": "Paris"})
            assert wrong.value.extra["did_you_mean"] == ["place"]
        assert paid.credits_remaining == 9
        assert price.payload["data"]["price_usd"] > 0
        assert price.receipt is None
    async with served() as s, AsyncToolClient("https://data.example", http=s.client) as c:
        with pytest.raises(MissingToken) as missing:
            await c.premium_briefing()
        assert missing.value.next_tool == "payment_buy_credits"


def test_importing_the_client_imports_little_more_than_httpx():
    script = (
        "import json, sys, toolserver.client; print(json.dumps(sorted({m.partition('.')[0] for m in sys.modules})))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    heavy = {"pydantic", "mcp", "web3", "starlette", "aiosqlite", "aiohttp", "hypercorn", "jinja2", "msgspec", "tools"}
    assert heavy.isdisjoint(json.loads(done.stdout))


async def test_a_body_without_end_is_given_up_by_both_clients(monkeypatch):
    monkeypatch.setattr(clients, "MOST_BODY", 1000)
    sent = []

    class Endless(httpx.SyncByteStream, httpx.AsyncByteStream):
        def __iter__(self):
            while True:
                sent.append(1)
                yield b"x" * 100

        async def __aiter__(self):
            for piece in self:
                yield piece

    transport = httpx.MockTransport(lambda request: httpx.Response(200, stream=Endless()))
    with ToolClient("https://data.example", retries=0, http=httpx.Client(transport=transport)) as c:
        with pytest.raises(Unreachable, match="larger than 1000 bytes"):
            c.sights()
    async with AsyncToolClient("https://data.example", retries=0, http=httpx.AsyncClient(transport=transport)) as c:
        with pytest.raises(Unreachable, match="larger than 1000 bytes"):
            await c.sights()
    assert len(sent) <= 24
