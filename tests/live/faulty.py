"""The simulated world with its faults, as a transport in this process: no sockets, no waiting for what never comes."""

import httpx

from toolserver.world.answers import Renderer, SimulatedAnswer, answer
from toolserver.world.model import ROUTES, Ask
from toolserver.world.providers import load_providers
from toolserver.world.state import SimClock, WorldState
from toolserver.world.wire import Received, respond

HURRIED_S = 5.0  # what takes longer than this is taken for a reader's timeout


class FaultyWorld:
    """One world that stands still until its clock is set. `rendered` may be shared by several of one seed."""

    def __init__(self, now: float, rendered: Renderer | None = None) -> None:
        load_providers()
        self.state = WorldState(clock=SimClock(now, frozen=True))
        self.asked: list[str] = []
        self.transport = httpx.MockTransport(self._handle)
        self._rendered = rendered or Renderer()

    async def _handle(self, request: httpx.Request) -> httpx.Response:
        url, headers = request.url, {name.lower(): value for name, value in request.headers.items()}
        target = url.raw_path.decode()
        ask = Ask(request.method, url.host, url.path, url.query.decode(), headers, request.content)
        found = await answer(self.state, ROUTES, self._rendered, ask)
        assert found is not None, f"not simulated: {url}"
        self.asked.append(found.source or "")
        return self._delivered(found, Received(request.method, target, headers, request.content), request)

    def _delivered(self, found: SimulatedAnswer, received: Received, request: httpx.Request) -> httpx.Response:
        given = found.delivery
        if given.end == "silence":
            raise httpx.ReadTimeout("no answer", request=request)
        if given.end == "reset_headers" or found.page is None:
            raise httpx.ReadError("reset", request=request)
        response = respond(found.page, received, self.state.clock.now(), unchanged=given.end == "not_modified")
        slow_s = given.delay_s + len(response.body) / (given.bytes_per_s or float("inf"))
        if slow_s > HURRIED_S:
            raise httpx.ReadTimeout("too slow", request=request)
        if given.fraction < 1 or given.end == "reset_body":
            raise httpx.RemoteProtocolError("the body ends too early", request=request)
        return httpx.Response(response.status, headers=dict(response.headers), content=response.body)
