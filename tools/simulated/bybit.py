"""Simulate Bybit's linear tickers on the wire: numbers as strings, many of them empty."""

from typing import Any

from tools.simulated.funding import Perpetual, mark, perpetuals, rate, settlement, text
from tools.simulated.market import BASES, change_percent, day
from toolserver.world.model import Ask, Reply, World, serves

BARRED = "The Amazon CloudFront distribution is configured to block access from your country."
CATEGORIES = {"linear": "USDT", "inverse": "USD"}


@serves(
    "Bybit.linear_tickers",
    "api.bybit.com",
    "/v5/market/tickers",
    forms={
        "geo": Reply.text(
            f"<HTML><HEAD><TITLE>ERROR: The request could not be satisfied</TITLE></HEAD><BODY>{BARRED}</BODY></HTML>",
            403,
            "text/html",
        )
    },
)
def tickers(world: World, ask: Ask) -> Reply:
    if ask.params.get("category") != "linear":
        return _answer(world, {}, 10001, "params error: Category is invalid")
    perpetual = [_row(world, contract) for contract in perpetuals(world)]
    others = [row | {"symbol": row["symbol"].replace("USDT", "PERP")} for row in perpetual[:3]]
    dated = perpetual[0] | {
        "symbol": "BTCUSDT-26MAR27",
        "fundingRate": "",
        "nextFundingTime": "",
        "fundingIntervalHour": "",
    }
    return _answer(world, {"category": "linear", "list": [*perpetual, *others, dated]})


@tickers.form("empty")
def no_tickers(world: World, ask: Ask) -> Reply:
    return _answer(world, {"category": "linear", "list": []})


@tickers.form("error200")
def busy(world: World, ask: Ask) -> Reply:
    return _answer(world, {}, 10016, "Internal server error.")


@tickers.form("limited")
def too_many(world: World, ask: Ask) -> Reply:
    return _answer(world, {}, 10006, "Too many visits!")


@tickers.form("drift")
def before_intervals(world: World, ask: Ask) -> Reply:
    """Omit the interval in some rows, as before 2025; `time` is a string."""
    rows = [_row(world, contract) for contract in perpetuals(world)]
    for row in rows[::20]:
        del row["fundingIntervalHour"]
    now = str(int(world.now * 1000))
    return Reply.json({"retCode": "0", "retMsg": "OK", "result": {"list": rows, "category": "linear"}, "time": now})


def _answer(world: World, result: dict[str, Any], code: int = 0, message: str = "OK") -> Reply:
    now = int(world.now * 1000)
    return Reply.json({"retCode": code, "retMsg": message, "result": result, "retExtInfo": {}, "time": now})


def _row(world: World, contract: Perpetual) -> dict[str, str]:
    marked = mark(world, "bybit", contract)
    past = day(world.at(world.now - world.now % 600), contract.coin)
    hour_ago = marked / (1 + change_percent(world, contract.coin, 3600) / 100)
    base_volume = past.volume / contract.units
    return {
        "symbol": f"{contract.base}USDT",
        "lastPrice": text(marked),
        "indexPrice": text(marked * 1.0003),
        "markPrice": text(marked),
        "prevPrice24h": text(past.open * contract.units),
        "price24hPcnt": text(past.last / past.open - 1, 6),
        "highPrice24h": text(past.high * contract.units),
        "lowPrice24h": text(past.low * contract.units),
        "prevPrice1h": text(hour_ago),
        "openInterest": text(base_volume / 2, 3),
        "openInterestValue": text(base_volume / 2 * marked, 2),
        "turnover24h": text(base_volume * BASES[contract.coin] * contract.units, 4),
        "volume24h": text(base_volume, 4),
        "fundingRate": text(rate(world, "bybit", contract, contract.hours)),
        "nextFundingTime": str(settlement(world, contract.hours)),
        "predictedDeliveryPrice": "",
        "basisRate": "",
        "deliveryFeeRate": "",
        "deliveryTime": "0",
        "ask1Size": "0.012",
        "bid1Price": text(marked * 0.9999),
        "ask1Price": text(marked * 1.0001),
        "bid1Size": "2.529",
        "basis": "",
        "preOpenPrice": "",
        "preQty": "",
        "curPreListingPhase": "",
        "fundingIntervalHour": str(contract.hours),
        "basisRateYear": "",
        "fundingCap": "0.005",
    }
