"""The common messages, answered without the SDK.

`tools/call`, `tools/list`, `server/discover`, `initialize`, `ping` and notifications make up nearly all traffic. They
are decoded into exactly their shape and answered from prepared bytes. Whatever is in any way unusual gets None here,
and the SDK then gives the exact answer or error.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from toolserver.access import Caller
from toolserver.answers import key_of
from toolserver.documents import Facts
from toolserver.errors import CallRejected
from toolserver.pipeline import Pipeline
from toolserver.protocol.definitions import Choice, Route
from toolserver.protocol.results import Result, core_of, refused, result_of
from toolserver.protocol.wire import (
    LEGACY,
    MODERN,
    UNSET,
    Message,
    Params,
    decode,
    fixed,
)
from toolserver.registry import Operation

_LEGACY_HEADERS = frozenset(version.encode() for version in LEGACY)
_MODERN_HEADER = MODERN.encode()
_NOTHING = (b"{}", b"null")


def era(message: Message, headers: Mapping[bytes, bytes], *, strict: bool = False) -> bool | None:
    """Whether a request over HTTP is modern (True) or legacy (False); None when its headers and body do not fit.

    A modern body under a legacy header is taken as legacy, because popular clients send that, unless `strict`.
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
    """Whether a modern request's envelope is complete and its headers repeat it."""
    params, method = message.params, message.method
    meta = params.meta
    if meta is UNSET or meta.version != MODERN or meta.capabilities is UNSET:
        return False
    if headers.get(b"mcp-method") != method.encode():
        return False
    return method != "tools/call" or headers.get(b"mcp-name") == params.name.encode()


def acknowledged(message: Message, headers: Mapping[bytes, bytes]) -> bool:
    """Whether this is a notification of a version we serve: nothing here acts on one."""
    if message.id is not UNSET or not message.method.startswith("notifications/"):
        return False
    version = headers.get(b"mcp-protocol-version")
    return version is None or version == _MODERN_HEADER or version in _LEGACY_HEADERS


class Fast:
    """Answers common messages of one service, for every door."""

    __slots__ = ("_facts", "pipeline")

    def __init__(self, pipeline: Pipeline, facts: Facts) -> None:
        self.pipeline, self._facts = pipeline, facts

    def prepared(self, message: Message, choice: Choice, *, modern: bool) -> bytes | None:
        """The core of a result that needs no call: a listing, a greeting, a fixture."""
        if not message.params.plain:
            return None
        if message.method == "tools/list":
            return choice.listed[modern]
        if message.method == "tools/call":
            return choice.fixed.get(message.params.name)
        return fixed(message, modern=modern)

    def at_hand(self, route: Route, params: Params, client: str | None, agent: str) -> bytes | None:
        """The core of a call's result when the answer is at hand. `client` is whom to limit; None for nobody.

        Raises:
            RateLimited: the client has to wait.
        """
        written = params.arguments
        if written is UNSET:
            key = route.default_key
        else:
            plain = bytes(written)
            key = route.default_key if plain in _NOTHING else route.keys.get(plain)
        if key is None or not params.plain:
            return None
        pipeline = self.pipeline
        ready = pipeline.at_hand(route.operation, key, pipeline.answers.clock.time(), client, None, agent)
        return None if ready is None else core_of(ready[0])

    async def call(self, route: Route, params: Params, given: dict[str, Any], caller: Caller) -> Result:
        """Make a call, and remember what its arguments come to."""
        result = await self.made(route.operation, given, caller)
        if given and params.arguments is not UNSET and not result.failed:
            arguments = self.pipeline.check(route.operation, given)
            route.remember(bytes(params.arguments), key_of(route.operation, arguments))
        return result

    async def made(self, operation: Operation, given: Mapping[str, Any], caller: Caller) -> Result:
        """The result of a call, good or bad."""
        try:
            outcome = await self.pipeline.call(operation, given, caller)
        except CallRejected as rejected:
            return self.refused(rejected, caller.request_id)
        return result_of(operation, outcome)

    def refused(self, rejected: CallRejected, request_id: str) -> Result:
        """The result of a call that was rejected."""
        return refused(rejected, self._facts, request_id)


def arguments_of(params: Params) -> dict[str, Any] | None:
    """The arguments of a call, or None when they are not an object."""
    if params.arguments is UNSET:
        return {}
    try:
        given = decode(params.arguments)
    except (msgspec.MsgspecError, RecursionError):
        return None
    return given if isinstance(given, dict) else {} if given is None else None
