"""Simulate GDELT's list of articles on the wire: spaces before commas, and no list where there is nothing."""

from datetime import UTC, datetime
from typing import Any

from tools.simulated.headlines import HOSTS, SimHeadline, headlines
from toolserver.world.model import Ask, Reply, World, serves

LISTED = 250
FORMS = {
    "limited": Reply.text("Please limit requests to one every 5 seconds.\n", 429),
    "error200": Reply.text("The specified phrase is too short.\n"),
    "empty": Reply.json({}),
}


def _row(item: SimHeadline) -> dict[str, Any]:
    seen = datetime.fromtimestamp(item.at, UTC)
    return {
        "url": item.url,
        "url_mobile": "",
        "title": item.title.replace(",", " ,"),
        "seendate": seen.strftime("%Y%m%dT%H%M%SZ"),
        "socialimage": "",
        "domain": HOSTS[item.feed].removeprefix("www."),
        "language": "English",
        "sourcecountry": "United States",
    }


def _rows(world: World) -> list[dict[str, Any]]:
    listed = [item for item in headlines(world) if item.feed in HOSTS and item.at > world.now - 86400]
    return [_row(item) for item in listed[:LISTED]]


@serves("GDELT.articles", "api.gdeltproject.org", "/api/v2/doc/doc", forms=FORMS)
def articles(world: World, ask: Ask) -> Reply:
    return Reply.json({"articles": _rows(world)})


@articles.form("drift")
def reordered(world: World, ask: Ask) -> Reply:
    """Return members in another order, one more, and an article in another language."""
    rows = [dict(reversed(row.items())) | {"tone": "1.5"} for row in _rows(world)]
    return Reply.json({"articles": [*rows, rows[0] | {"language": "Korean"}], "status": "ok"})
