"""Writes the home page: what the service is, live values, how to start, an example answer, costs, all tools."""

import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import Any

from rest_bridge.pages.render import is_easy, render_page
from toolserver.money.purchases.credit_price import CREDITS_PER_USD
from toolserver.registry.registry import Operation, Registry, Tier
from toolserver.registry.site_facts import SERVICE, TIER_HEADINGS, Document, SiteFacts, Snippet, sells

TITLE = "Live data for AI agents"
NO_EXAMPLES: Mapping[str, Any] = MappingProxyType({})


def home(
    registry: Registry,
    facts: SiteFacts,
    snippets: Sequence[Snippet] = (),
    examples: Mapping[str, Any] = NO_EXAMPLES,
) -> Document:
    """Return the page. `snippets` has the text to paste for each program and transport, grouped by program."""
    example = _find_example_call(registry)
    shown = [one for one in registry.listed if one.tier is Tier.FREE and one.headline is not None]
    prices = sorted({one.credits for one in registry if one.credits})
    about = f"{len(registry.listed)} typed tools over MCP, REST and function calling."
    return render_page(
        "home.html",
        registry,
        facts,
        path="/",
        title=TITLE,
        about=f"{about} Every value comes with its age, source and licence.",
        scripts=["home.js"] if shown else [],
        structured=_describe(facts),
        priced=sells(registry),
        prices=prices,
        credits_per_usd=CREDITS_PER_USD,
        example=example,
        answer=_read_example_answer(example, examples),
        shown=shown,
        links=[snippet for snippet in snippets if snippet.link],
        hosts=[(host, list(listed)) for host, listed in groupby(snippets, key=lambda snippet: snippet.host)],
        tiers=_group_by_tier(registry),
    )


def _find_example_call(registry: Registry) -> Operation | None:
    """Return the call to copy: the first tool that needs no argument and no token, if possible from the core set."""
    easy = [operation for operation in registry if is_easy(operation)]
    live = [operation for operation in easy if operation.sources and operation.toolset == "core"]
    small = [operation for operation in live if operation.headline is not None]
    return next(iter(small or live or easy), None)


def _read_example_answer(example: Operation | None, examples: Mapping[str, Any]) -> str:
    """Return an example answer of that call, or an empty string."""
    answer = examples.get(example.name) if example else None
    return json.dumps(answer, indent=2, ensure_ascii=False) if answer else ""


def _group_by_tier(registry: Registry) -> list[tuple[str, list[Operation]]]:
    """Return the tools below the headings of their tiers, without empty tiers."""
    listed = {heading: [o for o in registry.listed if o.tier is tier] for tier, heading in TIER_HEADINGS.items()}
    return [(heading, operations) for heading, operations in listed.items() if operations]


def _describe(facts: SiteFacts) -> dict[str, Any]:
    """Describe the service in schema.org terms."""
    return {
        "@context": "https://schema.org",
        "@type": "WebAPI",
        "name": SERVICE,
        "description": TITLE,
        "url": facts.url("/"),
        "documentation": facts.url("/docs"),
    }
