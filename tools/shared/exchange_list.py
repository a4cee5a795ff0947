"""List the most traded pairs of the first exchange that answers: coins against USDT.

At Binance and OKX a coin's trade is in USDT. At Kraken most of it is in dollars, so its volume
there is the sum over all currencies that have a price in dollars at Kraken itself.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pydantic import Field

from tools.parsing import fields
from tools.parsing.fields import change_percent, percent
from tools.sources import binance, kraken, okx
from toolserver import Fallback, FallbackReader, Payload, SourceEmpty, via

QUOTE = "USDT"
BESIDE_S = 4.0  # for a list that only completes another
LEVERAGED = ("UP", "DOWN", "BULL", "BEAR")
MONEY = frozenset(
    (
        "USD USDT USDC FDUSD TUSD BUSD USDP DAI USDE USDS USD1 PYUSD RLUSD USDD GUSD USDG USDR AUSD XUSD BFUSD "
        "EUR EURI AEUR EURC EURT EURR EURQ GBP TGBP AUD CAD CHF JPY TRY BRL ARS MXN ZAR UAH PLN RON COP CZK NGN RUB"
    ).split()
)  # stable coins and currencies: a pair of two of them is no coin's price

LIST_SOURCES = (binance.TICKERS_24H, kraken.ASSET_PAIRS, kraken.TICKER_ALL, okx.SPOT_TICKERS)


class PairFigures(Payload):
    pair: str = Field(examples=["BTC-USDT"], description="coin-currency")
    price: float = Field(gt=0, description="Last price, in the second currency")
    change_24h_percent: float | None = Field(
        description="Change in 24 hours, percent; of Kraken that at OKX or over all venues; null: not known"
    )
    volume_24h: float = Field(
        description="Traded in 24 hours, in the second currency; of Kraken in USD over the coin's pairs"
    )
    high_24h: float = Field(description="Highest price in 24 hours, in the second currency")
    low_24h: float = Field(description="Lowest price in 24 hours, in the second currency")
    trades_24h: int | None = Field(description="Trades in 24 hours; null: OKX does not publish them")
    venue: str = Field(description="Exchange")


class Pair(NamedTuple):
    """A pair's last 24 hours at one venue. `volume` is in the quote currency; None is what the venue does not publish.

    At Kraken the volume is in USD over all pairs of the coin, except `left_out` pairs whose
    currency has no price in USD.
    """

    base: str
    quote: str
    price: float
    change_24h_percent: float | None
    volume: float
    high: float
    low: float
    trades_24h: int | None
    venue: str
    left_out: int = 0


def list_fallbacks() -> tuple[Fallback[tuple[Pair, ...]], ...]:
    """Return the fallbacks Binance, Kraken, OKX: all coins that they trade, most traded first."""
    return (
        via(binance.TICKERS_24H, None, lambda tickers: ranked(map(from_binance, tickers))),
        _kraken,
        via(okx.SPOT_TICKERS, None, lambda tickers: ranked(map(from_okx, tickers))),
    )


async def _kraken(reading: FallbackReader) -> tuple[Pair, ...]:
    """Return Kraken's pairs, with the same coin's change at OKX: Kraken does not publish prices of a day ago."""
    named = await reading.read(kraken.ASSET_PAIRS)
    tickers = await reading.read(kraken.TICKER_ALL)
    listed = ranked(kraken_pairs(tickers, named))
    beside = await reading.attempt(okx.SPOT_TICKERS, within_s=BESIDE_S)
    changes = {pair.base: pair.change_24h_percent for pair in ranked(map(from_okx, beside))} if beside else {}
    return fill_changes(listed, changes)


def fill_changes(listed: Iterable[Pair], changes: Mapping[str, float | None]) -> tuple[Pair, ...]:
    """Return the pairs, with the change of another list, by coin, where their own venue does not have it."""
    return tuple(
        pair if pair.change_24h_percent is not None else pair._replace(change_24h_percent=changes.get(pair.base))
        for pair in listed
    )


def ranked(pairs: Iterable[Pair]) -> tuple[Pair, ...]:
    """Return each coin once, most traded first: against USDT, or against USD where there is no USDT pair.

    Raises:
        SourceEmpty: no coin is traded.
    """
    listed = list(pairs)
    bases = {pair.base for pair in listed}
    chosen: dict[str, Pair] = {}
    for pair in sorted(listed, key=lambda pair: pair.quote != QUOTE):
        if pair.quote in (QUOTE, "USD") and pair.volume > 0 and is_coin(pair.base, bases):
            chosen.setdefault(pair.base, pair)
    if not chosen:
        raise SourceEmpty("no coin is traded")
    return tuple(sorted(chosen.values(), key=lambda pair: (-pair.volume, pair.base)))


def is_coin(base: str, bases: set[str]) -> bool:
    """Return True for neither money nor a leveraged token: BTCUP is leveraged when BTC is
    traded as well, JUP is a coin.
    """
    stems = [base.removesuffix(suffix) for suffix in LEVERAGED if base.endswith(suffix)]
    return base not in MONEY and not any(stem in bases for stem in stems)


def from_binance(ticker: binance.BinanceTicker) -> Pair:
    """Return a symbol such as BTCUSDT as a pair; a symbol in another currency gets no quote."""
    base = ticker.symbol.removesuffix(QUOTE)
    return Pair(
        base=base,
        quote=QUOTE if base != ticker.symbol else "",
        price=ticker.last,
        change_24h_percent=ticker.change_percent,
        volume=ticker.quote_volume,
        high=ticker.high,
        low=ticker.low,
        trades_24h=ticker.trades,
        venue="binance",
    )


def kraken_pairs(tickers: Iterable[kraken.KrakenTicker], named: Mapping[str, kraken.AssetPair]) -> list[Pair]:
    """Return Kraken's pairs in USD and USDT, each with its coin's volume over all currencies.

    The tickers lack the price of 24 hours ago, so the change is None.
    """
    traded = [(named[ticker.name], ticker) for ticker in tickers if ticker.name in named]
    worth = in_usd(traded)
    volumes: dict[str, float] = defaultdict(float)
    left_out: Counter[str] = Counter()
    for (base, quote), ticker in traded:
        if quote in worth:
            volumes[base] += ticker.quote_volume * worth[quote]
        else:
            left_out[base] += 1
    return [
        Pair(
            base=base,
            quote=quote,
            price=ticker.last,
            change_24h_percent=None,
            volume=volumes[base],
            high=ticker.high,
            low=ticker.low,
            trades_24h=ticker.trades,
            venue="kraken",
            left_out=left_out[base],
        )
        for (base, quote), ticker in traded
        if quote in (QUOTE, "USD")
    ]


def in_usd(traded: Iterable[tuple[kraken.AssetPair, kraken.KrakenTicker]]) -> dict[str, float]:
    """Return the worth in USD of one unit of each currency and stable coin that a pair prices."""
    worth = {"USD": 1.0}
    for (base, quote), ticker in traded:
        if quote == "USD" and base in MONEY:
            worth[base] = ticker.last
        elif base == "USD" and quote in MONEY:
            worth[quote] = 1 / ticker.last
    return worth


def from_okx(ticker: okx.SpotTicker) -> Pair:
    """Return a ticker as a pair, without the number of trades, which OKX does not publish."""
    return Pair(
        base=ticker.base,
        quote=ticker.quote,
        price=ticker.last,
        change_24h_percent=change_percent(ticker.last, ticker.open),
        volume=ticker.quote_volume,
        high=ticker.high,
        low=ticker.low,
        trades_24h=None,
        venue="okx",
    )


def missing(pairs: Sequence[Pair]) -> list[str]:
    """Return the fields that are None in one of the pairs."""
    return [name for name in ("change_24h_percent", "trades_24h") if any(getattr(pair, name) is None for pair in pairs)]


def pairs_in_usd(pairs: Sequence[Pair]) -> list[str]:
    """Return the coins that are shown against USD."""
    return [pair.base for pair in pairs if pair.quote == "USD"]


def count_left_out(pairs: Sequence[Pair]) -> int:
    """Count the coins' pairs that no volume includes: those against another coin, or money without a price in USD."""
    return sum(pair.left_out for pair in pairs)


def show_pair(pair: Pair) -> PairFigures:
    return PairFigures(
        pair=f"{pair.base}-{pair.quote}",
        price=fields.price(pair.price),
        change_24h_percent=None if pair.change_24h_percent is None else percent(pair.change_24h_percent),
        volume_24h=float(round(pair.volume)),
        high_24h=fields.price(pair.high),
        low_24h=fields.price(pair.low),
        trades_24h=pair.trades_24h,
        venue=pair.venue,
    )
