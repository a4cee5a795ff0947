"""Compute what premium payloads must contain when every first provider of the simulated world
answers and no key is set.
"""

import datetime as dt
import math
from collections.abc import Mapping
from itertools import combinations, islice, pairwise, takewhile
from typing import Any

from tools.simulated import (
    alternative_me,
    coinbase,
    frankfurter,
    fred,
    gold_api,
    hackernews,
    launch_library,
    macro,
    market,
    polymarket,
    statuspages,
    stocks,
    usgs,
)
from tools.simulated.polymarket import SimBet, price, volume
from tools.simulated.usgs import SIGNIFICANT, quakes
from toolserver.world.model import ROUTES, World, expects

HOUR, DAY = 3600.0, 86400.0
FUNDS = {"spy": "SPY", "dia": "DIA", "qqq": "QQQ", "vix": "VIX"}
CODES = ("EUR", "JPY", "GBP", "CHF")
PROVIDERS = (alternative_me, coinbase, frankfurter, hackernews, launch_library, macro, polymarket, statuspages, usgs)
"""The modules whose expectations the ones below are made of."""

Daily = dict[dt.date, float]


def free(world: World, endpoint: str) -> Any:
    """Return the data that the free endpoint of a topic must have."""
    return ROUTES.expectations[endpoint](world, {})


def open_bets(world: World) -> list[SimBet]:
    """Return the open yes/no markets, the most traded first."""
    listed = polymarket.list_bets(world)[:100]
    return [bet for bet in listed if bet.outcomes == ("Yes", "No") and 0.005 < price(world, bet) < 0.995]


@expects("pro/briefing")
def briefing(world: World, params: Mapping[str, str]) -> dict[str, Any]:
    """Return all six sections, and the hourly series with `history`."""
    bitcoin, humans = free(world, "btc-price"), free(world, "humans-in-space")
    bets = open_bets(world)
    sections = {
        "btc": {name: bitcoin[name] for name in ("price_usd", "change_24h_percent", "high_24h", "low_24h")}
        | {"volume_24h": bitcoin["volume_24h_usd"]},
        "fear_greed": {name: free(world, "fear-greed")[name] for name in ("value", "label")},
        "earthquakes": {"count": free(world, "earthquake")["count"]},
        "tech_news": {"top_story_count": len(free(world, "tech-news"))},
        "humans_in_space": {"count": humans["count"], "names": sorted(p["name"] for p in humans["people"])},
        "predictions": {
            "count": len(bets),
            "top": [{"question": b.question, "volume_24hr": round(volume(world, b), 2)} for b in bets[:5]],
        },
    }
    return {"sections": sections} | ({"series": {"btc_24h": _hours(world)}} if params.get("history") else {})


def _hours(world: World) -> list[dict[str, Any]]:
    """Return the 24 completed hours at Coinbase."""
    end = world.now - world.now % HOUR
    starts = [end - n * HOUR for n in range(24, 0, -1)]
    closes = [round(market.price(world, "BTC", start + HOUR, coinbase.VENUE), 2) for start in starts]
    return [{"ts": int(start * 1000), "price": close} for start, close in zip(starts, closes, strict=True)]


@expects("pro/macro")
def macro_dashboard(world: World, params: Mapping[str, str]) -> dict[str, Any]:
    """Return figures, rates, prices and quotes, without series."""
    figures, forex = free(world, "economic-data"), free(world, "forex")
    names = ("fed_rate", "cpi", "unemployment", "gdp_growth", "treasury_10y")
    trades = {name: stocks.trade(world, symbol) for name, symbol in FUNDS.items()}
    return {
        "economic": {name: {key: figures[name][key] for key in ("value", "date")} for name in names},
        "forex": {"date": forex["date"], "rates": {code: forex["rates"][code] for code in CODES}},
        "commodities": {
            "gold": {"price_usd": gold_api.spot(world)},
            "silver": None,
            "oil": _newest(world, "DCOILWTICO"),
            "nat_gas": _newest(world, "DHHNGSP"),
        },
        "markets": {
            name: {"price": seen.last, "change": round(seen.last - seen.previous_close, 2)}
            for name, seen in trades.items()
        },
    }


