"""/docs: every tool with its arguments, the fields of its answer, its sources and its freshness."""

from typing import Any

from rest_bridge.pages.render import render_page
from toolserver.registry.field_table import Row, payload_rows, rows
from toolserver.registry.registry import Operation, Registry
from toolserver.registry.site_facts import FREE_LICENCE, PREMIUM_LICENCE, TIER_HEADINGS, Document, SiteFacts, sells
from toolserver.upstream.source import Source

_ENVELOPE = (
    ("source", "The host name of this service, for attribution"),
    ("endpoint", "The name of the endpoint"),
    ("updated_at", "When the oldest part of the data was fetched; null when it never was"),
    ("data", "The payload, described with each tool; null only when no source has ever answered"),
    ("stale", "Whether a source could not be refreshed in time"),
    ("warning", "What is missing or older than it should be; absent when nothing is"),
    ("_meta", "Sources with status, times and licence; attribution; whether third-party text is inside"),
)
_LICENCE_WORDS = {
    "yes": "free to use",
    "attribution": "free to use with attribution",
    "non_commercial": "non-commercial use",
    "unclear": "terms not clear",
    "no": "redistribution not allowed",
}


def reference(registry: Registry, facts: SiteFacts) -> Document:
    """The page. Tools stand below the heading of their tier, in registry order."""
    listed = ((tier, heading, [o for o in registry if o.tier is tier]) for tier, heading in TIER_HEADINGS.items())
    return render_page(
        "reference.html",
        registry,
        facts,
        path="/docs",
        title="Tool reference",
        envelope=_ENVELOPE,
        licence_words=_LICENCE_WORDS,
        tiers=[(tier.value, heading, operations) for tier, heading, operations in listed if operations],
        argument_rows=_argument_rows,
        field_rows=payload_rows,
        sources_of=_sources_of,
        licences=[FREE_LICENCE, *([PREMIUM_LICENCE] if sells(registry) else [])],
    )


def _argument_rows(operation: Operation) -> list[Row]:
    return rows(operation.input_schema)


def _sources_of(operation: Operation) -> list[Source[Any, Any]]:
    """The sources in order of use; several request shapes may share a public name, which stands once."""
    return list({source.name: source for source in operation.sources}.values())
