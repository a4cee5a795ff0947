"""Serve `/api/mcp`: MCP over Streamable HTTP, both eras of the protocol at one address, as one ASGI callable.

A POST passes three steps: admission (host, origin, media types, choice of tools), an
immediate answer from memory if possible, and otherwise a call or the SDK. HTTP statuses
describe only the transport: a demand for payment or a rate limit is a tool result, never a
401, 402 or 429.
"""

import logging
import secrets
from functools import partial
from typing import Any

from anyio.abc import TaskGroup

from toolserver.calls.pipeline import Pipeline
from toolserver.calls.rate_limit import Bucket, Quota
from toolserver.calls.response import Disconnected
from toolserver.core import tracing
from toolserver.core.caller import (
    VISITOR,
    Addresses,
    Caller,
    bearer,
    is_sane_request_id,
    mask_secrets,
    new_request_id,
)
from toolserver.core.waiting_room import waiting_client
from toolserver.errors import CallRejected, RateLimited
from toolserver.mcp import messages
from toolserver.mcp.asgi import (
    METHODS,
    POST_ONLY,
    Header,
    Headers,
    Receive,
    RequestGuard,
    ResponseSender,
    Scope,
    Send,
    body_of,
    replay_body,
)
from toolserver.mcp.definitions import ToolChoice, ToolChoices, ToolRoute
from toolserver.mcp.elicitation import ElicitedCall, PaymentElicitation
from toolserver.mcp.events import METHODS as EVENT_METHODS
from toolserver.mcp.events import McpEvents
from toolserver.mcp.fast_path import (
    KNOWN,
    FastPath,
    FindView,
    PendingResult,
    ToolResult,
    arguments_of,
    is_modern_request,
    is_not_offered,
    is_plain_notification,
    offer_payment,
)
from toolserver.mcp.messages import (
    DESCRIBING,
    EVENTS_CAPABILITIES,
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PAYMENTS_CAPABILITIES,
    UNSET,
    Introduction,
    Message,
    MessageRefusal,
)
from toolserver.mcp.resources import METHODS as RESOURCE_METHODS
from toolserver.mcp.resources import McpResources
from toolserver.mcp.sdk import McpExtension, Sdk
from toolserver.registry.registry import Registry
from toolserver.registry.site_facts import SiteFacts
from toolserver.settings import Settings

PROTOCOL = Quota("protocol", 240, 60)
SESSION, VIEWS_SESSION = b"mcp-session-id", b"views-"
log = logging.getLogger(__name__)


class IncomingPost:
    """An HTTP request and the message in its body, which is decoded once, by the first step that needs it.

    `message` is None if the body is not a common message. `modern` is None if its headers do
    not match it. `reply` are headers of the answer.
    """

    __slots__ = ("body", "headers", "message", "modern", "receive", "reply", "request_id", "scope", "send", "token")

    def __init__(self, scope: Scope, headers: Headers, receive: Receive, send: Send, request_id: str) -> None:
        self.scope, self.headers, self.receive, self.send = scope, headers, receive, send
        self.request_id, self.body = request_id, b""
        header = headers.get(b"authorization")
        self.token = None if header is None else bearer(header.decode("latin-1"))
        self.message: Message | None = None
        self.modern: bool | None = None
        self.reply: tuple[Header, ...] = ()

    def decode(self, *, strict: bool) -> None:
        """Read the message and its protocol version from the body and the headers."""
        self.message = messages.read_message(self.body)
        if self.message is not None and self.message.id is not UNSET:
            self.modern = is_modern_request(self.message, self.headers, strict=strict)


