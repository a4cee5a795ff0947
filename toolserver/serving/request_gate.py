"""Guard an ASGI app: know the requests in progress, end those that nobody waits for, and answer all when it stops.

From the stop on, new requests and requests whose body is not complete are refused, and
nothing of them is carried out. Complete requests have a limited time to be answered by the
app; then the app is cancelled, which releases what it reserved, and the request is refused as
well. Only health is answered until the end, so a load balancer learns why.

The servers pass on the connection of a request in its state, under `CONNECTION`. When its
client leaves, the app is cancelled, unless it waits for that news itself. A request whose
client has too many already is refused.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from toolserver.calls.response import sending
from toolserver.errors import CallRejected
from toolserver.registry.site_facts import HEALTH, SiteFacts
from toolserver.serving.admission import Connection, RequestInProgress
from toolserver.serving.refusals import Refusals

Asgi = Callable[[Any, Any, Any], Awaitable[None]]

CONNECTION = "toolserver.connection"
REFUSE_S = 2.0  # for the app to release what it reserved, and for the refusals to be sent


def never() -> bool:
    """Return False: a service that stops is not replaced by another process."""
    return False


class RequestGate:
    """An ASGI app around another one. `died` is set if the inner app ends without being asked to.

    `is_replaced` says whether another process already serves on the same socket when this one is asked to stop.
    """

    def __init__(
        self, app: Asgi, facts: SiteFacts, is_replaced: Callable[[], bool] = never, *, refuse_s: float = REFUSE_S
    ) -> None:
        self._app = app
        self._refusals = Refusals(facts)
        self.is_replaced = is_replaced
        self._refuse_s = refuse_s
        self._stopping = self._ending_connections = False
        self._in_progress: set[RequestInProgress] = set()
        self._quiet = asyncio.Event()
        self._quiet.set()
        self.died = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self._live(scope, receive, send)
        elif (connection := scope.get("state", {}).get(CONNECTION)) is not None and connection.is_left:
            connection.hang_up()
        elif connection is not None and connection.is_refused:
            await self._refuse(scope, send, self._refusals.full)
        elif self._stopping and scope["type"] == "http" and scope["path"] not in HEALTH:
            await self._refuse(scope, send, self._refusals.stopping)
        else:
            await self._pass(scope, receive, _end_connection(send) if self._ending_connections else send, connection)

    def end_connections(self) -> None:
        """Make every answer from now on the last one on its connection."""
        self._ending_connections = True

    async def stop(self, within_s: float) -> None:
        """Refuse new and incomplete requests from now on, and wait until every request in progress is answered.

        Those that the app has not answered within this limit in seconds are refused.
        """
        self._stopping = True
        for request in self._in_progress:
            if request.is_awaiting_body:
                request.refuse()
        if await self._is_quiet(within_s):
            return
        for request in self._in_progress:
            request.refuse()
        await self._is_quiet(self._refuse_s)

    async def _is_quiet(self, within_s: float) -> bool:
        """Return whether no request is in progress, after waiting for that for at most this many seconds."""
        try:
            async with asyncio.timeout(within_s):
                await self._quiet.wait()
        except TimeoutError:
            return False
        return True

    async def _pass(self, scope: Any, receive: Any, send: Any, connection: Connection | None) -> None:
        request = RequestInProgress(receive, send)
        if connection is not None:
            connection.request = request
        self._in_progress.add(request)
        self._quiet.clear()
        try:
            with sending():
                await self._app(scope, request.receive, request.send)
        except asyncio.CancelledError:
            if request.take_over():
                await self._refuse(scope, send, self._refusals.stopping)
            elif not request.is_left():
                raise
            elif connection is not None:
                connection.hang_up()
        finally:
            self._in_progress.discard(request)
            if connection is not None:
                connection.request = None
            if not self._in_progress:
                self._quiet.set()

    async def _live(self, scope: Any, receive: Any, send: Any) -> None:
        asked_to_end = False

        async def listen() -> Any:
            nonlocal asked_to_end
            message = await receive()
            asked_to_end = message["type"] == "lifespan.shutdown"
            return message

        try:
            await self._app(scope, listen, send)
        finally:
            if not asked_to_end:
                self.died.set()

    async def _refuse(self, scope: Any, send: Any, refusal: CallRejected) -> None:
        headers, body = self._refusals.write(refusal)
        await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})


def _end_connection(send: Any) -> Any:
    """Return a `send` that announces in each answer that its connection will close."""

    async def send_last(message: Any) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), (b"connection", b"close")]}
        await send(message)

    return send_last
