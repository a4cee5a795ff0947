"""Simulate the harbour's gauge on the wire: a reading every ten minutes, two tides a day."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime

from toolserver.world.model import Ask, Reply, World, expects, serves

STEP_S, DAY_S, TIDE_S = 600, 86400, 44714


@serves("Harbour.water_levels", "tides.example", "/levels", forms={"empty": Reply.json({"readings": []})})
def levels(world: World, ask: Ask) -> Reply:
    last = int(world.now // STEP_S) * STEP_S
    return Reply.json({"readings": [_reading(world, at) for at in range(last - DAY_S, last + STEP_S, STEP_S)]})


@expects("tide")
def expected(world: World, params: Mapping[str, str]) -> dict[str, object]:
    """Return the values that `/api/tide` must have at this instant."""
    return {"level_m": _reading(world, int(world.now // STEP_S) * STEP_S)["level"]}


def _reading(world: World, at: int) -> dict[str, object]:
    level = 3 + 2 * math.sin(2 * math.pi * at / TIDE_S) + 0.2 * world.noise("tide", at / DAY_S)
    return {"time": datetime.fromtimestamp(at, UTC).isoformat(), "level": round(level, 2)}
