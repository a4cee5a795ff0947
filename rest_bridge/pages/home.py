"""Writes the home page: what the service is, live values, how to start, an example answer, costs, all tools."""

import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import Any

from rest_bridge.pages.front import draw_front, find_shown
from rest_bridge.pages.render import is_easy, render_page
from rest_bridge.pages.style_sheet import HOME
from toolserver.money.purchases.credit_price import CREDITS_PER_USD
from toolserver.registry.registry import Operation, Registry
from toolserver.registry.site_facts import SERVICE, TIER_HEADINGS, Document, SiteFacts, Snippet, sells
from toolserver.registry.site_pages import pages

TITLE = "Live data for AI agents"
QUICK = 7
CLAIMS = (
    (
        "Every value says its age, its source and its licence",
        "An agent can tell a fresh figure from an old one, and you know what you may do with it.",
        "/sources",
        "every source and its terms",
    ),
    (
        "When a source is down, another takes its place",
        "You get the last good data, marked stale, rather than an error; a gap is null, never an invented number.",
        "/status",
        "the past day of each source",
    ),
    (
        "A stale, empty or failed answer costs nothing",
        "What was not charged stands in a public log that can only grow.",
        "/no-charge",
        "the log and its signed state",
    ),
    (
        "Every paid call has a signed receipt",
        "What was asked, answered and charged can be checked later, by anybody, without this service.",
        "/receipts",
        "check one in the browser",
    ),
    (
        "No key for free tools, one registry for every interface",
        "MCP, REST and function calling give the same JSON, so that a test over one is a test of all.",
        "/docs",
        "every tool, argument and field",
    ),
)
"""What the service promises, why, and the page that proves it. A service that sells nothing shows those it has."""
NO_EXAMPLES: Mapping[str, Any] = MappingProxyType({})


def home(
    registry: Registry,
    facts: SiteFacts,
    snippets: Sequence[Snippet] = (),
    examples: Mapping[str, Any] = NO_EXAMPLES,
) -> Document:
    """Return the page. `snippets` has the text to paste for each program and transport, grouped by program."""
    example = _find_example_call(registry)
    shown = find_shown(registry)
    served = {page.path for page in pages(registry)}
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
        sections=HOME,
        priced=sells(registry),
        prices=prices,
        credits_per_usd=CREDITS_PER_USD,
        example=example,
        answer=_read_example_answer(example, examples),
        shown=shown,
        front=draw_front(registry, facts, None),
        quick=_choose_quick(snippets),
        claims=[claim for claim in CLAIMS if claim[2] in served],
        links=[snippet for snippet in snippets if snippet.link],
        hosts=[(host, list(listed)) for host, listed in groupby(snippets, key=lambda snippet: snippet.host)],
        tiers=_group_by_tier(registry),
    )


def _choose_quick(snippets: Sequence[Snippet]) -> list[Snippet]:
    """Return what the first screen offers to paste: one text for each of a few programs, over HTTP."""
    return [snippet for snippet in snippets if snippet.transport == "http"][:QUICK]


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
