"""Read HTTP bodies with a size limit and a deadline, and send answers with the headers that every answer has."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeVar

import anyio

from toolserver.core.caller import mask_secrets
from toolserver.mcp.errors import MessageRefusal
from toolserver.mcp.messages import INVALID_REQUEST
from toolserver.registry.site_facts import SiteFacts, link_header

Scope = MutableMapping[str, Any]
Event = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]
Headers = dict[bytes, bytes]
Header = tuple[bytes, bytes]
T = TypeVar("T")

CHOICE, CALLER = "toolserver.choice", "toolserver.caller"  # the keys in the ASGI scope under which the SDK finds them

BODY_S = 20.0
JSON_TYPE: Header = (b"content-type", b"application/json")
METHODS: Header = (b"allow", b"GET, HEAD, POST, OPTIONS")
POST_ONLY: Header = (b"allow", b"POST")
_ALLOWED = (
    b"content-type, accept, authorization, mcp-protocol-version, mcp-method, mcp-name, mcp-session-id, last-event-id, "
    b"x-mcp-tools, x-mcp-toolset, x-request-id, x-agent-nonce"
)
_EXPOSED = b"mcp-session-id, x-credits-remaining, x-request-id, link"


class ResponseSender:
    """Sends answers with the headers common to all of them."""

    def __init__(self, facts: SiteFacts) -> None:
        self.always: list[Header] = [
            (b"access-control-allow-origin", b"*"),
            (b"access-control-expose-headers", _EXPOSED),
            (b"x-content-type-options", b"nosniff"),
            (b"referrer-policy", b"no-referrer"),
            (b"link", link_header(facts).encode()),
        ]
        if facts.base_url.startswith("https:"):
            self.always.append((b"strict-transport-security", b"max-age=31536000"))
        self._json = [JSON_TYPE, (b"cache-control", b"no-store"), *self.always]

    async def json(
        self, send: Send, request_id: str, body: bytes, status: int = 200, *more: Header, head: bool = False
    ) -> None:
        """Send a JSON answer, or only its headers."""
        length, named = (b"content-length", b"%d" % len(body)), (b"x-request-id", request_id.encode())
        headers = [length, named, *self._json, *more]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if head else body})

    async def empty(self, send: Send, request_id: str, status: int, *more: Header) -> None:
        """Send an answer without a body."""
        headers = [(b"x-request-id", request_id.encode()), *self.always, *more]
        if status != 204:
            headers.append((b"content-length", b"0"))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    async def preflight(self, send: Send, request_id: str) -> None:
        """Answer a browser's preflight request."""
        allowed = (b"access-control-allow-headers", _ALLOWED)
        methods = (b"access-control-allow-methods", b"GET, POST, DELETE, OPTIONS")
        kept = (b"access-control-max-age", b"86400")
        await self.empty(send, request_id, 204, allowed, methods, kept, METHODS)

    def sdk(self, send: Send, request_id: str) -> Send:
        """Return a `send` that adds these headers to the SDK's answers."""

        async def with_headers(event: Event) -> None:
            if event["type"] == "http.response.start":
                named = (b"x-request-id", request_id.encode())
                event = {**event, "headers": [*event.get("headers", ()), named, *self.always]}
            elif b'"error":{"code":' in (body := event.get("body", b"")) and b'"result":' not in body:
                event = {**event, "body": mask_secrets(body.decode()).encode()}  # the SDK repeats the method
            await send(event)

        return with_headers


async def body_of(event: Event, receive: Receive, limit: int) -> bytes:
    """Read the whole body that begins with an event.

    Raises:
        MessageRefusal: the body is too large or does not arrive in time, or the client disconnected.
    """
    parts: list[bytes] = []
    size = 0
    with anyio.move_on_after(BODY_S):
        while event["type"] == "http.request":
            parts.append(event.get("body", b""))
            size += len(parts[-1])
            if size > limit:
                raise MessageRefusal(
                    413, INVALID_REQUEST, f"The body is larger than {limit} bytes.", data={"limit_bytes": limit}
                )
            if not event.get("more_body"):
                return b"".join(parts)
            event = await receive()
    raise MessageRefusal(408, INVALID_REQUEST, "The body did not arrive in time.")


def replay_body(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that delivers the body once more."""
    given = False

    async def again() -> Event:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
