"""Requests for what this server does not have, told from those that the SDK has to judge.

Many clients ask for prompts and resources whatever a server says that it offers. They are refused at once, in the words
of the SDK: importing it takes half a second, and asking it a hundred times as long as this.
"""

from collections.abc import Mapping

import msgspec

from toolserver.mcp.messages import UNSET, Message, Params, decode

_LISTS = frozenset({"prompts/list", "resources/list", "resources/templates/list"})
_LEGACY_ONLY = frozenset({"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"})
_MODERN_ONLY = frozenset({"server/discover", "subscriptions/listen"})
_JUDGED = frozenset({"tools/list", "tools/call", "completion/complete", "prompts/get", "resources/read"})
KNOWN = _LISTS | _LEGACY_ONLY | _MODERN_ONLY | _JUDGED
"""Every request of a client that a version of the protocol knows."""

_NAMED: Mapping[str, str] = {
    "prompts/get": "name",
    "resources/read": "uri",
    "resources/subscribe": "uri",
    "resources/unsubscribe": "uri",
}
"""Requests of which the SDK judges the parameters before it says that there is no such method: the member they need."""


def is_not_offered(message: Message, *, modern: bool) -> bool:
    """Whether a request is well-formed and there is no such method here. False: somebody else has to answer it."""
    method, params = message.method, message.params
    if not method or not params.plain or not _has_texts_as_arguments(params):
        return False
    if method not in KNOWN or method in _LISTS or method in (_LEGACY_ONLY if modern else _MODERN_ONLY):
        return True
    named = _NAMED.get(method)
    return named is not None and bool(getattr(params, named))


def _has_texts_as_arguments(params: Params) -> bool:
    """Whether there are no arguments, or texts by name, as those of a prompt are; nobody has read others yet."""
    if params.arguments is UNSET:
        return True
    try:
        decode(params.arguments, type=dict[str, str])
    except (msgspec.MsgspecError, RecursionError):
        return False
    return True
