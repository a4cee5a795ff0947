"""Guard an ASGI app: count requests in progress, and refuse new ones while the service stops.

Only /readyz is answered until the end, so that a load balancer learns why.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from toolserver.calls.delivery import sending
from toolserver.core import ids
from toolserver.errors import ShuttingDown
from toolserver.registry import error_codes
from toolserver.registry.site_facts import READYZ, SiteFacts

Asgi = Callable[[Any, Any, Any], Awaitable[None]]

RETRY_S = 5


def never() -> bool:
    """Return False: a service that stops is not replaced by another process."""
    return False


class RequestGate:
    """An ASGI app around another one. `died` is set if the inner app ends without being asked to.

    `is_replaced` says whether another process already serves on the same socket when this one is asked to stop.
    """

    def __init__(self, app: Asgi, facts: SiteFacts, is_replaced: Callable[[], bool] = never) -> None:
        self._app, self._facts, self.is_replaced = app, facts, is_replaced
        self._stopping = self._ending_connections = False
        self._active = 0
        self._quiet = asyncio.Event()
        self._quiet.set()
        self.died = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self._live(scope, receive, send)
        elif self._stopping and scope["type"] == "http" and scope["path"] != READYZ:
            await self._refuse(send, head=scope["method"] == "HEAD")
        else:
            await self._pass(scope, receive, _end_connection(send) if self._ending_connections else send)

    def end_connections(self) -> None:
        """Make every answer from now on the last one on its connection."""
        self._ending_connections = True

    async def stop(self, within_s: float) -> None:
        """Refuse new requests from now on, and wait until those in progress are answered, up to a limit in seconds."""
        self._stopping = True
        try:
            async with asyncio.timeout(within_s):
                await self._quiet.wait()
        except TimeoutError:
            pass

    async def _pass(self, scope: Any, receive: Any, send: Any) -> None:
        self._active += 1
        self._quiet.clear()
        try:
            with sending():
                await self._app(scope, receive, send)
        finally:
            self._active -= 1
            if not self._active:
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

    async def _refuse(self, send: Any, *, head: bool) -> None:
        request_id = ids.request_id()
        refusal = ShuttingDown(f"The service is stopping. Try again in {RETRY_S} seconds.", retry_after_seconds=RETRY_S)
        problem = error_codes.body(
            refusal.code, refusal.detail, facts=self._facts, request_id=request_id, **refusal.extra
        )
        body = json.dumps(problem).encode()
        headers = [
            (b"content-type", b"application/problem+json"),
            (b"content-length", b"%d" % len(body)),
            (b"retry-after", b"%d" % RETRY_S),
            (b"cache-control", b"no-store"),
            (b"access-control-allow-origin", b"*"),
            (b"x-request-id", request_id.encode()),
            (b"connection", b"close"),
        ]
        await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if head else body})


def _end_connection(send: Any) -> Any:
    """Return a `send` that announces in each answer that its connection will close."""

    async def send_last(message: Any) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), (b"connection", b"close")]}
        await send(message)

    return send_last
