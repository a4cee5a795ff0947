"""Answer the common messages without the SDK.

`tools/call`, `tools/list`, `server/discover`, `initialize`, `ping` and notifications make up
nearly all traffic. They are decoded into exactly their shape and answered from prepared
bytes. For anything unusual, the functions here return None, and the SDK gives the exact
answer or error. The result of a call is written as bytes here in either case: an answer's own
bytes wrapped for MCP, or a failure.

Many clients request prompts and resources regardless of what a server offers. They are refused
at once, in the SDK's words: importing the SDK takes half a second, and using it takes a
hundred times as long as this.
"""

from collections.abc import Callable, Hashable, Mapping
from typing import Any, NamedTuple

import msgspec

from toolserver.calls.arguments import Call
from toolserver.calls.pipeline import Outcome, Pipeline
from toolserver.calls.response import ChargeNote, Receive, RenderedResponse, with_note, with_note_escaped
from toolserver.core.caller import Caller, well_formed
from toolserver.errors import CallRejected
from toolserver.mcp import messages
from toolserver.mcp.call_arguments import (
    ADDED_BY,
    CALL,
    drop_host_arguments,
    next_step,
    read_inner_call,
    take_token,
)
from toolserver.mcp.definitions import ToolChoice, ToolRoute
from toolserver.mcp.messages import LEGACY, MODERN, TOOLS_ONLY, UNSET, Introduction, Message, Params, decode, encode
from toolserver.money.x402.wire import META_RESPONSE, REQUIRED, RESPONSE, unheader
from toolserver.registry import error_codes
from toolserver.registry.registry import Operation
from toolserver.registry.response_schema import BARE, frame_of
from toolserver.registry.site_facts import SiteFacts

_LISTS = frozenset({"prompts/list", "resources/list", "resources/templates/list"})
_LEGACY_ONLY = frozenset({"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"})
_MODERN_ONLY = frozenset({"server/discover", "subscriptions/listen"})
_JUDGED = frozenset({"tools/list", "tools/call", "completion/complete", "prompts/get", "resources/read"})
KNOWN = _LISTS | _LEGACY_ONLY | _MODERN_ONLY | _JUDGED
"""Every client request that any version of the protocol defines."""

_NAMED: Mapping[str, str] = {
    "prompts/get": "name",
    "resources/read": "uri",
    "resources/subscribe": "uri",
    "resources/unsubscribe": "uri",
    "subscriptions/listen": "notifications",
}
"""The member needed by requests whose parameters the SDK checks before it says that there is no such method."""


def is_not_offered(message: Message, *, modern: bool) -> bool:
    """Return True if a request is well-formed but its method is not offered. False: another step has to answer it."""
    method, params = message.method, message.params
    if not method or not params.plain or not _has_texts_as_arguments(params):
        return False
    if method not in KNOWN or method in _LISTS or method in (_LEGACY_ONLY if modern else _MODERN_ONLY):
        return True
    named = _NAMED.get(method)
    return named is not None and getattr(params, named) not in ("", UNSET)


def _has_texts_as_arguments(params: Params) -> bool:
    """Return True if there are no arguments, or only named texts as for a prompt. Others are not checked yet."""
    if params.arguments is UNSET:
        return True
    try:
        decode(params.arguments, type=dict[str, str])
    except (msgspec.MsgspecError, RecursionError):
        return False
    return True


