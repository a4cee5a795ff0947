"""Tell requests for features that this server does not have from requests that the SDK has to judge.

Many clients request prompts and resources regardless of what a server offers. They are refused at once, in the SDK's
words: importing the SDK takes half a second, and using it takes a hundred times as long as this.
"""

from collections.abc import Mapping

import msgspec

from toolserver.mcp.messages import UNSET, Message, Params, decode

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
