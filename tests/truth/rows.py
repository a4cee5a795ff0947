"""What the rows of lists assert: each row by itself, since which rows there are depends on who answered."""

from collections.abc import Iterator

from tests.truth.said import Said
from tests.truth.stage import WARM_S
from tools.simulated import eonet
from tools.simulated.funding import perpetuals, rate

HOUR, DAY = 3600.0, 86400.0
OVER_S = 3 * DAY  # a disaster is listed for two days after its end, and its end is known late
KNOWN_S = 6 * HOUR  # after it began, everybody lists a disaster
DEGREES = 2.0
WORDS = {
    "earthquake": "EQ",
    "tropical_cyclone": "TC",
    "storm": "TC",
    "flood": "FL",
    "volcano": "VO",
    "wildfire": "WF",
    "drought": "DR",
}
RATE_SHARE, RATE_SPARE = 0.1, 0.00002


def disaster_rows(said: Said) -> Iterator[str]:
    """Each disaster goes on, or has ended of late, and is where it is said to be."""
    at = said.composed.at
    true = [d for d in said.disasters(at - 60 * DAY) if d.ended >= at - OVER_S]
    numbers = {f"gdacs:{d.kind}{d.number}" for d in true} | {f"eonet:{e['id']}" for e in eonet.only_here(said.world())}
    for row in said.get("data") or ():
        if said.flagged("data") or said.flagged(f"data.{row['id'].split(':')[0]}"):
            return
        known = row["id"] in numbers
        if not known and row["id"].startswith("eonet:"):
            kind = WORDS.get(row["type"])
            near = [d for d in true if abs(d.lat - row["lat"]) < DEGREES and abs(d.lon - row["lon"]) < DEGREES]
            known = any(d.kind == kind for d in near)
        if not known:
            yield f"data: {row['id']} ({row['type']}) is none of {len(true)} disasters"
            return


def grave_disasters(said: Said) -> Iterator[str]:
    """What is orange or red and goes on since six hours, or ended within a day, is listed: it is what one asks for."""
    if said.get("data") is None or said.flagged("data") or said.flagged("data.gdacs"):
        return
    at, listed = said.composed.at, {row["id"] for row in said.get("data")}
    for d in said.disasters(at - DAY):
        if d.level in ("Orange", "Red") and d.began <= at - KNOWN_S and f"gdacs:{d.kind}{d.number}" not in listed:
            yield f"data: a disaster that is {d.level} is left out: {d.kind}{d.number}"
            return


def funding_rows(said: Said) -> Iterator[str]:
    """Each contract of each venue pays what it is said to pay, now or when the warm engine last asked."""
    rows = said.get("data.top")
    if rows is None or said.flagged("data.top"):
        return
    instants = [said.composed.at, *([said.composed.at - WARM_S] if said.case.warm else [])]
    worlds = [said.world(at) for at in instants]
    contracts = {name: each for each in perpetuals(worlds[0]) for name in (each.base, each.short)}
    for row in rows:
        venue, contract = row["venue"], contracts.get(row["symbol"].split("-")[0])
        if row["predicted"] or said.flagged(f"data.venues.{venue}"):
            continue
        hours = int(row["period_hours"])
        true = [rate(world, venue, contract, hours) for world in worlds] if contract else []
        if not any(abs(row["period_rate"] - one) <= RATE_SHARE * abs(one) + RATE_SPARE for one in true):
            yield f"data.top: {venue} {row['symbol']} pays {row['period_rate']:g} where {true[:1]} is true"
            return
    for state in said.get("data.venues"):
        if state["status"] == "ok" and not state["markets"]:
            yield f"data.venues: {state['name']} is there without a market"
