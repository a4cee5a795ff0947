"""The home page: what this is, how to connect, every tool at a glance."""

from collections.abc import Sequence
from itertools import groupby

from rest_bridge.pages.render import is_easy, render_page
from toolserver.registry.registry import Operation, Registry
from toolserver.registry.site_facts import TIER_HEADINGS, Document, SiteFacts, Snippet, sells


def home(registry: Registry, facts: SiteFacts, snippets: Sequence[Snippet] = ()) -> Document:
    """`snippets`: what to paste where, one per program and transport, those of a program side by side."""
    return render_page(
        "home.html",
        registry,
        facts,
        path="/",
        title="Live data for AI agents",
        priced=sells(registry),
        example=_example(registry),
        hosts=[(host, list(listed)) for host, listed in groupby(snippets, key=lambda snippet: snippet.host)],
        tiers=_tiers(registry),
    )


def _example(registry: Registry) -> Operation | None:
    """The call to copy: the first tool that needs no argument and no token, of the core set where one is there."""
    easy = [operation for operation in registry if is_easy(operation)]
    live = [operation for operation in easy if operation.sources and operation.toolset == "core"]
    return next(iter(live or easy), None)


def _tiers(registry: Registry) -> list[tuple[str, list[Operation]]]:
    """The tools below the headings of their tiers, without empty ones."""
    listed = {heading: [o for o in registry if o.tier is tier] for tier, heading in TIER_HEADINGS.items()}
    return [(heading, operations) for heading, operations in listed.items() if operations]