_LEGACY_HEADERS = frozenset(version.encode() for version in LEGACY)
_MODERN_HEADER = MODERN.encode()
_NOTHING = (b"{}", b"null")
NAME_BEARING = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""Modern requests that repeat a member in the header Mcp-Name, with the name of that member."""


def is_modern_request(message: Message, headers: Mapping[bytes, bytes], *, strict: bool = False) -> bool | None:
    """Return True if a request over HTTP is modern, False if legacy, None if its headers and body do not match.

    Unless `strict`, a modern body with a legacy header counts as legacy, because popular clients send that.
    """
    version = headers.get(b"mcp-protocol-version")
    meta = message.params.meta
    if version == _MODERN_HEADER:
        return True if _fits(message, headers) else None
    enveloped = meta is not UNSET and meta.version is not UNSET
    if version is None:
        return None if enveloped else False
    return False if version in _LEGACY_HEADERS and not (strict and enveloped) else None


def _fits(message: Message, headers: Mapping[bytes, bytes]) -> bool:
    """Return True if a modern request's envelope is complete and its headers repeat it."""
    params, method = message.params, message.method
    meta = params.meta
    if meta is UNSET or meta.version != MODERN or meta.capabilities is UNSET:
        return False
    if headers.get(b"mcp-method") != method.encode():
        return False
    named = NAME_BEARING.get(method)
    if named is None:
        return True
    sent, name = headers.get(b"mcp-name"), getattr(params, named).encode()
    return sent == name or (sent is not None and messages.decode_header(sent) == name)


def is_plain_notification(message: Message, headers: Mapping[bytes, bytes]) -> bool:
    """Return True if this is a notification of a version we serve. Notifications have no effect here."""
    if message.id is not UNSET or not message.method.startswith("notifications/"):
        return False
    version = headers.get(b"mcp-protocol-version")
    return version is None or version == _MODERN_HEADER or version in _LEGACY_HEADERS


_SIGNED = {"receipt": "X-Service-Receipt", "receipt_id": "X-Service-Receipt-Id"}  # for a call that was not charged


class ToolResult(NamedTuple):
    """The core of a result, the members of its `_meta`, and the answer that it carries, or the refusal that it is."""

    core: bytes
    meta: dict[str, Any]
    rejected: CallRejected | None = None
    payload: bytes = b""

    @property
    def failed(self) -> bool:
        return self.rejected is not None

    def end(self, *, modern: bool) -> bytes:
        """Return the bytes that close the result."""
        return messages.end_with(self.meta, modern=modern) if self.meta else messages.end(modern=modern)


class PendingResult(NamedTuple):
    """A result that does not complete its call: it asks for input, or to be paid. Only modern requests get one."""

    core: bytes
    meta: Mapping[str, Any]

    def end(self, *, modern: bool) -> bytes:
        """Return the bytes that close the result."""
        return messages.end_pending(self.meta)


def offer_payment(params: Params, result: ToolResult) -> PendingResult | None:
    """Return the offer of a refusal (x402) as a result of its own type, to a modern client
    that says that it takes such; None for every other result and client.
    """
    if result.rejected is None or REQUIRED not in result.rejected.headers:
        return None
    if params.meta is UNSET or not messages.takes_offers(params.meta.capabilities):
        return None
    core = b'{"resultType":"payment_required","paymentRequired":' + result.payload
    return PendingResult(core, result.meta)


def _content(escaped: bytes, payload: bytes, end: bytes = b',"isError":false') -> bytes:
    return b"".join((b'{"content":[{"type":"text","text":', escaped, b'}],"structuredContent":', payload, end))


def render_core(rendered: RenderedResponse) -> bytes:
    """Return the core of a free call's result, made once per answer."""
    core: bytes | None = rendered.memo.get("mcp")
    if core is None:
        core = rendered.memo["mcp"] = _content(rendered.escaped, rendered.payload)
    return core


def render_result(operation: Operation, outcome: Outcome) -> ToolResult:
    """Return the result of a call. Both copies of the payload and the result's own `_meta` say what it cost.

    Hosts show models the payload and nothing of the result's own `_meta`, where the receipt is.
    """
    rendered, note = outcome.rendered, outcome.note
    signed: dict[str, Any] = {}
    if outcome.receipt is not None:
        signed = {"receipt": outcome.receipt, "receipt_id": outcome.receipt_id}
    elif outcome.receipt_id is not None:  # requested by reference: the hash that the receipt signs
        signed = {"receipt_id": outcome.receipt_id, "response_sha256": rendered.sha256(note).hex()}
    if outcome.alerts:
        signed["credits_alert"] = list(outcome.alerts)
    if outcome.settlement is not None:
        signed[META_RESPONSE] = outcome.settlement
    if note is None:
        return ToolResult(render_core(rendered), signed, payload=rendered.payload)
    if frame_of(operation) is not BARE:
        return _render_noted(rendered, note, signed)
    payload = rendered.payload[:-1] + b',"_meta":' + encode(note.as_json()) + b"}"
    return ToolResult(_content(encode(payload.decode()), payload), note.as_json() | signed, payload=payload)


