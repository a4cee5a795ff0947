"""Simulate alternative.me's Fear & Greed index on the wire: one value a day, all of it strings."""

from collections.abc import Mapping
from typing import Any

from toolserver.world.model import Ask, Reply, World, expects, serves

DAY = 86400
LABELS = [(25, "Extreme Fear"), (46, "Fear"), (54, "Neutral"), (75, "Greed"), (100, "Extreme Greed")]


def index(world: World, day: int) -> int:
    """Return the value of a day (days since the epoch). Pin `fear_greed` to fix it."""
    pinned = world.pinned("fear_greed", max(day * DAY, min(world.now, (day + 1) * DAY - 1)))
    if pinned is not None:
        return round(pinned)
    return round(50 + 34 * world.noise("fear_greed.slow", day / 30) + 12 * world.noise("fear_greed.fast", day / 2))


def label(value: int) -> str:
    return next(name for top, name in LABELS if value <= top)


def _answer(listed: list[dict[str, Any]], failure: str | None = None) -> Reply:
    return Reply.json({"name": "Fear and Greed Index", "data": listed, "metadata": {"error": failure}})


FORMS = {
    "empty": _answer([]),
    "error200": _answer([], "Something went wrong."),
}


@serves("AlternativeMe.fear_greed", "api.alternative.me", "/fng/", forms=FORMS)
def fear_greed(world: World, ask: Ask) -> Reply:
    today = int(world.now // DAY)
    listed = [_day(world, today - back) for back in range(int(ask.params.get("limit", "1")))]
    listed[0]["time_until_update"] = str(int((today + 1) * DAY - world.now))
    return _answer(listed)


@fear_greed.form("drift")
def numbers(world: World, ask: Ask) -> Reply:
    """Return numbers in place of strings, oldest first, without a countdown."""
    today = int(world.now // DAY)
    listed = [_day(world, today - back) for back in reversed(range(int(ask.params.get("limit", "1"))))]
    return _answer([day | {"value": int(day["value"]), "timestamp": int(day["timestamp"])} for day in listed])


def _day(world: World, day: int) -> dict[str, Any]:
    value = index(world, day)
    return {"value": str(value), "value_classification": label(value), "timestamp": str(day * DAY)}


@expects("fear-greed")
def expected(world: World, params: Mapping[str, str]) -> dict[str, Any]:
    """Return the values that `/api/fear-greed` must have at this instant when alternative.me answers."""
    today = int(world.now // DAY)
    value = index(world, today)
    return {"value": value, "label": label(value), "index": "alternative.me", "previous_value": index(world, today - 1)}
