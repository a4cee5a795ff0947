"""`/api/mcp`: MCP over Streamable HTTP, both eras of the protocol on one address, as one ASGI callable.

A POST goes three steps: is it admitted (host, origin, media types, choice of tools), can it be answered from what is at
hand, and if not, does it need a call or the SDK. HTTP statuses say only what the transport has to say: a payment or a
limit is a tool result, never 401, 402 or 429.
"""

import logging
from collections.abc import Iterable
from typing import Any

from anyio.abc import TaskGroup

from toolserver import ids
from toolserver.access import Addresses, Caller, bearer
from toolserver.documents import Facts
from toolserver.errors import RateLimited
from toolserver.pipeline import Pipeline
from toolserver.presence import unless_gone
from toolserver.protocol import refusals, wire
from toolserver.protocol.admission import Admission
from toolserver.protocol.asgi import (
    METHODS,
    POST_ONLY,
    Answers,
    Headers,
    Receive,
    Scope,
    Send,
    body_of,
    replayed,
)
from toolserver.protocol.definitions import Choice, Choices, Route
from toolserver.protocol.fast import Fast, acknowledged, arguments_of, era
from toolserver.protocol.refusals import Refusal
from toolserver.protocol.results import Result
from toolserver.protocol.sdk import Sdk, fixtures
from toolserver.protocol.wire import INTERNAL_ERROR, INVALID_REQUEST, UNSET, Message
from toolserver.registry import Registry

log = logging.getLogger(__name__)


class Post:
    """One request with a message."""

    __slots__ = ("body", "headers", "receive", "request_id", "scope", "send")

    def __init__(self, scope: Scope, headers: Headers, receive: Receive, send: Send, request_id: str) -> None:
        self.scope, self.headers, self.receive, self.send = scope, headers, receive, send
        self.request_id, self.body = request_id, b""


