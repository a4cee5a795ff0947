"""Serves `/status`, its JSON, its Atom feed (RFC 4287) of when a source went down or came back, and `/sources`.

Each is rewritten at most every few seconds. The page says whether the service works, and shows
the past 24 hours of every source.
"""

from collections.abc import Awaitable, Callable
from html import escape
from typing import Any
from urllib.parse import quote, urlsplit

import anyio.to_thread

from rest_bridge.asgi import ParsedRequest, PlainReply, Scope
from rest_bridge.discovery import as_json
from rest_bridge.pages.day_strip import draw_strip, write_share
from rest_bridge.pages.render import render_page
from rest_bridge.pages.sources import sources_page
from rest_bridge.routes import Handler
from rest_bridge.serving import ServedDocument
from toolserver.clock import Clock
from toolserver.registry.registry import Registry
from toolserver.registry.site_facts import (
    ATOM,
    SERVICE,
    SOURCES_PAGE,
    STATUS,
    STATUS_FEED,
    STATUS_JSON,
    Document,
    SiteFacts,
    duration,
)

ORDER = ("down", "failing", "up", "unknown")
STATE_WORDS = {
    "down": "down",
    "failing": "last exchange failed",
    "up": "up",
    "unknown": "not asked",
}
CIRCUIT_WORDS = {"closed": "as usual", "open": "paused", "half_open": "one at a time"}
STATE_CLASSES = {"down": "bad", "failing": "warn", "up": "good", "unknown": "soft"}
CHANGES = 20


def status_page(registry: Registry, facts: SiteFacts, status: dict[str, Any]) -> Document:
    """Return the page of the content of `/status.json`. Sources with faults come first."""
    sources = sorted(status["sources"], key=lambda source: (ORDER.index(source["state"]), source["name"]))
    return render_page(
        "status.html",
        registry,
        facts,
        path=STATUS,
        title="Status",
        about="Whether the service works, and the past 24 hours of each of its sources.",
        status=status,
        verdict=write_verdict(status),
        sources=sources,
        unwell=[source for source in sources if source["state"] in ("down", "failing")],
        well=[source for source in sources if source["state"] == "up"],
        changes=status["changes"][:CHANGES],
        state_words=STATE_WORDS,
        circuit_words=CIRCUIT_WORDS,
        state_classes=STATE_CLASSES,
        draw_strip=draw_strip,
        write_share=write_share,
        write_span=write_span,
        shown_uptime=write_uptime(status["service"]["uptime_s"]),
    )


def write_verdict(status: dict[str, Any]) -> str:
    """Return the overall state in a sentence."""
    counts = status["counts"]
    counted = sum(counts.values()) - counts["unknown"]
    if not status["checks"].get("running", True):
        return "This instance is stopping."
    if status["unsold"] is not None:
        return f"Free tools work. Nothing can be bought at the moment: {status['unsold']}."
    if status["status"] != "ok":
        failing = ", ".join(name.replace("_", " ") for name, well in status["checks"].items() if not well)
        return f"This instance accepts no calls that change data. Failing checks: {failing}."
    if not counted:
        return "The service works. No source has been asked in the past 24 hours."
    if not counts["down"] and not counts["failing"]:
        return f"Everything works: {counted} sources answered when last asked."
    amiss = [f"{counts[state]} {words}" for state, words in (("down", "down"), ("failing", "failing")) if counts[state]]
    return f"The service works. Of {counted} sources asked, {' and '.join(amiss)}; other sources take their place."


def write_span(seconds: float | None) -> str:
    """Return a bound on the duration of calls as text."""
    if seconds is None:
        return "no bound"
    return f"{seconds * 1000:g} ms" if seconds < 1 else f"{seconds:g} s"


def write_uptime(seconds: int) -> str:
    """Return the uptime in its largest unit, rounded down."""
    for size in (86400, 3600, 60):
        if seconds >= size:
            return duration(seconds // size * size)
    return duration(seconds)


KEEP_S = 5
ReadStatus = Callable[[], Awaitable[dict[str, Any]]]


def status_handlers(registry: Registry, facts: SiteFacts, read: ReadStatus, clock: Clock) -> dict[str, Handler]:
    """Return handlers by path. `read` returns the content of `/status.json`."""
    return {
        STATUS: every_few_seconds(lambda status: status_page(registry, facts, status), read, clock),
        STATUS_JSON: every_few_seconds(as_json, read, clock),
        STATUS_FEED: every_few_seconds(lambda status: write_feed(facts, status), read, clock),
        SOURCES_PAGE: every_few_seconds(lambda status: sources_page(registry, facts, status), read, clock),
    }


def every_few_seconds(write: Callable[[dict[str, Any]], Document], read: ReadStatus, clock: Clock) -> Handler:
    """Serve a document written from the status, the same for every client for `KEEP_S` seconds."""
    one_at_a_time = anyio.Lock()
    written: list[tuple[float, ServedDocument]] = []

    async def handler(scope: Scope, request: ParsedRequest) -> PlainReply:
        async with one_at_a_time:
            if not written or clock.monotonic() - written[0][0] >= KEEP_S:
                status = await read()
                document = await anyio.to_thread.run_sync(write, status)
                written[:] = [(clock.monotonic(), ServedDocument(document))]
        return written[0][1].reply(request, cache_control=b"public, max-age=%d" % KEEP_S)

    return handler


WORDS = {"down": "is down", "back": "is back"}
EXPLAINED = {
    "down": "Three exchanges in a row failed; the last error was: {}. Tools answer from other sources, or from the last"
    " good data, marked stale.",
    "back": "The source answers again.",
}


def write_feed(facts: SiteFacts, status: dict[str, Any]) -> Document:
    """Return the feed of the changes in `status`. Without any change, its date is the start of the service."""
    changes = status["changes"]
    updated = changes[0]["at"] if changes else status["service"]["started_at"]
    entries = "".join(_write_entry(facts, change) for change in changes)
    itself, page = escape(facts.url(STATUS_FEED)), escape(facts.url(STATUS))
    body = (
        '<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">\n'
        f"<title>{SERVICE}: changes of sources</title>\n<id>{itself}</id>\n"
        f"<updated>{updated}</updated>\n<author><name>{SERVICE}</name></author>\n"
        f'<link rel="self" type="application/atom+xml" href="{itself}"/>\n'
        f'<link rel="alternate" type="text/html" href="{page}"/>\n{entries}</feed>\n'
    )
    return Document(body.encode(), ATOM)


def _write_entry(facts: SiteFacts, change: dict[str, Any]) -> str:
    source, kind, at = change["source"], change["kind"], change["at"]
    host = urlsplit(facts.base_url).hostname or SERVICE
    identity = f"tag:{host},{at[:10]}:{STATUS}/{quote(source)}/{kind}/{at[11:]}"
    place = escape(f"{facts.url(STATUS)}#{quote(source)}")
    return (
        f"<entry>\n<title>{escape(source)} {WORDS[kind]}</title>\n<id>{escape(identity)}</id>\n"
        f'<updated>{at}</updated>\n<link href="{place}"/>\n'
        f"<summary>{escape(EXPLAINED[kind].format(change['reason']))}</summary>\n</entry>\n"
    )
