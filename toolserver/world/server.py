"""Listen for the simulated world: upstreams under /u/, probes, the control interface and a page."""

import re
import time
from email.utils import formatdate
from urllib.parse import unquote

import anyio
import h11
from anyio.abc import SocketAttribute, SocketStream, TaskStatus

from toolserver.world import control
from toolserver.world.answers import PROBED, RenderedReply, Renderer, SimulatedAnswer, answer, probe
from toolserver.world.faults import is_conditional
from toolserver.world.model import Ask, Reply, Routes
from toolserver.world.state import Entry, LoggedRequest, WorldState
from toolserver.world.wire import IDLE_S, Received, RequestTooLarge, Response, Wire, respond

CONNECTIONS_MOST = 512
BACKLOG = 512
UNREACHABLE = (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, OSError)


async def serve_world(
    state: WorldState,
    routes: Routes,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    connections_most: int = CONNECTIONS_MOST,
    idle_s: float = IDLE_S,
    task_status: TaskStatus[int] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Serve the simulated world until cancelled. Reports its port through `task_status`.

    A connection is closed after `idle_s` without a request, and refused if there are more than `connections_most`.
    """
    site = Site(state, routes, connections_most=connections_most, idle_s=idle_s)
    async with await anyio.create_tcp_listener(local_host=host, local_port=port, backlog=BACKLOG) as listener:
        task_status.started(listener.extra(SocketAttribute.local_port))
        await listener.serve(site.connection)


class Site:
    """The handlers of the listener, by path."""

    def __init__(self, state: WorldState, routes: Routes, *, connections_most: int, idle_s: float) -> None:
        self._state, self._routes = state, routes
        self._connections_most, self._idle_s = connections_most, idle_s
        self._renderer = Renderer()
        self._connections = 0

    async def connection(self, stream: SocketStream) -> None:
        """Answer requests until either side closes."""
        self._connections += 1
        try:
            async with stream:
                wire = Wire(stream, idle_s=self._idle_s)
                if self._connections > self._connections_most:
                    await wire.answer(self._error(503, f"more than {self._connections_most} connections"))
                    await wire.close()
                else:
                    await self._requests(wire)
        except UNREACHABLE:
            pass  # the client disconnected
        finally:
            self._connections -= 1

    async def _requests(self, wire: Wire) -> None:
        try:
            while (request := await wire.request()) is not None:
                if not await self._one(wire, request):
                    break
        except (h11.RemoteProtocolError, RequestTooLarge) as error:
            status = 413 if isinstance(error, RequestTooLarge) else getattr(error, "error_status_hint", 400)
            if wire.can_answer:
                await wire.answer(self._error(status, str(error)))
        except h11.LocalProtocolError as error:  # a provider returned a header that cannot be sent
            unsent = LoggedRequest(self._state.clock.now(), method="", url="")
            self._state.log.miss(unsent, f"LocalProtocolError: {error}")
        except TimeoutError:
            pass  # nothing arrived for a long time
        await wire.close()

    async def _one(self, wire: Wire, request: Received) -> bool:
        """Answer one request. Return False when the connection must close."""
        if request.path.startswith("/u/"):
            return await self._upstream(wire, request)
        if request.path.startswith("/probe/"):
            return await wire.answer(self._probe(request))
        if request.path == "/":
            shown = control.page(self._state) if control.is_from_this_machine(request) else control.elsewhere()
            return await wire.answer(self._plain(shown))
        if request.path == "/_sim" or request.path.startswith("/_sim/"):
            return await wire.answer(self._plain(await control.control(self._state, self._routes, request)))
        return await wire.answer(self._plain(Reply.json({"error": "nothing here", "see": "/"}, 404)))

    async def _upstream(self, wire: Wire, request: Received) -> bool:
        started = time.perf_counter()
        ask = asked(request)
        logged = LoggedRequest(round(self._state.clock.now(), 3), request.method, url_of(ask))
        entry = Entry(logged, None, conditional=is_conditional(ask))
        self._state.log.add(entry)
        simulated = await self._answer(ask)
        if simulated.page is not None:
            self._state.record(simulated.page.reply.records)
        entry.fault = simulated.rule.id if simulated.rule else None
        if simulated.source:
            self._state.log.served_by(entry, simulated.source)
        await anyio.sleep(simulated.delivery.delay_s)
        if simulated.page is None:
            await (wire.silence() if simulated.delivery.end == "silence" else wire.reset())
            return False
        unchanged = simulated.delivery.end == "not_modified"
        response = respond(simulated.page, request, self._state.clock.now(), unchanged=unchanged)
        entry.status, entry.ms = response.status, round((time.perf_counter() - started) * 1000, 1)
        again = await wire.answer(response, simulated.delivery)
        if simulated.delivery.end == "reset_body":
            await wire.reset(after_s=0.02)
        return again

    async def _answer(self, ask: Ask) -> SimulatedAnswer:
        """Answer with 501 if nothing is simulated or recorded, or 500 if a provider fails. Both count as unmatched."""
        logged = LoggedRequest(self._state.clock.now(), ask.method, url_of(ask))
        try:
            simulated = await answer(self._state, self._routes, self._renderer, ask)
        except Exception as error:  # a provider's bug must not take down the listener
            reason = f"{type(error).__name__}: {error}"
            self._state.log.miss(logged, reason)
            return SimulatedAnswer(
                RenderedReply.of(Reply.json({"error": "the simulated upstream failed", "reason": reason}, 500))
            )
        if simulated is None:
            missing = self._routes.missing
            self._state.log.miss(logged, missing)
            return SimulatedAnswer(RenderedReply.of(Reply.json({"error": missing, "url": url_of(ask)}, 501)))
        return simulated

    def _probe(self, request: Received) -> Response:
        host = unquote(request.path.removeprefix("/probe/")).lower()
        if request.method != "GET" or not re.fullmatch(r"[\w.:-]{1,253}", host):
            return self._plain(Reply.json({"error": "GET /probe/{host}"}, 400))
        if self._routes.probes is not None and host not in self._routes.probes:
            self._state.log.miss(LoggedRequest(self._state.clock.now(), "CONNECT", host), self._routes.missing)
            return self._plain(Reply.json({"error": self._routes.missing, "host": host}, 501))
        said, rule = probe(self._state, host, self._routes.probes)
        logged = LoggedRequest(round(self._state.clock.now(), 3), "CONNECT", host)
        entry = Entry(logged, PROBED, status=200, ms=0.0)
        entry.fault = rule.id if rule else None
        self._state.log.add(entry)
        return self._plain(Reply.json(said))

    def _plain(self, reply: Reply) -> Response:
        date = formatdate(self._state.clock.now(), usegmt=True)
        headers = {"Date": date, "Content-Type": reply.content_type, "Cache-Control": "no-store"} | dict(reply.headers)
        return Response(reply.status, headers, reply.body)

    def _error(self, status: int, text: str) -> Response:
        """Send the last answer of a connection."""
        return self._plain(Reply.json({"error": text}, status, headers={"Connection": "close"}))


def asked(request: Received) -> Ask:
    """Return the request as the upstream would have received it: `/u/{host}{path}?{query}`."""
    host, slash, path = request.path.removeprefix("/u/").partition("/")
    return Ask(request.method, host.lower(), slash + path or "/", request.query, request.headers, request.body)


def url_of(ask: Ask) -> str:
    return f"https://{ask.host}{ask.path}" + (f"?{ask.query}" if ask.query else "")
