"""Decide which HTTP requests are read, read their bodies with a limit and a deadline, and send answers.

Requests are admitted by host, origin, media types and choice of tools. Every answer has the same headers.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeVar
from urllib.parse import urlsplit

import anyio

from toolserver.core.caller import mask_secrets
from toolserver.mcp.definitions import ToolChoice, ToolChoices, UnknownToolChoice
from toolserver.mcp.messages import INVALID_PARAMS, INVALID_REQUEST, TAIL_BYTES, MessageRefusal, find_id
from toolserver.registry.site_facts import SiteFacts, link_header
from toolserver.settings import McpSettings, is_loopback

Scope = MutableMapping[str, Any]
Event = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]
Headers = dict[bytes, bytes]
Header = tuple[bytes, bytes]
T = TypeVar("T")

CHOICE, CALLER = "toolserver.choice", "toolserver.caller"  # the keys in the ASGI scope under which the SDK finds them

BODY_S = 20.0
DRAIN_S = 1.0
DRAINED = 16  # how many times the limit is read of a body that is refused
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
        max_age = (b"access-control-max-age", b"86400")
        await self.empty(send, request_id, 204, allowed, methods, max_age, METHODS)

    def sdk(self, send: Send, request_id: str, rewrite: Callable[[bytes], bytes] | None = None) -> Send:
        """Return a `send` that adds these headers to the SDK's answers. `rewrite` changes the body of a JSON answer."""
        if rewrite is not None:
            send = _rewrite_body(send, rewrite)

        async def with_headers(event: Event) -> None:
            if event["type"] == "http.response.start":
                named = (b"x-request-id", request_id.encode())
                event = {**event, "headers": [*event.get("headers", ()), named, *self.always]}
            elif b'"error":{"code":' in (body := event.get("body", b"")) and b'"result":' not in body:
                event = {**event, "body": mask_secrets(body.decode()).encode()}  # the SDK repeats the method
            await send(event)

        return with_headers


def _rewrite_body(send: Send, rewrite: Callable[[bytes], bytes]) -> Send:
    """Return a `send` that rewrites a JSON answer, whose body is one event: its head waits for the new length.

    An answer of another kind, such as a stream of events, is passed on as it is.
    """
    head: Event | None = None

    async def rewritten(event: Event) -> None:
        nonlocal head
        if event["type"] == "http.response.start" and _is_json(event):
            head = event
            return
        if head is None:
            await send(event)
            return
        body = rewrite(event["body"]) if event.get("body") else b""
        others = [line for line in head["headers"] if line[0].lower() != b"content-length"]
        await send({**head, "headers": [*others, (b"content-length", b"%d" % len(body))]})
        await send({**event, "body": body})

    return rewritten


def _is_json(head: Event) -> bool:
    return any(
        name.lower() == b"content-type" and value.startswith(b"application/json") for name, value in head["headers"]
    )


async def body_of(event: Event, receive: Receive, limit: int, *, within_s: float = BODY_S) -> bytes:
    """Read the whole body that begins with an event.

    Raises:
        MessageRefusal: the body is too large or does not arrive in time, or the client disconnected.
    """
    parts: list[bytes] = []
    size = 0
    with anyio.move_on_after(within_s):
        while event["type"] == "http.request":
            parts.append(event.get("body", b""))
            size += len(parts[-1])
            if size > limit:
                tail = b""
                with anyio.move_on_after(DRAIN_S):
                    tail = await _read_to_end(event, receive, limit * DRAINED)
                text, data = f"The body is larger than {limit} bytes.", {"limit_bytes": limit}
                value = find_id(b"".join(parts), tail)
                raise MessageRefusal(413, INVALID_REQUEST, text, data=data, value=value)
            if not event.get("more_body"):
                return b"".join(parts)
            event = await receive()
    raise MessageRefusal(408, INVALID_REQUEST, "The body did not arrive in time.")


async def _read_to_end(event: Event, receive: Receive, limit: int) -> bytes:
    """Return the last bytes of a body that is refused, or b"" if it has more than `limit` bytes. It is not kept.

    So a client that writes the id last learns which of its calls was refused, and one that
    reads only after it has sent everything gets the refusal.
    """
    size, tail = 0, bytes(event.get("body", b"")[-TAIL_BYTES:])
    while event["type"] == "http.request" and event.get("more_body"):
        event = await receive()
        size += len(event.get("body", b""))
        if size > limit:
            return b""
        tail = (tail + event.get("body", b"")[-TAIL_BYTES:])[-TAIL_BYTES:]
    return tail


