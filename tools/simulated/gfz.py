"""Simulate GFZ Potsdam's K index on the wire: parallel arrays, in which the newest values are not published yet."""

from datetime import UTC, datetime
from typing import Any

from tools.simulated.sun import PERIOD, kp
from toolserver.world.model import Ask, Reply, World, serves

META = {"source": "GFZ Potsdam", "license": "CC BY 4.0"}


def _arrays(periods: list[float], values: list[Any]) -> Reply:
    times = [datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") for at in periods]
    return Reply.json({"meta": META, "datetime": times, "Kp": values, "status": ["now"] * len(times)})


FORMS = {
    "empty": _arrays([], []),
    "error200": Reply.json({"message": "Query failed"}),
}


@serves("GFZ.kp_index", "kp.gfz.de", "/app/json/", forms=FORMS)
def index(world: World, ask: Ask) -> Reply:
    params = ask.params
    try:
        start, end = (datetime.strptime(params[name] + "+0000", "%Y-%m-%dT%H:%M:%SZ%z") for name in ("start", "end"))
    except (KeyError, ValueError):
        return Reply.json({"message": "Dateformat is not correct"}, 400)
    first = -(-start.timestamp() // PERIOD) * PERIOD
    periods = [first + PERIOD * i for i in range(int((end.timestamp() - first) // PERIOD) + 1)]
    closed = [at + PERIOD <= world.now for at in periods]
    return _arrays(
        periods, [round(kp(world, at), 3) if done else None for at, done in zip(periods, closed, strict=True)]
    )
