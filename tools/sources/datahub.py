"""Read EIA's daily spot prices of crude oil and natural gas from DataHub, as CSV on GitHub (no key, public domain).

https://github.com/datasets/oil-prices https://github.com/datasets/natural-gas
"""

from datetime import date

from tools.parsing.fields import PRICE_JUMP, number_or_none, within
from tools.parsing.series import Series, calendar_date, nonzero, series, series_source, table
from tools.sources.hosts import DAY, RAW
from toolserver import Gauge, Get, Licence, Source, SourceChanged, read_rows

DATASETS = "https://raw.githubusercontent.com/datasets"
# The work of EIA is public domain, and the data set is under PDDL. EIA names a commercial vendor as the source of daily
# spot prices; whether the vendor has rights in them is not settled.
LICENCE = Licence(
    "yes", "U.S. Energy Information Administration, by way of DataHub", "https://opendatacommons.org/licenses/pddl/"
)
RECENT = 500  # observations to keep: the files go back for decades


def parse(body: str, low: float, high: float) -> Series:
    """Return the newest prices in dollars. A last line without its end may be cut, even inside a number."""
    if not body.endswith("\n"):
        raise SourceChanged("the last line is cut")

    def day(row: dict[str, str]) -> tuple[date, float | None]:
        price = number_or_none(row["Price"])
        return calendar_date(row["Date"]), None if price is None else within(price, low, high)

    return nonzero(series(read_rows(table(body, "Date", "Price"), day))[-RECENT:])


def _daily(name: str, path: str, gauge: str, low: float, high: float) -> Source[None, Series]:
    return series_source(
        name,
        Get(f"{DATASETS}/{path}", decode="text"),
        lambda body, query: parse(body, low, high),
        licence=LICENCE,
        hosts=RAW,
        conditional=True,
        newest_max_s=21 * DAY,
        gauge=Gauge(lambda prices: {gauge: prices[-1].value}, PRICE_JUMP),
    )


WTI_DAILY = _daily("Datahub.wti_daily", "oil-prices/main/data/wti-daily.csv", "oil", -50, 500)
"""Dollars a barrel; below zero on one day of 2020."""
HENRY_HUB_DAILY = _daily("Datahub.henry_hub_daily", "natural-gas/main/data/daily.csv", "nat_gas", 0, 200)
"""Dollars a million Btu."""