class McpEndpoint:
    """The ASGI callable for exactly one path. `everything` adds the conformance fixtures, for development."""

    def __init__(
        self,
        registry: Registry,
        pipeline: Pipeline,
        *,
        tasks: TaskGroup,
        addresses: Addresses,
        base_url: str,
        source_name: str,
        allowed_hosts: Iterable[str] = (),
        allowed_origins: Iterable[str] = (),
        strict_versions: bool = False,
        body_limit: int = 65_536,
        everything: bool = False,
    ) -> None:
        facts = Facts(base_url, source_name)
        choices = Choices(registry, pipeline, **(fixtures() if everything else {}))
        self._fast = Fast(pipeline, facts)
        self._answers = Answers(facts)
        self._limits, self._addresses = pipeline.limits, addresses
        self._strict, self._body_limit, self._everything = strict_versions, body_limit, everything
        self._admission = Admission(
            choices, base_url=base_url, allowed_hosts=allowed_hosts, allowed_origins=allowed_origins
        )
        self._sdk = Sdk(self._fast, tasks, body_limit=body_limit, everything=everything)
        self._described = _description(facts, choices)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        lines = scope["headers"]
        headers: Headers = dict(lines)
        given = headers.get(b"x-request-id")
        post = Post(scope, headers, receive, send, ids.request_id() if given is None else _sane(given))
        try:
            if scope["method"] != "POST":
                await self._without_message(post)
                return
            event = await receive()
            post.body = event.get("body", b"")
            if event.get("more_body") or len(post.body) > self._body_limit:
                post.body = await body_of(event, receive, self._body_limit)
            if len(headers) != len(lines):
                refusals.check_twins(lines)
            choice = self._admission.admit(scope, headers)
            answer = self._quick(post, choice)
            if answer is None:
                await self._long(post, choice)
            else:
                await self._answers.json(send, post.request_id, answer)
        except Refusal as refusal:
            await self._refuse(post, refusal)
        except Exception:
            log.exception("an MCP request failed", extra={"request_id": post.request_id})
            data = {"request_id": post.request_id}
            await self._refuse(post, Refusal(500, INTERNAL_ERROR, "Something went wrong on our side.", data=data))

    def _quick(self, post: Post, choice: Choice) -> bytes | None:
        """The answer to a common message that needs no waiting."""
        message = wire.read(post.body)
        if message is None or message.id is UNSET:
            return None
        modern = era(message, post.headers, strict=self._strict)
        if modern is None:
            return None
        route = choice.routes.get(message.params.name) if message.method == "tools/call" else None
        if route is None:
            core = self._prepared(post, message, choice, modern=modern)
        else:
            core = self._at_hand(post, route, message)
        return None if core is None else wire.response(message.id, core, wire.end(modern=modern))

    def _prepared(self, post: Post, message: Message, choice: Choice, *, modern: bool) -> bytes | None:
        if self._everything and message.method != "tools/call" and (b"mcp-session-id" in post.headers or not modern):
            return None  # there, sessions are the SDK's
        if self._everything and message.method == "server/discover":
            return None  # the fixtures' server has more to say
        return self._fast.prepared(message, choice, modern=modern)

    def _at_hand(self, post: Post, route: Route, message: Message) -> bytes | None:
        client = None
        if self._limits.enabled:
            if b"authorization" in post.headers:
                return None  # a valid token is its own client, and only the ledger knows
            client = self._client(post)
        try:
            return self._fast.at_hand(
                route, message.params, client, post.headers.get(b"user-agent", b"").decode("latin-1")
            )
        except RateLimited as rejected:
            return self._fast.refused(rejected, post.request_id).core

    async def _long(self, post: Post, choice: Choice) -> None:
        """Calls that take time, notifications, and whatever is for the SDK."""
        message = wire.read(post.body)
        if message is not None and not self._everything and acknowledged(message, post.headers):
            await self._answers.empty(post.send, post.request_id, 202)
            return
        found = None if message is None else self._callable(post, choice, message)
        if message is None or found is None:
            await self._by_sdk(post, choice)
            return
        route, given, modern = found
        result = await self._call(post, message, route, given)
        if result is not None and message.id is not UNSET:
            answer = wire.response(message.id, result.core, result.end(modern=modern))
            left = result.meta.get("credits_remaining")
            more = () if left is None else ((b"x-credits-remaining", b"%d" % left),)
            await self._answers.json(post.send, post.request_id, answer, 200, *more)

    def _callable(self, post: Post, choice: Choice, message: Message) -> tuple[Route, dict[str, Any], bool] | None:
        """The tool, the arguments and the era of a plain call; None for everything else."""
        if message.method != "tools/call" or message.id is UNSET or not message.params.plain:
            return None
        route, given = choice.routes.get(message.params.name), arguments_of(message.params)
        modern = era(message, post.headers, strict=self._strict)
        return None if route is None or given is None or modern is None else (route, given, modern)

    async def _call(self, post: Post, message: Message, route: Route, given: dict[str, Any]) -> Result | None:
        """The result of a call. A paid call is given up, and not charged, when its caller hangs up: then None."""
        meta = message.params.meta
        caller = self._caller(post)
        if meta is not UNSET:
            caller = self._caller(post, meta.idempotency_key, meta.agent_nonce, meta.paid)

        async def work() -> Result:
            return await self._fast.call(route, message.params, given, caller)

        return await unless_gone(post.receive, work) if route.operation.credits else await work()

    async def _by_sdk(self, post: Post, choice: Choice) -> None:
        found = refusals.inspect(post.body)
        refusals.check_version(found, post.headers.get(b"mcp-protocol-version"), strict=self._strict)
        await self._hand_over(post, choice, replayed(post.body, post.receive))

    async def _hand_over(self, post: Post, choice: Choice, receive: Receive) -> None:
        headers = list(post.scope["headers"])
        if b"accept" not in post.headers:
            headers.append((b"accept", b"*/*"))
        scope = {**post.scope, "headers": headers}
        send = self._answers.sdk(post.send, post.request_id)
        await self._sdk(scope, receive, send, choice=choice, caller=self._caller(post))

    async def _without_message(self, post: Post) -> None:
        """GET, HEAD, OPTIONS, and the methods that nothing answers."""
        method, get = post.scope["method"], post.headers.get
        if method == "OPTIONS":
            await self._answers.preflight(post.send, post.request_id)
            return
        self._admission.check_source(get(b"host"), get(b"origin"))
        streams = b"text/event-stream" in get(b"accept", b"")
        if self._everything and (method == "DELETE" or (method == "GET" and streams)):
            choice = self._admission.choose(post.scope["query_string"], None, None)
            await self._hand_over(post, choice, post.receive)
        elif method in ("GET", "HEAD") and not streams:
            self._admission.choose(post.scope["query_string"], get(b"x-mcp-toolset"), get(b"x-mcp-tools"))
            await self._answers.json(post.send, post.request_id, self._described, head=method == "HEAD")
        else:
            allow = POST_ONLY if streams or method == "DELETE" else METHODS
            text = "There is no stream to open and no session to end: send a message by POST."
            raise Refusal(405, INVALID_REQUEST, text, headers=(allow,))

    async def _refuse(self, post: Post, refusal: Refusal) -> None:
        if refusal.value is None:
            refusal.value = refusals.id_of(post.body)
        head = post.scope["method"] == "HEAD"
        await self._answers.json(post.send, post.request_id, refusal.body, refusal.status, *refusal.headers, head=head)

    def _client(self, post: Post) -> str:
        peer = post.scope.get("client") or ("unknown", 0)
        forwarded = post.headers.get(b"x-forwarded-for")
        return self._addresses.client(peer[0], None if forwarded is None else forwarded.decode("latin-1"))

    def _caller(
        self, post: Post, idempotency_key: str | None = None, nonce: str | None = None, payment: str | None = None
    ) -> Caller:
        given = {name: post.headers[name].decode("latin-1") for name in _OURS if name in post.headers}
        return Caller(
            client=self._client(post),
            token=bearer(given.get(b"authorization")),
            agent=given.get(b"user-agent", ""),
            door="mcp",
            request_id=post.request_id,
            idempotency_key=idempotency_key,
            nonce=nonce or given.get(b"x-agent-nonce"),
            payment=payment,
        )


_OURS = (b"authorization", b"user-agent", b"x-agent-nonce")


def _sane(request_id: bytes) -> str:
    """The caller's own request id if it may be used, else a new one."""
    text = request_id.decode("latin-1")
    return text if ids.sane(text) else ids.request_id()


def _description(facts: Facts, choices: Choices) -> bytes:
    """What a person sees who opens the address in a browser."""
    about = {
        "name": wire.NAME,
        "description": "Model Context Protocol server. Send JSON-RPC 2.0 messages by POST; no session, no handshake.",
        "transport": "streamable-http",
        "url": facts.url("/api/mcp"),
        "protocol_versions": [*wire.LEGACY, wire.MODERN],
        "tools": {name: len(choices.choose(toolset=name).definitions) for name in ("core", "all")},
        "choose": "?toolset=core|all, ?tools=a,b and ?output_schema=off",
        "docs": facts.url("/docs"),
    }
    return wire.encode(about)
