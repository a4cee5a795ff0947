"""Simulate OKX's funding rates and mark prices on the wire: every number is a string."""

from typing import Any

from tools.simulated.funding import Perpetual, mark, perpetuals, rate, settlement, text
from toolserver.world.model import Ask, Reply, World, serves

HOST, NAME = "www.okx.com", "OKX.funding_rates"


def _answer(rows: list[Any], code: str = "0", message: str = "") -> Reply:
    return Reply.json({"code": code, "data": rows, "msg": message})


FORMS = {
    "empty": _answer([]),
    "error200": _answer([], "50001", "Service temporarily unavailable. Please try again later."),
    "limited": Reply.json({"msg": "Too Many Requests", "code": "50011"}, 429),
}


@serves(NAME, HOST, "/api/v5/public/funding-rate", forms=FORMS)
def funding_rate(world: World, ask: Ask) -> Reply:
    wanted = ask.params.get("instId")
    if not wanted:
        return _answer([], "50014", "Parameter instId can not be empty.")
    rows = [row for row in _rows(world) if wanted in ("ANY", row["instId"])]
    return _answer(rows) if rows else _answer([], "51000", "Parameter instId error")


@serves(NAME, HOST, "/api/v5/public/mark-price", forms=FORMS)
def mark_price(world: World, ask: Ask) -> Reply:
    now = str(int(world.now * 1000))
    rows = [_named(contract, "USDT", world) | {"ts": now} for contract in perpetuals(world)]
    return _answer([*rows, {"instType": "SWAP", "instId": "BTC-USD-SWAP", "markPx": "97000.1", "ts": now}])


@funding_rate.form("drift")
def numbers(world: World, ask: Ask) -> Reply:
    """Return numbers in place of strings, and a row without a rate."""
    rows = [row | {"fundingRate": float(row["fundingRate"]), "ts": int(row["ts"])} for row in _rows(world)]
    return _answer([*rows, rows[0] | {"instId": "NEW-USDT-SWAP", "fundingRate": ""}])


def _named(contract: Perpetual, quote: str, world: World) -> dict[str, str]:
    price = mark(world, "okx", contract)
    return {"instType": "SWAP", "instId": f"{contract.base}-{quote}-SWAP", "markPx": text(price, 10)}


def _rows(world: World) -> list[dict[str, str]]:
    rows = [_row(world, contract) for contract in perpetuals(world)]
    return [*rows, *(row | {"instId": row["instId"].replace("USDT", "USD")} for row in rows[:3])]


def _row(world: World, contract: Perpetual) -> dict[str, str]:
    hours = contract.hours
    return {
        "instId": f"{contract.base}-USDT-SWAP",
        "instType": "SWAP",
        "fundingRate": text(rate(world, "okx", contract, hours), 16),
        "fundingTime": str(settlement(world, hours)),
        "nextFundingRate": "",
        "nextFundingTime": str(settlement(world, hours, 2)),
        "prevFundingTime": str(settlement(world, hours, 0)),
        "settFundingRate": text(rate(world.at(settlement(world, hours, 0) / 1000), "okx", contract, hours), 16),
        "settState": "settled",
        "method": "current_period",
        "formulaType": "withRate",
        "interestRate": "0.0001000000000000",
        "impactValue": "20000",
        "minFundingRate": "-0.00375",
        "maxFundingRate": "0.00375",
        "premium": "-0.0002490087536155",
        "ts": str(int(world.now * 1000)),
    }
