"""Read Hyperliquid: funding of its own contracts, settled every hour, and forecasts for other venues (JSON, no key).

https://hyperliquid.gitbook.io/hyperliquid-docs/for-developers/api/info-endpoint/perpetuals
"""

import re
from collections.abc import Iterator
from typing import Any

from tools.parsing.fields import clean, optional, positive
from tools.parsing.funding import Funding, Venue, VenueFundings, dead, mark, rate, settlement
from tools.sources.hosts import EXCHANGES, HOUR
from toolserver import Licence, Post, Source, SourceChanged, SourceEmpty, read_rows

INFO = "https://api.hyperliquid.xyz/info"
LICENCE = Licence("unclear", "Hyperliquid", "https://hyperliquid.xyz/terms")
HOURS = 1.0
FORECAST: dict[str, Venue] = {"BinPerp": "binance", "BybitPerp": "bybit"}
FEWEST_COINS = 30


def parse_contexts(body: Any, query: None) -> tuple[Funding, ...]:
    """Return every listed coin. Two lists match by position, so nothing is read when their lengths differ."""
    meta, contexts = body
    universe = meta["universe"]
    if len(universe) != len(contexts):
        raise SourceChanged(f"{len(universe)} coins, {len(contexts)} contexts")
    return read_rows(zip(universe, contexts, strict=True), lambda pair: _funding(*pair))


def _funding(coin: dict[str, Any], context: dict[str, Any]) -> Funding | None:
    if coin.get("isDelisted") or dead(context.get("markPx")):
        return None
    paid = rate(context["funding"])
    name = f"{clean(coin['name'], 40)}-USD"
    return None if paid is None else Funding(name, paid, HOURS, mark(context.get("markPx")), None)


def parse_predictions(body: Any, query: None) -> tuple[VenueFundings, ...]:
    """Return the predicted funding of Binance and Bybit contracts at their next settlement, without mark prices."""
    if len(body) < FEWEST_COINS:
        raise SourceEmpty(f"{len(body)} coins")
    by_venue: dict[Venue, list[Funding]] = {venue: [] for venue in FORECAST.values()}
    for listed in read_rows(body, lambda row: tuple(_forecasts(*row))):
        for venue, funding in listed:
            by_venue[venue].append(funding)
    return tuple(VenueFundings(venue, tuple(fundings), predicted=True) for venue, fundings in by_venue.items())


def _forecasts(coin: str, forecasts: list[Any]) -> Iterator[tuple[Venue, Funding]]:
    for name, terms in forecasts:
        if name not in FORECAST or terms is None:
            continue
        paid, hours = rate(terms["fundingRate"]), optional(positive, terms.get("fundingIntervalHours"))
        if paid is not None and hours is not None:
            pair = f"{_elsewhere(clean(coin, 40))}-USDT"
            yield FORECAST[name], Funding(pair, paid, hours, None, settlement(terms.get("nextFundingTime")))


def _elsewhere(coin: str) -> str:
    """Return the name of a coin at other venues: a contract on a thousand coins is kPEPE here and 1000PEPE there."""
    return re.sub(r"^k(?=[A-Z])", "1000", coin)


ASSET_CONTEXTS = Source(
    "Hyperliquid.asset_contexts",
    Post(INFO, json={"type": "metaAndAssetCtxs"}),
    parse_contexts,
    licence=LICENCE,
    hosts=EXCHANGES,
    fresh_s=60,
    moves=lambda fundings: tuple(funding.mark_price for funding in fundings),
    keep_s=6 * HOUR,
    least=50,
    untrusted=True,
)

PREDICTED_FUNDINGS = Source(
    "Hyperliquid.predicted_fundings",
    Post(INFO, json={"type": "predictedFundings"}),
    parse_predictions,
    licence=LICENCE,
    hosts=EXCHANGES,
    fresh_s=60,
    moves=lambda venues: tuple(funding.period_rate for venue in venues for funding in venue.fundings),
    keep_s=6 * HOUR,
    untrusted=True,
)
