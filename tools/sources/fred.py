"""Read any series by id from FRED, Federal Reserve Bank of St. Louis, with a key as JSON and without one as CSV.

`FRED_API_KEY` is needed for the JSON. https://fred.stlouisfed.org/docs/api/fred/
"""

from collections.abc import Mapping
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple

from tools.parsing.fields import number_or_none, within
from tools.parsing.series import Series, calendar_date, newest_at, nonzero, series, table
from tools.sources.hosts import HOUR, MACRO, WEEK
from toolserver import Gauge, Get, Keys, Licence, Source, SourceChanged, SourceEmpty, SourceRefused, read_rows

API = "https://api.stlouisfed.org/fred/series/observations"
GRAPH = "https://fred.stlouisfed.org/graph/fredgraph.csv"
# Several readers of the terms (July to October 2026) find that they bar storing, caching, and use with language models;
# others use series of the citation class with credit. This server stores and caches for agents, so "no", to be safe.
LICENCE = Licence("no", "FRED, Federal Reserve Bank of St. Louis", "https://fred.stlouisfed.org/legal/terms/")
RATES = {"DFF": "fed_rate", "DGS2": "treasury_2y", "DGS10": "treasury_10y", "MORTGAGE30US": "mortgage_30y"}
PLAUSIBLE = dict.fromkeys(RATES, (-2.0, 25.0)) | {
    "CPIAUCSL": (50.0, 2000.0),
    "CPIAUCNS": (50.0, 2000.0),
    "UNRATE": (0.0, 50.0),
    "A191RL1Q225SBEA": (-60.0, 60.0),
    "DTWEXBGS": (60.0, 200.0),
}
ANYTHING = (-1e9, 1e9)
RECENT = 10  # observations, of which at least one must be known


class ObservationsQuery(NamedTuple):
    """The newest observations of one series."""

    series_id: str
    limit: int = 100


class GraphQuery(NamedTuple):
    """Series of one frequency since a day, in one file."""

    ids: tuple[str, ...]
    since: date


Charts = Mapping[str, Series]
"""Series by id."""


def observations_request(query: ObservationsQuery, keys: Keys) -> Get | None:
    key = keys.get("FRED_API_KEY")
    if not key:
        return None
    params = {"series_id": query.series_id, "sort_order": "desc", "limit": str(query.limit), "file_type": "json"}
    return Get(API, params=params | {"api_key": key})


def parse_observations(body: Any, query: ObservationsQuery) -> Charts:
    """Return the one series that was requested."""
    if "error_code" in body:  # the message may quote the key
        raise SourceRefused(f"error {body['error_code']!r:.10}")
    pairs = read_rows(
        body["observations"], lambda row: (date.fromisoformat(row["date"]), _value(query.series_id, row["value"]))
    )
    if all(value is None for _, value in sorted(pairs, key=lambda pair: pair[0])[-RECENT:]):
        raise SourceEmpty("no recent value")
    return {query.series_id: nonzero(series(pairs))}


def graph_request(query: GraphQuery, keys: Keys) -> Get:
    params = {"id": ",".join(query.ids), "cosd": query.since.isoformat()}
    return Get(GRAPH, params=params, decode="text")


def parse_graph(body: str, query: GraphQuery) -> Charts:
    """Return every requested series, with a value. A last line without its end may be cut, even inside a number."""
    if not body.endswith("\n"):
        raise SourceChanged("the last line is cut")
    rows = table(body, *query.ids)
    read = read_rows(rows, lambda row: (_day(row), {name: _value(name, row[name]) for name in query.ids}))
    charts = {name: nonzero(series((day, values[name]) for day, values in read)) for name in query.ids}
    for name, observations in charts.items():
        if not observations:
            raise SourceEmpty(f"no value of {name}")
    return charts


def _day(row: dict[str, str]) -> date:
    return calendar_date(row.get("observation_date") or row["DATE"])  # the name changed in 2024


def _value(series_id: str, text: Any) -> float | None:
    value = number_or_none(text)
    return None if value is None else within(value, *PLAUSIBLE.get(series_id, ANYTHING))


def newest(charts: Charts) -> datetime | None:
    return newest_at(*charts.values())


def _newest_rates(charts: Charts) -> dict[str, float]:
    return {RATES[name]: observations[-1].value for name, observations in charts.items() if name in RATES}


OBSERVATIONS = Source(
    "FRED.observations",
    observations_request,
    parse_observations,
    licence=LICENCE,
    hosts=MACRO,
    fresh_s=HOUR,
    ageless="a series may be daily or quarterly: its reader in tools/shared judges its age",
    keep_s=2 * WEEK,
    newest=newest,
    gauge=Gauge(_newest_rates, 3, absolute=True),
    probe=ObservationsQuery("DFF", 10),
)
GRAPH_CSV = Source(
    "FRED.graph_csv",
    graph_request,
    parse_graph,
    licence=LICENCE,
    hosts=MACRO,
    fresh_s=6 * HOUR,
    ageless="a series may be daily or quarterly: its reader in tools/shared judges its age",
    keep_s=2 * WEEK,
    timeout_s=15,
    newest=newest,
    key=lambda query: query.ids,  # the day only limits the size of the answer
    gauge=Gauge(_newest_rates, 3, absolute=True),
    probe=lambda now: GraphQuery(("DGS10",), now.date() - timedelta(days=120)),
)
