"""Replace the network by an object that returns arranged answers, counts requests and refuses all others."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import httpx

from tests.pages import PAGES
from toolserver.world.model import ROUTES, Ask, World

Arranged = Any  # JSON value, httpx.Response, or async handler(request) -> httpx.Response


class Internet:
    """`serves(prefix, what)` arranges answers; with a world, its routes answer everything else."""

    def __init__(self, world: Callable[[], World] | None = None) -> None:
        self._arranged: dict[str, Arranged] = {}
        self._world = world
        self.asked: list[httpx.Request] = []
        self.transport = httpx.MockTransport(self._handle)

    def serves(self, prefix: str, what: Arranged) -> None:
        self._arranged[prefix] = what

    def urls(self, prefix: str = "") -> list[str]:
        return [str(r.url) for r in self.asked if str(r.url).startswith(prefix)]

    async def _handle(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        for prefix, what in self._arranged.items():
            if str(request.url).startswith(prefix):
                if isinstance(what, Exception):
                    raise what
                if callable(what):
                    result: Awaitable[httpx.Response] = what(request)
                    return await result
                return what if isinstance(what, httpx.Response) else httpx.Response(200, json=what)
        if self._world is not None:
            return self._from_world(request)
        raise httpx.ConnectError("no such host", request=request)

    def _from_world(self, request: httpx.Request) -> httpx.Response:
        assert self._world is not None
        url = request.url
        headers = {k.lower(): v for k, v in request.headers.items()}
        found = ROUTES.find(Ask(request.method, url.host, url.path, url.query.decode(), headers, request.content))
        if found is None:
            return httpx.Response(501, json={"error": "not simulated", "url": str(url)})
        route, ask = found
        reply = PAGES.answer(route.handler, self._world(), ask)
        return httpx.Response(
            reply.status, content=reply.body, headers={"content-type": reply.content_type, **reply.headers}
        )


def as_json(request: httpx.Request) -> Any:
    return json.loads(request.content)