def _render_noted(rendered: RenderedResponse, note: ChargeNote, signed: Mapping[str, Any]) -> ToolResult:
    payload = with_note(rendered.payload, note)
    core = _content(with_note_escaped(rendered.escaped, note), payload)
    return ToolResult(core, {**note.as_json(), **signed}, payload=payload)


def wrap_result(name: str, result: ToolResult) -> ToolResult:
    """Return the result of a tool that another one ran: its answer, byte for byte, under the tool's name."""
    if result.failed:
        return result
    payload = b'{"called":%b,"result":%b}' % (encode(name), result.payload)
    return ToolResult(_content(encode(payload.decode()), payload), result.meta, payload=payload)


def render_failure(rejected: CallRejected, facts: SiteFacts, request_id: str) -> ToolResult:
    """Return a failure of a call: REST's body as text, and the tool that helps.

    There is no structured content, which clients would check against the schema. The
    exception is an offer to pay (x402), which must be there as one object with the error.
    """
    extra = next_step(rejected.code) | rejected.extra
    body = error_codes.body(rejected.code, rejected.detail, facts=facts, request_id=request_id, **extra)
    headers = rejected.headers
    meta: dict[str, Any] = {name: headers[header] for name, header in _SIGNED.items() if header in headers}
    if RESPONSE in headers:
        meta[META_RESPONSE] = unheader(headers[RESPONSE])
    if REQUIRED in headers:
        offer = unheader(headers[REQUIRED]) | {"extensions": {}}  # `tools/list` describes the tool already
        written = encode(offer | body)
        core = _content(encode(written.decode()), written, b',"isError":true')
        return ToolResult(core, meta, rejected, payload=written)
    text = encode(encode(body).decode())
    return ToolResult(b'{"content":[{"type":"text","text":' + text + b'}],"isError":true', meta, rejected)


FindView = Callable[[str], str | None]


