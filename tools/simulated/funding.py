"""Simulate perpetual contracts: the listings of every venue, and their funding rates."""

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tools.simulated.market import HOUR, STABLE, coins, price
from toolserver.world.model import World, expects

USUAL_HOURS = 8
TINY = 0.002  # coins below this price are traded by the thousand


class Perpetual(NamedTuple):
    """A contract on `units` of a coin. `hours` is the interval at which Binance, Bybit and OKX settle it."""

    coin: str
    units: int
    hours: int

    @property
    def base(self) -> str:
        """Its name at the large exchanges: 1000PEPE."""
        return f"{self.units}{self.coin}" if self.units > 1 else self.coin

    @property
    def short(self) -> str:
        """Its name at Hyperliquid: kPEPE."""
        return f"k{self.coin}" if self.units > 1 else self.coin


def perpetuals(world: World) -> list[Perpetual]:
    """Return a contract on every coin that moves, and one on a thousand of the cheapest."""
    listed = [coin for coin in coins() if coin.symbol not in STABLE | {"WBTC"}]
    whole = [Perpetual(coin.symbol, 1, _hours(world, coin.symbol)) for coin in listed]
    return whole + [Perpetual(coin.symbol, 1000, _hours(world, coin.symbol)) for coin in listed if coin.base < TINY]


def _hours(world: World, coin: str) -> int:
    if coin in ("BTC", "ETH"):
        return USUAL_HOURS
    return int(world.pick("funding.hours", coin, [8, 8, 8, 8, 4, 4, 1]))


def rate(world: World, venue: str, contract: Perpetual, hours: int) -> float:
    """Return the rate of the next settlement; a few coins are crowded. Pin `funding.<venue>.<base>` to fix it."""
    pinned = world.pinned(f"funding.{venue}.{contract.base}")
    if pinned is not None:
        return pinned
    crowd = 25 if world.u("funding.crowded", contract.coin) < 0.08 else 1
    shared = world.noise(f"funding.{contract.coin}", world.now / (6 * HOUR))
    own = world.noise(f"funding.{venue}.{contract.base}", world.now / HOUR)
    return (0.00005 + crowd * (0.0002 * shared + 0.00005 * own)) * hours / USUAL_HOURS


def mark(world: World, venue: str, contract: Perpetual) -> float:
    return price(world, contract.coin, venue=venue) * contract.units


def settlement(world: World, hours: int, ahead: int = 1) -> int:
    """Return the next settlement, or a later one, in epoch milliseconds."""
    return int((math.floor(world.now / (hours * HOUR)) + ahead) * hours * HOUR * 1000)


def text(value: float, decimals: int = 8) -> str:
    return f"{value:.{decimals}f}"


VENUES = ("binance", "bybit", "hyperliquid", "dydx")


def expected_rows(world: World) -> Iterator[dict[str, Any]]:
    """Yield every contract of the four venues as the tool shows it, with the annualized rate unrounded."""
    for venue in VENUES:
        for contract in perpetuals(world):
            hours = contract.hours if venue in ("binance", "bybit") else 1
            if venue == "hyperliquid":
                symbol, paid = f"{contract.short}-USD", float(text(rate(world, venue, contract, 1), 10))
            elif venue == "dydx":
                symbol, paid = f"{contract.base}-USD", float(text(rate(world, venue, contract, 1), 20))
            else:
                symbol, paid = f"{contract.base}-USDT", float(text(rate(world, venue, contract, hours)))
            yield {"venue": venue, "symbol": symbol, "period_hours": hours, "annualized": paid * 8760 / hours * 100}


@expects("funding-rates")
def expected(world: World, params: Mapping[str, str]) -> dict[str, Any]:
    """Return the rows that `/api/funding-rates` must have at this instant when all four venues answer."""
    rows = sorted(expected_rows(world), key=lambda row: abs(row["annualized"]), reverse=True)[:20]
    top = [{k: v for k, v in row.items() if k != "annualized"} for row in rows]
    for shown, row in zip(top, rows, strict=True):
        shown["annualized_percent"] = round(row["annualized"], 2)
    return {"top": top}
