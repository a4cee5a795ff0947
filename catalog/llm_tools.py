"""GET /api/llm-tools: ready-made tool definitions, in the layout asked for."""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from catalog import definitions
from catalog.definitions import Definition
from toolserver.core.models import iso
from toolserver.errors import InvalidArguments
from toolserver.registry.registry import Operation, Registry
from toolserver.registry.site_facts import TOOL_FORMATS, TOOL_TIERS, SiteFacts, sells
from toolserver.registry.spelling import find_word

_LAYOUTS: dict[str, Callable[[Operation], Definition]] = {
    "openai": definitions.openai,
    "anthropic": definitions.anthropic,
    "openai-responses": definitions.openai_responses,
    "gemini": definitions.gemini,
    "bedrock": definitions.bedrock,
}


def llm_tools(
    registry: Registry,
    facts: SiteFacts,
    *,
    format: str = "both",
    tier: str | None = None,
    generated_at: datetime,
) -> dict[str, Any]:
    """The document: what it is, and one list per layout, in registry order.

    `both` means the layouts `openai` and `anthropic`. Without a tier every operation is listed.

    Raises:
        InvalidArguments: an unknown format or tier; the message names the valid ones.
    """
    format = _spell("format", format, TOOL_FORMATS)
    if tier is not None:
        tier = _spell("tier", tier, TOOL_TIERS)
    chosen = [operation for operation in registry.listed if tier in (None, operation.tier)]
    layouts: dict[str, Callable[[Operation], Definition]] = {**_LAYOUTS, "raw": partial(definitions.raw, facts=facts)}
    names = ("openai", "anthropic") if format == "both" else (format,)
    return {
        "source": facts.source,
        "generated_at": iso(generated_at),
        "docs": facts.url("/docs"),
        "auth": _auth(facts, paid=sells(registry)),
        "count": len(chosen),
        **{name.replace("-", "_"): [layouts[name](operation) for operation in chosen] for name in names},
    }


def _spell(name: str, value: str, valid: Sequence[str]) -> str:
    found = find_word(value, valid)
    if found is None:
        message = f"must be one of {', '.join(valid)}"
        errors = [{"loc": name, "msg": message, "type": "enum"}]
        raise InvalidArguments(f"{name} {message}, not {value[:40]!r}", errors=errors)
    return found


def _auth(facts: SiteFacts, *, paid: bool) -> dict[str, str]:
    """How a caller of these tools shows who it is."""
    if not paid:
        return {"type": "none", "note": "Every tool here is free and needs no token."}
    return {
        "type": "bearer",
        "header": "Authorization: Bearer svc_live_<64 hex digits>",
        "note": "Free tools need no token; the others say `auth: bearer` in the raw layout.",
        "signup": facts.url("/docs/payments"),
    }
