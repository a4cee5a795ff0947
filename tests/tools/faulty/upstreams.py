"""All upstreams in memory, behind the world's own fault code: what goes wrong here goes wrong as in the demo."""

import math
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import anyio
import httpx

from tests.internet import Internet
from tests.pages import PAGES
from toolserver.clock import Clock
from toolserver.world import answers
from toolserver.world.answers import RenderedReply, Renderer
from toolserver.world.model import ROUTES, Ask, Edits, Handler, World
from toolserver.world.server import asked, url_of
from toolserver.world.state import WorldState
from toolserver.world.wire import Received, respond

VIA = "http://world.test"
STEP_S = 60  # the world stands still for so long, so that its pages are made once
EDITS = Edits()


class Steady:
    """A clock whose instants are whole steps."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def now(self) -> float:
        return math.floor(self._clock.time() / STEP_S) * STEP_S


class Pages(Renderer):
    """Pages made on the loop itself, where no time passes meanwhile; what is in them is made once for all tests."""

    def __init__(self) -> None:
        super().__init__()
        self._once: dict[Handler, Handler] = {}

    async def page(self, handler: Handler, world: World, ask: Ask) -> RenderedReply:
        once = self._once.setdefault(handler, partial(PAGES.answer, handler))
        return await super().page(once, world, ask)

    async def run(self, make: Any) -> RenderedReply:
        return make()


class Upstreams(Internet):
    """The simulated world as a network. `state.faults` is what is wrong with it."""

    def __init__(self, clock: Clock, pages: Pages) -> None:
        super().__init__()
        self.state = WorldState(clock=Steady(clock))  # type: ignore[arg-type]
        self.state.edits = EDITS  # one object: the renderer tells worlds apart by it
        self.unmatched: list[str] = []
        self._clock, self._pages = clock, pages
        self.transport = httpx.MockTransport(self._answer)

    def fault(self, source: str, kind: str, *, since: float | None = None, **parameters: Any) -> None:
        """Something is wrong with a source from now on; `since` sets the moment for what stands still."""
        world = self.state.world()
        rule = {"match": source, "kind": kind} | parameters
        self.state.faults.add(rule, world if since is None else world.at(since))

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        if request.url.path.startswith("/probe/"):
            said, rule = answers.probe(self.state, request.url.path.removeprefix("/probe/"))
            if rule is not None and rule.kind == "timeout":
                await anyio.sleep_forever()
            return httpx.Response(200, json=said)
        headers = {k.lower(): v for k, v in request.headers.items() if k.lower() != "accept-encoding"}
        target = request.url.raw_path.decode()
        received = Received(request.method, target, headers, request.content)
        ask = asked(received)
        found = await answers.answer(self.state, ROUTES, self._pages, ask)
        if found is None:
            self.unmatched.append(url_of(ask))
            return httpx.Response(501, json={"error": "not simulated"})
        return await self._delivered(found, received)

    async def _delivered(self, found: answers.SimulatedAnswer, received: Received) -> httpx.Response:
        delivery = found.delivery
        if delivery.end == "silence":
            await anyio.sleep_forever()
        await anyio.sleep(delivery.delay_s)
        if found.page is None:
            raise httpx.ReadError("reset")
        unchanged = delivery.end == "not_modified"
        response = respond(found.page, received, self._clock.time(), unchanged=unchanged)
        stream = _Body(response.body, delivery)
        return httpx.Response(response.status, headers=dict(response.headers), stream=stream)


class _Body(httpx.AsyncByteStream):
    """A body as it travels: whole, drop by drop, or not to its end."""

    def __init__(self, body: bytes, delivery: answers.Delivery) -> None:
        self._body, self._delivery = body, delivery

    async def __aiter__(self) -> AsyncIterator[bytes]:
        body, delivery = self._body, self._delivery
        if delivery.bytes_per_s is not None:
            step = max(1, int(delivery.bytes_per_s))
            for start in range(0, len(body), step):
                await anyio.sleep(1)
                yield body[start : start + step]
            return
        yield body[: int(len(body) * delivery.fraction)]
        if delivery.end == "reset_body":
            raise httpx.ReadError("reset")
        if delivery.fraction < 1:
            raise httpx.RemoteProtocolError("peer closed connection without sending complete message body")
