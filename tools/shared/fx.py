"""Get dollar exchange rates: a chain of providers that each return the newest published day and the one before."""

from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from typing import Literal, NamedTuple

from tools.parsing.series import CODES, FxDay, FxDays, midnight
from tools.sources.currency_api import USD_RATES
from tools.sources.ecb import REFERENCE_RATES_90D
from tools.sources.frankfurter import USD_TIMESERIES, FxWindow
from toolserver import DayLine, Definition, Fallback, FallbackReader, Meaning, SourceError, via

WINDOW = timedelta(days=50)  # holds 30 business days
SOURCES = (USD_TIMESERIES, REFERENCE_RATES_90D, USD_RATES)
SATURDAY = 5


class FxRates(NamedTuple):
    """Published days, oldest first: at least one. `kind` separates the ECB's fixings from mid-market rates."""

    days: FxDays
    kind: Literal["ecb_reference", "market_mid"]

    @property
    def newest(self) -> FxDay:
        return self.days[-1]

    @property
    def previous(self) -> FxDay | None:
        """The day published before the newest, which need not be the previous calendar day."""
        return self.days[-2] if len(self.days) > 1 else None

    @property
    def missing(self) -> list[str]:
        """Our currencies that the newest day does not quote."""
        return [code for code in CODES if code not in self.newest.per_usd]


def usd_fallbacks(today: date) -> tuple[Fallback[FxRates], ...]:
    """Return the providers in their order of use; the last one has only single days, no history."""
    return (
        via(USD_TIMESERIES, _window(today), lambda days: FxRates(days, "ecb_reference")),
        via(REFERENCE_RATES_90D, None, lambda days: FxRates(days, "ecb_reference")),
        _market_mid,
    )


async def _market_mid(reading: FallbackReader) -> FxRates:
    latest = (await reading.read(USD_RATES)).day
    try:
        before = await reading.read(USD_RATES, weekday_before(latest.date))
    except SourceError:
        return FxRates((latest,), "market_mid")
    return FxRates((before.day, latest), "market_mid")


def _window(today: date) -> FxWindow:
    return FxWindow(today - WINDOW, today)


def fx_days(code: str) -> tuple[DayLine, ...]:
    """Return where the published rates of a currency are kept, because the newest one is read with those before it."""
    return (
        DayLine(USD_TIMESERIES, lambda now: _window(now.date()), _rates_of(code)),
        DayLine(REFERENCE_RATES_90D, None, _rates_of(code)),
    )


def _rates_of(code: str) -> Callable[[FxDays], Sequence[tuple[datetime, float]]]:
    return lambda days: [(midnight(day.date), day.per_usd[code]) for day in days if code in day.per_usd]


def weekday_before(day: date) -> date:
    """Return the last Monday to Friday before a day."""
    before = day - timedelta(days=1)
    while before.weekday() >= SATURDAY:
        before -= timedelta(days=1)
    return before


REFERENCE_RATES = Meaning(
    "forex.rates",
    "The ECB's reference rates of a working day, published about 16:00 CET; the day before is the published day "
    "before, on a Monday the Friday",
    definition=Definition(publisher="European Central Bank"),
)
