"""Read Yahoo Finance: closes of several symbols at once, and the chart of one (JSON, no key, redistribution barred).

Unofficial; there is no published documentation.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from tools.parsing.fields import from_epoch, number, optional, positive
from tools.parsing.stock_quotes import Quotes, StockQuote, Symbols, gauged_prices, require_enough
from tools.sources.hosts import DAY, YAHOO
from toolserver import Gauge, Get, Keys, Licence, Proof, Source, SourceChanged, SourceEmpty, SourceRefused, read_rows

API = "https://query1.finance.yahoo.com/v8/finance"
LICENCE = Licence("no", "Yahoo Finance", "https://legal.yahoo.com/us/en/yahoo/terms/otos/index.html")
INDICES = {"SPX": "^GSPC", "DJI": "^DJI", "IXIC": "^IXIC", "RUT": "^RUT", "VIX": "^VIX"}
BATCH = 20  # symbols in one request


class Chart(NamedTuple):
    """The last price of a symbol, and its daily closes, oldest first."""

    symbol: str
    price: float
    at: datetime
    currency: str | None
    closes: tuple[tuple[datetime, float], ...]

    @property
    def previous_close(self) -> float | None:
        """The last close from a day before the price's day."""
        before = [close for at, close in self.closes if self.at - at > timedelta(hours=18)]
        return before[-1] if before else None


def to_yahoo_symbol(symbol: str) -> str:
    """Return a symbol in Yahoo's spelling."""
    return INDICES.get(symbol, symbol.replace(".", "-"))


def spark_request(query: Symbols, keys: Keys) -> Get:
    params = {"symbols": ",".join(map(to_yahoo_symbol, query.names)), "range": "5d", "interval": "1d"}
    return Get(f"{API}/spark", params=params)


def parse_spark(body: Any, query: Symbols) -> Quotes:
    """Return the last close and the one before it, in either of the two forms; a symbol without both is absent."""
    closes = _closes(body)
    quotes = {}
    for name in query.names:
        prices = [positive(value) for value in closes.get(to_yahoo_symbol(name), []) if value is not None]
        if len(prices) > 1:
            quotes[name] = StockQuote(name, price=prices[-1], previous_close=prices[-2])
    return require_enough(quotes, query)


def _closes(body: dict[str, Any]) -> Mapping[str, list[Any]]:
    if "finance" in body:
        raise _error(body["finance"])
    if "spark" not in body:
        return {symbol: row["close"] or [] for symbol, row in body.items() if row["timestamp"] is not None}
    if body["spark"]["result"] is None:
        return _none_found(body["spark"])
    return {row["symbol"]: _quote_member(row["response"][0]) for row in body["spark"]["result"]}


def _none_found(answer: dict[str, Any]) -> Mapping[str, list[Any]]:
    """Return an empty answer if the error means that nothing was found, and raise any other error."""
    if answer["error"]["code"] != "Not Found":
        raise _error(answer)
    return {}


def chart_request(query: str, keys: Keys) -> Get:
    return Get(f"{API}/chart/{query}", params={"range": "5d", "interval": "1d"})


def parse_chart(body: Any, query: str) -> Chart:
    """Return the first result. A range without trading has neither times nor closes."""
    if "finance" in body:
        raise _error(body["finance"])
    if body["chart"]["result"] is None:
        raise _error(body["chart"])
    result = body["chart"]["result"][0]
    meta = result["meta"]
    if meta["symbol"] != query:
        raise SourceChanged(f"{meta['symbol']!r:.20} for {query}")
    closes = zip(result.get("timestamp") or [], _quote_member(result), strict=False)
    return Chart(
        symbol=str(meta["symbol"])[:20],
        price=positive(meta["regularMarketPrice"]),
        at=from_epoch(meta["regularMarketTime"]),
        currency=optional(lambda text: str(text)[:8], meta.get("currency")),
        closes=read_rows(
            (pair for pair in closes if pair[1] is not None), lambda pair: (from_epoch(pair[0]), number(pair[1]))
        ),
    )


def _quote_member(result: dict[str, Any]) -> list[Any]:
    return result["indicators"]["quote"][0].get("close") or []


def _error(answer: dict[str, Any]) -> Exception:
    code = answer["error"]["code"]
    if code == "Unauthorized":
        return SourceRefused("unauthorized")
    return SourceEmpty("no such symbol") if code == "Not Found" else SourceChanged(f"error {code!r:.40}")


SPARK = Source(
    "Yahoo.spark",
    spark_request,
    parse_spark,
    licence=LICENCE,
    hosts=YAHOO,
    fresh_s=60,
    ageless="its times are the openings of sessions, not the times of prices",
    least=0,
    proof=Proof.harmless("the query names the symbols, and those that are missing are counted in a warning"),
    also=frozenset({404}),  # none of the symbols exists
    user_input=True,  # a caller's arguments may determine which symbols another provider lacks
    gauge=Gauge(gauged_prices, 0.4),
    probe=Symbols(("SPY",)),
)
CHART = Source(
    "Yahoo.chart",
    chart_request,
    parse_chart,
    licence=LICENCE,
    hosts=YAHOO,
    fresh_s=300,
    newest=lambda chart: chart.at,
    newest_max_s=5 * DAY,
    probe="GC=F",
)
