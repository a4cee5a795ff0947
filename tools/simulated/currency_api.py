"""Simulate currency-api on jsDelivr: one file a calendar day, lower-case codes, many digits, no fixings."""

import datetime as dt
from typing import Any

from tools.simulated import macro
from toolserver.world.model import Ask, Reply, World, serves

OTHERS = {"usd": 1, "btc": 0.0000103, "xau": 0.000244, "dkk": 6.42, "1inch": 4.1}


@serves("CurrencyApi.usd_rates", "cdn.jsdelivr.net", "/npm/@fawazahmed0/currency-api@{version}/v1/currencies/usd.json")
def usd(world: World, ask: Ask) -> Reply:
    version, today = ask.parts["version"], world.time.date()
    day = today if version == "latest" else dt.date.fromisoformat(version)
    if day > today:
        return Reply.text(f"Couldn't find the requested release version {version}.", 404)
    return _file(day, {code.lower(): _middle(world, code, day) for code in macro.PER_USD} | OTHERS)


@usd.form("empty")
def no_rates(world: World, ask: Ask) -> Reply:
    return _file(world.time.date(), {})


def _middle(world: World, code: str, day: dt.date) -> float:
    """Return a rate close to the fixing of the day."""
    return round(macro.per_usd(world, code, day) * (1 + 0.001 * world.noise(f"mid.{code}", day.toordinal())), 8)


def _file(day: dt.date, rates: dict[str, Any]) -> Reply:
    return Reply.json({"date": str(day), "usd": dict(sorted(rates.items()))})
