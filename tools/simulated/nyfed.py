"""Simulate the New York Fed's reference rates: JSON, newest first, a day's rate published the next morning."""

import datetime as dt
from itertools import islice
from typing import Any

from tools.simulated import macro
from toolserver.world.model import Ask, Reply, World, serves


@serves(
    "NYFed.effr",
    "markets.newyorkfed.org",
    "/api/rates/unsecured/effr/last/{count}.json",
    forms={"empty": Reply.json({"refRates": []})},
)
def effr(world: World, ask: Ask) -> Reply:
    days = islice(macro.days_out(world, macro.bank_day, macro.next_morning), int(ask.parts["count"]))
    return Reply.json({"refRates": [_rate(world, day) for day in days]})


@effr.form("drift")
def with_another_rate(world: World, ask: Ask) -> Reply:
    """Return oldest first, members in another order, and a second kind of rate among them."""
    days = list(islice(macro.days_out(world, macro.bank_day, macro.next_morning), 45))
    rows = [dict(reversed(_rate(world, day).items())) for day in reversed(days)]
    return Reply.json({"refRates": [*rows, {"effectiveDate": str(days[0]), "type": "OBFR", "percentRate": 9.99}]})


def _rate(world: World, day: dt.date) -> dict[str, Any]:
    rate, low = macro.funds_rate(world, day), macro.target(world, day)
    return {
        "effectiveDate": day.isoformat(),
        "type": "EFFR",
        "percentRate": rate,
        "percentPercentile1": round(rate - 0.03, 2),
        "percentPercentile25": rate,
        "percentPercentile75": round(rate + 0.01, 2),
        "percentPercentile99": round(rate + 0.12, 2),
        "targetRateFrom": low,
        "targetRateTo": low + 0.25,
        "volumeInBillions": int(world.between("effr.volume", day.toordinal(), 80, 120)),
        "revisionIndicator": "",
    }
