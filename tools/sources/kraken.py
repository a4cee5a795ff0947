"""Read Kraken market data: pairs, tickers and candles (JSON, no key; redistribution is barred).

The list of pairs says what a pair trades; its name does not: `XBTPYUSD` is bitcoin in PYUSD.

https://docs.kraken.com/api/docs/rest-api/get-ticker-information
"""

from typing import Any, NamedTuple

from tools.parsing.candles import LEEWAY, Candle, candle, candle_source
from tools.parsing.fields import PRICE_JUMP, clean, from_epoch, number, traded_price, within
from tools.sources.hosts import DAY, EXCHANGES, WEEK
from toolserver import (
    MIB,
    Gauge,
    Get,
    Keys,
    Licence,
    Source,
    SourceChanged,
    SourceEmpty,
    SourceLimited,
    SourceRefused,
    read_rows,
)

PUBLIC = "https://api.kraken.com/0/public"
LICENCE = Licence("no", "Kraken", "https://www.kraken.com/legal")
NAMES = {"XBT": "BTC", "XDG": "DOGE"}  # the names that all other venues use
LETTERED = frozenset(
    "XETC XETH XLTC XMLN XREP XXBT XXDG XXLM XXMR XXRP XZEC ZAUD ZCAD ZEUR ZGBP ZJPY ZUSD".split()
)  # the oldest assets have a letter for their kind in front
ANSWERED = {"XBTUSD": "XXBTZUSD", "ETHUSD": "XETHZUSD"}  # the name of a pair in the answer, where it differs
GAUGED = {"XXBTZUSD": "BTC-USD", "XETHZUSD": "ETH-USD", "PAXGUSD": "PAXG-USD"}


class AssetPair(NamedTuple):
    """Base and quote of a pair, by their common names: BTC in USD."""

    base: str
    quote: str


class KrakenTicker(NamedTuple):
    """A pair's last 24 hours, without the price of 24 hours ago.

    `name` is Kraken's own and does not tell what is traded. `volume` is in the base asset;
    times `vwap`, the mean price weighted by volume, it is in the quote currency.
    """

    name: str
    last: float
    high: float
    low: float
    volume: float
    vwap: float
    trades: int

    @property
    def quote_volume(self) -> float:
        return self.volume * self.vwap


class OhlcQuery(NamedTuple):
    """XBTUSD candles of a length in minutes."""

    interval_min: int


def checked(body: Any) -> dict[str, Any]:
    """Return `result` when `error` is empty, and raise a SourceError otherwise: errors come with status 200."""
    errors = body["error"]
    if not errors:
        return body["result"]  # type: ignore[no-any-return]
    text = clean(str(errors[0]), 80)
    if "too many" in text.lower() or "rate limit" in text.lower():
        raise SourceLimited(text)
    raise (SourceChanged if text.startswith("EQuery") else SourceRefused)(text)


def request(pair: str, keys: Keys) -> Get:
    return Get(f"{PUBLIC}/Ticker", params={"pair": pair})


def parse(body: Any, pair: str) -> KrakenTicker:
    """Return the only pair of the answer, which may have another name than the requested one: XBTUSD is XXBTZUSD."""
    result = checked(body)
    if not result:
        raise SourceEmpty("no pair")
    [(name, row)] = result.items()
    if name not in (pair, ANSWERED.get(pair)):
        raise SourceChanged(f"{clean(name, 20)} for {pair}")
    ticker = _ticker(name, row)
    within(ticker.last, traded_price(ticker.low) / LEEWAY, ticker.high * LEEWAY)
    return ticker


def parse_all(body: Any, query: None) -> tuple[KrakenTicker, ...]:
    """Return all pairs except those that are no longer traded."""
    return read_rows(checked(body).items(), lambda pair: _traded(*pair))


def _traded(name: str, row: dict[str, Any]) -> KrakenTicker | None:
    return _ticker(name, row) if number(row["c"][0]) > 0 else None


