"""Simulate CoinMarketCap's Fear and Greed index on the wire: for keys only, every fifteen minutes."""

from datetime import UTC, datetime
from typing import Any

from toolserver.world.model import Ask, Reply, World, serves

PERIOD_S = 900
LABELS = [(20, "Extreme fear"), (40, "Fear"), (60, "Neutral"), (80, "Greed"), (100, "Extreme greed")]


@serves("CoinMarketCap.fear_greed", "pro-api.coinmarketcap.com", "/v3/fear-and-greed/latest")
def fear_greed(world: World, ask: Ask) -> Reply:
    if not ask.key_ok(ask.headers.get("x-cmc_pro_api_key")):
        return refused(world, ask)
    at = world.now - world.now % PERIOD_S
    value = round(
        50 + 30 * world.noise("cmc.fear_greed.slow", at / (30 * 86400)) + 6 * world.noise("cmc.fear_greed", at / 43200)
    )
    latest = {
        "value": value,
        "value_classification": next(name for top, name in LABELS if value <= top),
        "update_time": _milliseconds(at),
    }
    return _answer(world, latest, 0, "")


@fear_greed.form("auth")
def refused(world: World, ask: Ask) -> Reply:
    return _answer(world, None, 1001, "This API Key is invalid.", 401)


@fear_greed.form("limited")
def too_many(world: World, ask: Ask) -> Reply:
    return _answer(world, None, 1008, "You've exceeded your API Key's HTTP request rate limit.", 429)


@fear_greed.form("error200")
def limit_with_200(world: World, ask: Ask) -> Reply:
    return _answer(world, None, 1010, "You've exceeded your API Key's monthly credit limit.")


def _answer(world: World, latest: dict[str, Any] | None, code: int, message: str, status: int = 200) -> Reply:
    block = {
        "timestamp": _milliseconds(world.now),
        "error_code": code,
        "error_message": message,
        "elapsed": 11,
        "credit_count": int(status == 200),
        "notice": "",
    }
    return Reply.json({"data": latest, "status": block} if latest else {"status": block}, status)


def _milliseconds(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
