"""Answers GET /api/llm-tools: ready-made tool definitions in the requested layout."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from catalog import definitions
from catalog.definitions import Definition
from toolserver.calls.arguments import suggest_name
from toolserver.core.models import iso
from toolserver.core.similar_names import find_similar
from toolserver.errors import InvalidArguments
from toolserver.registry.registry import TOOLSETS, Operation, Registry
from toolserver.registry.site_facts import TOOL_FORMATS, TOOL_TIERS, SiteFacts, sells
from toolserver.registry.spelling import find_word

_LAYOUTS: dict[str, Callable[[Operation], Definition]] = {
    "openai": definitions.openai,
    "anthropic": definitions.anthropic,
    "openai-responses": definitions.openai_responses,
    "gemini": definitions.gemini,
    "bedrock": definitions.bedrock,
}
_SEVERAL: dict[str, tuple[str, ...]] = {"both": ("openai", "anthropic"), "routes": ()}
_OLD_KEYS = {"openai-responses": "openai_responses"}  # the list has its old name too, as DEPRECATIONS announces
PARAMETERS = ("format", "tier", "toolset", "tools")
CALLING = (
    "Send routes[name].method to base_url + routes[name].path. Each argument goes where routes[name].arguments says:"
    " path replaces {its name} in the path, query goes into the query string (a list as one value with commas), body"
    " into one JSON object. Omit null arguments. If auth is bearer, send the Authorization header."
)
"""How to call a tool with only this document, for people and for programs that do not know this service."""


def llm_tools(
    registry: Registry,
    facts: SiteFacts,
    *,
    format: str = "both",
    tier: str | None = None,
    toolset: str = "all",
    tools: str | None = None,
    generated_at: datetime,
) -> dict[str, Any]:
    """Return the document: its description, one list per layout in registry order, and how to call each tool by HTTP.

    `both` means the layouts `openai` and `anthropic`; `routes` means no layout, only how tools
    are called. `tools` has names separated by commas, instead of a toolset.

    Raises:
        InvalidArguments: an unknown format, tier, toolset or tool; the message names the valid ones.
    """
    format = _spell("format", format, TOOL_FORMATS)
    chosen = _choose(registry, tier, toolset, tools)
    layouts: dict[str, Callable[[Operation], Definition]] = {**_LAYOUTS, "raw": partial(definitions.raw, facts=facts)}
    lists = {name: [layouts[name](operation) for operation in chosen] for name in _SEVERAL.get(format, (format,))}
    return {
        "source": facts.source,
        "generated_at": iso(generated_at),
        "docs": facts.url("/docs"),
        "auth": _auth(facts, paid=sells(registry)),
        "count": len(chosen),
        **lists,
        **{old: lists[name] for name, old in _OLD_KEYS.items() if name in lists},
        "base_url": facts.url(""),
        "calling": CALLING,
        "routes": {operation.name: definitions.route(operation) for operation in chosen},
    }


def answer_query(
    registry: Registry, facts: SiteFacts, parameters: Mapping[str, str], *, generated_at: datetime
) -> dict[str, Any]:
    """Return the document for the query parameters of a request.

    Raises:
        InvalidArguments: as `llm_tools`, and for an unknown or empty parameter.
    """
    for name in parameters:
        if name not in PARAMETERS:
            raise _unknown_parameter(name)
    return llm_tools(registry, facts, generated_at=generated_at, **parameters)


def _unknown_parameter(name: str) -> InvalidArguments:
    near = suggest_name(name[:64], list(PARAMETERS))
    message = f"unknown parameter; the valid ones are {', '.join(PARAMETERS)}"
    error = {"loc": name[:80], "msg": message, "type": "extra_forbidden"}
    text, valid = f"{name[:40]}: {message}", list(PARAMETERS)
    if not near:
        return InvalidArguments(text, errors=[error], valid_arguments=valid)
    return InvalidArguments(text, errors=[error], valid_arguments=valid, did_you_mean=[near])


def _choose(registry: Registry, tier: str | None, toolset: str, tools: str | None) -> list[Operation]:
    """Return the chosen operations, in registry order."""
    wanted = None if tier is None else _spell("tier", tier, TOOL_TIERS)
    valid = [operation.name for operation in registry]
    listed = None if tools is None else [name for name in tools.split(",") if name.strip()] or [tools]
    names = None if listed is None else [_spell("tools", name, valid) for name in listed]
    operations = registry.chosen(toolset=_spell("toolset", toolset, TOOLSETS), tools=names)
    return [operation for operation in operations if wanted in (None, operation.tier)]


def _spell(name: str, value: str, valid: Sequence[str]) -> str:
    word = find_word(value, valid)
    if word is None:
        near = find_similar(value.strip().casefold()[:64], valid)
        message = f"must be one of {', '.join(valid)}"
        error = {"loc": name, "msg": message, "type": "enum"}
        text = f"{name} {message}, not {value[:40]!r}"
        if not near:
            raise InvalidArguments(text, errors=[error])
        raise InvalidArguments(text, errors=[error], did_you_mean=near)
    return word


def _auth(facts: SiteFacts, *, paid: bool) -> dict[str, str]:
    """Return how callers of these tools authenticate."""
    if not paid:
        return {"type": "none", "note": "Every tool here is free and needs no token."}
    return {
        "type": "bearer",
        "header": "Authorization: Bearer svc_live_<64 hex digits>",
        "note": "Free tools need no token; the others say `auth: bearer` in the raw layout.",
        "signup": facts.url("/docs/payments"),
    }