class FastPath:
    """Answers common messages of one service, over every transport. `introduction` is what it says of itself."""

    __slots__ = ("_facts", "introduction", "pipeline")

    def __init__(self, pipeline: Pipeline, facts: SiteFacts, introduction: Introduction = TOOLS_ONLY) -> None:
        self.pipeline, self._facts, self.introduction = pipeline, facts, introduction

    def find_prepared(
        self, message: Message, choice: ToolChoice, *, modern: bool, find_view: FindView | None = None
    ) -> bytes | None:
        """Return the core of a result that needs no call: a listing, the answer to `initialize`, or a fixture.

        With `find_view`, which returns the URI of a tool's view, the listing names the views.
        """
        if not message.params.plain:
            return None
        if message.method == "tools/list":
            return choice.listed[modern] if find_view is None else choice.list_with_views(find_view, modern=modern)
        if message.method == "tools/call":
            return choice.fixed.get(message.params.name)
        return self.introduction.answer(message, modern=modern)

    async def answer_from_cache(
        self,
        route: ToolRoute,
        params: Params,
        client: str | None,
        agent: str,
        *,
        token: str | None = None,
        short_meta: bool = False,
    ) -> ToolResult | None:
        """Return a call's result if the answer is cached. Counts against `client`'s limits, if given.

        With a token of an account, the result says what is left of its credits, if the ledger
        has just said so; otherwise there is no result.

        Raises:
            RateLimited: the client has to wait.
        """
        key, pipeline = _find_key(route, params), self.pipeline
        now = pipeline.answers.clock.time()
        rendered = None if key is None else pipeline.peek(route.operation, key, now)
        if rendered is None:
            return None
        left = None
        if token is not None and well_formed(token) and (left := pipeline.tokens.find_credits(token)) is None:
            return None
        await pipeline.admit_cached(route.operation, key, client, agent, now, unchanged=False)
        shown = rendered.short if short_meta else rendered
        return ToolResult(render_core(shown), {}) if left is None else _render_noted(shown, ChargeNote(0, left), {})

    def answer_unlimited(self, route: ToolRoute, params: Params, agent: str) -> bytes | None:
        """Return the core of a call's result if the answer is cached, for a caller without limits and token."""
        key, pipeline = _find_key(route, params), self.pipeline
        now = pipeline.answers.clock.time()
        rendered = None if key is None else pipeline.peek(route.operation, key, now)
        if rendered is None:
            return None
        pipeline.count_hit(route.operation, now, agent)
        return render_core(rendered)

    async def call(
        self,
        route: ToolRoute,
        params: Params,
        sent: dict[str, Any],
        caller: Caller,
        receive: Receive | None = None,
    ) -> ToolResult:
        """Return the result of a call, good or bad, and remember the cache key of arguments with this spelling.

        A spelling with a token or with something that a host added is not remembered.

        Raises:
            Disconnected: the client of the connection `receive` hung up while a paid answer was being made.
        """
        try:
            outcome = await self._answer_default(route, sent, caller)
            if outcome is not None:
                return render_result(route.operation, outcome)
            own = drop_host_arguments(route.operation, sent, self.pipeline.metrics.dropped_argument)
            arguments, caller = take_token(route.operation, own, caller)
            if route.reachable is not None and CALL in arguments:
                if arguments[CALL] not in (None, ""):
                    return await self._run_inner(route.reachable, arguments, caller, receive)
                arguments = {name: value for name, value in arguments.items() if name != CALL}
            outcome = await self.pipeline.call(route.operation, arguments, caller, receive)
        except CallRejected as rejected:
            return self.reject(rejected, caller.request_id)
        is_own = arguments is own and ADDED_BY.keys().isdisjoint(sent.keys() - own.keys())
        if is_own and own and params.arguments is not UNSET and outcome.key is not None:
            route.remember(bytes(params.arguments), outcome.key)
        return render_result(route.operation, outcome)

    async def _run_inner(
        self, reachable: Mapping[str, ToolRoute], sent: Mapping[str, Any], caller: Caller, receive: Receive | None
    ) -> ToolResult:
        """Answer the argument `call`: the call of another tool, which is counted and limited as one by its own name.

        Raises InvalidArguments: the call is malformed, or its tool is unknown or not free.
        """
        operation, arguments = read_inner_call(sent, {name: route.operation for name, route in reachable.items()})
        result = await self.call(reachable[operation.name], messages.NO_PARAMS, arguments, caller, receive)
        return wrap_result(operation.name, result)

    async def _answer_default(self, route: ToolRoute, sent: Mapping[str, Any], caller: Caller) -> Outcome | None:
        """Sell the cached answer to a call without arguments. Return None, with nothing done, for any other call.

        Raises CallRejected: nothing was charged.
        """
        if route.sold is None or sent or caller.token is None or caller.payment is not None:
            return None
        pipeline, (arguments, key) = self.pipeline, route.sold
        rendered = pipeline.peek(route.operation, key, pipeline.answers.clock.time())
        if rendered is None:
            return None
        return await pipeline.answer(Call(route.operation, arguments, key, caller), rendered)

    def reject(self, rejected: CallRejected, request_id: str) -> ToolResult:
        """Return the result of a rejected call."""
        return render_failure(rejected, self._facts, request_id)


def _find_key(route: ToolRoute, params: Params) -> Hashable | None:
    """Return the cache key for arguments with this spelling; None if it is unknown or the call is not plain."""
    if not params.plain:
        return None
    written = params.arguments
    if written is UNSET:
        return route.default_key
    plain = bytes(written)
    return route.default_key if plain in _NOTHING else route.keys.get(plain)


def arguments_of(params: Params) -> dict[str, Any] | None:
    """Return the arguments of a call, or None if they are not an object."""
    if params.arguments is UNSET:
        return {}
    try:
        arguments = decode(params.arguments)
    except (msgspec.MsgspecError, RecursionError):
        return None
    return arguments if isinstance(arguments, dict) else {} if arguments is None else None
