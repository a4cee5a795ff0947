"""Read the broad dollar index, every day since 2006, from the Federal Reserve's H.10 release
(HTML, no key, public domain).

https://www.federalreserve.gov/releases/h10/summary/
"""

import datetime as dt
from html.parser import HTMLParser

from tools.parsing.fields import number_or_none, within
from tools.parsing.series import Series, series, series_source
from tools.sources.hosts import DAY, MACRO
from toolserver import MIB, Gauge, Get, Licence, SourceChanged, read_rows

BROAD = "https://www.federalreserve.gov/releases/h10/summary/jrxwtfb_nb.htm"
LICENCE = Licence(
    "yes", "Board of Governors of the Federal Reserve System", "https://www.federalreserve.gov/disclaimer.htm"
)
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
PLAUSIBLE = (60, 200)  # January 2006 = 100


class _Rows(HTMLParser):
    """Collects the rows of a page's tables as lists of texts; a table in which the page breaks off does not count."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self._open: list[list[str]] = []  # rows of a table that has not ended
        self._row: list[str] = []
        self._in_cell = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "tr":
            self._end_row()
        if tag in ("td", "th"):
            self._row.append("")
            self._in_cell = True

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._in_cell = False
        elif tag == "tr":
            self._end_row()
        elif tag == "table":
            self._end_row()
            self.rows += self._open
            self._open = []

    def handle_data(self, data: str) -> None:
        if self._in_cell:
            self._row[-1] += data

    def _end_row(self) -> None:
        if self._row:
            self._open.append([text.strip() for text in self._row])
        self._row, self._in_cell = [], False


def parse(body: str, query: None) -> Series:
    """Return the rows with a date and a value; ND is a day without one. Other rows are headings.

    Raises:
        SourceChanged: the page has no complete table.
    """
    page = _Rows()
    page.feed(body)
    if not page.rows:
        raise SourceChanged("no whole table")
    return series(read_rows((row for row in page.rows if len(row) == 2), _observation))


def _observation(row: list[str]) -> tuple[dt.date, float | None] | None:
    day = _day(row[0])
    return None if day is None else (day, _value(row[1]))


def _day(text: str) -> dt.date | None:
    """Read a date such as `4-JAN-27`; None for any other text. The table begins in 2006, so the century is this one."""
    parts = text.split("-")
    if len(parts) != 3 or parts[1].lower() not in MONTHS:
        return None
    year = int(parts[2])
    return dt.date(year if year > 99 else 2000 + year, MONTHS.index(parts[1].lower()) + 1, int(parts[0]))


def _value(text: str) -> float | None:
    value = None if text.upper() == "ND" else number_or_none(text)
    return None if value is None else within(value, *PLAUSIBLE)


BROAD_DOLLAR_INDEX = series_source(
    "FederalReserve.broad_dollar_index",
    Get(BROAD, headers={"Accept": "text/html"}, decode="text"),
    parse,
    licence=LICENCE,
    hosts=MACRO,
    timeout_s=20,
    max_bytes=4 * MIB,
    newest_max_s=14 * DAY,
    least=250,
    gauge=Gauge(lambda observations: {"dollar_index": observations[-1].value}, 0.3),
)
