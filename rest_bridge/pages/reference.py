"""Writes /docs: the documents, every tool with its call and price, how to read an answer, the licence of the data."""

import re
from collections.abc import Sequence

from rest_bridge.pages.guides import GuideGroup
from rest_bridge.pages.render import render_page
from toolserver.registry.registry import Operation, Registry
from toolserver.registry.site_facts import FREE_LICENCE, PREMIUM_LICENCE, TIER_HEADINGS, Document, SiteFacts, sells

_STOP = re.compile(r"(?<=[\w)…][\w)])[.:;] ")  # not that of "U.S."
_ENVELOPE = (
    ("source", "The host name of this service, for attribution"),
    ("endpoint", "The name of the endpoint"),
    ("updated_at", "When the oldest part of the data was fetched; null if it never was"),
    ("data", "The payload, described with each tool; null only if no source has ever answered"),
    ("stale", "Whether a source could not be refreshed in time"),
    ("warning", "What is missing or older than it should be; absent if the answer is complete"),
    ("_meta", "Sources with status, times and licence; attribution; whether the answer contains third-party text"),
)


def reference(registry: Registry, facts: SiteFacts, groups: Sequence[GuideGroup] = ()) -> Document:
    """Return the page. `groups` has the documents. Tools are listed by tier, in registry order."""
    listed = (
        (tier, heading, [o for o in registry.listed if o.tier is tier]) for tier, heading in TIER_HEADINGS.items()
    )
    return render_page(
        "reference.html",
        registry,
        facts,
        path="/docs",
        title="Documentation",
        about="One page for each task and each tool.",
        scripts=["docs.js"] if groups else [],
        groups=groups,
        selling=sells(registry),
        envelope=_ENVELOPE,
        first_words=first_words,
        tiers=[(tier.value, heading, operations) for tier, heading, operations in listed if operations],
        licences=[FREE_LICENCE, *([PREMIUM_LICENCE] if sells(registry) else [])],
    )


def first_words(operation: Operation) -> str:
    """Return what the tool gives, in a few words: its description up to the first stop that ends a phrase."""
    paragraph = " ".join(operation.docstring.partition("\n\n")[0].split())
    return _STOP.split(paragraph, maxsplit=1)[0].rstrip(".")