def _newest(world: World, series_id: str) -> dict[str, Any]:
    """Return the latest price of FRED's chart."""
    day, value = next((day, value) for day, value in fred.SERIES[series_id](world) if value is not None)
    return {"price_usd": value, "date": str(day)}


@expects("pro/agent-context")
def agent_context(world: World, params: Mapping[str, str]) -> dict[str, Any]:
    """Return the values, and the names of the events."""
    minute = world.now - world.now % 60
    large = [q for q in quakes(world.at(minute), minute - DAY) if q.magnitude >= SIGNIFICANT]
    large.sort(key=lambda quake: (quake.magnitude, quake.at), reverse=True)
    stories, launches, services = (free(world, name) for name in ("tech-news", "launches", "service-status"))
    figures = macro_dashboard(world, {})
    return {
        "markets": {
            "btc": {"price_usd": free(world, "btc-price")["price_usd"]},
            "crypto_fear_greed": {"value": free(world, "fear-greed")["value"]},
            "vix": {"value": figures["markets"]["vix"]["price"]},
            "fed_funds_rate": {
                "value": figures["economic"]["fed_rate"]["value"],
                "as_of": figures["economic"]["fed_rate"]["date"],
                "target_from": macro.target(world, dt.date.fromisoformat(figures["economic"]["fed_rate"]["date"])),
            },
            "forex_usd_base": {**figures["forex"]["rates"], "date": figures["forex"]["date"]},
        },
        "world_events": {
            "significant_earthquakes_24h": [{"magnitude": q.magnitude, "place": q.place} for q in large[:3]],
            "upcoming_space_launches": [{"provider": x["provider"]} for x in launches[:3]],
            "news_front_page_top5": [
                {"title": s["title"], "points": s["score"], "comments": s["comments"]} for s in stories[:5]
            ],
            "prediction_markets_top3": [
                {"question": b.question, "volume_24h": round(volume(world, b), 2)} for b in open_bets(world)[:3]
            ],
        },
        "all_operational": all(service["status"] == "operational" for service in services[:4]),
    }


@expects("pro/correlation-matrix")
def correlations(world: World, params: Mapping[str, str]) -> dict[str, Any]:
    """Return r of each pair by "A B", the number of returns, and the number of observations of each asset."""
    assets = {
        "OIL_WTI": _chart(world, "DCOILWTICO"),
        "TREASURY_10Y": _yields(world, "treasury_10y"),
        "TREASURY_2Y": _yields(world, "treasury_2y"),
        "USD_INDEX": _chart(world, "DTWEXBGS"),
    }
    pairs = {}
    for (a, first), (b, second) in combinations(assets.items(), 2):
        days = sorted(first.keys() & second.keys())[-31:]
        x, y = ([series[d] / series[c] - 1 for c, d in pairwise(days)] for series in (first, second))
        pairs[f"{a} {b}"] = {"pearson_r": _pearson(x, y), "n_observations": len(x)}
    return {"pairs": pairs, "data_availability": {name: len(series) for name, series in assets.items()}}


def _oldest(world: World) -> dt.date:
    """Return the date 75 days before the current date in New York."""
    return dt.datetime.fromtimestamp(world.now - 5 * HOUR, dt.UTC).date() - 75 * macro.DAY


def _chart(world: World, series_id: str) -> Daily:
    since = _oldest(world)
    rows = takewhile(lambda row: row[0] >= since, fred.SERIES[series_id](world))
    return {day: value for day, value in rows if value is not None}


def _yields(world: World, name: str) -> Daily:
    since = _oldest(world)
    days = islice(macro.days_out(world, macro.bank_day, macro.same_evening), 75)
    return {day: macro.level(world, name, day) for day in days if day >= since}


def _pearson(x: list[float], y: list[float]) -> float:
    n = len(x)
    mean_x, mean_y = math.fsum(x) / n, math.fsum(y) / n
    together = math.fsum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    alone = math.fsum((a - mean_x) ** 2 for a in x) * math.fsum((b - mean_y) ** 2 for b in y)
    return round(together / math.sqrt(alone), 4)
