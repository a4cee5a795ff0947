"""DataHub: EIA's daily spot prices of crude oil and natural gas as CSV on GitHub (no key, public domain).

https://github.com/datasets/oil-prices https://github.com/datasets/natural-gas
"""

from tools.shared.numbers import number_or_none, within
from tools.shared.series import Series, calendar_date, newest_at, nonzero, series, table
from tools.sources.coinbase import JUMP
from tools.sources.hosts import RAW
from toolserver.errors import SourceChanged
from toolserver.upstream.source import Gauge, Get, Keys, Licence, Source

DATASETS = "https://raw.githubusercontent.com/datasets"
LICENCE = Licence(
    "yes", "U.S. Energy Information Administration, by way of DataHub", "https://opendatacommons.org/licenses/pddl/"
)
RECENT = 500  # observations that are kept: the files go back for decades


def parse(body: str, low: float, high: float) -> Series:
    """The newest prices in dollars. A last line without its end may be cut, even inside a number."""
    if not body.endswith("\n"):
        raise SourceChanged("the last line is cut")
    values = ((calendar_date(row["Date"]), number_or_none(row["Price"])) for row in table(body, "Date", "Price"))
    known = series((day, None if value is None else within(value, low, high)) for day, value in values)
    return nonzero(known[-RECENT:])


def _daily(name: str, path: str, gauge: str, low: float, high: float) -> Source[None, Series]:
    def request(query: None, keys: Keys) -> Get:
        return Get(f"{DATASETS}/{path}", decode="text")

    return Source(
        name,
        request,
        lambda body, query: parse(body, low, high),
        licence=LICENCE,
        hosts=RAW,
        fresh_s=21600,
        keep_s=1209600,
        timeout_s=15,
        conditional=True,
        newest=newest_at,
        newest_max_s=21 * 86400,
        gauge=Gauge(lambda found: {gauge: found[-1].value}, JUMP),
    )


WTI_DAILY = _daily("Datahub.wti_daily", "oil-prices/main/data/wti-daily.csv", "oil", -50, 500)
"""Dollars a barrel; below zero on one day of 2020."""
HENRY_HUB_DAILY = _daily("Datahub.henry_hub_daily", "natural-gas/main/data/daily.csv", "nat_gas", 0, 200)
"""Dollars a million Btu."""
