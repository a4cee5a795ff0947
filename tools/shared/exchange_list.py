"""The most traded pairs of one exchange, whichever answers: coins against USDT."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pydantic import Field

from tools.shared import numbers
from tools.shared.numbers import change_percent, percent
from tools.sources import binance, kraken, okx
from toolserver.context import Leg, via
from toolserver.errors import SourceEmpty
from toolserver.payloads import Payload

QUOTE = "USDT"
LEVERAGED = ("UP", "DOWN", "BULL", "BEAR")
MONEY = frozenset(
    (
        "USD USDT USDC FDUSD TUSD BUSD USDP DAI USDE USDS USD1 PYUSD RLUSD USDD GUSD USDG XUSD BFUSD "
        "EUR EURI AEUR EURC EURT EURR EURQ GBP TGBP AUD CAD CHF JPY TRY BRL ARS MXN ZAR UAH PLN RON COP CZK NGN RUB"
    ).split()
)  # stable coins and currencies: a pair of two of them says nothing of coins

LIST_SOURCES = (binance.TICKERS_24H, kraken.TICKER_ALL, okx.SPOT_TICKERS)


class PairFigures(Payload):
    pair: str = Field(examples=["BTC-USDT"])
    price: float = Field(gt=0)
    change_24h_percent: float | None
    volume_24h: float = Field(description="In the quote currency")
    high_24h: float
    low_24h: float
    trades_24h: int | None
    venue: str


class Pair(NamedTuple):
    """A pair's last 24 hours at one venue. `volume` is in the quote currency; None is what the venue does not say."""

    base: str
    quote: str
    price: float
    change_24h_percent: float | None
    volume: float
    high: float
    low: float
    trades_24h: int | None
    venue: str


def list_legs() -> tuple[Leg[tuple[Pair, ...]], ...]:
    """Binance, then Kraken, then OKX: all coins they trade, most traded first."""
    return (
        via(binance.TICKERS_24H, None, lambda tickers: ranked(map(from_binance, tickers))),
        via(kraken.TICKER_ALL, None, lambda tickers: ranked(map(from_kraken, tickers))),
        via(okx.SPOT_TICKERS, None, lambda tickers: ranked(map(from_okx, tickers))),
    )


def ranked(pairs: Iterable[Pair]) -> tuple[Pair, ...]:
    """Each coin once, most traded first: against USDT, or against USD where there is no such pair.

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
    """Neither money nor a leveraged token: BTCUP is one when BTC is traded as well, JUP is a coin."""
    stems = [base.removesuffix(suffix) for suffix in LEVERAGED if base.endswith(suffix)]
    return base not in MONEY and not any(stem in bases for stem in stems)


def from_binance(ticker: binance.Ticker) -> Pair:
    """A symbol such as BTCUSDT; one in another currency gets no quote."""
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


def from_kraken(ticker: kraken.Ticker) -> Pair:
    """The price of 24 hours ago is not in it, so neither is the change."""
    return Pair(
        base=ticker.base,
        quote=ticker.quote,
        price=ticker.last,
        change_24h_percent=None,
        volume=ticker.quote_volume,
        high=ticker.high,
        low=ticker.low,
        trades_24h=ticker.trades,
        venue="kraken",
    )


def from_okx(ticker: okx.SpotTicker) -> Pair:
    """The number of trades is not in it."""
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
    """The fields that are None in one of the pairs."""
    return [name for name in ("change_24h_percent", "trades_24h") if any(getattr(pair, name) is None for pair in pairs)]


def quoted_in_usd(pairs: Sequence[Pair]) -> list[str]:
    """The coins that are shown against USD."""
    return [pair.base for pair in pairs if pair.quote == "USD"]


def shown(pair: Pair) -> PairFigures:
    return PairFigures(
        pair=f"{pair.base}-{pair.quote}",
        price=numbers.price(pair.price),
        change_24h_percent=None if pair.change_24h_percent is None else percent(pair.change_24h_percent),
        volume_24h=float(round(pair.volume)),
        high_24h=numbers.price(pair.high),
        low_24h=numbers.price(pair.low),
        trades_24h=pair.trades_24h,
        venue=pair.venue,
    )
