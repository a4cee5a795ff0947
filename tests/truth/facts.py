"""What each tool asserts: short declarations, each of which compares one kind of fact with the simulated world.

A declaration yields a sentence for each fact that the answer states without a flag and that is false.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tests.truth.known import stories_of
from tests.truth.rows import disaster_rows, funding_rows, grave_disasters
from tests.truth.said import Said, epoch
from tools.simulated import alerts, market
from tools.simulated import ethereum_chain as chain
from tools.simulated.solana import slot_at
from tools.simulated.spaceflight import FLOWN, launches
from tools.simulated.usgs import SimQuake

Declaration = Callable[[Said], Iterable[str]]
HOUR, DAY = 3600.0, 86400.0
LATE_S = 1860.0  # a proof of life may be so old: what happened since may be missing
SECONDS, MAGNITUDES = 31.0, 0.26  # catalogues differ by so much
PRICE = 0.015
OLD_S = 180.0  # of a block: older is not now
FLOORS = {"significant": 6.0, "4.5": 4.5, "2.5": 2.5, "1.0": 1.0, "all": 0.0}
PERIODS = {"hour": HOUR, "day": DAY, "week": 7 * DAY, "month": 30 * DAY}


def no_falsehood_about_quakes(
    said: Said, section: str, rows: list[tuple[float, float]] | None, floor: float, window_s: float, cap: int = 10**6
) -> Iterator[str]:
    """Rows of (magnitude, time): each happened, and none that happened is missing. None asserts nothing."""
    if rows is None or said.flagged(section):
        return
    at = said.fetched_at(section)
    truth = said.quakes(at - window_s - 2 * HOUR)
    for magnitude, time in rows:
        if not any(is_quake(true, magnitude, time) for true in truth):
            yield f"{section}: an earthquake of M{magnitude} that never was"
            break
    oldest = min((time for _, time in rows), default=0.0) if len(rows) >= cap else 0.0
    since = max(at - window_s + 120, oldest)
    due = [t for t in truth if since < t.at < at - LATE_S and t.magnitude >= max(floor + MAGNITUDES, 3.0)]
    missing = [t for t in due if not any(is_quake(t, magnitude, time) for magnitude, time in rows)]
    if missing:
        yield f"{section}: {len(missing)} of {len(due)} earthquakes are missing, such as M{missing[0].magnitude}"


def is_quake(true: SimQuake, magnitude: float, time: float) -> bool:
    return abs(true.at - time) <= SECONDS and abs(true.magnitude - magnitude) <= MAGNITUDES


def rows_of(items: Any, magnitude: str = "magnitude") -> list[tuple[float, float]] | None:
    if items is None:
        return None
    return [(item[magnitude], epoch(item["time"])) for item in items if item[magnitude] is not None]


def earthquakes(said: Said) -> Iterator[str]:
    yield from no_falsehood_about_quakes(said, "data", rows_of(said.get("data.earthquakes")), 2.5, DAY, 80)
    count = said.get("data.count")
    if count is not None and not said.flagged("data"):
        yield from near("data.count", count, len([q for q in said.quakes(said.composed.at - DAY) if q[2] > 2.5]))


def near(name: str, given: float, true: float, share: float = 0.15, spare: float = 4) -> Iterator[str]:
    if abs(given - true) > share * abs(true) + spare:
        yield f"{name}: {given:g} where {true:g} is true"


def catalogue(said: Said) -> Iterator[str]:
    asked = dict(said.case.arguments)
    floor, window = FLOORS[asked.get("magnitude", "2.5")], PERIODS[asked.get("period", "day")]
    yield from no_falsehood_about_quakes(said, "data", rows_of(said.get("data")), floor, window, 60)


def delta_quakes(said: Said) -> Iterator[str]:
    counts, events = said.get("counts"), said.get("events") or []
    if counts is None or "earthquake" not in counts:
        return
    rows = [(e["data"]["magnitude"], epoch(e["timestamp"])) for e in events if e["type"] == "earthquake"]
    yield from no_falsehood_about_quakes(said, "earthquake", rows, 4.0, HOUR)


def context_quakes(said: Said) -> Iterator[str]:
    section = "context.world_events.significant_earthquakes_24h"
    rows = rows_of(said.get(section))
    if rows is None or said.flagged(section):
        return
    at = said.fetched_at(section)
    large = [q for q in said.quakes(at - DAY + 120) if q.magnitude >= 6.3 and q.at < at - LATE_S]
    if large and not rows:
        yield f"{section}: none, where there was M{large[0].magnitude}"
    before = said.quakes(at - 2 * DAY)
    false = [(m, t) for m, t in rows if not any(is_quake(true, m, t) for true in before)]
    yield from (f"{section}: M{magnitude} never was" for magnitude, _ in false)


def context_words(said: Said) -> Iterator[str]:
    """The text says none only where the list that it is made of is there, and empty."""
    text, events = said.get("system_prompt") or "", said.get("context.world_events")
    if events is None:
        return
    if "No earthquake" in text and events["significant_earthquakes_24h"] != []:
        yield "system_prompt: no earthquake, which nobody has proved"
    if "No upcoming launch" in text and events["upcoming_space_launches"] != []:
        yield "system_prompt: no launch, which nobody has proved"


def briefing_count(said: Said) -> Iterator[str]:
    count = said.get("sections.earthquakes.count")
    if count is None or said.flagged("sections.earthquakes"):
        return
    yield from near("earthquakes.count", count, sum(q.magnitude > 2.5 for q in said.quakes(said.composed.at - DAY)))


def weather_alerts(said: Said) -> Iterator[str]:
    rows = said.get("data")
    if rows is None or said.flagged("data") or dict(said.case.arguments).get("status", "Actual") != "Actual":
        return
    asked = {k: v for k, v in said.case.arguments if k in FIELDS}
    true = {a.id: a for a in alerts.in_force(said.world()) if all(FIELDS[k](a) == v for k, v in asked.items())}
    for row in rows:
        if row["message_type"] == "Cancel" or epoch(row["ends"] or row["expires"]) <= said.composed.at:
            yield f"data: {row['event']} is over"
            break
    yield from near("data.total_matching", said.get("total_matching"), len(true), 0.1, 2)
    sure = [a for a in true.values() if a.sent < said.composed.at - LATE_S]
    if sure and not rows:
        yield f"data: none, where {len(sure)} are in force"


FIELDS: dict[str, Callable[[Any], str]] = {
    "area": lambda a: a.office.state,
    "severity": lambda a: a.hazard.severity,
    "urgency": lambda a: a.hazard.urgency,
    "event": lambda a: a.hazard.event,
}


def severe(said: Said) -> Iterator[str]:
    total = said.get("data.total_active")
    if total is not None and not said.flagged("data"):
        yield from near("data.total_active", total, len(alerts.in_force(said.world())), 0.15, 4)


def launch_rows(section: str, path: str, time: str) -> Declaration:
    def declared(said: Said) -> Iterator[str]:
        rows = said.get(path)
        if rows is None or said.flagged(section):
            return
        known = [launch.net for launch in launches(said.world())]
        given = [epoch(row[time]) for row in rows if row.get(time)]
        false = [net for net in given if not any(abs(net - true) <= DAY for true in known)]
        if false:
            yield f"{section}: a launch that nobody plans"
        soon = [x for x in launches(said.world()) if x.code not in FLOWN and 0 < x.net - said.composed.at < DAY]
        if soon and not rows:
            yield f"{section}: none, where {len(soon)} are to come within a day"

    return declared


def delta_launches(said: Said) -> Iterator[str]:
    counts = said.get("counts")
    if counts is None or "space_launch" not in counts or said.flagged("space_launch"):
        return
    at = said.composed.at
    due = [x for x in launches(said.world()) if at < x.net < at + 11 * HOUR and x.precision in ("SEC", "MIN", "HR")]
    if due and not counts["space_launch"]:
        yield f"counts.space_launch: 0, where {len(due)} are to come"


def delta_stories(said: Said) -> Iterator[str]:
    """Stories listed as new are on the page now, or were an hour ago."""
    titles = [e["data"]["id"] for e in said.get("events") or [] if e["type"] == "tech_news_story"]
    yield from on_page(said, "tech_news_story", titles)


def page(section: str, path: str, name: str) -> Declaration:
    def declared(said: Said) -> Iterator[str]:
        rows = said.get(path)
        yield from on_page(said, section, [row[name] for row in rows or ()], least=3)

    return declared


def on_page(said: Said, section: str, given: list[Any], least: int = 1) -> Iterator[str]:
    if len(given) < least or said.flagged(section):
        return
    at = said.fetched_at(section)
    true = stories_of(said.case.scenario, at) | stories_of(said.case.scenario, at - 1800)
    true |= stories_of(said.case.scenario, at - HOUR)
    if sum(one in true for one in given) < 0.6 * len(given):
        yield f"{section}: stories that are not on the page"


def price(section: str, path: str, asset: str = "BTC") -> Declaration:
    def declared(said: Said) -> Iterator[str]:
        given = said.get(path)
        if given is None or said.flagged(section):
            return
        true = market.price(said.world(said.fetched_at(section)), asset)
        if abs(given - true) > PRICE * true:
            yield f"{path}: {given:g} where {true:g} is true"

    return declared


def gas(said: Said) -> Iterator[str]:
    given = said.get("data")
    if given is None or said.flagged("data"):
        return
    at = epoch(given["as_of"])
    if said.composed.at - at > 600:
        yield f"data.as_of: {said.composed.at - at:.0f} s old, without a flag"
    if given["block"] is not None and abs(given["block"] - chain.head(said.world(at))) > 15:
        yield f"data.block: {given['block']} where {chain.head(said.world(at))} is true"
    if given["base_fee"] is not None:
        true = chain.base_fee(said.world(at), chain.head(said.world(at))) / 1e9
        yield from near("data.base_fee", given["base_fee"], true, 0.5, 0)


def solana(said: Said) -> Iterator[str]:
    given = said.get("data")
    if given is None or said.flagged("data"):
        return
    at = epoch(given["as_of"])
    if said.composed.at - at > OLD_S:
        yield f"data.as_of: {said.composed.at - at:.0f} s old, without a flag"
    if abs(given["slot"] - slot_at(at)) > 300:
        yield f"data.slot: {given['slot']} where {slot_at(at)} is true"


def not_empty(path: str, section: str) -> Declaration:
    """A list that is never empty in this world."""

    def declared(said: Said) -> Iterator[str]:
        if said.get(path) in ([], 0) and not said.flagged(section):
            yield f"{path}: none, which is never true"

    return declared


def short_lived(said: Said) -> Iterator[str]:
    """What is null, stale, partial or unproved is composed again within 30 seconds."""
    codes = {w["code"] for w in said.answer.get("warning", ())}
    degraded = said.answer.get("stale") or codes & {"section_unavailable", "stale_data", "partial", "unproved_empty"}
    if degraded and said.composed.lifetime_s > 30.01:
        yield f"max-age: {said.composed.lifetime_s:.0f} s of a degraded answer"


NEWS = "context.world_events.news_front_page_top5"
LAUNCHES = "context.world_events.upcoming_space_launches"
DECLARED: dict[str, tuple[Declaration, ...]] = {
    "earthquakes": (earthquakes,),
    "climate_earthquakes": (catalogue,),
    "premium_world_deltas": (delta_quakes, delta_launches, delta_stories),
    "premium_agent_context": (
        context_quakes,
        context_words,
        launch_rows(LAUNCHES, LAUNCHES, "net"),
        page(NEWS, NEWS, "title"),
        price("context.markets.btc", "context.markets.btc.price_usd"),
    ),
    "briefing": (briefing_count, price("sections.crypto", "sections.crypto.price_usd")),
    "premium_briefing": (briefing_count, price("sections.btc", "sections.btc.price_usd")),
    "climate_weather_alerts": (weather_alerts,),
    "severe_weather": (severe,),
    "launches": (launch_rows("data", "data", "scheduled_time"), not_empty("data", "data")),
    "tech_news": (page("data", "data", "id"),),
    "btc_price": (price("data", "data.price_usd"),),
    "gas": (gas,),
    "chain_network": (solana,),
    "volcanoes": (not_empty("data", "data"),),
    "disaster_alerts": (not_empty("data", "data"), disaster_rows, grave_disasters),
    "funding_rates": (funding_rows,),
    "predictions": (not_empty("data", "data"),),
    "crypto_movers": (not_empty("data", "data"),),
    "service_status": (not_empty("data", "data"),),
    "cyber_threats": (not_empty("data", "data"),),
    "humans_in_space": (not_empty("data.people", "data"), not_empty("data.count", "data")),
}


def falsehoods(said: Said) -> list[str]:
    """Everything false that an answer asserts without a flag."""
    declared = (*DECLARED.get(said.case.tool, ()), short_lived)
    return [sentence for declaration in declared for sentence in declaration(said)]
