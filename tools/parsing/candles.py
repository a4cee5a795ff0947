"""Read candles, which all exchanges deliver in much the same form, and build the sources of them."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

from tools.parsing.fields import number, traded_price, within
from toolserver import Get, HostGroup, Keys, Licence, Source

Q = TypeVar("Q")

LEEWAY = 1.001  # the day's high and low may lag behind the last trade


class Candle(NamedTuple):
    """One period of trading, which begins at `start`. `volume` is in the asset, not in money; None: not known."""

    start: datetime
    open: float
    high: float
    low: float
    close: float
    volume: float | None


def candle(start: datetime, opened: Any, high: Any, low: Any, close: Any, volume: Any) -> Candle:
    """Return a candle from numbers or strings. Raises ValueError when open or close lie outside low…high."""
    top, bottom = traded_price(high), traded_price(low)
    first, last = (within(traded_price(value), bottom / LEEWAY, top * LEEWAY) for value in (opened, close))
    return Candle(start, first, top, bottom, last, within(number(volume), 0, 1e15))


def newest_candle(candles: tuple[Candle, ...]) -> datetime | None:
    return max((each.start for each in candles), default=None)


def candle_source(
    name: str,
    request: Callable[[Q, Keys], Get],
    parse: Callable[[Any, Q], tuple[Candle, ...]],
    query: Q,
    *,
    licence: Licence,
    hosts: HostGroup,
    length_s: int,
    least: int = 30,
) -> Source[Q, tuple[Candle, ...]]:
    """Return the source of candles of one length. All lengths share a public name; the newest
    candle may be two lengths old.
    """
    return Source(
        name,
        request,
        parse,
        licence=licence,
        hosts=hosts,
        fresh_s=300,
        newest=newest_candle,
        newest_max_s=2 * length_s,
        least=least,
        probe=query,
    )
