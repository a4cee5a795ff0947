"""Writes /sources: every source with its licence and terms, the tools that use it, and its past 24 hours."""

from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from typing import Any, NamedTuple

from rest_bridge.pages.day_strip import draw_strip, write_share
from rest_bridge.pages.render import render_page
from rest_bridge.pages.tool import LICENCE_WORDS
from toolserver.registry.registry import Operation, Registry
from toolserver.registry.site_facts import SOURCES_PAGE, Document, SiteFacts
from toolserver.registry.source_list import list_sources


def sources_page(registry: Registry, facts: SiteFacts, status: dict[str, Any]) -> Document:
    """Return the page. `status` is the content of `/status.json`."""
    days = {source["name"]: source for source in status["sources"]}
    listed = list_sources(registry, facts.rights)
    users = find_users(registry)
    return render_page(
        "sources.html",
        registry,
        facts,
        path=SOURCES_PAGE,
        title="Sources",
        about=f"All {len(listed)} sources with licence, terms, the tools that use them, and their past 24 hours.",
        status=status,
        number=len(listed),
        groups=group_sources([{**source, **days[source["name"]], "users": users[source["name"]]} for source in listed]),
        counts=Counter(source["licence"]["class"] for source in listed),
        classes=[(kind, words) for kind, words in LICENCE_WORDS.items()],
        licence_words=LICENCE_WORDS,
        draw_strip=draw_strip,
        write_share=write_share,
        describe_known=describe_known,
    )


class KnownLine(NamedTuple):
    """A sentence about a source, and whether it says that something of it has ended or is going to."""

    text: str
    is_urgent: bool = False


def describe_known(known: dict[str, Any]) -> list[KnownLine]:
    """Return what is known of a source beyond the past day, from `/status.json`, in sentences."""
    seen = f"last seen alive {known['seen_on']} ({known['seen_by']})" if known["seen_on"] else "not yet seen alive"
    lines = [KnownLine(seen)]
    for each in known["announced"]:
        end = f"its end is announced for {each['ends_on']}"
        says = end if each["ends_on"] else f"announces {each['kind']}: {each['text']}"
        lines.append(KnownLine(f"{says} (last said on {each['on']})", is_urgent=True))
    lines += [KnownLine(f"no longer gives {each['member']}", is_urgent=True) for each in known["gone"]]
    if known["alone"]:
        lines.append(KnownLine(f"no other source stands in: {known['alone']}"))
    return lines + ([KnownLine(known["note"])] if known["note"] else [])


class SourceGroup(NamedTuple):
    """The sources whose names begin with one letter, and their providers."""

    letter: str
    providers: list[str]
    sources: list[dict[str, Any]]


def group_sources(sources: Iterable[dict[str, Any]]) -> list[SourceGroup]:
    """Return sources grouped by first letter, sorted without regard to case."""
    in_order = sorted(sources, key=lambda source: source["name"].lower())
    groups = []
    for letter, group in groupby(in_order, key=lambda source: source["name"][0].upper()):
        rows = list(group)
        groups.append(SourceGroup(letter, list(dict.fromkeys(row["name"].partition(".")[0] for row in rows)), rows))
    return groups


def find_users(registry: Registry) -> dict[str, list[Operation]]:
    """Return the tools that may read each source, by the source's public name."""
    users: dict[str, list[Operation]] = {}
    for operation in registry:
        for name in dict.fromkeys(source.name for source in (*operation.sources, *operation.shipped)):
            users.setdefault(name, []).append(operation)
    return users
