"""Read coins as market pages list them, and find those that moved most."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from tools.parsing.fields import number_or_none, optional
from toolserver import Gauge, SourceChanged, SourceEmpty, find_similar

LEAST_VOLUME_USD = 1_000_000
WRAPPED = frozenset({"WBTC", "WETH", "STETH", "WSTETH", "WEETH", "CBBTC"})  # they move with the coin that they wrap
FEWEST_MOVERS = 5


class Coin(NamedTuple):
    """One coin of a list by market value. A field is None when the provider does not publish it."""

    symbol: str
    name: str
    price_usd: float
    change_1h_percent: float | None
    change_24h_percent: float | None
    change_7d_percent: float | None
    market_cap_usd: float | None
    volume_24h_usd: float | None
    rank: int | None
    image: str | None
    high_24h: float | None
    low_24h: float | None
    updated_at: datetime | None
    slug: str = ""  # the provider's own name for it, such as "bitcoin-cash"


def by_symbol(coins: Iterable[Coin], symbol: str) -> Coin:
    """Return the first coin with that symbol, which is the largest one. Raises LookupError."""
    for coin in coins:
        if coin.symbol == symbol:
            return coin
    raise LookupError(f"{symbol} is not listed")


LARGEST = 250
"""How many coins the longest lists have that are read here."""


class CoinUnknown(Exception):
    """A complete list does not have the coin. `similar` are symbols and names that it has and that look like it."""

    def __init__(self, similar: Sequence[str]) -> None:
        super().__init__()
        self.similar = list(similar)


def find_coin(coins: Sequence[Coin], written: str) -> Coin:
    """Return the coin with that symbol, id or name, in any case: the largest one if several have it.

    A symbol comes before an id, and an id before a name.

    Raises:
        CoinUnknown: no coin of the list has it.
    """
    wanted = written.strip().casefold()
    for spellings in ([c.symbol for c in coins], [c.slug for c in coins], [c.name for c in coins]):
        for coin, spelling in zip(coins, spellings, strict=True):
            if spelling.casefold() == wanted:
                return coin
    words = {word.casefold(): word for coin in coins for word in (coin.symbol, coin.name)}
    raise CoinUnknown([words[near] for near in find_similar(wanted, list(words))])


class MovedCoin(NamedTuple):
    """A coin that takes part in the ranking by movement, with the figures that the ranking needs."""

    coin: Coin
    change_24h_percent: float
    rank: int


def movers(coins: Sequence[Coin], limit: int = 15) -> list[MovedCoin]:
    """Return the coins whose price changed most in 24 hours, up or down; of equal changes, the larger coin first.

    Coins with thin trading, without a known change or rank, pegged to the dollar, or wrapped are left out.

    Raises:
        SourceChanged: fewer than five coins remain; every real list leaves more.
    """
    moved = [mover for coin in coins if (mover := _moved(coin))]
    if len(moved) < FEWEST_MOVERS:
        raise SourceChanged(f"{len(moved)} of {len(coins)} coins are eligible")
    return sorted(moved, key=lambda m: (-abs(m.change_24h_percent), -(m.coin.market_cap_usd or 0)))[:limit]


def _moved(coin: Coin) -> MovedCoin | None:
    change = coin.change_24h_percent
    if change is None or coin.rank is None or coin.symbol in WRAPPED:
        return None
    pegged = 0.98 <= coin.price_usd <= 1.02 and abs(change) < 1
    traded = (coin.volume_24h_usd or 0) >= LEAST_VOLUME_USD
    return MovedCoin(coin, change, coin.rank) if traded and not pegged else None


def newest(coins: Sequence[Coin]) -> datetime | None:
    return max((c.updated_at for c in coins if c.updated_at), default=None)


def with_bitcoin(coins: Iterable[Coin]) -> tuple[Coin, ...]:
    """Return the coins. Raises SourceEmpty when bitcoin is missing: every real list has it."""
    read = tuple(coins)
    if not any(c.symbol == "BTC" for c in read):
        raise SourceEmpty(f"no BTC among {len(read)} coins")
    return read


def large_prices(coins: Sequence[Coin]) -> Mapping[str, float]:
    """Return the prices of BTC and ETH. Small coins do jump between two answers, these two do not."""
    first: dict[str, float] = {}
    for coin in coins:
        first.setdefault(coin.symbol, coin.price_usd)
    return {f"{symbol}-USD": first[symbol] for symbol in ("BTC", "ETH") if symbol in first}


GAUGE = Gauge(large_prices, 0.4)


def figure(value: Any) -> float | None:
    """Return an optional number of either sign."""
    return optional(number_or_none, value)


def amount(value: Any) -> float | None:
    """Return an optional number that cannot be negative: a price, a volume, a market value."""
    read = figure(value)
    return read if read is not None and read >= 0 else None


def quoted(value: Any) -> float | None:
    """Return a price, or None where there is none. Raises ValueError for anything that is not a number."""
    price = number_or_none(value)
    return price if price is not None and price > 0 else None


def read_rank(value: Any) -> int | None:
    """Return an optional rank, None for 0: providers write 0 for unranked."""
    read = figure(value)
    return int(read) if read is not None and read >= 1 else None
