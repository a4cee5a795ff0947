"""Writes /status: whether the service works, and the past 24 hours of every source."""

from typing import Any

from rest_bridge.pages.day_strip import draw_strip, write_share
from rest_bridge.pages.render import render_page
from toolserver.registry.registry import Registry
from toolserver.registry.site_facts import STATUS, Document, SiteFacts, duration

ORDER = ("down", "failing", "up", "unknown")
STATE_WORDS = {
    "down": "down",
    "failing": "last exchange failed",
    "up": "up",
    "unknown": "not asked",
}
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
        state_classes=STATE_CLASSES,
        draw_strip=draw_strip,
        write_share=write_share,
        write_span=write_span,
        shown_uptime=write_uptime(status["service"]["uptime_s"]),
    )


def write_verdict(status: dict[str, Any]) -> str:
    """Return the overall state in a sentence."""
    counts = status["counts"]
    known = sum(counts.values()) - counts["unknown"]
    if status["status"] != "ok":
        failing = ", ".join(name.replace("_", " ") for name, well in status["checks"].items() if not well)
        return f"This instance accepts no calls that change data. Failing checks: {failing}."
    if not known:
        return "The service works. No source has been asked in the past 24 hours."
    if not counts["down"] and not counts["failing"]:
        return f"Everything works: {known} sources answered when last asked."
    amiss = [f"{counts[state]} {words}" for state, words in (("down", "down"), ("failing", "failing")) if counts[state]]
    return f"The service works. Of {known} sources asked, {' and '.join(amiss)}; other sources take their place."


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
