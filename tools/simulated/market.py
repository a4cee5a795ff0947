"""Simulate prices: one smooth function of time per asset, so that venues, candles and changes agree."""

import math
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from toolserver.world.model import World

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0


class SimCoin(NamedTuple):
    """An asset's data on a market page besides its price."""

    symbol: str
    name: str
    base: float  # USD
    supply: float


NAMED = [
    SimCoin("BTC", "Bitcoin", 97000, 19.9e6),
    SimCoin("ETH", "Ethereum", 3400, 120.6e6),
    SimCoin("USDT", "Tether", 1, 140e9),
    SimCoin("BNB", "BNB", 910, 139e6),
    SimCoin("SOL", "Solana", 185, 480e6),
    SimCoin("XRP", "XRP", 2.2, 57e9),
    SimCoin("USDC", "USDC", 1, 61e9),
    SimCoin("DOGE", "Dogecoin", 0.31, 147e9),
    SimCoin("ADA", "Cardano", 0.88, 35e9),
    SimCoin("AVAX", "Avalanche", 36, 410e6),
    SimCoin("LINK", "Chainlink", 21, 640e6),
    SimCoin("DOT", "Polkadot", 6.7, 1.5e9),
    SimCoin("WBTC", "Wrapped Bitcoin", 96950, 1.3e5),
    SimCoin("PEPE", "Pepe", 0.0000123, 420e12),
    SimCoin("LTC", "Litecoin", 104, 75e6),
    SimCoin("NEAR", "NEAR Protocol", 5.1, 1.2e9),
    SimCoin("UNI", "Uniswap", 12.4, 600e6),
    SimCoin("PAXG", "PAX Gold", 4100, 3.5e5),
]
_SYLLABLES = [
    "al",
    "bo",
    "cir",
    "dex",
    "eon",
    "fi",
    "gra",
    "hel",
    "ion",
    "jun",
    "kor",
    "lum",
    "mir",
    "nox",
    "orb",
    "pax",
]
STABLE = {"USDT", "USDC"}


def coins(count: int = 100) -> list[SimCoin]:
    """Return the largest coins by nominal market value: named ones and invented ones."""
    invented = []
    for i in range(count - len(NAMED)):
        name = _SYLLABLES[i % 16] + _SYLLABLES[(i // 16 * 5 + i * 3) % 16]
        invented.append(
            SimCoin(
                f"{name.upper()[:4]}{i}", name.title(), round(10 ** (2 - i % 7), 6), 1e9 * 10 ** (i % 7 - 2) / (i + 2)
            )
        )
    return sorted([*NAMED, *invented], key=lambda c: c.base * c.supply, reverse=True)[:count]


BASES = {coin.symbol: coin.base for coin in coins(250)} | {"XAU": 4100.0}
_SWING = {"XAU": 0.15, "PAXG": 0.15}  # gold moves less than coins


def price(world: World, asset: str, at: float | None = None, venue: str | None = None) -> float:
    """Return the USD price of an asset at an instant at one venue. Pin `price.<asset>` to fix it."""
    at = world.now if at is None else at
    pinned = world.pinned(f"price.{asset}", at)
    base = BASES[asset]
    if pinned is not None:
        middle = pinned
    elif asset in STABLE:
        middle = base * (1 + 0.0008 * world.noise(f"{asset}.1", at / HOUR))
    else:
        middle = base * _swung(world.seed, asset, at)
    if venue is None:
        return middle
    return middle * (1 + 0.0005 * world.noise(f"{venue}.{asset}", at / 300))


@lru_cache(maxsize=1 << 15)  # every venue's page of one instant has half-hourly prices of a hundred assets
def _swung(seed: int, asset: str, at: float) -> float:
    """Return the factor between an asset's price and its base."""
    world, swing = World(seed, at), _SWING.get(asset, 1.0)
    steps = ((0.004, "1", MINUTE), (0.012, "2", HOUR), (0.05, "3", DAY))
    return math.exp(sum(swing * size * world.noise(f"{asset}.{n}", at / span) for size, n, span in steps))


class SimCandle(NamedTuple):
    """One period of trading. `start` in epoch seconds, `volume` in the asset."""

    start: float
    open: float
    high: float
    low: float
    close: float
    volume: float


def candle(world: World, asset: str, start: float, span_s: float, venue: str | None = None) -> SimCandle:
    """Return the candle of [start, start + span), cut at now when still open."""
    end = min(start + span_s, world.now)
    moments = [start + (end - start) * i / 24 for i in range(25)]
    seen = [price(world, asset, at, venue) for at in moments]
    return SimCandle(start, seen[0], max(seen), min(seen), seen[-1], volume(world, asset, end, end - start))


def candles(world: World, asset: str, span_s: float, count: int, venue: str | None = None) -> list[SimCandle]:
    """Return the newest `count` candles, oldest first; the last one is still open."""
    current = world.now - world.now % span_s
    return [candle(world, asset, current - i * span_s, span_s, venue) for i in range(count - 1, -1, -1)]


class Day(NamedTuple):
    """The past 24 hours. `volume` in the asset."""

    open: float
    high: float
    low: float
    last: float
    volume: float


def day(world: World, asset: str, venue: str | None = None) -> Day:
    """Return open, high, low, last and volume of the past 24 hours at a venue, from the same price function."""
    hours = [price(world, asset, world.now - i * HOUR / 2, venue) for i in range(48, -1, -1)]
    return Day(hours[0], max(hours), min(hours), hours[-1], volume(world, asset, world.now, DAY))


def volume(world: World, asset: str, at: float, span_s: float) -> float:
    """Return the units traded in the span before an instant. Larger assets trade more; consecutive spans add up."""
    began = at - span_s
    edges = [began, *(day * DAY for day in range(int(began // DAY) + 1, math.ceil(at / DAY))), at]
    trade = [1 + 0.4 * world.noise(f"{asset}.volume", edge / DAY) for edge in edges]  # linear from day to day
    parts = zip(pairwise(edges), pairwise(trade), strict=True)
    days = sum((end - start) / DAY * (a + b) / 2 for (start, end), (a, b) in parts)
    return float(2e9 * (BASES[asset] / 97000) ** 0.15 * days / BASES[asset])


def change_percent(world: World, asset: str, over_s: float) -> float:
    """Return the price change over a span, in percent."""
    before = price(world, asset, world.now - over_s)
    return (price(world, asset) - before) / before * 100