def _ticker(name: str, row: dict[str, Any]) -> KrakenTicker:
    return KrakenTicker(
        name=clean(name, 30),
        last=traded_price(row["c"][0]),
        high=within(number(row["h"][1]), 0, 1e12),
        low=within(number(row["l"][1]), 0, 1e12),
        volume=within(number(row["v"][1]), 0, 1e18),
        vwap=within(number(row["p"][1]), 0, 1e12),
        trades=int(number(row["t"][1])),
    )


def parse_pairs(body: Any, query: None) -> dict[str, AssetPair]:
    """Return what each pair trades, by its name in the tickers."""
    return dict(read_rows(checked(body).items(), lambda pair: (clean(pair[0], 30), _sides(pair[1]))))


def _sides(row: dict[str, Any]) -> AssetPair:
    """Return base and quote from `wsname`, such as `XBT/USD`, or else from their codes, `XXBT` and `ZUSD`."""
    named = row.get("wsname")
    base, quote = named.split("/") if named else (_plain(row["base"]), _plain(row["quote"]))
    if not base or not quote:
        raise SourceChanged(f"a pair of {base!r} and {quote!r}"[:60])
    return AssetPair(NAMES.get(base, clean(base, 20)), NAMES.get(quote, clean(quote, 20)))


def _plain(code: str) -> str:
    return code[1:] if code in LETTERED else code


def ohlc_request(query: OhlcQuery, keys: Keys) -> Get:
    return Get(f"{PUBLIC}/OHLC", params={"pair": "XBTUSD", "interval": str(query.interval_min)})


def parse_ohlc(body: Any, query: OhlcQuery) -> tuple[Candle, ...]:
    """Return every row, oldest first; the last one is still open. The pair's rows come with a scalar `last`."""
    series = [rows for rows in checked(body).values() if isinstance(rows, list)]
    if not series:
        raise SourceEmpty("no rows")
    [rows] = series
    return read_rows(rows, _row)


def _row(row: list[Any]) -> Candle:
    start, opened, high, low, close, _, volume = row[:7]
    return candle(from_epoch(start), opened, high, low, close, volume)


TICKER = Source(
    "Kraken.ticker",
    request,
    parse,
    licence=LICENCE,
    hosts=EXCHANGES,
    fresh_s=15,
    timeout_s=5,
    moves=lambda ticker: (ticker.last, ticker.volume, ticker.trades),
    gauge=Gauge(lambda ticker: {GAUGED.get(ticker.name, ticker.name): ticker.last}, PRICE_JUMP),
    probe="XBTUSD",
)


def _gauged(tickers: tuple[KrakenTicker, ...]) -> dict[str, float]:
    return {GAUGED[t.name]: t.last for t in tickers if t.name in ANSWERED.values()}


TICKER_ALL = Source(
    "Kraken.ticker_all",
    Get(f"{PUBLIC}/Ticker"),
    parse_all,
    licence=LICENCE,
    hosts=EXCHANGES,
    fresh_s=60,
    moves=lambda tickers: sum(ticker.trades for ticker in tickers),
    timeout_s=10,
    least=50,
    untrusted=True,
    gauge=Gauge(_gauged, PRICE_JUMP),
)


ASSET_PAIRS = Source(
    "Kraken.asset_pairs",
    Get(f"{PUBLIC}/AssetPairs"),
    parse_pairs,
    licence=LICENCE,
    hosts=EXCHANGES,
    fresh_s=DAY,
    ageless="names of pairs, which trades do not change and which carry no timestamp",
    keep_s=WEEK,
    timeout_s=10,
    max_bytes=6 * MIB,
    least=50,
    untrusted=True,
)


def ohlc(interval_min: int) -> Source[OhlcQuery, tuple[Candle, ...]]:
    """Return the source of XBTUSD candles of a length in minutes."""
    return candle_source(
        "Kraken.ohlc",
        ohlc_request,
        parse_ohlc,
        OhlcQuery(interval_min),
        licence=LICENCE,
        hosts=EXCHANGES,
        length_s=60 * interval_min,
        least=31,
    )


OHLC_HOUR = ohlc(60)
OHLC_DAY = ohlc(1440)