class McpEndpoint:
    """The ASGI callable for exactly one path. An `extension` is for tests alone. `events` are MCP Events, if any.

    Before 2026-07-28 a client says only once, in `initialize`, that it shows views. It then
    gets a session id that says no more than this, as there are no sessions: later requests
    bring it back, to whichever instance.
    """

    def __init__(
        self,
        registry: Registry,
        pipeline: Pipeline,
        *,
        tasks: TaskGroup,
        addresses: Addresses,
        facts: SiteFacts,
        settings: Settings,
        extension: McpExtension | None = None,
        events: McpEvents | None = None,
        resources: McpResources | None = None,
        elicitation: PaymentElicitation | None = None,
    ) -> None:
        choices = (
            ToolChoices(registry)
            if extension is None
            else ToolChoices(registry, extra=extension.definitions, fixed=extension.fixed)
        )
        self._events, self._resources = events, resources
        self._elicitation = None if extension is not None else elicitation
        capabilities = [] if events is None else [EVENTS_CAPABILITIES]
        if resources is not None:
            capabilities.append(resources.capabilities)
        self._offers = pipeline.takes_x402
        has_offers = (PAYMENTS_CAPABILITIES,) if self._offers else ()
        self._fast = FastPath(pipeline, facts, Introduction(capabilities, modern=has_offers))
        self._answers = ResponseSender(facts)
        self._limits = pipeline.limits
        self._addresses = addresses
        self._counts = pipeline.metrics.mcp_messages
        self._protocol = Bucket(PROTOCOL, monotonic=pipeline.answers.clock.monotonic)
        self._strict, self._is_extended = settings.mcp.strict_versions, extension is not None
        self._body_limit = settings.limits.body_bytes
        self.admission = RequestGuard(choices, facts.base_url, settings.mcp)
        self.sdk = Sdk(self._fast, tasks, body_limit=self._body_limit, extension=extension)
        self._prepare_sdk = partial(tasks.start_soon, self.sdk.prepare)
        self._has_admitted = False
        tools = {name: choices.count(name) for name in ("core", "all")}
        self._described = messages.description(facts.url("/api/mcp"), facts.url("/docs"), tools)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        lines = scope["headers"]
        headers: Headers = dict(lines)
        own_id = headers.get(b"x-request-id")
        request_id = new_request_id() if own_id is None else _request_id(own_id)
        post = IncomingPost(scope, headers, receive, send, request_id)
        try:
            if scope["method"] != "POST":
                await self._without_message(post)
                return
            self._counts.taken += 1
            event = await receive()
            post.body = event.get("body", b"")
            if event.get("more_body") or len(post.body) > self._body_limit:
                post.body = await body_of(event, receive, self._body_limit)
            if len(headers) != len(lines):
                messages.check_repeated_headers(lines)
            can_pay = post.token is not None and post.token[:9] != VISITOR
            choice = self.admission.admit(scope, headers, has_token=can_pay)
            if not self._has_admitted:
                self._has_admitted = True
                self._prepare_sdk()
            post.decode(strict=self._strict)
            result = await self.answer_at_once(post, choice)
            if result is None:
                await self.answer_later(post, choice)
            else:
                await self._send(post, result)
        except MessageRefusal as refusal:
            await self._refuse(post, refusal)
        except Exception:
            log.exception("an MCP request failed", extra={"request_id": post.request_id})
            data = {"request_id": post.request_id}
            await self._refuse(
                post, MessageRefusal(500, INTERNAL_ERROR, "Something went wrong on our side.", data=data)
            )

    async def answer_at_once(self, post: IncomingPost, choice: ToolChoice) -> ToolResult | None:
        """Return the result of a common message that needs no waiting."""
        message, modern = post.message, post.modern
        if message is None or modern is None or message.id is UNSET:
            return None
        is_call = message.method == "tools/call"
        route = choice.routes.get(message.params.name) if is_call else None
        if route is None:
            core = self._find_prepared(post, message, choice, modern=modern)
            if core is None and is_call:
                self._refuse_unknown_tool(post, message, choice, modern=modern)
            elif core is None:
                self._refuse_not_offered(post, message, modern=modern)
        else:
            return await self._answer_from_cache(post, route, message, choice)
        return None if core is None else ToolResult(core, {})

    def _refuse_unknown_tool(self, post: IncomingPost, message: Message, choice: ToolChoice, *, modern: bool) -> None:
        """Raise MessageRefusal for a well-formed call of an unknown tool, because anyone can send many of them."""
        params = message.params
        if self._is_extended or not params.name or not params.plain or arguments_of(params) is None:
            return
        self._count_uncommon(post)
        detail, near = choice.describe_unknown(mask_secrets(params.name))
        data = {"did_you_mean": near} if near else None
        raise MessageRefusal(
            400 if modern else 200, INVALID_PARAMS, detail, data=data, value=None if message.id is UNSET else message.id
        )

    def _refuse_not_offered(self, post: IncomingPost, message: Message, *, modern: bool) -> None:
        """Raise MessageRefusal for a well-formed request for what is not offered here, such as prompts or resources."""
        if self._is_extended or not is_not_offered(message, modern=modern):
            return
        if self._answers_method(message.method):
            return
        if message.method not in KNOWN:
            self._count_uncommon(post)
        raise MessageRefusal(
            404 if modern else 200,
            METHOD_NOT_FOUND,
            "Method not found",
            data=mask_secrets(message.method),
            value=None if message.id is UNSET else message.id,
        )

    def _find_prepared(self, post: IncomingPost, message: Message, choice: ToolChoice, *, modern: bool) -> bytes | None:
        if self._is_extended and message.method != "tools/call" and (b"mcp-session-id" in post.headers or not modern):
            return None  # there, the SDK handles sessions
        if self._is_extended and message.method == "server/discover":
            return None  # the extension offers more
        find_view: FindView | None = None
        if self._resources is not None and message.params.plain:
            if message.method == "tools/list" and (choice.wants_views or _shows_views(post, message)):
                find_view = self._resources.find_view
            elif message.method == "initialize" and messages.shows_views(message.params.capabilities):
                post.reply = ((SESSION, VIEWS_SESSION + secrets.token_hex(8).encode()),)
        return self._fast.find_prepared(message, choice, modern=modern, find_view=find_view)

    async def _answer_from_cache(
        self, post: IncomingPost, route: ToolRoute, message: Message, choice: ToolChoice
    ) -> ToolResult | None:
        client, token = None, post.token
        if self._limits.enabled:
            client = self._client(post) if token is None else self._fast.pipeline.tokens.find_client(token)
            if client is None:
                return None  # a valid token counts as its own client, and only the ledger knows whether it is valid
        try:
            agent = post.headers.get(b"user-agent", b"").decode("latin-1")
            fast = self._fast
            return await fast.answer_from_cache(
                route, message.params, client, agent, token=token, short_meta=choice.short_meta
            )
        except RateLimited as rejected:
            return self._fast.reject(rejected, post.request_id)

    async def answer_later(self, post: IncomingPost, choice: ToolChoice) -> None:
        """Answer calls that take time, notifications, and everything that the SDK handles."""
        tracing.request_id.set(post.request_id)
        message = post.message
        if message is not None and not self._is_extended and is_plain_notification(message, post.headers):
            await self._answers.empty(post.send, post.request_id, 202)
            return
        call = None if message is None else self._read_call(post, choice, message)
        if message is None or call is None:
            await self.answer_by_sdk(post, choice)
            return
        route, arguments = call
        if message.params.plain:
            result = await self._call(post, message, route, arguments, short_meta=choice.short_meta)
        else:
            result = await self._resume_call(post, message, route, arguments, short_meta=choice.short_meta)
        if result is not None:
            await self._send(post, result)

    async def _send(self, post: IncomingPost, result: ToolResult | PendingResult) -> None:
        """Send the result of a common message that is a request."""
        if post.message is None or post.message.id is UNSET:
            return
        answer = messages.response(post.message.id, result.core, result.end(modern=bool(post.modern)))
        left = result.meta.get("credits_remaining") if result.meta else None
        if left is None:
            await self._answers.json(post.send, post.request_id, answer, 200, *post.reply)
        else:
            credits_left = (b"x-credits-remaining", b"%d" % left)
            await self._answers.json(post.send, post.request_id, answer, 200, credits_left)

    def _read_call(
        self, post: IncomingPost, choice: ToolChoice, message: Message
    ) -> tuple[ToolRoute, dict[str, Any]] | None:
        """Return the tool and the arguments of a plain call, or of one that brings input; None for everything else."""
        params = message.params
        if message.method != "tools/call" or post.modern is None:
            return None
        if not params.plain and (self._is_extended or not (post.modern and params.brings_input)):
            return None
        route, arguments = choice.routes.get(message.params.name), arguments_of(message.params)
        return None if route is None or arguments is None else (route, arguments)

    async def _call(
        self, post: IncomingPost, message: Message, route: ToolRoute, arguments: dict[str, Any], *, short_meta: bool
    ) -> ToolResult | PendingResult | None:
        """Return the result of a call; None if the caller of a paid call hung up, in which case nothing is charged."""
        caller = self._caller_of(post, message, short_meta=short_meta)
        try:
            result = await self._fast.call(route, message.params, arguments, caller, post.receive)
            elicits = self._elicitation
            if result.rejected is None or not post.modern:
                return result
            if self._offers and (offer := offer_payment(message.params, result)) is not None:
                return offer
            if elicits is None or not elicits.fits(message, route.operation, result.rejected):
                return result
            return await elicits.ask(ElicitedCall(message, route.operation, arguments, caller))
        except Disconnected:
            return None
        except CallRejected as rejected:
            return self._fast.reject(rejected, post.request_id)

    async def _resume_call(
        self, post: IncomingPost, message: Message, route: ToolRoute, arguments: dict[str, Any], *, short_meta: bool
    ) -> ToolResult | PendingResult | None:
        """Return the result of a call that brings input; None if its caller hung up. Nobody is asked twice."""
        self._count_uncommon(post)
        caller = self._caller_of(post, message, short_meta=short_meta)
        waiting_client.set(caller.waits_as)  # the ledger is asked before the pipeline knows of the call
        try:
            if self._elicitation is not None:
                call = ElicitedCall(message, route.operation, arguments, caller)
                arguments, caller = await self._elicitation.resume(call, post.receive)
            result = await self._fast.call(route, messages.NO_PARAMS, arguments, caller, post.receive)
            return (offer_payment(message.params, result) if self._offers else None) or result
        except Disconnected:
            return None
        except CallRejected as rejected:
            return self._fast.reject(rejected, post.request_id)

    async def answer_by_sdk(self, post: IncomingPost, choice: ToolChoice) -> None:
        """Answer whatever the message is by the SDK."""
        self._count_uncommon(post)
        request = messages.parse_message(post.body)
        messages.check_version(request, post.headers.get(b"mcp-protocol-version"), strict=self._strict)
        if "id" in request and self._answers_method(request.get("method")):
            await self._answer_method(post, request)
            return
        self._counts.by_sdk += 1
        await self._hand_over(post, choice, replay_body(post.body, post.receive), method=request.get("method"))

    def _answers_method(self, method: str | None) -> bool:
        """Return True for a method of MCP Events or of resources, if this server has them."""
        if method in EVENT_METHODS:
            return self._events is not None
        return method in RESOURCE_METHODS and self._resources is not None

    async def _answer_method(self, post: IncomingPost, request: dict[str, Any]) -> None:
        """Answer a method of MCP Events or of resources without the SDK."""
        modern = messages.has_modern_envelope(request) if post.message is None else post.modern
        if modern is None:
            raise MessageRefusal(400, HEADER_MISMATCH, "The headers do not say the same as the message.")
        method, params, caller = request["method"], request.get("params") or {}, self._caller(post)
        try:
            if self._events is not None and method in EVENT_METHODS:
                core = await self._events.answer(method, params, caller)
            else:
                assert self._resources is not None, "what a server does not have is refused before"
                core = await self._resources.answer(method, params, caller, modern=modern)
        except MessageRefusal as refusal:
            if modern and refusal.code == INVALID_PARAMS:
                refusal.status = 400
            raise
        end = messages.end(modern=modern)
        answer = messages.response(request["id"], core, end.removeprefix(b",") if core == b"{" else end)
        await self._answers.json(post.send, post.request_id, answer)

    def _count_uncommon(self, post: IncomingPost) -> None:
        """Count a message that only the SDK can answer, which is far slower. Raises MessageRefusal over the limit."""
        if self._is_extended or not self._limits.enabled:  # conformance suites send only such messages
            return
        verdict = self._protocol.take(self._client(post))
        if not verdict.allowed:
            wait = max(1, int(verdict.retry_after_s + 0.999))
            text = f"Too many uncommon messages from this address. Try again in {wait} s."
            data, headers = {"retry_after_seconds": wait}, ((b"retry-after", b"%d" % wait),)
            raise MessageRefusal(200, INVALID_REQUEST, text, data=data, headers=headers)

    async def _hand_over(
        self, post: IncomingPost, choice: ToolChoice, receive: Receive, *, method: str | None = None
    ) -> None:
        headers = list(post.scope["headers"])
        if b"accept" not in post.headers or not self._is_extended:  # admission judged it; the SDK would want streams
            headers = [*(line for line in headers if line[0] != b"accept"), (b"accept", b"*/*")]
        scope = {**post.scope, "headers": headers}
        describes = self._fast.introduction.add_to if method in DESCRIBING else None
        send = self._answers.sdk(post.send, post.request_id, describes)
        await self.sdk(scope, receive, send, choice=choice, caller=self._caller(post))

    async def _without_message(self, post: IncomingPost) -> None:
        """Answer GET, HEAD and OPTIONS, and refuse other methods."""
        method, get = post.scope["method"], post.headers.get
        if method == "OPTIONS":
            await self._answers.preflight(post.send, post.request_id)
            return
        self.admission.check_source(get(b"host"), get(b"origin"))
        streams = b"text/event-stream" in get(b"accept", b"")
        if self._is_extended and (method == "DELETE" or (method == "GET" and streams)):
            choice = self.admission.choose(post.scope["query_string"], None, None)
            await self._hand_over(post, choice, post.receive)
        elif method in ("GET", "HEAD") and not streams:
            self.admission.choose(post.scope["query_string"], get(b"x-mcp-toolset"), get(b"x-mcp-tools"))
            await self._answers.json(post.send, post.request_id, self._described, head=method == "HEAD")
        else:
            allow = POST_ONLY if streams or method == "DELETE" else METHODS
            text = "This server has no streams and no sessions: send a message by POST."
            raise MessageRefusal(405, INVALID_REQUEST, text, headers=(allow,))

    async def _refuse(self, post: IncomingPost, refusal: MessageRefusal) -> None:
        if refusal.value is None:
            refusal.value = messages.read_id(post.body)
        head = post.scope["method"] == "HEAD"
        await self._answers.json(post.send, post.request_id, refusal.body, refusal.status, *refusal.headers, head=head)

    def _client(self, post: IncomingPost) -> str:
        peer = post.scope.get("client") or ("unknown", 0)
        forwarded = post.headers.get(b"x-forwarded-for")
        return self._addresses.client(peer[0], None if forwarded is None else forwarded.decode("latin-1"))

    def _caller_of(self, post: IncomingPost, message: Message, *, short_meta: bool) -> Caller:
        """Return the caller of a message, with what the message says of the call."""
        caller, meta = self._caller(post, short_meta=short_meta), message.params.meta
        return caller if meta is UNSET else meta.add_to(caller)

    def _caller(self, post: IncomingPost, *, short_meta: bool = False) -> Caller:
        get = post.headers.get
        nonce = get(b"x-agent-nonce")
        return Caller(
            client=self._client(post),
            token=post.token,
            agent=get(b"user-agent", b"").decode("latin-1"),
            transport="mcp",
            request_id=post.request_id,
            nonce=None if nonce is None else nonce.decode("latin-1"),
            short_meta=short_meta,
        )


def _shows_views(post: IncomingPost, message: Message) -> bool:
    """Return True if the client of a message shows views: it says so in the message, or in its session id."""
    meta = message.params.meta
    if post.modern:
        return meta is not UNSET and messages.shows_views(meta.capabilities)
    return post.headers.get(SESSION, b"").startswith(VIEWS_SESSION)


def _request_id(request_id: bytes) -> str:
    """Return the caller's own request id if it is acceptable, else a new one."""
    text = request_id.decode("latin-1")
    return text if is_sane_request_id(text) else new_request_id()
