"""Answer the common messages without the SDK.

`tools/call`, `tools/list`, `server/discover`, `initialize`, `ping` and notifications make up nearly all traffic. They
are decoded into exactly their shape and answered from prepared bytes. For anything unusual, the functions here return
None, and the SDK gives the exact answer or error.

Many clients request prompts and resources regardless of what a server offers. They are refused at once, in the SDK's
words: importing the SDK takes half a second, and using it takes a hundred times as long as this.
"""

from collections.abc import Hashable, Mapping
from typing import Any

import msgspec

from toolserver.calls.arguments import Call
from toolserver.calls.connection import Receive
from toolserver.calls.pipeline import Outcome, Pipeline
from toolserver.core.caller import Caller
from toolserver.errors import CallRejected
from toolserver.mcp.call_arguments import drop_host_arguments, take_token
from toolserver.mcp.definitions import ToolChoice, ToolRoute
from toolserver.mcp.messages import LEGACY, MODERN, UNSET, Message, Params, decode, fixed_result
from toolserver.mcp.results import ToolResult, render_core, render_failure, render_result
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
    return named is not None and bool(getattr(params, named))


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
    return named is None or headers.get(b"mcp-name") == getattr(params, named).encode()


def is_plain_notification(message: Message, headers: Mapping[bytes, bytes]) -> bool:
    """Return True if this is a notification of a version we serve. Notifications have no effect here."""
    if message.id is not UNSET or not message.method.startswith("notifications/"):
        return False
    version = headers.get(b"mcp-protocol-version")
    return version is None or version == _MODERN_HEADER or version in _LEGACY_HEADERS


class FastPath:
    """Answers common messages of one service, over every transport."""

    __slots__ = ("_facts", "pipeline")

    def __init__(self, pipeline: Pipeline, facts: SiteFacts) -> None:
        self.pipeline, self._facts = pipeline, facts

    def find_prepared(self, message: Message, choice: ToolChoice, *, modern: bool) -> bytes | None:
        """Return the core of a result that needs no call: a listing, the answer to `initialize`, or a fixture."""
        if not message.params.plain:
            return None
        if message.method == "tools/list":
            return choice.listed[modern]
        if message.method == "tools/call":
            return choice.fixed.get(message.params.name)
        return fixed_result(message, modern=modern)

    async def answer_from_cache(
        self, route: ToolRoute, params: Params, client: str | None, agent: str, *, short_meta: bool = False
    ) -> bytes | None:
        """Return the core of a call's result if the answer is cached. Counts against `client`'s limits, if given.

        Raises:
            RateLimited: the client has to wait.
        """
        key, pipeline = _find_key(route, params), self.pipeline
        now = pipeline.answers.clock.time()
        rendered = None if key is None else pipeline.peek(route.operation, key, now)
        if rendered is None:
            return None
        await pipeline.admit_cached(route.operation, key, client, agent, now, unchanged=False)
        return render_core(rendered.short if short_meta else rendered)

    def answer_unlimited(self, route: ToolRoute, params: Params, agent: str) -> bytes | None:
        """Return the same for a caller without limits."""
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

        Raises:
            Disconnected: the client of the connection `receive` hung up while a paid answer was being made.
        """
        try:
            outcome = await self._answer_default(route, sent, caller)
            if outcome is not None:
                return render_result(route.operation, outcome)
            sent = drop_host_arguments(route.operation, sent, self.pipeline.metrics.dropped_argument)
            arguments, caller = take_token(route.operation, sent, caller)
            outcome = await self.pipeline.call(route.operation, arguments, caller, receive)
        except CallRejected as rejected:
            return self.reject(rejected, caller.request_id)
        if arguments is sent and sent and params.arguments is not UNSET and outcome.key is not None:
            route.remember(bytes(params.arguments), outcome.key)
        return render_result(route.operation, outcome)

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