def replay_body(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that delivers the body once more."""
    is_delivered = False

    async def again() -> Event:
        nonlocal is_delivered
        if is_delivered:
            return await receive()
        is_delivered = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


VERDICTS = 512
VERDICT_BYTES = 1024
_JSON = ("application/json", "application/*", "*/*")


class RequestGuard:
    """Admits requests. The decision is cached in `verdicts` by the headers that it depends on.

    A server on this machine answers only to names of this machine. Otherwise a web page
    elsewhere could point its own name here (DNS rebinding). A public server has nothing to
    protect from that: it uses no cookies.
    """

    def __init__(
        self, choices: ToolChoices, base_url: str, settings: McpSettings, *, most_verdicts: int = VERDICTS
    ) -> None:
        own = urlsplit(base_url).hostname or "localhost"
        self._guarded = is_loopback(own)
        self._hosts = {"localhost", "127.0.0.1", "::1", own, *(host.lower() for host in settings.allowed_hosts)}
        self._origins = frozenset(origin.lower().rstrip("/") for origin in settings.allowed_origins)
        self._choices, self._most_verdicts = choices, most_verdicts
        self.verdicts: dict[tuple[bytes | None, ...], ToolChoice] = {}

    def admit(self, scope: Scope, headers: Headers, *, has_token: bool) -> ToolChoice:
        """Return what this client sees. `has_token`: the connection itself carries a token.

        Raises:
            MessageRefusal: the request is not admitted.
        """
        get = headers.get
        key = (
            scope["query_string"],
            get(b"content-type"),
            get(b"accept"),
            get(b"host"),
            get(b"origin"),
            get(b"x-mcp-tools"),
            get(b"x-mcp-toolset"),
            b"token" if has_token else None,
        )
        return self.verdicts.get(key) or self._judge(key)

    def _judge(self, key: tuple[bytes | None, ...]) -> ToolChoice:
        query, content_type, accept, host, origin, tools, toolset, token = key
        self.check_source(host, origin)
        if not _media(content_type or b"")[0] == "application/json":
            raise MessageRefusal(415, INVALID_REQUEST, "Send `Content-Type: application/json`.")
        if accept is not None and not any(kind in _JSON for kind in _media(accept)):
            raise MessageRefusal(
                406, INVALID_REQUEST, "Answers are `application/json`: the Accept header must allow it."
            )
        choice = self.choose(query or b"", toolset, tools, token_argument=token is None)
        if sum(len(part) for part in key if part is not None) <= VERDICT_BYTES:
            if len(self.verdicts) >= self._most_verdicts:
                self.verdicts.clear()
            self.verdicts[key] = choice
        return choice

    def choose(
        self, query: bytes, toolset: bytes | None, tools: bytes | None, *, token_argument: bool = False
    ) -> ToolChoice:
        """Return the choice of tools. Raises MessageRefusal, which names the valid ones."""
        try:
            return self._choices.choose_by_request(query, toolset, tools, token_argument=token_argument)
        except UnknownToolChoice as unknown:
            raise MessageRefusal(400, INVALID_PARAMS, str(unknown), data=unknown.data) from None

    def check_source(self, host: bytes | None, origin: bytes | None) -> None:
        """Raise MessageRefusal if the host or the origin is foreign to a server on this machine."""
        if not self._guarded:
            return
        if not self._ours(f"//{_text(host)}"):
            raise MessageRefusal(421, INVALID_REQUEST, "This server does not answer to that host name.")
        page = _text(origin).rstrip("/")
        if origin is not None and page not in self._origins and not self._ours(page):
            raise MessageRefusal(403, INVALID_REQUEST, "Pages from that origin may not call this server.")

    def _ours(self, url: str) -> bool:
        try:
            parts = urlsplit(url)
        except ValueError:
            return False
        return parts.scheme in ("", "http", "https") and (parts.hostname in self._hosts or parts.netloc in self._hosts)


def _text(value: bytes | None) -> str:
    return (value or b"").decode("latin-1").strip().lower()


def _media(value: bytes) -> list[str]:
    """Return the media types of a header, without their parameters."""
    return [kind.partition(";")[0].strip() for kind in _text(value).split(",")]
