"""A small world of its own: upstreams with one value each, and a running listener to ask them through."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio
import httpx

from toolserver.world.model import Ask, Reply, Routes, World
from toolserver.world.state import WorldState

T = 1_800_000_000.0  # 2027-01-15T08:00:00Z, a Friday
HOST = "api.toy.example"


@dataclass
class Toy:
    """Routes, and how often each provider really ran."""

    routes: Routes = field(default_factory=Routes)
    calls: dict[str, int] = field(default_factory=dict)


def toy() -> Toy:
    upstreams = Toy()
    routes = upstreams.routes

    forms = {
        "error200": Reply.json({"status": "error", "reason": "unknown symbol"}),
        "status:503": Reply.json({"maintenance": True}, 503),
    }

    @routes.serves("Toy.quote", HOST, "/v1/quote/{symbol}", forms=forms)
    def quote(world: World, ask: Ask) -> Reply:
        upstreams.calls["quote"] = upstreams.calls.get("quote", 0) + 1
        last = world.pinned("price.TOY") or round(world.between("toy", int(world.now), 50, 150), 2)
        body = {"id": 7, "symbol": ask.parts["symbol"], "last": last, "high": "151.50", "low": "0.0000123"}
        body |= {"time": int(world.now * 1000), "items": [{"n": 1, "name": "a"}, {"n": 2, "name": "b"}], "open": True}
        return Reply.json(body, last_modified=world.now)

    @quote.form("limited")
    def teapot(world: World, ask: Ask) -> Reply:
        return Reply.json({"code": -1003}, 418)

    @routes.serves("Toy.rows", HOST, "/rows.csv")
    def rows(world: World, ask: Ask) -> Reply:
        text = f'# made for tests\r\ndate,price,note\r\n2027-01-15,{world.now - T + 10:.2f},"x, y"\r\n'
        return Reply.text(text, content_type="text/csv; charset=utf-8")

    @routes.serves("Toy.feed", "feed.toy.example", "/rss")
    def feed(world: World, ask: Ask) -> Reply:
        text = '<?xml version="1.0" encoding="ISO-8859-1"?><rss version="2.0"><channel><title>Caf\xe9</title>'
        text += "<item><title>One</title><value>12.50</value></item><item><title>Two</title></item></channel></rss>"
        return Reply(text.encode("latin-1"), 200, "application/rss+xml")

    @routes.serves("Toy.keyed", HOST, "/keyed", "GET", "POST")
    def keyed(world: World, ask: Ask) -> Reply:
        if not ask.key_ok(ask.headers.get("x-key")):
            return Reply.json({"error": "no key"}, 401)
        return Reply.json({"method": ask.method, "sent": ask.body.decode(), "params": ask.params})

    @routes.serves("Toy.broken", HOST, "/broken")
    def broken(world: World, ask: Ask) -> Reply:
        raise KeyError("starttime")

    @routes.serves("Toy.heavy", HOST, "/heavy")
    def heavy(world: World, ask: Ask) -> Reply:
        upstreams.calls["heavy"] = upstreams.calls.get("heavy", 0) + 1
        time.sleep(0.3)
        return Reply.json(list(range(100_000)))

    @routes.expects("toy/price")
    def expected(world: World, params: Mapping[str, str]) -> Any:
        return {"price": world.pinned("price.TOY"), "at": world.time, "limit": int(params.get("limit", "1"))}

    return upstreams


QUOTE = f"/u/{HOST}/v1/quote/ABC"


@dataclass
class Running:
    """A world that is being served, and a client of it."""

    state: WorldState
    toy: Toy
    port: int
    client: httpx.AsyncClient

    async def get(self, path: str = QUOTE, **more: Any) -> httpx.Response:
        return await self.client.get(path, **more)

    async def sim(self, method: str, path: str, body: Any = None, *, status: int = 200) -> Any:
        """A control request that must end with `status`."""
        answer = await self.client.request(method, f"/_sim{path}", json=body)
        assert answer.status_code == status, answer.text
        return answer.json()

    async def fault(self, kind: str, match: str = "Toy.*", **more: Any) -> Any:
        return await self.sim("POST", "/faults", {"match": match, "kind": kind} | more)

    async def raw(self, sent: bytes, *, wait_s: float = 5) -> bytes:
        """What comes back on a connection of its own until it ends. A reset raises BrokenResourceError(what came)."""
        came = b""
        async with await anyio.connect_tcp("127.0.0.1", self.port) as stream:
            await stream.send(sent)
            with anyio.move_on_after(wait_s):
                try:
                    while True:
                        came += await stream.receive()
                except anyio.EndOfStream:
                    return came
                except anyio.BrokenResourceError as error:
                    raise anyio.BrokenResourceError(came) from error
        raise TimeoutError(came)


def plain_get(path: str = QUOTE, *headers: str) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: 127.0.0.1", *headers, "", ""]).encode()
